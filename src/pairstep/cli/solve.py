"""`pairstep solve`: solve a quadratic program whose variables sum to a total."""

from __future__ import annotations

import argparse
import io
from typing import TYPE_CHECKING, Any, BinaryIO

from .command import complain, did_you_mean, output, progress, report, require_writable
from .models import number

if TYPE_CHECKING:
    from ..result import Result

KNOWN = {"Q", "F", "d", "c", "lower", "upper", "total"}  # arrays of an npz file besides `names`

EXAMPLES = """\
examples:
  pairstep solve problem.csv
  pairstep solve problem.npz weights.csv --total 1
  pairstep solve problem.csv - --upper 0.1

A csv file has one line per variable: its name, then one column per variable (the matrix Q), and
optionally the columns c, lower and upper:

  name,bonds,stocks,c,upper
  bonds,0.003,0.001,-0.004,0.6
  stocks,0.001,0.030,-0.014,1

An npz file has an array Q, or F and optionally d for Q = F'F + diag(d), and optionally c, lower,
upper, total and names. By default variables are at least 0 and have no upper bound. --lower and
--upper apply to every variable, in addition to the bounds in the file: the tighter bound counts.
The total is taken from --total, otherwise from the file, and otherwise it is 1.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "solve",
        help="minimize x'Qx/2 + c'x under a sum and bounds",
        description="Minimize x'Qx/2 + c'x where x sums to a total and stays within bounds.",
        epilog=EXAMPLES,
    )
    parser.add_argument("problem", help="csv or npz file; - for standard input")
    parser.add_argument(
        "out",
        nargs="?",
        default="-",
        help="csv or npz file to write the weights to (default: -, standard output)",
    )
    parser.add_argument("--total", metavar="X", type=number, help="sum of the variables")
    parser.add_argument("--lower", metavar="X", type=number, help="lower bound of every variable")
    parser.add_argument("--upper", metavar="X", type=number, help="upper bound of every variable")
    parser.add_argument(
        "--tol", metavar="X", type=number, default=1e-8,
        help="relative KKT violation at which to stop (default: 1e-8)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the problem, solve it and write the weights; return the exit code."""
    import numpy as np

    from .. import solve_qp
    from ..data.opened import opened

    require_writable(options.out)
    with opened(options.problem, "a problem in csv or npz format") as file:
        names, arguments = read_problem(file)
    if options.total is not None:
        arguments["total"] = options.total
    for name, tighter in (("lower", np.maximum), ("upper", np.minimum)):
        if (bound := getattr(options, name)) is not None:
            in_file = name in arguments
            arguments[name] = tighter(np.float64(arguments[name]), bound) if in_file else bound
    with progress():
        result = solve_qp(**arguments, tol=options.tol)
    with output(options.out) as out:
        write(out, names, result, npz=options.out.endswith(".npz"))
    if not result.success:
        complain(str(result.message))
        return 1  # not 2, which is for errors of the user
    report(
        f"{result.status}: objective {result.fun:.10g}, at most {result.suboptimality_bound:.2g} "
        "above the optimum",
        options.out,
    )
    return 0


def read_problem(file: BinaryIO) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the variables, and arguments of `solve_qp`."""
    from ..data.npz import read_npz

    magic = file.read(2)
    file.seek(0)
    if magic != b"PK":  # not a zip archive, so not an npz file
        return _of_table(file)
    found: dict[str, Any] = dict(read_npz(file))
    names = found.pop("names", None)
    unknown = sorted(found.keys() - KNOWN)
    if unknown:
        hint = did_you_mean(unknown[0], KNOWN)
        raise ValueError(f"unknown array {unknown[0]!r}{hint}; use {', '.join(sorted(KNOWN))}")
    if ("Q" in found) == ("F" in found) or ("d" in found and "F" not in found):
        raise ValueError(
            "the file must have either an array Q, or an array F and optionally d; it has "
            f"{', '.join(sorted(found)) or 'none'}"
        )
    if "F" in found:
        found["Q"] = found.pop("F"), found.pop("d", 0.0)
    if "total" in found:
        total = found["total"]
        found["total"] = total.item() if total.size == 1 else tuple(total.tolist())
    matrix = found["Q"][0] if isinstance(found["Q"], tuple) else found["Q"]
    n = matrix.shape[-1] if matrix.ndim else 0
    if names is not None and names.shape != (n,):
        raise ValueError(f"there must be {n} names, one per variable, got {names.size}")
    shown = [str(name) for name in (range(1, n + 1) if names is None else names.tolist())]
    return shown, found


def _of_table(file: BinaryIO) -> tuple[list[str], dict[str, Any]]:
    from ..data.table import read_csv

    table = read_csv(file, dtype={0: str})
    if not table.headed:
        raise ValueError(
            "the first line must have the names of the columns, such as name,a,b,c,upper"
        )
    names = [name.strip() for name in table.frame[0]]
    if not names or len(set(names)) < len(names):
        raise ValueError("the first column must have the names of the variables, each once")
    optional = {"c", "lower", "upper"} - set(names)
    unknown = [name for name in table.names[1:] if name not in {*names, *optional}]
    if unknown:
        hint = did_you_mean(unknown[0], {*names, *optional})
        raise ValueError(f"column {unknown[0]!r} is neither a variable nor c, lower or upper{hint}")
    arguments: dict[str, Any] = {"Q": table.numbers([table.index_of(name) for name in names])}
    for name in optional & set(table.names[1:]):
        arguments[name] = table.numbers([table.names.index(name)])[:, 0]
    return names, arguments


def write(file: BinaryIO, names: list[str], result: Result, npz: bool) -> None:
    """Write the weights with their names."""
    import csv

    import numpy as np

    if npz:
        np.savez(file, names=np.array(names), x=result.x)
        return
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["name", "weight"])
    lines.writerows(zip(names, map(repr, result.x.tolist()), strict=True))
    file.write(text.getvalue().encode())
