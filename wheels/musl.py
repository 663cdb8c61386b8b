"""A Python that is linked with musl instead of glibc, built from Debian's sources with Zig.

Besides Zig it needs make, and for libffi autoconf, automake, libtool and libltdl-dev.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pythons import FROM_SOURCE, JOBS, WORK, archive, run, source, zig

TARGET = "x86_64-linux-musl"


def python() -> Path:
    """Build Python with the libraries that NumPy and SciPy need, and return its executable."""
    prefix = WORK / "python-musl"
    python = prefix / f"bin/python{FROM_SOURCE}"
    if python.exists():
        return python
    debian = archive(FROM_SOURCE, "amd64")
    loader = debian.unpack("musl") / "usr/lib/ld-musl-x86_64.so.1"
    compiler = {
        "CC": f"{zig()} cc -target {TARGET}",
        # Python's configure recognizes musl by this name in its stdarg.h, which Zig replaces.
        "CPP": f"{zig()} cc -target {TARGET} -E -D__DEFINED_va_list",
        "CXX": f"{zig()} c++ -target {TARGET}",
        "AR": f"{zig()} ar",
        "RANLIB": f"{zig()} ranlib",
        # Zig makes an error of __DATE__, which Python prints at its start.
        "CFLAGS": "-O2 -fPIC -fno-sanitize=undefined -Wno-date-time",
        "PKG_CONFIG": "/bin/false",  # it would find this computer's libraries, which need glibc
    }

    def make(name: str, folder: Path, *options: str, **env: str) -> None:
        build = WORK / f"build-musl-{name}"
        shutil.rmtree(build, ignore_errors=True)
        shutil.copytree(folder, build, symlinks=True)
        log = WORK / f"log/musl-{name}.txt"
        if not (build / "configure").exists():
            run("autoreconf", "--install", cwd=build, log=log)
        run("./configure", f"--prefix={prefix}", *options, cwd=build, log=log, **compiler, **env)
        run("make", f"-j{JOBS}", cwd=build, log=log)
        run("make", "install", cwd=build, log=log)

    make("zlib", debian.source("zlib"), "--static")
    make("libffi", debian.source("libffi"), "--disable-shared", "--host=x86_64-linux-musl",
         "--disable-docs")  # fmt: skip
    make("python", source(), "--host=x86_64-linux-musl", "--build=x86_64-linux-gnu",
         "--with-build-python=" + str(_build_python()), "--disable-test-modules",
         "--without-ensurepip", "--disable-ipv6", "ac_cv_file__dev_ptmx=yes",
         "ac_cv_file__dev_ptc=no",
         ZLIB_CFLAGS=f"-I{prefix}/include", ZLIB_LIBS=f"-L{prefix}/lib -lz",
         LIBFFI_CFLAGS=f"-I{prefix}/include", LIBFFI_LIBS=f"-L{prefix}/lib -lffi",
         LDFLAGS=f"-dynamic -Wl,--dynamic-linker={loader}")  # fmt: skip
    return python


def _build_python() -> Path:
    """Return an interpreter of the same version, which cross-compiling Python needs."""
    from pythons import native

    return native(FROM_SOURCE)
