"""Check an installed wheel without pytest: `python tests/smoke.py`."""

import importlib.util
import math
import subprocess
import sys
import sysconfig

import numpy as np

import pairstep
from pairstep import _core


def solves() -> None:
    """Solve with every instruction set and rule."""
    rng = np.random.default_rng(0)
    B = rng.standard_normal((40, 20))
    Q, c = B.T @ B, rng.standard_normal(20)
    for instruction_set in _core.instruction_sets():
        assert _core.use_instruction_set(instruction_set)
        result = pairstep.solve_qp(Q, c, upper=0.3)
        assert result.status == "optimal", (instruction_set, result)
        assert abs(math.fsum(result.x) - 1) <= math.ulp(1.0)
        assert result.x.min() >= 0
        assert result.x.max() <= 0.3
    for rule in ("gs-s", "gs-q", "gs-1", "gs-1-lipschitz", "libsvm"):
        f = pairstep.LeastSquares(B, B[:, 0])
        assert pairstep.coordinate_descent(f, pairstep.Simplex(), rule=rule).x.argmax() == 0, rule


def fits() -> None:
    """Fit a model with more than one thread."""
    from pairstep import svm

    X = np.random.default_rng(0).standard_normal((300, 5))
    y = X[:, 0] ** 2 + X[:, 1] > 0.5
    assert svm.SVC(C=10).fit(X, y).score(X, y) > 0.95


def stays_free_threaded() -> None:
    """Check that importing the package does not enable the GIL in free-threaded Python."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled()


def answers() -> None:
    """Run the command line."""
    command = [sys.executable, "-m", "pairstep", "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == f"pairstep {pairstep.__version__}"


if __name__ == "__main__":
    solves()
    if importlib.util.find_spec("sklearn"):  # there are no wheels of scikit-learn for musl
        fits()
    else:
        print("no models were fitted, because scikit-learn is not installed")
    stays_free_threaded()
    answers()
    print(f"pairstep {pairstep.__version__} works here: {_core.__file__}")
