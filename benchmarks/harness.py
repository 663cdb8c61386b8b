"""What all benchmarks share: races to the same optimum, times, tables and arguments.

A benchmark lists problems and entries, which are ways to run a solver. In `race` every entry runs
in a forked process at the loosest of its tolerances that reaches the optimum. Only then is it
timed. An entry that never does is reported with its gap, and one that is not installed is named.
Log lines go to stderr and tables to stdout; a table is also saved as a file like those in
docs/benchmarks, with command, commit, computer and the versions of all solvers.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import importlib.metadata
import json
import multiprocessing
import os
import platform
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TIGHT = (1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
Solve = Callable[[float], Any]  # takes a tolerance and returns a point, or None for none
Judge = Callable[[Any], tuple[float, float]]  # returns the gap and the infeasibility of a point
Contest = tuple[list["Entry"], Judge]


@dataclass(frozen=True)
class Entry:
    """One way to run a solver. What `prepare` does is not timed."""

    solver: str
    form: str
    prepare: Callable[[], Solve]
    ladder: tuple[float, ...] = TIGHT

    @property
    def is_peer(self) -> bool:
        return not self.solver.startswith("pairstep")


@dataclass
class Run:
    """Seconds of an entry at the loosest tolerance that reached the optimum, or why it did not."""

    entry: Entry
    status: str = "no solution"
    tol: float = np.nan
    first: float = np.nan
    best: float = np.nan
    gap: float = np.nan
    infeasibility: float = np.nan

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def __str__(self) -> str:
        name = f"  {self.entry.solver:24}{self.entry.form:10}"
        if not self.ok:
            return f"{name}{self.status}"
        return (
            f"{name}{1e3 * self.best:11.3f} ms, first {1e3 * self.first:.3f} ms, tol "
            f"{self.tol:.0e}, gap {self.gap:.0e}, infeasible by {self.infeasibility:.0e}"
        )


# ----------------------------------------------------------------------------------------- running


def in_child(work: Callable[[Callable[[object], None]], None], budget: float) -> Iterator[Any]:
    """Yield what `work` sends from a forked process.

    The process is killed if it sends nothing within the budget, in seconds.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        warnings.simplefilter("ignore")
        work(sender.send)

    child = context.Process(target=run, daemon=True)
    with warnings.catch_warnings():  # Python warns of a fork while threads run; ours are idle
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    sender.close()
    try:
        while receiver.poll(budget):
            yield receiver.recv()
        yield f"over {budget:g} s"
    except EOFError:
        child.join()
        if child.exitcode:
            yield f"crashed ({child.exitcode})"
    finally:
        child.kill()
        child.join()


def described(error: Exception) -> str:
    """Return why a solver did not run; its messages are of many lengths."""
    if isinstance(error, ImportError):
        return f"not installed ({error})"
    return f"{type(error).__name__}: {error}".splitlines()[0][:90]


def climb(entry: Entry, judge: Judge, limits: tuple[float, float], send: Callable) -> None:
    """Tighten the tolerance until the point is within the limits of gap and infeasibility."""
    try:
        solve = entry.prepare()
    except Exception as error:  # solvers raise exceptions of many types
        send(described(error))
        return
    send(Run(entry).status)
    for tol in entry.ladder:
        began = time.perf_counter()
        try:
            x = solve(tol)
        except Exception as error:
            send(described(error))
            continue
        seconds = time.perf_counter() - began
        if x is None or not np.isfinite(x).all():
            continue
        gap, infeasibility = judge(x)
        send((tol, seconds, gap, infeasibility))
        if abs(gap) <= limits[0] and infeasibility <= limits[1]:
            return


def repeat(entry: Entry, tol: float, send: Callable) -> None:
    """Send the seconds of several calls, the first of which is the first of its process."""
    solve = entry.prepare()
    began, count = time.perf_counter(), 0
    while count < 4 or (count < 200 and time.perf_counter() - began < 0.3):
        start = time.perf_counter()
        solve(tol)
        send(time.perf_counter() - start)
        count += 1


def run(entry: Entry, judge: Judge, limits: tuple[float, float], budget: float) -> Run:
    """Bring an entry to the optimum, and time it if it arrives there."""
    result = Run(entry)
    for message in in_child(partial(climb, entry, judge, limits), budget):
        if isinstance(message, str):
            if np.isnan(result.gap) or message.startswith("over"):
                result.status = message
            continue
        result.tol, result.first, result.gap, result.infeasibility = message
        result.status = f"failed: gap {result.gap:.0e}, infeasible by {result.infeasibility:.0e}"
        if result.infeasibility <= limits[1]:
            if abs(result.gap) <= limits[0]:
                result.status, result.best = "ok", result.first
            elif result.gap < 0:
                result.status += " (LOWER THAN THE REFERENCE)"
    if result.ok and result.first < budget / 5:
        messages = list(in_child(partial(repeat, entry, result.tol), budget))
        times = [message for message in messages if isinstance(message, float)]
        if len(times) < len(messages) or not times:
            result.status, result.best = f"failed when repeated: {messages[-1:]}", np.nan
        else:
            result.first, result.best = times[0], min(times)
    return result


def race(entries: Iterable[Entry], judge: Judge, limits: tuple[float, float], budget: float,
         peers: Sequence[str] = ()) -> list[Run]:  # fmt: skip
    """Run all entries; of the other solvers, only those with one of `peers` in their name."""
    runs = []
    for entry in entries:
        if entry.is_peer and not named(entry.solver, peers):
            continue
        runs.append(run(entry, judge, limits, budget))
        log(runs[-1])
    return runs


def fastest(runs: Iterable[Run], solver: str | None = None) -> Run | None:
    """Return the fastest valid run of one solver, or of all other solvers than pairstep."""
    some = (r for r in runs if (r.entry.is_peer if solver is None else r.entry.solver == solver))
    return min((r for r in some if r.ok), key=lambda r: r.best, default=None)


def versus(runs: list[Run], budget: float, unit: float = 1e3) -> tuple[Any, str, float | None]:
    """Return three cells: our time, that of the fastest other solver, and their ratio."""
    ours, peer = fastest(runs, "pairstep"), fastest(runs)
    own = digits(ours.best * unit) if ours else "failed"
    if peer is None:
        late = any(r.entry.is_peer and r.status.startswith("over") for r in runs)
        return own, f"none in {budget:g} s" if late else "none", None
    ratio = digits(peer.best / ours.best) if ours else None
    return own, f"{shown(digits(peer.best * unit))} ({peer.entry.solver})", ratio


def times_of(call: Callable[[], Any], seconds: float = 1.0, least: int = 1,
             most: int = 30) -> tuple[list[float], Any]:  # fmt: skip
    """Return the seconds of calls, at least `least` of them, and the result of the last one."""
    times: list[float] = []
    spent = 0.0
    while len(times) < least or (len(times) < most and spent + times[-1] < seconds):
        began = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - began)
        spent += times[-1]
    return times, result


def extra_memory(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the peak of memory during a call, beyond that before it, in MB, and the result."""

    def megabytes(field: str) -> float:
        return float(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) / 1024

    ctypes.CDLL(None).malloc_trim(0)  # freed memory would be reused unseen
    Path("/proc/self/clear_refs").write_text("5")
    before = megabytes("VmRSS")
    result = call()
    return megabytes("VmHWM") - before, result


# ------------------------------------------------------------------------------------------ tables


def digits(number: float | None, count: int = 3) -> float | None:
    """Round to significant digits; NaN becomes None."""
    return None if number is None or np.isnan(number) else float(f"{number:.{count}g}")


def shown(cell: Any) -> str:
    return "" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            log(f"{name} is not installed")
    return found


def origin() -> dict[str, str]:
    """Return the command, the commit, the computer and the date of this run."""
    name, arguments = Path(sys.argv[0]).stem, sys.argv[1:]
    if "--out" in arguments:
        place = arguments.index("--out")
        del arguments[place : place + 2]
    git = ["git", "rev-parse", "--short=7", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    cpu = Path("/proc/cpuinfo")
    models = [k for k in cpu.read_text().splitlines() if "model name" in k] if cpu.exists() else []
    model = models[0].partition(": ")[2] if models else platform.processor()
    return {
        "command": shlex.join(["python", "-m", f"benchmarks.{name}", *arguments]),
        "commit": commit.strip() or "unknown",
        "machine": f"{model}, {os.cpu_count()} cores, {platform.system()}",
        "date": datetime.date.today().isoformat(),
    }


class Table:
    """A Markdown table that is printed and saved line by line."""

    def __init__(
        self, out: Path, name: str, title: str, columns: Sequence[str],
        peers: Iterable[str] = (), plot: tuple[str, str] | None = None,
    ) -> None:  # fmt: skip
        """`plot` has the column of the bars and their label."""
        self.path = out / f"{name}.json"
        self.content: dict[str, Any] = {"title": title, **origin()}
        self.content["versions"] = versions(["pairstep", *peers])
        if plot:
            self.content["plot"] = {"name": columns[0], "bar": plot[0], "label": plot[1]}
        self.content |= {"columns": list(columns), "rows": []}

    def add(self, *cells: Any) -> None:
        """Print a line, and save the table so far."""
        columns, rows = self.content["columns"], self.content["rows"]
        assert len(cells) == len(columns), (cells, columns)
        if not rows:
            print(f"\n**{self.content['title']}**\n")
            print(f"| {' | '.join(columns)} |\n| {' | '.join('---' for _ in columns)} |")
        rows.append(list(cells))
        print(f"| {' | '.join(map(shown, cells))} |", flush=True)
        self.save()

    def save(self, **more: Any) -> None:
        """Write the file, with a line for each row."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = ",\n".join(
            f" {json.dumps(key)}: {_lines(value)}" for key, value in (self.content | more).items()
        )
        self.path.write_text("{\n" + text + "\n}\n", encoding="utf-8")

    def summarize(self, column: str) -> None:
        """Log the geometric mean and the smallest value of a column."""
        place = self.content["columns"].index(column)
        found = [(row[place], row[0]) for row in self.content["rows"]
                 if isinstance(row[place], float | int)]  # fmt: skip
        if found:
            mean = geometric_mean(value for value, _ in found)
            log(f"\n{self.content['title']}, {column}: {mean:.3g} in the geometric mean of "
                f"{len(found)}, {min(found)[0]:.3g} for {min(found)[1]}")  # fmt: skip


def _lines(value: Any) -> str:
    if not (isinstance(value, list) and value and isinstance(value[0], list | dict)):
        return json.dumps(value, ensure_ascii=False)
    lines = ",\n".join(f"  {json.dumps(part, ensure_ascii=False)}" for part in value)
    return f"[\n{lines}\n ]"


def log(line: object) -> None:
    """Print to stderr, so that stdout has tables only."""
    print(line, file=sys.stderr, flush=True)


# --------------------------------------------------------------------------------------- arguments


def parser(doc: str | None, budget: float | None = None) -> argparse.ArgumentParser:
    """Return a parser of the arguments that benchmarks share."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--only", nargs="+", default=[], help="parts of names of problems")
    made.add_argument("--out", type=Path, default=ROOT / "results", help="folder for tables")
    if budget is not None:
        made.add_argument("--quick", action="store_true", help="small problems only")
        made.add_argument("--budget", type=float, default=budget, help="seconds per solve")
        made.add_argument("--peers", nargs="+", default=[], help="parts of names of solvers")
    return made


def compete(
    options: argparse.Namespace, table: Table, name: str, contest: Callable[[], Contest],
    limits: tuple[float, float], cells: Sequence[Any] = (),
) -> None:  # fmt: skip
    """Race the entries of a problem, if its name is wanted, and add a line to the table.

    The line has the name, the cells, our time, that of the fastest other solver, and their ratio.
    """
    if named(name, options.only):
        log(f"\n{name}")
        entries, judge = contest()
        runs = race(entries, judge, limits, options.budget, options.peers)
        table.add(name, *cells, *versus(runs, options.budget))


def named(name: str, parts: Sequence[str]) -> bool:
    """Return whether one of the parts is in the name, or there are none."""
    return not parts or any(part.lower() in name.lower() for part in parts)


def data_folder(required: bool = True) -> Path | None:
    """Return the folder that PAIRSTEP_DATA names."""
    folder = Path(os.environ.get("PAIRSTEP_DATA") or "/nonexistent")
    if folder.is_dir():
        return folder
    if required:
        raise SystemExit("set PAIRSTEP_DATA to the folder with the data sets")
    log("PAIRSTEP_DATA is not set: problems with real data are left out")
    return None
