"""`pairstep solve`: a quadratic programme whose variables add up to a total."""

from __future__ import annotations

import argparse
import io
from typing import TYPE_CHECKING, Any, BinaryIO

from .command import complain, output, progress, report, require_writable
from .machines import number

if TYPE_CHECKING:
    from ..result import Result

EXAMPLES = """\
examples:
  pairstep solve problem.csv
  pairstep solve problem.npz weights.csv --total 1
  pairstep solve problem.csv - --upper 0.1

A csv file has a line per variable: its name, then columns named after all variables (the matrix Q)
and, as you like, c, lower and upper:

  name,bonds,stocks,c,upper
  bonds,0.003,0.001,-0.004,0.6
  stocks,0.001,0.030,-0.014,1

An npz file has arrays Q, or F and d for F'F + diag(d), and perhaps c, lower, upper, total, names.
Bounds are 0 and none, and the total is 1, unless given.
"""


def add_to(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "solve",
        help="minimise x'Qx/2 + c'x under a sum and bounds",
        description="Minimise x'Qx/2 + c'x where x adds up to a total and stays within bounds.",
        epilog=EXAMPLES,
    )
    parser.add_argument("problem", help="csv or npz file; - for standard input")
    parser.add_argument(
        "out", nargs="?", default="-", help="weights: csv, or npz if it is named so (-)"
    )
    parser.add_argument("--total", metavar="X", type=number, help="what the variables add up to")
    parser.add_argument("--lower", metavar="X", type=number, help="of all variables")
    parser.add_argument("--upper", metavar="X", type=number, help="of all variables")
    parser.add_argument("--tol", metavar="X", type=number, default=1e-8, help="default: 1e-8")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, solve, write."""
    from .. import solve_qp
    from ..data.opened import opened

    require_writable(options.out)
    with opened(options.problem) as file:
        try:
            names, arguments = read_problem(file)
        except ValueError as error:
            raise ValueError(f"{options.problem}: {error}") from error
    arguments |= {
        name: value
        for name in ("total", "lower", "upper")
        if (value := getattr(options, name)) is not None
    }
    with progress():
        result = solve_qp(**arguments, tol=options.tol)
    with output(options.out) as out:
        write(out, names, result, npz=options.out.endswith(".npz"))
    if not result.success:
        return complain(str(result.message)) - 1
    report(
        f"{result.status}: objective {result.fun:.10g}, at most {result.suboptimality_bound:.2g} "
        "above the optimum",
        options.out,
    )
    return 0


def read_problem(file: BinaryIO) -> tuple[list[str], dict[str, Any]]:
    """Names of the variables, and arguments of `solve_qp`."""
    from ..data.npz import read_npz

    begin = file.read(2)
    file.seek(0)
    if begin != b"PK":
        return _of_table(file)
    found: dict[str, Any] = dict(read_npz(file))
    names = found.pop("names", None)
    unknown = sorted(found.keys() - {"Q", "F", "d", "c", "lower", "upper", "total"})
    if unknown:
        raise ValueError(f"there is no use for an array {unknown[0]!r}")
    if ("Q" in found) == ("F" in found) or ("d" in found and "F" not in found):
        raise ValueError("there must be an array Q, or arrays F and d")
    if "F" in found:
        found["Q"] = found.pop("F"), found.pop("d", 0.0)
    if "total" in found:
        total = found["total"]
        found["total"] = total.item() if total.size == 1 else tuple(total.tolist())
    matrix = found["Q"][0] if isinstance(found["Q"], tuple) else found["Q"]
    n = matrix.shape[-1] if matrix.ndim else 0
    if names is not None and names.shape != (n,):
        raise ValueError(f"names must be {n}, one per variable, got {names.size}")
    shown = [str(name) for name in (range(1, n + 1) if names is None else names.tolist())]
    return shown, found


def _of_table(file: BinaryIO) -> tuple[list[str], dict[str, Any]]:
    from ..data.table import Csv, place_of

    table = Csv(file)
    if not table.headed:
        raise ValueError("the first line must have the names of the columns")
    names = [str(name).strip() for name in table.column(0)]
    if not names or len(set(names)) < len(names):
        raise ValueError("the first column must have the names of the variables, each once")
    beside = {"c", "lower", "upper"} - set(names)
    strange = [name for name in table.names[1:] if name not in {*names, *beside}]
    if strange:
        raise ValueError(f"column {strange[0]!r} is neither a variable nor c, lower or upper")
    arguments: dict[str, Any] = {"Q": table.numbers([place_of(table, name) for name in names])}
    for name in beside & set(table.names[1:]):
        arguments[name] = table.numbers([table.names.index(name)])[:, 0]
    return names, arguments


def write(file: BinaryIO, names: list[str], result: Result, npz: bool) -> None:
    """Weights with their names."""
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
