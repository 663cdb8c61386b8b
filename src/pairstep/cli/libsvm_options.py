"""Options in the spelling of LIBSVM's `svm-train` and `svm-predict`, translated to ours.

Most of LIBSVM's options are plain short forms (``-c 10``, ``-g 0.5``), which the parsers of `train`
and `tune` list next to the long ones. This module translates those that argparse cannot express.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SVM_TYPES = ("svc", "nusvc", "oneclass", "svr", "nusvr")  # -s 0 to -s 4
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")  # -t 0 to -t 4

COMMANDS = ("train", "tune", "predict")
CLASS_WEIGHT = re.compile(r"-w([+-]?\d+)")  # -w1 5: the weight of class 1 is 5


def svm_type(text: str) -> str:
    """Return the name of an SVM type that is given by name or by LIBSVM's number."""
    return _by_number(SVM_TYPES, text)


def kernel(text: str) -> str:
    """Return the name of a kernel that is given by name or by LIBSVM's number."""
    return _by_number(KERNELS, text)


def _by_number(names: Sequence[str], text: str) -> str:
    return names[int(text)] if text.isdecimal() and int(text) < len(names) else text


def translate(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command line without LIBSVM's special forms.

    ``-wLABEL WEIGHT`` becomes ``--class-weight=LABEL=WEIGHT``. ``-b 1`` becomes ``--probability``;
    ``-b 0`` is the default and is dropped. ``-h 0`` and ``-h 1`` (shrinking) are dropped, because
    the solver decides about shrinking itself; a plain ``-h`` prints the help.
    """
    if not arguments or arguments[0] not in COMMANDS:
        return list(arguments)
    translated: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        weight = CLASS_WEIGHT.fullmatch(argument)
        if argument == "--":
            translated += [argument, *remaining]
        elif weight:
            translated.append(f"--class-weight={weight[1]}={next(remaining, '')}")
        elif argument in ("-b", "-h"):
            value = next(remaining, None)
            if value not in ("0", "1"):
                translated += [argument if argument == "-h" else "--probability"]
                translated += [] if value is None else [value]
            elif (argument, value) == ("-b", "1"):
                translated.append("--probability")
        else:
            translated.append(argument)
    return translated
