"""Run cases in worker processes, stop those that do not end, and count the defects.

An attack draws a case from a random generator, solves it and checks the answer. Its seed and
its number identify a case, so `--seed S --only K` repeats it. A worker that does not answer in
time is killed and replaced, because native code that hangs cannot be stopped otherwise.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

CHECK_LIMIT = 300.0  # seconds for the check of a case; it is broken if it takes longer


@dataclass(frozen=True)
class Defect:
    """A defect: its kind, by which defects are counted, and the numbers."""

    kind: str
    text: str


class Case(Protocol):
    """A problem to solve."""

    @property
    def family(self) -> str:
        """The family it was drawn from."""
        ...

    @property
    def title(self) -> str:
        """A short description."""
        ...


class Attack(Protocol):
    """Draws cases, solves them and checks the answers. It is pickled to the workers."""

    limit: float  # seconds that a solve may take

    def open(self) -> None:
        """Prepare a worker process."""
        ...

    def draw(self, rng: np.random.Generator) -> Case:
        """Return a random case."""
        ...

    def solve(self, case: Any) -> Any:
        """Return the answer of the package; this call is timed."""
        ...

    def check(self, case: Any, answer: Any) -> tuple[str, list[Defect]]:
        """Return one word that describes the answer, for counting, and its defects."""
        ...


@dataclass
class Report:
    """The outcome of one case."""

    number: int
    family: str = "?"
    title: str = ""
    answer: str = "?"
    seconds: float = 0.0
    defects: list[Defect] = field(default_factory=list)


def arguments(description: str, count: int, families: Iterable[str]) -> argparse.ArgumentParser:
    """Return the options that all attacks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=count, help="number of cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this case alone, and print it")
    parser.add_argument("--family", choices=families, help="draw from this family alone")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds a solve may take")
    parser.add_argument("--out", help="file for the defects, one per line")
    return parser


def run(attack: Attack, options: argparse.Namespace) -> int:
    """Run the attack that the options describe; the exit code is 1 if there are defects."""
    if options.only is not None:
        return _run_one(attack, options.seed, options.only)
    began, reports = time.perf_counter(), []
    again = f"--seed {options.seed}" + (f" --family {options.family}" if options.family else "")
    out = open(options.out, "w") if options.out else None  # noqa: SIM115
    numbers = range(options.first, options.first + options.count)
    for report in _reports(attack, options.seed, numbers, options.jobs):
        reports.append(report)
        for defect in report.defects:
            line = (
                f"{again} --only {report.number}  {report.family}: {report.title}  "
                f"{report.answer}  {defect.kind}: {defect.text}"
            )
            print(line, flush=True)
            if out:
                print(line, file=out, flush=True)
    if out:
        out.close()
    _summarize(reports, time.perf_counter() - began)
    return int(any(report.defects for report in reports))


def _summarize(reports: list[Report], seconds: float) -> None:
    answers = collections.Counter(r.answer for r in reports)
    families = collections.Counter(r.family for r in reports)
    kinds = collections.Counter((d.kind, r.family) for r in reports for d in r.defects)
    defective = sum(bool(r.defects) for r in reports)
    slowest = max(reports, key=lambda r: r.seconds, default=Report(-1))
    print("families:", ", ".join(f"{name} {count}" for name, count in sorted(families.items())))
    print("answers:", ", ".join(f"{name} {count}" for name, count in answers.most_common()))
    for (kind, family), count in kinds.most_common():
        print(f"defects: {count} x {kind} in {family}")
    print(
        f"{len(reports)} cases in {seconds:.0f} s, {defective} with defects; "
        f"slowest {slowest.seconds:.1f} s (--only {slowest.number}, {slowest.family})"
    )


def _run_one(attack: Attack, seed: int, number: int) -> int:
    attack.open()
    case = attack.draw(np.random.default_rng([seed, number]))
    print(case)
    began = time.perf_counter()
    answer = attack.solve(case)
    print(f"{time.perf_counter() - began:.3f} s")
    print(answer)
    verdict, defects = attack.check(case, answer)
    print(verdict)
    for defect in defects:
        print(f"{defect.kind}: {defect.text}")
    return int(bool(defects))


# ------------------------------------------------------------------ workers


def _work(attack: Attack, seed: int, pipe: Any) -> None:
    """Send a report for each case number received, and a message before each stage."""
    attack.open()
    while (number := pipe.recv()) is not None:
        report = Report(number)
        try:
            case = attack.draw(np.random.default_rng([seed, number]))
            report.family, report.title = case.family, case.title
            pipe.send(("solve", report))
            began = time.perf_counter()
            answer = attack.solve(case)
            report.seconds = time.perf_counter() - began
            pipe.send(("check", report))
            report.answer, report.defects = attack.check(case, answer)
            if report.seconds > attack.limit:
                report.defects.append(Defect("time", f"took {report.seconds:.1f} s"))
        except Exception:
            lines = traceback.format_exc().strip().splitlines()
            report.defects.append(Defect("exception", " | ".join(lines[-4:])))
        pipe.send(("done", report))


class _Worker:
    """A process that checks one case at a time."""

    def __init__(self, attack: Attack, seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.attack = attack
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_work, args=(attack, seed, there))
        self.process.start()
        there.close()

    def report(self, number: int) -> Report:
        """Return the report of a case; a process that does not answer is killed."""
        self.pipe.send(number)
        report, stage, limit = Report(number), "draw", CHECK_LIMIT
        while stage != "done":
            if not self.pipe.poll(limit):
                kind = "time" if stage == "solve" else "check"
                return self.lost(report, Defect(kind, f"not ended after {limit:g} s"))
            try:
                stage, report = self.pipe.recv()
            except (EOFError, ConnectionResetError):
                self.process.join()
                text = f"the process ended with code {self.process.exitcode}"
                return self.lost(report, Defect("crash", text))
            # A solve that ends late is reported as such by the worker, with its answer.
            limit = 1.2 * self.attack.limit + 1 if stage == "solve" else CHECK_LIMIT
        return report

    def lost(self, report: Report, defect: Defect) -> Report:
        report.defects.append(defect)
        self.process.kill()
        self.process.join()
        return report


def _reports(attack: Attack, seed: int, numbers: Iterable[int], jobs: int) -> Iterator[Report]:
    """Yield the reports of the cases; each thread has a worker process."""
    of_thread, workers = threading.local(), []

    def report(number: int) -> Report:
        worker = getattr(of_thread, "worker", None)
        if worker is None or not worker.process.is_alive():
            worker = of_thread.worker = _Worker(attack, seed)
            workers.append(worker)
        return worker.report(number)

    with ThreadPoolExecutor(jobs) as threads:
        try:
            yield from threads.map(report, numbers)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.process.kill()


def main(attack: Attack, options: argparse.Namespace) -> None:
    """Run, and exit with the exit code."""
    sys.exit(run(attack, options))
