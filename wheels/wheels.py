"""Build, check and test the wheels of a release, on one computer and with Zig as the compiler.

python wheels/wheels.py build [TARGET ...]     wheels for Linux: all, or x86_64, musl/3.13
python wheels/wheels.py test TESTS ...         x86-64 with glibc: new environments, all versions
python wheels/wheels.py test-aarch64 TESTS ... under QEMU, with Debian's Python for arm64
python wheels/wheels.py test-musl TESTS ...    x86-64 with musl, with a Python built from source
python wheels/wheels.py cross-check            compile and link for macOS and Windows

The targets `make wheels`, `make test-aarch64`, `make test-musl` and `make cross-check` call it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import musl
import pythons
from pythons import ROOT, WORK, run

DIST = ROOT / "dist"
MAX_WHEEL_BYTES = 5_000_000
MAX_IMPORT_SECONDS = 0.1  # CPU time of `import pairstep` after `import numpy`


@dataclass(frozen=True)
class Target:
    """A platform for which wheels are built."""

    zig: str  # Zig's name of it, with the version of glibc
    tag: str  # the platform tag of the wheels
    suffix: str  # of modules for one version of Python
    debian: str  # the architecture of the packages with the headers
    versions: tuple[str, ...]  # of Python. That of 3.13 has the stable ABI, from 3.12 on.


TARGETS = {
    "x86_64": Target(
        "x86_64-linux-gnu.2.28", "manylinux_2_28_x86_64", "x86_64-linux-gnu", "amd64",
        ("3.11", "3.13", *pythons.FREE_THREADED),
    ),
    "aarch64": Target(
        "aarch64-linux-gnu.2.28", "manylinux_2_28_aarch64", "aarch64-linux-gnu", "arm64",
        ("3.11", "3.13"),
    ),
    "musl": Target(
        "x86_64-linux-musl", "musllinux_1_2_x86_64", "x86_64-linux-musl", "amd64",
        ("3.11", "3.13"),
    ),
}  # fmt: skip

# Versions of Python in which a wheel is tested, by its tags.
TESTED = {
    "cp311-cp311": ("3.11",),
    "cp312-abi3": ("3.12", "3.13", "3.14", "3.15"),
    "cp314-cp314t": ("3.14t",),
}
TEST_PACKAGES = ("numpy", "scipy", "pytest", "hypothesis", "pandas", "sybil")
SKLEARN = "scikit-learn"  # has no wheels for musl


def cpython_tag(version: str) -> str:
    """Return the tags of the wheel that is built with a version."""
    if version == "3.13":
        return "cp312-abi3"
    number = version.rstrip("t").replace(".", "")
    return f"cp{number}-cp{version.replace('.', '')}"


def environment(name: str, python: Path, *packages: object) -> Path:
    """Make a virtual environment with packages, and return its interpreter."""
    folder = WORK / "environments" / name
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", "--without-pip", folder)
    inside = folder / "bin/python"
    run(sys.executable, "-m", "pip", "--python", inside, "install", "--quiet", *packages)
    return inside


def build_system() -> Path:
    """Return a folder with the build system, which is pure Python and serves all versions.

    scikit-build-core compiles everything again if its own path changes.
    """
    folder = WORK / "environments/build-system"
    if not folder.exists():
        packages = ("scikit-build-core>=1.1", "nanobind>=3.1")
        run(sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, *packages)
    return folder


# ---- build ----

BACKEND = """
import json, sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], json.loads(sys.argv[2]))
"""


def build_one(name: str, version: str) -> Path:
    """Build the wheel of a target for a version of Python.

    The code that does not depend on Python is compiled once per target.
    """
    target = TARGETS[name]
    tags = cpython_tag(version)
    abi3 = tags.endswith("abi3")
    python = pythons.native(version)
    include = pythons.include_folder(version, target.debian)
    suffix = f".cpython-{version.replace('.', '')}-{target.suffix}.so"
    defines = {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "wheels/zig.cmake",
        "ZIG": pythons.zig(),
        "ZIG_TARGET": target.zig,
        "Python_INCLUDE_DIR": include,
    }
    settings = {
        "build-dir": str(WORK / "cmake" / name),
        **{f"cmake.define.{key}": str(value) for key, value in defines.items()},
    }
    DIST.mkdir(exist_ok=True)
    folder = WORK / "untagged" / name
    shutil.rmtree(folder, ignore_errors=True)
    # Keep the objects, but forget the version of Python of the build before.
    (WORK / f"cmake/{name}/CMakeCache.txt").unlink(missing_ok=True)
    before = time.monotonic()
    commit_time = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    run(
        python, "-c", BACKEND, folder, json.dumps(settings),
        cwd=ROOT, log=WORK / f"log/{name}-{version}.txt",
        PYTHONPATH=str(build_system()),
        CMAKE_BUILD_PARALLEL_LEVEL=pythons.JOBS,
        SOURCE_DATE_EPOCH=os.environ.get("SOURCE_DATE_EPOCH", commit_time),
        _PYTHON_HOST_PLATFORM=f"linux-{target.zig.partition('-')[0]}",
        SETUPTOOLS_EXT_SUFFIX=".abi3.so" if abi3 else suffix,
    )  # fmt: skip
    (untagged,) = folder.glob("*.whl")
    run(sys.executable, "-m", "wheel", "tags", "--remove", f"--platform-tag={target.tag}", untagged)
    (tagged,) = folder.glob("*.whl")
    wheel = Path(shutil.copy(tagged, DIST))
    check(wheel, target, abi3)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {time.monotonic() - before:.0f} s")
    return wheel


def find_wheel(tags: str, platform: str) -> Path:
    """Return the wheel with these tags in dist/."""
    found = sorted(DIST.glob(f"pairstep-*-{tags}-{platform}.whl"), key=lambda p: p.stat().st_mtime)
    if not found:
        raise SystemExit(f"no wheel for {tags}-{platform} in {DIST}: run `make wheels` first")
    return found[-1]


def check(wheel: Path, target: Target, abi3: bool) -> None:
    """Check the size, the libraries that a wheel needs, and the stable ABI."""
    size = wheel.stat().st_size
    if size > MAX_WHEEL_BYTES:
        raise SystemExit(f"{wheel.name} has {size} bytes, more than {MAX_WHEEL_BYTES}")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    if [n for n in names if n.endswith(".so")] != [
        n for n in names if "/_core." in n and "pyi" not in n
    ]:
        raise SystemExit(f"{wheel.name} must have one module: {names}")
    shown = subprocess.run(
        ["auditwheel", "show", wheel], capture_output=True, text=True, check=False
    )
    text = " ".join(shown.stdout.split())
    found = re.search(r'following platform tag: "(\w+)_(\d+)_(\d+)_(\w+)"', text)
    wanted = re.fullmatch(r"(\w+?)_(\d+)_(\d+)_(\w+)", target.tag)
    assert wanted is not None
    if not found or (found[1], found[4]) != (wanted[1], wanted[4]):
        raise SystemExit(f"{wheel.name}: auditwheel says {text} {shown.stderr}")
    if (int(found[2]), int(found[3])) > (int(wanted[2]), int(wanted[3])):
        raise SystemExit(f"{wheel.name} needs a newer system: {text}")
    if abi3:
        run("abi3audit", "--strict", wheel)


# ---- test ----


def report(name: str, text: str) -> None:
    """Print the last line of pytest, which has the number of tests."""
    lines = [line for line in text.splitlines() if re.search(r"\d+ passed", line)]
    print(f"{name}: {lines[-1].strip('= ') if lines else text[-3000:]}", flush=True)


def variables(**more: str) -> dict[str, str]:
    """Return environment variables for tests: one thread for BLAS, and bytecode is kept."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", **more}


def run_tests(name: str, python: list[str], tests: Iterable[str], **env: str) -> None:
    """Run the smoke test and the given tests with an interpreter, and print the counts."""
    marked = ["-m", "not slow", "-p", "no:cacheprovider", "-q"]
    for command in (["tests/smoke.py"], ["-m", "pytest", *marked, *tests]):
        done = subprocess.run(
            [*python, *command], cwd=ROOT, env=variables(**env), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            print(done.stdout[-6000:], done.stderr[-3000:])
            raise SystemExit(f"{name}: {' '.join(command)} failed")
        if command[0] == "-m":
            report(name, done.stdout)
        else:
            print(f"{name}: {done.stdout.strip()}", flush=True)


def run_native(tests: list[str], wanted: list[str]) -> None:
    """Install each wheel for x86-64 with glibc into new environments, and run tests there.

    Some versions run at the same time, because the tests of one use one CPU.
    """
    with ThreadPoolExecutor(int(pythons.JOBS)) as pool:
        running = []
        for tags, versions in TESTED.items():
            for version in versions:
                if wanted and version not in wanted:
                    continue
                try:
                    interpreter = pythons.native(version)
                except LookupError as error:
                    print(f"not tested: {error}", flush=True)
                    continue
                wheel = find_wheel(tags, TARGETS["x86_64"].tag)
                running.append(pool.submit(test_one, wheel, version, interpreter, tests))
        for each in running:
            each.result()


def test_one(wheel: Path, version: str, interpreter: Path, tests: list[str]) -> None:
    """Install a wheel into a new environment of an interpreter, and run tests there."""
    packages = (wheel, *TEST_PACKAGES, SKLEARN)
    python = environment(f"test-{version}", interpreter, *packages)
    check_import_time(version, python)
    run_tests(f"{wheel.name} in Python {version}", [str(python)], tests)


IMPORTS = (
    "import time, numpy; t = time.process_time(); import pairstep; print(time.process_time() - t)"
)


def check_import_time(version: str, python: Path) -> None:
    """Measure the CPU time of the import, after that of NumPy.

    Other programs on the computer add to it, so the smallest of ten times counts. The first process
    also compiles the standard library, because Debian's packages contain no bytecode.
    """
    command = [python, "-c", IMPORTS]
    times = sorted(
        float(subprocess.run(command, env=variables(), capture_output=True, check=True).stdout)
        for _ in range(10)
    )
    print(
        f"import in Python {version}: {1000 * times[0]:.0f} to {1000 * times[-1]:.0f} ms after "
        "numpy", flush=True,
    )  # fmt: skip
    if times[0] > MAX_IMPORT_SECONDS:
        raise SystemExit(f"more than {MAX_IMPORT_SECONDS} s")


def foreign_packages(name: str, version: str, platforms: list[str], *packages: object) -> Path:
    """Install packages for another platform into a folder."""
    folder = WORK / "environments" / name
    shutil.rmtree(folder, ignore_errors=True)
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--target", folder,
        *(f"--platform={platform}" for platform in platforms), f"--python-version={version}",
        "--implementation=cp", "--only-binary=:all:", *packages,
    )  # fmt: skip
    return folder


def run_aarch64(tests: list[str], wanted: list[str]) -> None:
    """Run tests for aarch64 under QEMU."""
    for version, tags in (("3.11", "cp311-cp311"), ("3.13", "cp312-abi3")):
        if wanted and version not in wanted:
            continue
        wheel = find_wheel(tags, TARGETS["aarch64"].tag)
        name = f"aarch64-{version}"
        platforms = [f"manylinux_2_{minor}_aarch64" for minor in range(28, 16, -1)]
        platforms.append("manylinux2014_aarch64")
        site = foreign_packages(name, version, platforms, wheel, *TEST_PACKAGES, SKLEARN)
        python = pythons.runnable(version, "arm64")
        run_tests(f"{wheel.name} under QEMU", [str(python)], tests, PYTHONPATH=str(site))


def run_musl(tests: list[str], _wanted: list[str]) -> None:
    """Run tests with musl."""
    python = musl.python()
    wheel = find_wheel("cp312-abi3", TARGETS["musl"].tag)
    platforms = ["musllinux_1_2_x86_64", "musllinux_1_1_x86_64"]
    site = foreign_packages("musl", pythons.FROM_SOURCE, platforms, wheel, *TEST_PACKAGES)
    run_tests(f"{wheel.name} with musl", [str(python)], tests, PYTHONPATH=str(site))


# ---- cross-check ----

FOREIGN = {
    "macos-arm64": ("aarch64-macos", ".abi3.so"),
    "macos-x86_64": ("x86_64-macos", ".abi3.so"),
    "windows-x86_64": ("x86_64-windows-gnu", ".pyd"),
}


def cross_check(names: Iterable[str]) -> None:
    """Compile and link the module for macOS and Windows; it cannot run here."""
    python = pythons.native("3.13")
    for name in names:
        target, suffix = FOREIGN[name]
        before = time.monotonic()
        folder = WORK / "cmake" / name
        windows = name.startswith("windows")
        include = pythons.windows_headers() if windows else pythons.macos_headers()
        defines: dict[str, object] = {
            "CMAKE_TOOLCHAIN_FILE": ROOT / "wheels/zig.cmake",
            "CMAKE_BUILD_TYPE": "Debug",  # less optimization, because the module does not run here
            "ZIG": pythons.zig(),
            "ZIG_TARGET": target,
            "Python_EXECUTABLE": python,
            "Python_INCLUDE_DIR": include,
            "SKBUILD_SOABI": "abi3",
            "SKBUILD_SOSABI": "" if windows else "abi3",
            "nanobind_DIR": build_system() / "nanobind/cmake",
        }
        if windows:
            library = pythons.windows_library()
            defines["Python_SABI_LIBRARY"] = library
            # CMake also asks for the library of one version, which is not linked.
            number = pythons.FROM_SOURCE.replace(".", "")
            defines["Python_LIBRARY"] = shutil.copy(library, WORK / f"python{number}.lib")
            # CMake adds -ldl, which the interpreter on this computer needs.
            empty = WORK / "windows/libdl.a"
            empty.parent.mkdir(exist_ok=True)
            empty.write_bytes(b"!<arch>\n")
            defines["CMAKE_MODULE_LINKER_FLAGS"] = f"-L{empty.parent}"
        options = [f"-D{key}={value}" for key, value in defines.items()]
        log = WORK / f"log/{name}"
        run("cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, *options,
            log=log.with_suffix(".configure.txt"))  # fmt: skip
        run("cmake", "--build", folder, f"-j{pythons.JOBS}", log=log.with_suffix(".build.txt"))
        module = folder / f"_core{suffix}"
        if (
            not windows
        ):  # on Windows the linker checks it, because the library has no other functions
            run("abi3audit", "--strict", "--assume-minimum-abi3", "3.12", module)
        print(f"{name}: {module.name}, {module.stat().st_size / 1e6:.2f} MB, "
              f"{time.monotonic() - before:.0f} s", flush=True)  # fmt: skip


def main() -> None:
    """Run the command that was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build").add_argument("targets", nargs="*", default=list(TARGETS))
    for name in ("test", "test-aarch64", "test-musl"):
        command = commands.add_parser(name)
        command.add_argument("--python", nargs="*", default=[], help="versions, all by default")
        command.add_argument("tests", nargs="+")
    commands.add_parser("cross-check").add_argument("targets", nargs="*", default=list(FOREIGN))
    options = parser.parse_args()
    # The tools in requirements.txt: cmake, ninja, auditwheel, abi3audit.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if options.command == "build":
        for target in options.targets:
            name, _, version = target.partition("/")
            for each in [version] if version else TARGETS[name].versions:
                build_one(name, each)
    elif options.command == "cross-check":
        cross_check(options.targets)
    else:
        run_command = {"test": run_native, "test-aarch64": run_aarch64, "test-musl": run_musl}
        run_command[options.command](options.tests, options.python)


if __name__ == "__main__":
    main()
