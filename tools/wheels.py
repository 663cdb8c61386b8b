"""Build wheels on one computer with Linux on x86-64, with Zig as the compiler: `make wheels`.

    python tools/wheels.py linux     the wheels for x86-64 and aarch64, tests of aarch64 with QEMU
    python tools/wheels.py foreign   compile and link for macOS on arm64 and for Windows
    python tools/wheels.py smoke     the smoke test with the wheel for x86-64

They are for the version of Python that runs the script, and show before a release that the code
works elsewhere. Those that are published come from the workflow `wheels.yml`. The interpreter for
aarch64 is Debian's, unpacked but not installed: this needs Debian with the same version of Python
and its package qemu-user-static.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
PIP = (sys.executable, "-m", "pip")
GLIBC = "2.28"  # the oldest to run with, as in pyproject.toml (tool.cibuildwheel)
TEST_PACKAGES = ("numpy", "scipy", "scikit-learn", "pytest", "hypothesis", "pandas", "sybil")
# The code that is compiled once per instruction set. Under QEMU the others take too long.
HOT_TESTS = [f"tests/cpp/isa/test_{name}.py" for name in ("dispatch", "lanes", "tiles")]


@dataclass(frozen=True)
class Target:
    """A platform to compile for."""

    zig: str  # Zig's name of it
    platform: str  # Python's name of it
    suffix: str  # of the module


CPYTHON = f".cpython-{VERSION.replace('.', '')}-"
LINUX = {
    machine: Target(
        f"{machine}-linux-gnu.{GLIBC}", f"linux-{machine}", f"{CPYTHON}{machine}-linux-gnu.so"
    )
    for machine in ("x86_64", "aarch64")
}
FOREIGN = {
    "macos": Target("aarch64-macos", "macosx-11.0-arm64", f"{CPYTHON}darwin.so"),
    "windows": Target(
        "x86_64-windows-gnu", "win-amd64", f".cp{VERSION.replace('.', '')}-win_amd64.pyd"
    ),
}


def run(*command: object, **variables: str) -> None:
    """Run a command, and end the script if it fails."""
    words = [str(word) for word in command]
    if subprocess.run(words, cwd=ROOT, env={**os.environ, **variables}, check=False).returncode:
        raise SystemExit(f"failed: {' '.join(words)}")


def build(name: str, target: Target, *settings: str) -> Path:
    """Build a wheel of a target, and return its path."""
    import ziglang  # type: ignore[import-not-found]

    defines: dict[str, object] = {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "tools/zig.cmake",
        "ZIG": Path(ziglang.__file__).with_name("zig"),
        "ZIG_TARGET": target.zig,
    }
    if name != "x86_64":
        defines["Python_INCLUDE_DIR"] = headers()
    if name == "windows":
        defines["Python_LIBRARY"] = import_library(defines["ZIG"])
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    run(
        *PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder,
        f"-Cbuild-dir={WORK}/cmake-{name}", *settings,
        *(f"-Ccmake.define.{key}={value}" for key, value in defines.items()), ROOT,
        _PYTHON_HOST_PLATFORM=target.platform, SETUPTOOLS_EXT_SUFFIX=target.suffix,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB", flush=True)
    return wheel


# Configuration of Python that holds for all 64-bit targets, instead of that of this computer.
PYCONFIG = """
#include <stdio.h>
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#undef SIZEOF_LONG
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#define SIZEOF_PID_T 4
#define HAVE_SSIZE_T 1
#ifdef _WIN32
#define MS_WINDOWS
#define MS_WIN64
#define HAVE_DECLSPEC_DLL
#define Py_ENABLE_SHARED
#define NT_THREADS
#else
#define HAVE_PTHREAD_H 1
#endif
"""


def headers() -> Path:
    """Return a folder with the headers of Python for another platform than this computer's."""
    folder = WORK / "include"
    shutil.copytree(sysconfig.get_path("include"), folder, dirs_exist_ok=True)
    (folder / "pyconfig.h").write_text(PYCONFIG)
    return folder


def import_library(zig: object) -> Path:
    """Return an import library for Windows with all that the headers of Python declare."""
    library = WORK / f"python{VERSION.replace('.', '')}"
    text = "".join(header.read_text() for header in headers().rglob("*.h"))
    functions = re.findall(r"PyAPI_FUNC\([^)]*\)\s*(\w+)", text)
    data = re.findall(r"PyAPI_DATA\([^)]*\)\s*(\w+)", text)
    names = sorted({*functions, *(f"{name} DATA" for name in data)})
    definitions = library.with_suffix(".def")
    definitions.write_text("\n".join([f"LIBRARY {library.name}.dll", "EXPORTS", *names, ""]))
    run(zig, "dlltool", "-m", "i386:x86-64", "-d", definitions, "-l", library.with_suffix(".lib"))
    return library.with_suffix(".lib")


def linux() -> None:
    """Build the wheels for Linux, and run the tests of hot code for aarch64."""
    for machine, target in LINUX.items():
        # Named by the oldest systems that it runs on.
        run("auditwheel", "repair", "--plat=auto", "--wheel-dir", DIST, build(machine, target))
    wheel, site = find("aarch64"), WORK / "site-aarch64"
    shutil.rmtree(site, ignore_errors=True)
    tags = (f"--platform=manylinux_2_{minor}_aarch64" for minor in range(28, 16, -1))
    run(*PIP, "install", "--quiet", "--target", site, *tags, "--only-binary=:all:", wheel,
        *TEST_PACKAGES)  # fmt: skip
    python = emulated_python()
    run(python, "tests/smoke.py", PYTHONPATH=str(site))
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *HOT_TESTS, PYTHONPATH=str(site))


def emulated_python() -> Path:
    """Unpack Debian's Python for arm64, and return a script that runs it in QEMU."""
    folder = WORK / "arm64"
    root, script = folder / "root", folder / f"python{VERSION}"
    if script.exists():
        return script
    for name in ("state/lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    options = {
        "APT::Architecture": "arm64", "APT::Architectures": "arm64",
        "APT::Install-Recommends": "false", "APT::Sandbox::User": "root",
        "Dir::State": folder / "state", "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
    }  # fmt: skip
    apt = ["apt-get", "-qq", "--yes", *(f"-o{key}={value}" for key, value in options.items())]
    run(*apt, "update")
    run(*apt, "install", "--download-only", f"python{VERSION}", "libstdc++6")
    for package in folder.glob("cache/archives/*.deb"):
        run("dpkg", "--extract", package, root)
    # Child processes start sys.executable, which is the script because it is given as argument 0.
    script.write_text(
        f"#!/bin/sh\nexport PYTHONHOME={root}/usr\n"
        f'exec qemu-aarch64-static -L {root} -0 "$0" {root}/usr/bin/python{VERSION} "$@"\n'
    )
    script.chmod(0o755)
    return script


def foreign() -> None:
    """Compile and link for macOS and Windows, without optimization because nothing is run."""
    for name, target in FOREIGN.items():
        build(name, target, "-Ccmake.build-type=Debug")


def find(machine: str) -> Path:
    """Return the newest wheel in dist/ for a machine."""
    wheels = DIST.glob(f"pairstep-*manylinux*_{machine}.whl")
    newest = max(wheels, key=lambda wheel: wheel.stat().st_mtime, default=None)
    if newest is None:
        raise SystemExit(f"no wheel for {machine} in {DIST}: run `{sys.argv[0]} linux` first")
    return newest


def smoke() -> None:
    """Run the smoke test with the wheel for x86-64 in a new environment."""
    folder = WORK / "environment"
    run(sys.executable, "-m", "venv", "--clear", "--without-pip", folder)
    python = folder / "bin/python"
    run(*PIP, "--python", python, "install", "--quiet", find("x86_64"), "scikit-learn")
    run(python, "tests/smoke.py")


COMMANDS = {"linux": linux, "foreign": foreign, "smoke": smoke}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("commands", nargs="*", choices=COMMANDS)
    # The build system and auditwheel stand beside the interpreter.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for each in parser.parse_args().commands or COMMANDS:
        COMMANDS[each]()
