"""Build a wheel twice, in two folders, and compare the bytes: `make reproducible`.

    python tools/reproducible.py

Builds the source distribution from the files that git tracks, then two wheels from it. Each wheel
is compiled in a new folder and in a new isolated environment, so that a path of this computer, a
time or the order of files in a folder would make them differ. The wheel must not contain the paths
of the builds. Two compilations take about six minutes on two cores.

The time of all files is that of the last commit (SOURCE_DATE_EPOCH), and their permissions do not
depend on the umask of the computer.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Folders of different lengths and depths. The names are searched for in the wheel.
FOLDERS = ("first-build", "second/build-in-a-deeper-folder")


def last_commit(root: Path = ROOT) -> str:
    """Return the time of the last commit, in seconds since 1970."""
    log = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(log, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def copy_tracked(root: Path, target: Path) -> None:
    """Copy the files that git tracks, with their current contents."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target / name)


def build(kind: str, source: Path, out: Path, epoch: str) -> Path:
    """Build an sdist or a wheel of a folder, and return its path. Raises on failure."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--outdir", str(out), str(source)]
    done = subprocess.run(
        command,
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
        cwd=source.parent,
        capture_output=True,
        text=True,
        check=False,
        umask=0o022,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    (built,) = out.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return built


def unpacked(sdist: Path, target: Path) -> Path:
    """Unpack a source distribution, and return its folder."""
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(sdist) as file:
        file.extractall(target, filter="data")
    (folder,) = target.iterdir()
    return folder


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def differences(first: Path, second: Path) -> list[str]:
    """Say how two wheels differ; nothing if their bytes are the same."""
    if first.name != second.name:
        return [f"the names differ: {first.name}, {second.name}"]
    if first.read_bytes() == second.read_bytes():
        return []
    with zipfile.ZipFile(first) as a, zipfile.ZipFile(second) as b:
        one, two = ({i.filename: i for i in file.infolist()} for file in (a, b))
        found = [f"{name} is in only one of them" for name in sorted(one.keys() ^ two.keys())]
        for name in sorted(one.keys() & two.keys()):
            if a.read(name) != b.read(name):
                found.append(f"the contents of {name} differ")
            elif one[name].date_time != two[name].date_time:
                found.append(f"the time of {name} differs")
            elif one[name].external_attr != two[name].external_attr:
                found.append(f"the permissions of {name} differ")
        return found or ["the order of the files or the compression differs"]


def leaks(wheel: Path, paths: list[str]) -> list[str]:
    """Return the files of a wheel that contain one of these paths."""
    with zipfile.ZipFile(wheel) as file:
        return [
            f"{name} contains {path}"
            for name in file.namelist()
            for path in paths
            if path.encode() in file.read(name)
        ]


def check(out: Path) -> list[str]:
    """Build everything into a folder, and return what is wrong."""
    epoch = last_commit()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pairstep-") as temporary:
        work = Path(temporary)
        copy_tracked(ROOT, work / "tree")
        sdist = build("sdist", work / "tree", work / "sdist", epoch)
        wheels = []
        for folder in FOLDERS:
            source = unpacked(sdist, work / folder)
            wheels.append(build("wheel", source, work / folder / "out", epoch))
            print(f"{digest(wheels[-1])}  {wheels[-1].name}, built in .../{folder}", flush=True)
        again = build("sdist", unpacked(sdist, work / "unpacked"), work / "again", epoch)
        wrong = differences(*wheels)
        wrong += leaks(wheels[0], [str(work), str(ROOT), *FOLDERS])
        if digest(again) != digest(sdist):
            wrong.append("the sdist built from the unpacked sdist differs from it")
        for built in (sdist, wheels[0]):
            shutil.copy(built, out)
    return wrong


def main() -> int:
    """Print the digests and what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    out = ROOT / "build" / "reproducible"
    parser.add_argument("--out", type=Path, default=out, help="folder for the results")
    wrong = check(parser.parse_args().out)
    for line in wrong:
        print(f"not reproducible: {line}")
    if not wrong:
        print("reproducible: two builds in two folders gave the same bytes")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
