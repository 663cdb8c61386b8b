"""Interpreters and headers of other Python versions and platforms, from Debian's packages.

Nothing here is installed: packages are unpacked into `build/wheels`, and what Debian has no package
for (free-threaded Python, Python with musl, the headers of Windows) is made from sources of Debian
and Ubuntu.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from debian import Archive, ubuntu_archive

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "wheels"
JOBS = os.environ.get("JOBS", "2")

# The Debian release that has each version.
SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "testing", "3.15": "sid"}
# The version whose source is used for Python with musl and for the headers of Windows.
FROM_SOURCE = "3.13"
# Free-threaded versions are built from source. Mirrors may lack Debian's source of 3.14, so that of
# Ubuntu is used. Add a version here when a stable release of either has it.
FREE_THREADED = ("3.14t",)
UBUNTU_SUITES = {"3.14": "resolute"}


def run(*command: object, cwd: Path | None = None, log: Path | None = None, **env: str) -> None:
    """Run a command, and end the script with its output if it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **env}, check=False,
        stdout=subprocess.PIPE if log else None, stderr=subprocess.STDOUT if log else None,
    )  # fmt: skip
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(done.stdout)
    if done.returncode:
        if log:
            print(done.stdout.decode(errors="replace")[-4000:])
        raise SystemExit(f"failed: {' '.join(map(str, command))}" + (f"; see {log}" if log else ""))


def zig() -> Path:
    """Return the executable in the package ziglang."""
    import ziglang  # type: ignore[import-not-found]

    return Path(ziglang.__file__).with_name("zig")


def archive(version: str, architecture: str) -> Archive:
    """Return the Debian release with a version of Python."""
    return Archive(SUITES[version], architecture, WORK / "debian")


def unpacked(version: str, architecture: str) -> Path:
    """Unpack an interpreter with its headers, and return the root folder."""
    packages = (f"python{version}", f"libpython{version}-dev", "libstdc++6")
    return archive(version, architecture).unpack(*packages)


def runnable(version: str, architecture: str) -> Path:
    """Unpack an interpreter, and return a script that runs it.

    The interpreter may need a newer glibc than this computer has, or another CPU. So the script
    starts it with its own dynamic loader, or in QEMU. For Python, the script is the interpreter:
    sys.executable, virtual environments and child processes use it.
    """
    root = unpacked(version, architecture)
    script = root / f"usr/bin/python{version}"
    program = script.with_suffix(".program")
    if not program.exists():
        if not (root / "lib").exists():  # from Debian 13 on, a link that no package contains
            (root / "lib").symlink_to("usr/lib")
        script.rename(program)
        if architecture == "amd64":
            libraries = root / "lib/x86_64-linux-gnu"
            path = f"{libraries}:{root / 'usr/lib/x86_64-linux-gnu'}"
            start = f"{libraries}/ld-linux-x86-64.so.2 --library-path {path} --argv0"
        else:
            start = f"qemu-aarch64-static -L {root} -0"
        script.write_text(f'#!/bin/sh\nexec {start} "$0" {program} "$@"\n')
        script.chmod(0o755)
    return script


def native(version: str) -> Path:
    """Return an interpreter of this version that runs on this computer.

    Raises LookupError if there is none, as may be the case for 3.12.
    """
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return Path(sys.executable)
    if version in FREE_THREADED:
        return free_threaded(version)
    return runnable(version, "amd64") if version in SUITES else installed(version)


def installed(version: str) -> Path:
    """Return an interpreter from the PATH, or from pyenv, whose commands need a version to work."""
    for variables in ({}, {"PYENV_VERSION": version}):
        done = subprocess.run(
            ["/usr/bin/env", f"python{version}", "-c", "import sys; print(sys.executable)"],
            env={**os.environ, **variables}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return Path(done.stdout.strip())
    raise LookupError(f"Debian has no package of Python {version}, and it is not installed")


def include_folder(version: str, architecture: str) -> Path:
    """Return the folder with Python.h of a version for Linux."""
    if version in FREE_THREADED:
        return free_threaded(version).parents[1] / f"include/python{version}"
    folder = WORK / f"headers-{version}-{architecture}"
    if not folder.exists():
        include = unpacked(version, architecture) / "usr/include"
        shutil.copytree(include / f"python{version}", folder)
        # Debian's pyconfig.h includes that of the architecture, which is in another folder.
        (configuration,) = include.glob(f"*-linux-gnu/python{version}/pyconfig.h")
        shutil.copy(configuration, folder)
        include_stdio(folder)
    return folder


def include_stdio(folder: Path) -> None:
    """Make Python.h include stdio.h.

    Nanobind 3.1 uses `stderr` without including it. Python.h does not include it for the stable
    ABI, and Zig's C++ library does not either.
    """
    with (folder / "pyconfig.h").open("a") as file:
        file.write("#include <stdio.h>\n")


def source(version: str = FROM_SOURCE) -> Path:
    """Return the source of Python."""
    if version in UBUNTU_SUITES:
        suite = ubuntu_archive(UBUNTU_SUITES[version], WORK / "debian")
    else:
        suite = archive(version, "amd64")
    return suite.source(f"python{version}")


def free_threaded(version: str) -> Path:
    """Build a free-threaded Python for this computer, and return its executable."""
    prefix = WORK / f"python-{version}"
    python = prefix / f"bin/python{version}"
    if not python.exists():
        folder = WORK / f"build-{version}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        options = ("--disable-gil", "--disable-test-modules", "--without-ensurepip")
        log = str(WORK / f"log/python-{version}")
        run(source(version.rstrip("t")) / "configure", f"--prefix={prefix}", *options, cwd=folder,
            log=Path(f"{log}-configure.txt"))  # fmt: skip
        run("make", f"-j{JOBS}", cwd=folder, log=Path(f"{log}-make.txt"))
        run("make", "install", cwd=folder, log=Path(f"{log}-install.txt"))
    return python


def macos_headers() -> Path:
    """Return the headers for macOS.

    They are those of Linux. The two systems differ in functions that may be missing, but not in
    what the stable ABI uses: the sizes of the types are the same.
    """
    return include_folder(FROM_SOURCE, "amd64")


def windows_headers() -> Path:
    """Return the headers for Windows."""
    folder = WORK / "headers-windows"
    if not folder.exists():
        shutil.copytree(source() / "Include", folder)
        shutil.copy(source() / "PC/pyconfig.h.in", folder / "pyconfig.h")
        include_stdio(folder)
    return folder


def windows_library() -> Path:
    """Return an import library of python3.dll, which has the functions of the stable ABI."""
    library = WORK / "python3.lib"
    if not library.exists():
        exports = (source() / "PC/python3dll.c").read_text()
        lines = ["LIBRARY python3.dll", "EXPORTS"]
        lines += re.findall(r"^EXPORT_FUNC\((\w+)\)", exports, re.MULTILINE)
        lines += [f"{name} DATA" for name in re.findall(r"^EXPORT_DATA\((\w+)\)", exports, re.M)]
        definitions = WORK / "python3.def"
        definitions.write_text("\n".join(lines) + "\n")
        run(zig(), "dlltool", "-m", "i386:x86-64", "-D", "python3.dll", "-d", definitions,
            "-l", library)  # fmt: skip
    return library
