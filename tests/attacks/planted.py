"""Plants known faults in the package, one at a time, and checks that the tests notice each.

    python -m tests.attacks.planted                   # the nearest tests of every fault
    python -m tests.attacks.planted --whole           # also all tests, where those notice nothing
    python -m tests.attacks.planted --only centering  # the faults whose name contains this

A fault is an exact text that stands once in `src/pairstep` or `cpp`, in whatever file, and the text
that replaces it. The file is always restored, also on Ctrl-C. Do not edit the package meanwhile. A
fault in native code compiles the package, and so does the end of the program.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    *(ROOT / "src/pairstep").rglob("*.py"),
    *(path for path in (ROOT / "cpp").rglob("*") if path.suffix in (".cpp", ".hpp", ".inc")),
]
# A fault may make a solve endless. The slowest of the nearest tests take two minutes.
SECONDS_NEAR, SECONDS_WHOLE = 900, 3600


@dataclass(frozen=True)
class Fault:
    """A text of the package, a faulty one in its place, and the tests that should notice it."""

    name: str
    text: str
    planted: str
    tests: str  # files or folders below tests, nearest first

    @property
    def path(self) -> Path:
        """The file with the text."""
        found = [path for path in SOURCES if self.text in path.read_text()]
        if len(found) != 1 or found[0].read_text().count(self.text) != 1:
            places = ", ".join(str(path.relative_to(ROOT)) for path in found) or "no file"
            raise SystemExit(f"{self.name}: its text must stand in one place, but is in {places}")
        return found[0]


FAULTS = [
    # Labels and the constraint.
    Fault(
        "labels: the permutation is inverted",
        "return np.array([place[label] for label in own])",
        "return np.argsort([place[label] for label in own])",
        "test_labels.py",
    ),
    Fault(
        "labels: the columns of rows are not aligned with the objective",
        "rows = None if self.rows is None else self.rows.in_order(order)",
        "rows = self.rows",
        "test_labels.py solve/test_rows.py",
    ),
    Fault(
        "constraint: unpickled without its labels",
        'object.__setattr__(self, "variables", variables)',
        "",
        "test_labels.py constraints/test_sum_box.py",
    ),
    Fault(
        "constraint: a sum that misses its total by 1e-9 of its terms counts as feasible",
        "if miss <= _rounding_of_sum(terms, end) + relative_error * terms.sum():",
        "if miss <= 1e-9 * terms.sum():",
        "constraints/test_sum_box.py",
    ),
    Fault(
        "constraint: the benchmark's sum without coefficients",
        "found = float((a * benchmark).sum())",
        "found = float(benchmark.sum())",
        "test_bad_arguments.py solve/test_caps.py",
    ),
    # Quadratic programs, rows, caps, batches.
    Fault(
        "minimize: an x0 outside its bounds by a thousandth is accepted",
        "if outside.max() > X0_SLACK * size:",
        "if outside.max() > 1e-3 * size:",
        "test_bad_arguments.py solve/test_minimize.py",
    ),
    Fault(
        "minimize: a point that max_iter ends is never called optimal",
        "may_be_optimal = status in (Status.STALLED, Status.MAX_ITER) and",
        "may_be_optimal = status in (Status.STALLED,) and",
        "solve/test_minimize.py paper/test_coordinate_descent.py",
    ),
    Fault(
        "result: the multiplier of a bound ignores a center at the bound",
        "right = slope + np.where(self.x < center, -l1, l1)",
        "right = slope + np.where(self.x <= center, -l1, l1)",
        "test_result.py objectives/test_l1_penalized.py",
    ),
    Fault(
        "rows: a row with a multiplier may miss its limit without effect on the bound",
        "suboptimality_bound=checked.suboptimality_bound + float(gaps.sum()),",
        "suboptimality_bound=checked.suboptimality_bound,",
        "solve/test_rows.py",
    ),
    Fault(
        "rows: violated lower limits are not seen",
        "for end, sign in ((rows.low, 1.0), (rows.high, -1.0)):",
        "for end, sign in ((rows.high, -1.0),):",
        "solve/test_rows.py",
    ),
    Fault(
        "rows: the tolerance of their rounding is 1e-6",
        "ROW_ROUNDING = 1e-12",
        "ROW_ROUNDING = 1e-6",
        "solve/test_rows.py",
    ),
    Fault(
        "from_qp: a row with a negative entry bounds its variable on the wrong side",
        "np.maximum.at(lower, at, np.minimum(*ends))",
        "np.maximum.at(lower, at, ends[0])",
        "solve/test_from_qp.py",
    ),
    Fault(
        "caps: the turnover is one-way",
        "return float(np.abs(apart).sum())",
        "return float(np.maximum(apart, 0.0).sum())",
        "solve/test_caps.py",
    ),
    Fault(
        "batch: a right-hand side that ran out of time is called stalled",
        "status[~optimal & (points.state == UNSOLVED)] = Status.TIME_LIMIT.value",
        "",
        "test_doors.py",
    ),
    # Objectives and derivatives.
    Fault(
        "l1: a negative coefficient does not exchange the two slopes",
        "slopes = np.where(down + up < 0, -up, down), np.where(down + up < 0, -down, up)",
        "slopes = np.abs(down), np.abs(up)",
        "objectives/test_l1_penalized.py",
    ),
    Fault(
        "l1: rounding errors of its terms are not in the bound",
        "return inner[0] + EPS * (len(x) + 4) * l1_terms, inner[1]",
        "return inner[0], inner[1]",
        "objectives/test_l1_penalized.py solve/test_recession.py",
    ),
    Fault(
        "derivatives: the sign of the ridge's",
        '"ridge": lambda: float(-w @ x),',
        '"ridge": lambda: float(w @ x),',
        "solve/test_derivatives.py",
    ),
    # Support vector machines.
    Fault(
        "svm: a dual within twice the tolerance is called optimal",
        "Status.OPTIMAL if violation <= tol else",
        "Status.OPTIMAL if violation <= 2 * tol else",
        "svm/test_optimality.py svm/test_hard_problems.py svm/test_base.py",
    ),
    Fault(
        "svm: centering forgotten in the intercept",
        "outcomes[:, BEFORE_MULTIPLIERS:] += offsets[:, None]",
        "",
        "svm/test_base.py svm/test_optimality.py",
    ),
    Fault(
        "svm: a left-out fold keeps the total of nu",
        "total = min(fraction * abs(totals[k]), float(limit.sum()))",
        "total = min(abs(totals[k]), float(limit.sum()))",
        "svm/test_models.py svm/test_left_out.py svm/test_probability.py",
    ),
    Fault(
        "svm: random_state of a search is ignored",
        "splitter = kind(folds, shuffle=True, random_state=self.random_state)",
        "splitter = kind(folds, shuffle=True, random_state=0)",
        "svm/test_search.py",
    ),
    Fault(
        "svm: the weights of samples are dropped by an update",
        "plan.weights = np.concatenate([training.weights[kept], new_weights])",
        "plan.weights = np.concatenate([training.weights[kept], np.ones_like(new_weights)])",
        "svm/test_models.py svm/test_update.py",
    ),
    Fault(
        "svm: a file with an index of a support vector beyond the rows is loaded",
        'yield "support_", support.min(initial=0) >= 0 and support.max(initial=0) < rows',
        "",
        "svm/test_files.py",
    ),
    Fault(
        "dask: only the first block of a partition counts",
        "checked = [part for part in checked if part.shape[0]] or checked[:1]",
        "checked = checked[:1]",
        "svm/test_models.py dask/test_estimators.py",
    ),
    Fault(
        "gpu: the L1 term of a variable at 0 has the wrong right derivative",
        "up = gradient + np.where(x < 0, -l1, l1)",
        "up = gradient + np.where(x <= 0, -l1, l1)",
        "svm/test_models.py gpu/test_without_gpu.py",
    ),
    # Commands, the paper.
    Fault(
        "cli: a bound on the command line replaces the tighter one of the file",
        'for name, tighter in (("lower", np.maximum), ("upper", np.minimum)):',
        'for name, tighter in (("lower", np.minimum), ("upper", np.maximum)):',
        "cli/test_command.py",
    ),
    Fault(
        "rules: GS-q takes amounts beyond what a variable can change",
        "amount = np.minimum(limit, alpha * gap / 2)",
        "amount = alpha * gap / 2",
        "paper/rules/test_rules.py",
    ),
    Fault(
        "theory: the sharp rate counts ordered pairs",
        "return 1 - mu_2 / (pairs * l2)",
        "return 1 - mu_2 / (2 * pairs * l2)",
        "paper/test_theory.py paper/test_theorems.py",
    ),
    # Native code.
    Fault(
        "native: the violation of nested groups leaves out exchanges between groups",
        "certificate.violation = std::max(certificate.violation, all.max_left - all.min_right);",
        "",
        "constraints/test_groups.py",
    ),
    Fault(
        "native: the bound of nested groups exchanges the slacks of their sums",
        "append_up_to(slacks.down[g], remainder.decreasing, all.decreasing);",
        "append_up_to(slacks.up[g], remainder.decreasing, all.decreasing);",
        "constraints/test_groups.py",
    ),
    Fault(
        "native: a coordinate that corrects a sum goes to the wrong bound",
        "if (!is_free(i) || slack(i, amount) >= std::abs(amount)) continue;\n"
        "      x[i] = amount > 0 ? upper[i] : lower[i];",
        "if (!is_free(i) || slack(i, amount) >= std::abs(amount)) continue;\n"
        "      x[i] = amount > 0 ? lower[i] : upper[i];",
        "cpp/core/test_feasible.py constraints/test_sum_box.py",
    ),
    Fault(
        "native: an updated gradient counts as verified",
        "if (!is_recomputed_) recompute_gradient();",
        "",
        "cpp/engine/test_svm.py solve/test_block.py svm/test_hard_problems.py",
    ),
    Fault(
        "native: a tie of two classes is a vote for the first",
        "const Index first = *decision++ > 0;",
        "const Index first = *decision++ >= 0;",
        "svm/test_base.py svm/test_probability.py svm/test_chains.py",
    ),
    Fault(
        "native: a verified violation may be twice the tolerance",
        "return violation <= tolerance();",
        "return violation <= 2 * tolerance();",
        "cpp/engine/test_svm.py solve/test_block.py",
    ),
    Fault(
        "native: pruned nodes are not in the lower bound of a search over names",
        ".bound = std::min({pruned_, current_, value_}),",
        ".bound = std::min({current_, value_}),",
        "solve/test_cardinality.py",
    ),
    Fault(
        "native: Platt's target of the negative class",
        "low = 1 / (double(negatives) + 2);",
        "low = 1 / (double(negatives) + 1);",
        "svm/test_probability.py",
    ),
    Fault(
        "native: rows without a free variable do not make derivatives one-sided",
        "hessian_is_singular || rows_are_dependent || without_free_variable_;",
        "hessian_is_singular || rows_are_dependent;",
        "solve/test_derivatives.py test_layers.py",
    ),
    Fault(
        "native: the gradient of a least-squares model without its linear term",
        "gradient[i] = ridge_[i] * point.x[i] + c_[i];",
        "gradient[i] = ridge_[i] * point.x[i];",
        "solve/test_block.py solve/test_smooth.py",
    ),
    Fault(
        "native: a partition repeats earlier changes when it looks at all rows again",
        "change[m] -= part.x_before[m];",
        "change[m] -= 0.0;",
        "cpp/oracles/test_partition.py dask/test_oracle.py",
    ),
    Fault(
        "native: the parametric solver keeps the L1 weights of the start",
        "l1_[i] = std::max(l1(i), 0.0);",
        "",
        "solve/test_caps.py solve/test_frontier.py",
    ),
]


@contextmanager
def planted(fault: Fault) -> Iterator[bool]:
    """Change the file of the fault, and restore it; yields whether it is native code."""
    path, original = fault.path, fault.path.read_bytes()
    try:
        path.write_text(original.decode().replace(fault.text, fault.planted))
        yield path.suffix != ".py"
    finally:
        path.write_bytes(original)


def compile_package() -> None:
    """Compile what has changed, and install the package of this folder."""
    folder = str(Path(sys.executable).parent)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--editable", str(ROOT)],
        check=True, env=os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
    )  # fmt: skip


def noticed(tests: list[str], seconds: float) -> str | None:
    """Return the first test that fails, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no"]
    run = subprocess.Popen(
        [*command, *tests], cwd=ROOT, text=True, stdout=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        output, _ = run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no answer after {seconds} seconds"
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    if run.returncode == 0:
        return None
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else f"pytest ended with {run.returncode}"


def main() -> int:
    """Plant the faults; return 1 if one is not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--whole", action="store_true", help="all tests where the nearest miss one")
    options = parser.parse_args()
    faults = [fault for fault in FAULTS if options.only in fault.name]
    for fault in faults:  # before the first one is planted
        missing = [name for name in fault.tests.split() if not (ROOT / "tests" / name).exists()]
        if missing or fault.text not in fault.path.read_text():
            raise SystemExit(f"{fault.name}: there is no {', '.join(missing)}")
    missed, compiled = [], False
    try:
        for fault in faults:
            began = time.perf_counter()
            with planted(fault) as is_native:
                by = None
                if is_native:
                    compiled = True
                    compile_package()
                by = noticed([f"tests/{name}" for name in fault.tests.split()], SECONDS_NEAR)
                if by is None and options.whole:
                    by = noticed(["tests"], SECONDS_WHOLE)
            missed += [] if by else [fault.name]
            print(
                f"{'caught' if by else 'MISSED'} {time.perf_counter() - began:4.0f} s  {fault.name}"
                f"{f'  ({by})' if by else ''}", flush=True,
            )  # fmt: skip
    finally:
        if compiled:
            compile_package()
    print(f"{len(faults) - len(missed)} of {len(faults)} faults were noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
