"""Speed of several commits, as ratios to a reference loop that is timed in the same run.

    python -m benchmarks.history measure [--count 6] [--last 60] [--commits A B C]
    python -m benchmarks.history compare [--base COMMIT]

`measure` writes docs/benchmarks/history.json, which the site shows. `compare` compares the working
tree with a commit, by default the merge base with main, and fails if a call became 25% slower:
`make bench`. CI runs it on pull requests.

The calls are those of benchmarks/regressions, in the version of the working tree. Every commit is
compiled in one folder, build/history/tree, so that only files that differ between two commits are
compiled again. The packages stay in build/history/packages, so that a commit is compiled once. The
commits are then measured in turn, several times, and the smallest ratio of each call counts. The
reference loop runs before and after each call (see benchmarks/regressions/conftest.py). It cancels
most of the differences between hosts and moments, but not all: calls with two threads suffer more
from other processes than the loop does. Use an idle computer for numbers to publish.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT / "benchmarks" / "regressions"
WORK = ROOT / "build" / "history"
PUBLISHED = ROOT / "docs" / "benchmarks" / "history.json"
SOURCES = ("src", "cpp", "CMakeLists.txt")  # what can change the speed

SLOWER = 1.25  # ratio of two ratios that `compare` reports; smaller differences may be noise
REPEATS = 3  # runs of the suite per commit; noise rarely hits the same call in all of them
SECONDS_PER_CALL = 0.5  # of each call in each run; at least five rounds
WORKING_TREE = "working tree"

Ratios = dict[str, float]


def git(*arguments: str) -> str:
    """Return the output of a git command."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def resolved(commit: str) -> str:
    """Return the full hash of a commit."""
    return git("rev-parse", "--verify", f"{commit}^{{commit}}")


def merge_base() -> str:
    """Return the commit where this branch left main, or the last commit if it is main."""
    for main in ("origin/main", "main"):
        try:
            return git("merge-base", main, "HEAD")
        except subprocess.CalledProcessError:
            continue
    return resolved("HEAD")


def spread(commits: Sequence[str], count: int) -> list[str]:
    """Choose commits at equal distances, with the first and the last, in the same order.

    Examples
    --------
    >>> spread(["a", "b", "c", "d", "e"], 3)
    ['a', 'c', 'e']
    """
    if count >= len(commits) or count < 2:
        return list(commits) if count > 1 else list(commits[-1:])
    return [commits[round(k * (len(commits) - 1) / (count - 1))] for k in range(count)]


def recent(last: int, count: int) -> list[str]:
    """Return some of the last commits that change the package, oldest first."""
    inside = set(git("rev-list", f"--max-count={last}", "HEAD").split())
    changes = git("rev-list", "--no-merges", "HEAD", "--", *SOURCES).split()
    return spread([commit for commit in changes if commit in inside][::-1], count)


def checked_out(commit: str) -> Path:
    """Return a folder with the files of a commit. Files that do not change keep their times."""
    tree = WORK / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    # An index of its own, so that the index and the branch of the checkout do not change.
    subprocess.run(
        ["git", f"--git-dir={git('rev-parse', '--absolute-git-dir')}", f"--work-tree={tree}",
         "read-tree", "-u", "--reset", commit],
        env={**os.environ, "GIT_INDEX_FILE": str(WORK / "index")}, cwd=tree, check=True,
    )  # fmt: skip
    return tree


def installed(commit: str) -> Path:
    """Return a folder with the package of a commit, which is compiled if it is not there."""
    target = WORK / "packages" / commit.replace(" ", "-")
    if commit != WORKING_TREE and (target / "complete").exists():
        return target
    tree = ROOT if commit == WORKING_TREE else checked_out(commit)
    shutil.rmtree(target, ignore_errors=True)
    print(f"compiling {described(commit)}", file=sys.stderr, flush=True)
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


def described(commit: str) -> str:
    """Return the short hash and the subject of a commit."""
    return commit if commit == WORKING_TREE else git("log", "-1", "--format=%h %s", commit)


def interpreter() -> Path:
    """Return a Python with the dependencies of this environment, but without pairstep."""
    folder = WORK / "environment"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # The folders of a .pth file are searched, but not for further .pth files such as that of an
    # editable installation of pairstep.
    (site / "dependencies.pth").write_text("\n".join(p for p in sys.path if "site-packages" in p))
    return python


def run_suite(package: Path, seconds: float) -> Ratios:
    """Run the benchmarks with a package, and return the ratio of each to the reference loop."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "times.json"
        done = subprocess.run(
            [interpreter(), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SUITE),
             "--benchmark-warmup=on", f"--benchmark-max-time={seconds}", f"--benchmark-json={out}"],
            env={**os.environ, "PYTHONPATH": str(package), "OPENBLAS_NUM_THREADS": "1"},
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not out.exists():
            raise SystemExit(f"the benchmarks did not run:\n{(done.stdout + done.stderr)[-3000:]}")
        for line in done.stdout.splitlines():
            if line.startswith(("FAILED", "ERROR")):
                print(line, file=sys.stderr)
        return ratios(json.loads(out.read_text(encoding="utf-8")))


def ratios(times: dict[str, Any]) -> Ratios:
    """Return the fastest round of each call divided by the reference loop of the same run."""
    return {
        benchmark["name"]: benchmark["stats"]["min"] / benchmark["extra_info"]["reference"]
        for benchmark in times["benchmarks"]
    }


def smallest(runs: Iterable[Ratios]) -> Ratios:
    """Return the smallest ratio of each call over several runs.

    Examples
    --------
    >>> smallest([{"a": 2.0, "b": 1.0}, {"a": 1.5}])
    {'a': 1.5, 'b': 1.0}
    """
    found: Ratios = {}
    for run in runs:
        for name, ratio in run.items():
            found[name] = min(ratio, found.get(name, ratio))
    return found


def measured(packages: dict[str, Path], repeats: int, seconds: float) -> dict[str, Ratios]:
    """Measure the packages of some commits in turn, several times."""
    runs: dict[str, list[Ratios]] = {commit: [] for commit in packages}
    for repeat in range(repeats):
        for commit, package in packages.items():
            print(f"run {repeat + 1} of {described(commit)}", file=sys.stderr, flush=True)
            runs[commit].append(run_suite(package, seconds))
    return {commit: smallest(each) for commit, each in runs.items()}


def shown(name: str) -> str:
    """Return the name of a benchmark for a table.

    Examples
    --------
    >>> shown("test_a_portfolio[n=10]"), shown("test_500_portfolios")
    ('a portfolio, n=10', '500 portfolios')
    """
    call, _, parameter = name.removeprefix("test_").rstrip("]").partition("[")
    text = call.replace("100_000", "100,000").replace("_", " ")
    return f"{text}, {parameter}" if parameter else text


def slower(base: Ratios, head: Ratios, limit: float = SLOWER) -> list[str]:
    """Name the calls that both have and that became slower by the limit, worst first.

    Examples
    --------
    >>> slower({"test_a": 1.0, "test_b": 1.0}, {"test_a": 1.3, "test_b": 1.2, "test_c": 9.0})
    ['test_a']
    """
    change = {name: head[name] / base[name] for name in base.keys() & head.keys()}
    return sorted((n for n in change if change[n] >= limit), key=lambda n: (-change[n], n))


def comparison(base: Ratios, head: Ratios) -> str:
    """Return a Markdown table of two commits, with the calls that became slower in bold."""
    worse = slower(base, head)
    lines = ["| call | base | this | this / base |", "| --- | ---: | ---: | ---: |"]
    for name, ratio in head.items():
        if name not in base:
            lines.append(f"| {shown(name)} | | {ratio:.3g} | new |")
            continue
        mark = "**" if name in worse else ""
        change = f"{mark}{ratio / base[name]:.2f}{mark}"
        row = (f"{mark}{shown(name)}{mark}", f"{base[name]:.3g}", f"{ratio:.3g}", change)
        lines.append(f"| {' | '.join(row)} |")
    lines += [f"| {shown(name)} | {base[name]:.3g} | | gone |" for name in base if name not in head]
    return "\n".join(lines)


def compare(base: str, repeats: int, seconds: float) -> int:
    """Compare the working tree with a commit; return 1 if a call became slower.

    Calls that seem slower are measured again, because noise is more frequent than a regression.
    """
    print(f"Ratios to the reference loop; the base is {described(base)}.\n", flush=True)
    packages = {commit: installed(commit) for commit in (base, WORKING_TREE)}
    found = measured(packages, repeats, seconds)
    if slower(found[base], found[WORKING_TREE]):
        again = measured(packages, repeats, seconds)
        found = {commit: smallest([found[commit], again[commit]]) for commit in found}
    print(comparison(found[base], found[WORKING_TREE]))
    worse = slower(found[base], found[WORKING_TREE])
    for name in worse:
        change = found[WORKING_TREE][name] / found[base][name]
        print(f"\n{shown(name)} takes {change:.2f} times as long as in {described(base)}")
    if not worse:
        print(f"\nNo call became {SLOWER - 1:.0%} slower.")
    return int(bool(worse))


def table(found: dict[str, Ratios], command: str, note: str) -> dict[str, Any]:
    """Return the file for the site: one row per call, one column per commit, oldest first."""
    commits = list(found)
    names = list(dict.fromkeys(name for each in reversed(found.values()) for name in each))

    def digits(ratio: float | None) -> float | None:
        return None if ratio is None else float(f"{ratio:.3g}")

    subjects = [git("log", "-1", "--format=%h (%s)", "--abbrev=7", commit) for commit in commits]
    rows = []
    for name in names:
        cells = [found[commit].get(name) for commit in commits]
        first = next(cell for cell in cells if cell is not None)
        newest = cells[-1]
        change = None if newest is None else digits(newest / first)
        rows.append([shown(name), *map(digits, cells), change])
    return {
        "title": "Time of a call divided by the time of the reference loop",
        "note": f"Commits: {'; '.join(subjects)}. {note}".rstrip(),
        "command": command,
        "commit": commits[-1][:7],
        "machine": machine(),
        "date": date.today().isoformat(),
        "columns": ["call", *(commit[:7] for commit in commits), "newest / oldest"],
        "rows": rows,
        "plot": {
            "name": "call",
            "bar": "newest / oldest",
            "label": "time in the newest commit / time in the oldest that has the call",
        },
    }


def machine() -> str:
    """Return the CPU, the number of cores and the system."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def parsed(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    history = commands.add_parser("measure", help="measure several commits for the site")
    history.add_argument("--commits", nargs="+", help="oldest first; overrides the next two")
    history.add_argument("--last", type=int, default=60, help="consider the last N commits")
    history.add_argument("--count", type=int, default=6, help="number of commits to measure")
    history.add_argument("--out", type=Path, default=PUBLISHED)
    history.add_argument("--note", default="", help="remark for the site, such as a busy computer")
    against = commands.add_parser("compare", help="fail if a call became 25%% slower")
    against.add_argument("--base", help="a commit; by default the merge base with main")
    for each in (history, against):
        each.add_argument("--repeats", type=int, default=REPEATS)
        each.add_argument(
            "--seconds", type=float, default=SECONDS_PER_CALL, help="per call and run"
        )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    options = parsed(argv)
    if options.command == "compare":
        base = resolved(options.base) if options.base else merge_base()
        return compare(base, options.repeats, options.seconds)
    commits = options.commits or recent(options.last, options.count)
    packages = {commit: installed(commit) for commit in map(resolved, commits)}
    found = measured(packages, options.repeats, options.seconds)
    chosen = f"--count {options.count} --last {options.last}"
    if options.commits:
        chosen = f"--commits {' '.join(options.commits)}"
    effort = f"--repeats {options.repeats} --seconds {options.seconds:g}"
    line = f"python -m benchmarks.history measure {chosen} {effort}"
    published = table(found, line, options.note)
    text = json.dumps(published, indent=1, ensure_ascii=False)
    options.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
