"""CPU time of calls in the working tree and in another commit: `make bench`.

    python -m benchmarks.compare [--base COMMIT] [--only TEXT] [--rounds 6] [--seconds 0.2]

The base is the merge base with main by default, or the commit before if this is main. Both versions
are compiled in build/compare and each runs in a process of its own. Every round starts new
processes and times each call of benchmarks/calls.py in both, in turn; the minimum over all rounds
counts. Calls that seem more than 3% slower are timed again, because noise is more frequent than a
regression. The exit code is 1 if one remains, or if the geometric mean of all calls is 3% slower.

CPU time does not count the time when other processes run, but it is not independent of them: use an
idle computer.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from statistics import geometric_mean

from .calls import CALLS

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "compare"
WORKING_TREE = "working tree"
SLOWER = 1.03
ATTEMPTS = 3  # at calls that seem slower


def git(*arguments: str) -> str:
    """Return the output of a git command."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def default_base() -> str:
    """Return the commit where this branch left main, or the commit before if this is main."""
    head, base = git("rev-parse", "HEAD"), git("merge-base", "main", "HEAD")
    return git("rev-parse", "HEAD~1") if base == head else base


def installed(commit: str) -> Path:
    """Return a folder with the package of a commit, which is compiled if it is not there."""
    target = WORK / "packages" / commit.replace(" ", "-")
    if commit != WORKING_TREE and (target / "complete").exists():
        return target
    tree = ROOT
    if commit != WORKING_TREE:
        tree = WORK / "tree"
        tree.mkdir(parents=True, exist_ok=True)
        # An index of its own, so that the index and the branch of the checkout do not change. Files
        # that do not differ keep their times and are not compiled again.
        subprocess.run(
            ["git", f"--git-dir={git('rev-parse', '--absolute-git-dir')}", f"--work-tree={tree}",
             "read-tree", "-u", "--reset", commit],
            env={**os.environ, "GIT_INDEX_FILE": str(WORK / "index")}, cwd=tree, check=True,
        )  # fmt: skip
    shutil.rmtree(target, ignore_errors=True)
    print(f"compiling {commit}", file=sys.stderr, flush=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps",
         "--target", str(target), "-C", f"build-dir={WORK / 'build' / tree.name}", str(tree)],
        env={**os.environ, "PATH": path}, cwd=tree, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{commit} does not compile:\n{(done.stdout + done.stderr)[-3000:]}")
    (target / "complete").touch()
    return target


class Version:
    """A process that times calls with one version of the package."""

    def __init__(self, package: Path) -> None:
        # Without -S the editable installation of the working tree would come first.
        folders = [str(package), sysconfig.get_path("purelib"), *sys.path]
        self.process = subprocess.Popen(
            [sys.executable, "-S", ROOT / "benchmarks" / "calls.py"], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip

    def time(self, name: str, seconds: float) -> float | str:
        """Return the least CPU time of a call, or why there is none."""
        assert self.process.stdin
        assert self.process.stdout
        print(seconds, name, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().rstrip("\n")
        try:
            return float(answer)
        except ValueError:
            return answer or "the process ended"

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def measure(
    packages: list[Path], names: Iterable[str], rounds: int, seconds: float,
    times: dict[str, list[float]], errors: dict[str, list[str]],
) -> None:  # fmt: skip
    """Lower the times of calls, one per package, by those of some rounds."""
    names = list(names)
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}, {len(names)} calls", file=sys.stderr, flush=True)
        versions = [Version(package) for package in packages]
        for name in names:
            for which in (0, 1) if number % 2 else (1, 0):
                found = versions[which].time(name, seconds)
                if isinstance(found, float):
                    times[name][which] = min(times[name][which], found)
                else:
                    errors[name][which] = found
        for version in versions:
            version.close()


def shown(seconds: float) -> str:
    """Return a time with three digits and its unit.

    Examples
    --------
    >>> shown(1.5e-6), shown(0.0312), shown(float("inf"))
    ('1.5 us', '31.2 ms', '')
    """
    if not math.isfinite(seconds):
        return ""
    unit, factor = ("us", 1e6) if seconds < 1e-3 else ("ms", 1e3)
    return f"{seconds * factor:.3g} {unit}"


def main() -> int:
    """Compare the working tree with a commit; return 1 if a call became slower."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", help="a commit; by default the merge base with main")
    parser.add_argument("--only", default="", help="calls whose name contains this text")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.2, help="per call, version and round")
    given = parser.parse_args()
    base = git("rev-parse", "--verify", f"{given.base}^{{commit}}") if given.base else ""
    base = base or default_base()
    packages = [installed(base), installed(WORKING_TREE)]
    names = [name for name in CALLS if given.only in name]
    times = {name: [math.inf, math.inf] for name in names}
    errors = {name: ["", ""] for name in names}
    measure(packages, names, given.rounds, given.seconds, times, errors)

    def ratios() -> dict[str, float]:
        both = {name: pair for name, pair in times.items() if max(pair) < math.inf}
        return {name: new / old for name, (old, new) in both.items()}

    def slower() -> list[str]:
        return [name for name, ratio in ratios().items() if ratio > SLOWER]

    for _ in range(ATTEMPTS):
        if again := slower():
            measure(packages, again, given.rounds, given.seconds, times, errors)
    print(f"Least CPU time of {git('log', '-1', '--format=%h (%s)', base)} and the working tree\n")
    print("| call | base | this | this / base |\n| --- | ---: | ---: | ---: |")
    for name, (old, new) in times.items():
        ratio = (
            f"{new / old:.3f}"
            if max(old, new) < math.inf
            else "; ".join(filter(None, errors[name]))
        )
        print(f"| {name} | {shown(old)} | {shown(new)} | {ratio} |")
    mean = geometric_mean(ratios().values()) if ratios() else 1.0
    print(f"\nGeometric mean of {len(ratios())} calls: {mean:.3f}")
    for name in slower():
        print(f"{name} takes {ratios()[name]:.3f} times as long")
    broken = [name for name, (_, error) in errors.items() if error]
    for name in broken:
        print(f"{name} does not run in the working tree: {errors[name][1]}")
    return int(bool(slower() or broken) or mean > SLOWER)


if __name__ == "__main__":
    sys.exit(main())
