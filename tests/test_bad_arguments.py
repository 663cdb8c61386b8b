"""What every call refuses: the argument, the error and the words of its message, as one table.

A row names a call, changes some of its arguments, and lists what the message must contain, in any
order. Errors are ValueErrors unless the row begins with another class.
"""

import io
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from pairstep import (
    DOptimal,
    FactorModel,
    KLDivergence,
    L1Penalized,
    LeastSquares,
    Logistic,
    MixtureLikelihood,
    Quadratic,
    RiskParity,
    Simplex,
    SimplexRegressor,
    Smooth,
    SumBox,
    coordinate_descent,
    efficient_frontier,
    from_qp,
    layers,
    minimize,
    path,
    propose,
    simplex_lstsq,
    solve_qp,
    solve_qps,
    svm,
    theory,
)
from pairstep.paper.rules import RULES, specification

NAN, INF = math.nan, math.inf
EYE, ONES = np.eye(3), np.ones(3)
NAMES = ["a", "b", "c"]
LABELED = pd.DataFrame(EYE, NAMES, NAMES)
INDEFINITE = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
X, Y = load_iris(return_X_y=True)
PAIR = X[:100], Y[:100]  # the samples of two classes


def put(array, at, value):
    """Return a copy of an array with another value at a place."""
    changed = np.array(array, float)
    changed[at] = value
    return changed


def wide(columns):
    """Return iris as a sparse matrix whose last column is beyond the number of columns we take."""
    data = scipy.sparse.csr_array(X)
    place = np.array([0, 1, 2, columns - 1])[data.indices]
    return scipy.sparse.csr_array((data.data, place, data.indptr), (150, columns))


def smooth(value=lambda x: 0.0, gradient=lambda x: np.zeros(3), hessian=None):
    return minimize(Smooth(value, gradient, hessian), SumBox(1.0, upper=ONES))


def interrupt():
    raise KeyboardInterrupt


def fit(model, X=X, y=Y, sample_weight=None, **settings):
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return getattr(svm, model)(**settings).fit(X, y, **weights)


def predicting_with(given):
    """Predict with a kernel function that returns `given` for new samples."""
    model = svm.SVC(kernel=lambda A, B: A @ B.T if len(A) == 150 else given).fit(X, Y)
    return model.predict(X[:3])


# Each call with arguments that it accepts.
CALLS = {
    "Quadratic": (Quadratic, {"Q": EYE}),
    "with_linear": (Quadratic(EYE).with_linear, {}),
    "LeastSquares": (LeastSquares, {"A": EYE, "b": ONES}),
    "FactorModel": (FactorModel, {"F": EYE}),
    "L1Penalized": (L1Penalized, {"objective": Quadratic(EYE), "l1": 1.0}),
    "Smooth": (Smooth, {"value": sum, "gradient": sum}),
    "a smooth function": (smooth, {}),
    "MixtureLikelihood": (MixtureLikelihood, {"L": [[1.0]]}),
    "Logistic": (Logistic, {"Z": [[1.0], [2.0]], "y": [0, 1]}),
    "KLDivergence": (KLDivergence, {"A": [[1.0]], "b": [2.0]}),
    "DOptimal": (DOptimal, {}),
    "RiskParity": (RiskParity, {"Q": np.eye(2)}),
    "SumBox": (SumBox, {}),
    "a constraint": (lambda **given: minimize(Quadratic(EYE), SumBox(**given)), {}),
    "start": (lambda n=None, **given: SumBox(**given).start(n), {}),
    "project": (lambda y=(0.0, 0.0, 0.0), **given: SumBox(**given).project(y), {}),
    "minimize": (minimize, {"objective": Quadratic(EYE), "constraint": Simplex()}),
    "coordinate_descent": (coordinate_descent, {"objective": Quadratic(EYE),
                                                "constraint": Simplex()}),
    "solve_qp": (solve_qp, {"Q": EYE}),
    "simplex_lstsq": (simplex_lstsq, {"A": EYE, "b": ONES}),
    "a batch": (simplex_lstsq, {"A": np.ones((5, 3)), "b": np.ones((5, 2)), "upper": 1.0}),
    "matrices": (simplex_lstsq, {"A": np.ones((2, 5, 3)), "b": np.ones((2, 5))}),
    "solve_qps": (solve_qps, {"Q": np.array([EYE, EYE, EYE])}),
    "from_qp": (from_qp, {"P": EYE, "q": ONES}),
    "efficient_frontier": (efficient_frontier, {"covariance": EYE, "mean": [0.1, 0.2, 0.3]}),
    "max_sharpe": (efficient_frontier(np.diag([0.0, 0.09]), [0.02, 0.05]).max_sharpe, {}),
    "at": (efficient_frontier(np.diag([0.04, 0.09]), [0.02, 0.05]).at, {}),
    "path": (path, {"objective": Quadratic(EYE), "constraint": Simplex(), "over": [1.0]}),
    "vjp": (solve_qp(EYE).vjp, {"v": [1.0, 0.0, 0.0]}),
    "jvp": (solve_qp(EYE).jvp, {}),
    "layers": (layers.solve, {"tol": 1e-8}),
    "propose": (propose, {"rule": "gs-s", "gradient": [3.0, 1.0, 2.0], "x": [0.2, 0.3, 0.5],
                          "lower": 0.0, "upper": 1.0, "alpha": 1.0}),
    "specification": (specification, {"rule": "gs-s", "gradient": [3.0, 1.0, 2.0],
                                      "x": [0.2, 0.3, 0.5], "lower": 0.0, "upper": 1.0,
                                      "alpha": 1.0}),
    **{name: (getattr(theory, name), {}) for name in (
        "lipschitz_constants", "one_norm_constant", "strong_convexity", "one_norm_strong_convexity",
        "proximal_pl_constants", "small_progress_example", "three_updates_example",
        "conformal_pairs", "block_constant", "block_rate")},
    "rate": (theory.rate, {"rule": "gs-q", "l2": 1.0}),
    "sharp_random_rate": (theory.sharp_random_rate, {"l2": 1.0, "mu_2": 0.5, "n": 4}),
    "gs_1_by_selection": (theory.gs_1_by_selection, {
        "gradient": [1.0, 0.0], "x": [0.0, 0.0], "lower": 0.0, "upper": 1.0, "alpha": 1.0}),
    "block_descent": (theory.block_descent, {
        "objective": Quadratic(np.eye(6)), "A": np.kron(np.eye(2), np.ones(3)), "c": [0.0, 0.0],
        "x0": np.zeros(6), "tau": 3, "n_iter": 1}),
    "SimplexRegressor": (
        lambda X=X, y=Y, sample_weight=None, **k: SimplexRegressor(**k).fit(X, y, sample_weight), {}
    ),
    **{name: (lambda name=name, **given: fit(name, **given), {})
       for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "QuantileSVR", "SVCCV",
                    "SVRCV")},
    "predict": (predicting_with, {}),
    "to_sklearn": (svm.to_sklearn, {"model": svm.QuantileSVR().fit(X, Y)}),
    "save_libsvm_model": (svm.save_libsvm_model, {"model": svm.QuantileSVR().fit(X, Y),
                                                  "path": io.BytesIO()}),
    "svm.path": (svm.path, {"X": X, "y": Y}),
    "leave_one_out": (svm.leave_one_out, {"model": svm.SVC().fit(*PAIR), "X": PAIR[0],
                                          "y": PAIR[1]}),
}  # fmt: skip
ESTIMATORS = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
AT_LEAST = "must be a whole number of at least 1"
ROWS = [
    # ------------------------------------------------------------------ objectives
    *(row for bad in (NAN, INF, -INF) for row in [
        ("Quadratic", {"Q": put(EYE, (1, 1), bad)}, "Q[1, 1]", bad),
        ("Quadratic", {"c": put(ONES, 2, bad)}, "c[2]", bad),
        ("LeastSquares", {"A": put(EYE, (1, 1), bad)}, "A[1, 1]", bad),
        ("LeastSquares", {"A": scipy.sparse.csr_array(put(EYE, (1, 1), bad))}, "A", bad),
        ("LeastSquares", {"b": put(ONES, 2, bad)}, "b[2]", bad),
        ("LeastSquares", {"ridge": bad}, "ridge", bad),
        ("Smooth", {"lipschitz": put(ONES, 2, bad)}, "lipschitz[2]", bad),
    ]),
    # At symmetric positions of a matrix of several blocks.
    ("Quadratic", {"Q": put(np.eye(100), ([7, 90], [90, 7]), NAN)}, "Q[7, 90]", NAN),
    ("Quadratic", {"Q": put(np.eye(100), ([7, 90], [90, 7]), INF)}, "Q[7, 90]", INF),
    # Beyond the sizes whose products are finite.
    *(row for form, q, f in ((np.asarray, "Q[1, 1]", "[1, 1]"),
                             (scipy.sparse.csr_array, "Q.data[1]", ".data[1]")) for row in [
        ("Quadratic", {"Q": form(put(EYE, (1, 1), 1.1e100))}, q, "1.1e+100", "1e+100", "scale"),
        ("LeastSquares", {"A": form(put(EYE, (1, 1), -1.1e50))}, f"A{f}", "-1.1e+50", "scale"),
        ("FactorModel", {"F": form(put(EYE, (1, 1), -1.1e50))}, f"F{f}", "-1.1e+50", "scale"),
    ]),
    ("Quadratic", {"c": [0.0, 0.0, -1.1e100]}, "c[2]", "-1.1e+100", "scale"),
    ("with_linear", {"c": [0.0, 0.0, -1.1e100]}, "c[2]", "-1.1e+100"),
    ("LeastSquares", {"b": [0.0, 1.1e50, 0.0]}, "b[1]", "1.1e+50", "1e+50"),
    ("LeastSquares", {"ridge": 1e200}, "ridge[0]", "1e+200"),
    ("FactorModel", {"D": [0.0, 1e101, 0.0]}, "D[1]", "1e+101"),
    ("L1Penalized", {"l1": 1e101}, "l1[0]", "1e+101"),
    ("L1Penalized", {"center": [0.0, 0.0, -1.1e100]}, "center[2]", "-1.1e+100"),
    # Shapes and kinds.
    ("Quadratic", {"Q": np.ones((2, 3))}, "Q", "square", "(2, 3)"),
    ("Quadratic", {"Q": ONES}, "Q", 2, "(3,)"),
    ("Quadratic", {"Q": [[1.0, 2.0], [3.0]]}, "Q"),
    ("Quadratic", {"Q": np.zeros((0, 0))}, "Q", "empty"),
    ("Quadratic", {"c": np.ones(4)}, "c", 3, 4),
    ("LeastSquares", {"A": ONES}, "A", 2, "(3,)"),
    ("LeastSquares", {"A": np.zeros((3, 0))}, "A", "no columns"),
    ("LeastSquares", {"b": np.ones(2)}, "b", 3, 2),
    ("LeastSquares", {"b": EYE}, "b", 1, "(3, 3)"),
    ("LeastSquares", {"ridge": -1.0}, "ridge", "-1"),
    ("LeastSquares", {"ridge": 1j}, "ridge", "1j"),
    ("LeastSquares", {"A": scipy.sparse.csr_array(EYE * 1j)}, "A", "complex128"),
    *(row for bad in (np.array([1, 2, "x"], object), np.array([1j, 1, 1]), np.array(list("123")))
      for row in [
        ("Quadratic", {"c": bad}, "c", bad.dtype),
        ("Quadratic", {"Q": np.array([bad] * 3)}, "Q", bad.dtype),
        ("LeastSquares", {"A": np.array([bad] * 3)}, "A", bad.dtype),
        ("LeastSquares", {"b": bad}, "b", bad.dtype),
        ("Smooth", {"lipschitz": bad}, "lipschitz", bad.dtype),
        ("a constraint", {"lower": bad}, "lower", bad.dtype),
        ("a constraint", {"upper": bad}, "upper", bad.dtype),
        ("a constraint", {"coefficients": bad}, "coefficients", bad.dtype),
        ("a constraint", {"total": bad}, "total", bad.dtype),
        ("minimize", {"x0": bad}, "x0", bad.dtype),
        ("propose", {"gradient": bad}, "gradient", bad.dtype),
        ("propose", {"rule": "ratio", "lipschitz": bad}, "lipschitz", bad.dtype),
    ]),
    # Asymmetric matrices.
    ("Quadratic", {"Q": put(EYE, (0, 2), 0.5)}, "symmetric", "Q[0, 2]", 0.5, "Q[2, 0]", 0),
    ("Quadratic", {"Q": put(np.eye(200), (130, 70), 1e-3)}, "symmetric", 0.001, "130", "70"),
    ("solve_qp", {"Q": scipy.sparse.csr_array([[1.0, 2.0], [0.0, 1.0]])}, "Q"),
    ("solve_qp", {"Q": scipy.sparse.csr_array([[1.0, NAN], [NAN, 1.0]])}, "Q"),
    ("solve_qp", {"Q": scipy.sparse.csr_array(np.ones((2, 3)))}, "Q"),
    ("solve_qp", {"Q": scipy.sparse.csr_array([[1j, 0], [0, 1j]])}, "Q"),
    ("solve_qp", {"Q": scipy.sparse.csr_array((0, 0))}, "Q"),
    # Factors.
    ("solve_qp", {"Q": (EYE,)}, "pair (F, D)", "1 items"),
    ("solve_qp", {"Q": (EYE, ONES, 1.0)}, "pair (F, D)", "3 items"),
    ("solve_qp", {"Q": (EYE, -1.0)}, "D", "-1"),
    ("solve_qp", {"Q": (EYE, np.ones(2))}, "D", 3, 2),
    ("solve_qp", {"Q": (5.0, 1.0)}, "F", 2),
    ("solve_qp", {"Q": (ONES, ONES)}, "F must have 2 dimensions, got 1"),
    ("solve_qp", {"Q": (None, 1.0)}, "F"),
    ("solve_qp", {"Q": (EYE * NAN, ONES)}, "F[0, 0]", NAN),
    ("solve_qp", {"Q": (np.zeros((3, 0)), 1.0)}, "F", "no columns"),
    ("solve_qp", {"Q": (scipy.sparse.csr_array(EYE) * NAN, 1.0)}, "F", NAN),
    # L1 terms.
    ("L1Penalized", {"l1": (0.1, -0.2)}, "l1[1] must not be negative, but l1[1][0] = -0.2"),
    ("L1Penalized", {"l1": ([0.1, -3, 0.1], 0.2)}, "l1[0] must not be negative, but l1[0][1] = -3"),
    ("L1Penalized", {"l1": (0.1, 0.2, 0.3)}, "pair (down, up), got 3 items"),
    ("L1Penalized", {"l1": ([0.1, 0.2], 0.1)}, "l1[0] must have length 3, got 2"),
    ("L1Penalized", {"l1": (0.1, NAN)}, "l1[1]"),
    ("L1Penalized", {"l1": -0.5}, "l1 must not be negative, but l1[0] = -0.5"),
    ("L1Penalized", {"objective": L1Penalized(Quadratic(EYE), 10.0, [0.9, 0.05, 0.05]), "l1": 1e-3},
     "one L1 center", "0.9", "center[0] = 0"),
    ("solve_qp", {"l1": -0.1}, "l1", "-0.1"),
    ("solve_qp", {"l1": [0.1] * 2}, "l1 must have length 3"),
    ("solve_qp", {"l1": NAN}, "l1"),
    ("solve_qp", {"l1": INF}, "l1"),
    ("solve_qp", {"l1": 0.1, "center": INF}, "center"),
    ("solve_qp", {"l1": 0.1, "center": [0.0] * 9}, "center must have length 3"),
    # Ready-made and smooth functions.
    ("MixtureLikelihood", {"L": [[1.0, -1.0]]}, "L[0, 1] = -1"),
    ("MixtureLikelihood", {"L": [[1.0, 1.0], [0.0, 0.0]]}, "row 1 of L"),
    ("MixtureLikelihood", {"L": [[NAN]]}, "L[0, 0]"),
    ("MixtureLikelihood", {"L": np.ones((0, 3))}, "empty"),
    ("MixtureLikelihood", {"weights": [1.0, 2.0]}, "weights"),
    ("MixtureLikelihood", {"weights": [-1.0]}, "weights[0] = -1"),
    ("MixtureLikelihood", {"weights": [0.0]}, "weights are all 0"),
    ("Logistic", {"y": [1, 1]}, "two labels, got 1"),
    ("Logistic", {"y": [1]}, "y must have shape"),
    ("Logistic", {"y": [0.0, NAN]}, "y[1] is NaN"),
    ("Logistic", {"y": ["yes", None]}, "y[1] is missing: None"),
    ("KLDivergence", {"b": [-2.0]}, "b[0] = -2"),
    ("KLDivergence", {"A": [[0.0]]}, "row 0 of A"),
    ("DOptimal", {"A": np.ones((2, 3))}, "(2, 3)"),
    ("minimize", {"objective": DOptimal(np.ones((4, 2)))}, "x0"),  # of deficient rank
    ("RiskParity", {"budgets": [1.0, 0.0]}, "budgets[1] = 0"),
    ("RiskParity", {"Q": np.ones((2, 3))}, "square"),
    ("Smooth", {"value": 1.0}, "value", "callable"),
    ("Smooth", {"gradient": 1.0}, "gradient", "callable"),
    ("Smooth", {"gradient": "jaxx"}, "jax"),
    ("Smooth", {"hessian": 1.0}, "hessian", "callable"),
    *(row for bad in (0.0, -2.0) for row in [
        ("Smooth", {"lipschitz": [1.0, bad, 1.0]}, "lipschitz[1]", f"{bad:g}"),
        ("Smooth", {"lipschitz": bad}, "lipschitz", f"{bad:g}"),
    ]),
    ("a smooth function", {"value": lambda x: NAN}, "value", "nan"),
    ("a smooth function", {"value": lambda x: "high"}, "value", "'high'"),
    ("a smooth function", {"gradient": lambda x: [NAN, 0.0, 0.0]}, "gradient[0]", "nan"),
    ("a smooth function", {"gradient": lambda x: np.zeros(2)}, "gradient", 2, 3),
    ("a smooth function", {"gradient": lambda x: None}, "gradient"),
    (ZeroDivisionError, "a smooth function", {"value": lambda x: 1 / 0}),
    (ZeroDivisionError, "a smooth function", {"gradient": lambda x: 1 / 0}),
    (KeyboardInterrupt, "a smooth function", {"gradient": lambda x: interrupt()}),
    *(("a smooth function", {"value": lambda x: float(x @ x), "gradient": lambda x: 2 * x + ONES,
                             "hessian": hessian}, *words)
      for hessian, *words in [
        (lambda x: np.eye(2), "2 columns, but there are 3 variables"),
        (lambda x: np.full((3, 3), NAN), "Hessian"),
        (lambda x: np.triu(np.ones((3, 3))), "symmetric"),
        (lambda x: (np.ones((2, 2)), 0.0), "2 columns, but there are 3 variables"),
        (lambda x: (np.ones((2, 3)), np.ones(2)), "length 3"),
    ]),
    # ------------------------------------------------------------------ constraints
    ("a constraint", {"total": NAN}, "total", "nan"),
    ("a constraint", {"total": INF}, "total", "inf"),
    ("a constraint", {"total": (NAN, 1.0)}, "total[0]", "nan"),
    ("a constraint", {"total": (0.0, NAN)}, "total[1]", "nan"),
    ("a constraint", {"total": 1j}, "total", "1j"),
    ("a constraint", {"total": "one"}, "total", "'one'"),
    ("a constraint", {"total": None}, "total may be None only if there are groups"),
    ("a constraint", {"total": [1.0, 2.0]}, "total", 1, 2),
    ("a constraint", {"total": (1.0, 2.0, 3.0)}, "total", "(1.0, 2.0, 3.0)"),
    ("a constraint", {"lower": None}, "lower", "None"),
    ("a constraint", {"lower": NAN}, "lower", "nan"),
    ("a constraint", {"lower": INF}, "lower", "inf"),
    ("a constraint", {"lower": [0.0, 0.0]}, "lower", 3, 2),
    ("a constraint", {"upper": [1.0, NAN, 1.0]}, "upper[1]", "NaN"),
    ("a constraint", {"lower": -INF, "upper": -INF}, "upper", "-inf"),
    ("a constraint", {"upper": np.ones((3, 1))}, "upper", 1, "(3, 1)"),
    ("a constraint", {"coefficients": [1, NAN, 1]}, "coefficients[1]", "nan"),
    ("a constraint", {"coefficients": [1, 1, INF]}, "coefficients[2]", "inf"),
    ("a constraint", {"coefficients": [1, 0.0, 1]}, "coefficients[1]", "0",
     "pass current holdings as x0 or center"),
    ("a constraint", {"coefficients": np.ones(5)}, "coefficients", 3, 5),
    ("SumBox", {"coefficients": [[1.0, 1.0], [0.1, 0.2]]}, "coefficients must be one row", "(2, 2)",
     "efficient_frontier", "L1Penalized", "group_total"),
    ("start", {}, "n"),
    # A range leaves a finite sum; sizes have a limit.
    ("a constraint", {"total": (INF, INF), "lower": -INF}, "total", "inf"),
    ("a constraint", {"total": (-INF, -INF), "lower": -INF}, "total", "-inf"),
    ("a constraint", {"total": (1e200, INF)}, "total[0]", "1e+200", "1e+100"),
    ("a constraint", {"total": (-INF, -1e200), "lower": -INF}, "total[1]", "-1e+200"),
    ("a constraint", {"total": ([0.0, 3.0], [1.0, 2.0]), "groups": [0, 1, 1]}, "3 > 2"),
    ("a constraint", {"total": ([0.0, INF], INF), "groups": [0, 1, 1]}, "total[0]", "inf"),
    ("a constraint", {"total": 1e200}, "total", "1e+200", "1e+100", "scale"),
    ("a constraint", {"total": [1.0, -1e101], "lower": -INF, "groups": [0, 1, 1]}, "total[1]"),
    ("a constraint", {"lower": 2e100}, "lower[0]", "2e+100"),
    ("a constraint", {"lower": -INF, "upper": -2e100}, "upper[0]", "-2e+100"),
    ("a constraint", {"coefficients": [1, 1e51, 1]}, "coefficients[1]", "1e+51"),
    ("a constraint", {"coefficients": [1, 1, 1e-51]}, "coefficients[2]", "1e-51"),
    ("a constraint", {"upper": [1.0, 1e90, 1.0], "coefficients": [1.0, -1e40, 1.0]},
     "(coefficients * upper)[1]", "-1e+130", "scale"),
    ("project", {"y": [1e101, 0.0, 0.0]}, "y[0]", "1e+101"),
    # Crossed bounds and sums that the bounds do not allow.
    *((call, {"lower": [0, 0.5, 0], "upper": [1, 0.25, 1]}, "lower[1]", 0.5, "upper[1]", 0.25)
      for call in ("a constraint", "start")),
    ("a constraint", {"upper": [0.1, 0.3, 0.4]}, "the bounds allow sums from 0 to 0.8; total is 1"),
    ("a constraint", {"total": -1.0}, "from 0 to inf", "total is -1"),
    ("a constraint", {"lower": 0.5}, "from 1.5 to inf", "total is 1"),
    ("a constraint", {"total": [2.0, 1.0], "upper": 0.5, "groups": ["a", "b", "b"]},
     "group 'a'", "from 0 to 0.5", 2),
    ("a constraint", {"total": 9.0, "upper": 1.0, "coefficients": [1.0, -2.0, 3.0]},
     "from -2 to 4", "total is 9"),
    ("a constraint", {"total": (4.0, 5.0), "upper": 1.0}, "from 0 to 3", "(4, 5)"),
    ("a constraint", {"total": (5.0, 4.0)}, "total", 5, 4),
    ("a constraint", {"upper": [0.2, 0.3, 0.1], "total": 0.6 * (1 + 1e-13)}, "infeasible",
     "the bounds allow sums from 0 to"),
    ("start", {"n": 3, "upper": 0.1}, "from 0 to 0.3", "total is 1"),
    ("project", {"upper": 0.1}, "from 0 to 0.3", "total is 1"),
    # Groups.
    ("a constraint", {"groups": 0}, "groups"),
    ("a constraint", {"groups": [0, 1]}, "groups", 3, "(2,)"),
    ("a constraint", {"groups": [[0, 1, 1]]}, "groups", "(1, 3)"),
    ("SumBox", {"groups": [[0, 1], [1, 0]]}, "(2, 2)", "must not overlap"),
    ("a constraint", {"total": [1.0, 2.0, 3.0], "groups": [0, 1, 1]}, "total", 2, 3),
    *(("SumBox", {"groups": ["x", missing, "x"]}, "groups[1] is missing")
      for missing in (None, NAN, pd.NA, pd.NaT)),
    ("SumBox", {"groups": [0.5, NAN, 1.0]}, "groups[1]", "missing", "nan"),
    (TypeError, "SumBox", {"groups": [{}, {}]}, "hashable", "groups[0] = {}"),
    ("SumBox", {"group_total": {"a": 1.0}}, "group_total needs groups"),
    ("SumBox", {"groups": list("xyz"), "group_total": pd.DataFrame({"low": [0.1]}, index=["x"])},
     "group_total['x'] must be a total or a pair"),
    ("SumBox", {"groups": list("xyz"), "group_total": pd.DataFrame([[0.1, 0.2]], index=["q"])},
     "group_total names 'q', but the groups are 'x', 'y', 'z'"),
    # NumPy's date equals Python's but has another hash, so its limit was once ignored.
    ("SumBox", {"groups": np.array(["2020-01-01", "2020-01-02"], "M8[D]"),
                "group_total": {np.datetime64("2020-01-01"): (0.0, 0.2)}},
     "group_total names", "2020-01-01"),
    *((*error, "a constraint", {"groups": ["a", "a", "b"]} | given, *words)
      for *error, given, words in [
        ({"group_total": {"a": (0.9, 1.0)}, "upper": 0.4},
         ("the bounds of group 'a' allow sums from 0 to 0.8", "(0.9, 1)")),
        ({"group_total": {"b": 0.5}, "upper": 0.4},
         ("the bounds of group 'b' allow sums from 0 to 0.4", "total is 0.5")),
        ({"group_total": {"a": (0.0, 0.2), "b": (0.0, 0.3)}},
         ("the groups allow sums from 0 to 0.5; total is 1", "total=None")),
        ({"group_total": {"a": 0.5, "b": 0.25}}, ("from 0.75 to 0.75; total is 1",)),
        ({"group_total": {"a": (0.7, 0.9), "b": (0.5, 1.0)}},
         ("from 1.2 to 1.9", "there is at least 0.7 in 'a', at least 0.5 in 'b'")),
        ({"total": (2.0, 3.0), "group_total": {"a": (0.0, 0.2), "b": (0.0, 0.3)}},
         ("from 0 to 0.5; total is (2, 3)", "at most 0.2 in 'a', at most 0.3 in 'b'")),
        (TypeError, {"group_total": 0.5}, ("group_total", "mapping", 0.5)),
        ({"group_total": {"c": 0.5}}, ("names 'c'", "'a', 'b'")),
        ({"groups": range(3), "group_total": dict.fromkeys(range(9), 0)}, ("3, 4, 5, ...",)),
        ({"group_total": {"a": (0.5, 0.2)}}, ("group_total['a'] is empty: 0.5 > 0.2",)),
        ({"group_total": {"a": (1, 2, 3)}}, ("group_total['a']", "pair (low, high)")),
        ({"group_total": {"a": NAN}}, ("group_total['a']", "nan")),
        ({"group_total": {"a": INF}}, ("group_total['a']", "inf")),
        ({"group_total": {"a": (INF, INF)}}, ("group_total['a']", "no finite sum")),
        ({"group_total": {"a": (1e101, 1e102)}}, ("group_total['a']", "1e+101")),
        ({"group_total": {"a": "half"}}, ("group_total['a']", "real number")),
        ({"total": [0.5, 0.5], "group_total": {"a": 0.5}}, ("not in both",)),
    ]),
    # ------------------------------------------------------------------ options of minimize
    *(row for call in ("minimize", "solve_qp", "a batch") for row in [
        (call, {"tol": NAN}, "tol", "nan"),
        (call, {"tol": -1e-3}, "tol must not be negative", "-0.001"),
        (call, {"tol": "small"}, "tol", "'small'"),
        (call, {"time_limit": NAN}, "time_limit", "nan"),
        (call, {"time_limit": -1}, "time_limit", "-1"),
        *((call, {"max_iter": bad}, "max_iter", repr(bad)) for bad in (-1, 2.5, NAN, "many", True)),
    ]),
    ("minimize", {"x0": [1.0, NAN, 0.0]}, "x0[1]", "nan"),
    ("minimize", {"x0": [1.0, INF, 0.0]}, "x0[1]", "inf"),
    ("minimize", {"x0": [1e101, 0.0, 0.0]}, "x0[0]", "1e+101"),
    ("minimize", {"x0": np.ones(4)}, "x0", 3, 4),
    ("minimize", {"x0": np.ones((3, 1)) / 3}, "x0", 1, "(3, 1)"),
    ("minimize", {"x0": [0.5, 0.2, 0.2]}, "x0", "sums to 0.9", "total is 1"),
    ("minimize", {"x0": [1.5, -0.5, 0.0]}, "x0[1]", -0.5, "[0, inf]"),
    ("minimize", {"x0": [1.0005, -0.0005, 0.0]}, "x0[1]", -0.0005, "[0, inf]"),
    ("minimize", {"constraint": SumBox([1.0, 1.0], groups=[0, 0, 1]), "x0": [0.5, 0.5, 0.5]},
     "x0", 0.5, 1),
    ("minimize", {"constraint": SumBox(1.0, coefficients=[1.0, 2.0, 1.0]), "x0": [0.5, 0.5, 0.0]},
     1.5, 1),
    ("minimize", {"constraint": SumBox((0.5, 0.8)), "x0": [0.5, 0.5, 0.5]},
     "x0", "sums to 1.5", "0.8"),
    ("minimize", {"constraint": SumBox((0.5, 0.8)), "x0": [0.1, 0.1, 0.0]},
     "x0", "sums to 0.2", "0.5"),
    *(("minimize", {"constraint": SumBox(groups=["a", "a", "b"], group_total={"a": (0.0, 0.5)}),
                    "x0": x0}, *words)
      for x0, *words in [
        ([0.4, 0.4, 0.2], "x0 is infeasible: group 'a' sums to 0.8", "(0, 0.5)"),
        ([0.2, 0.2, 0.2], "sums to 0.6", "total is 1"),
    ]),
    ("solve_qp", {"x0": np.full(3, 1 / 3), "total": 2.0}, "x0", "sums to 1", "total is 2"),
    (TypeError, "minimize", {"objective": EYE}, "objective"),
    (TypeError, "minimize", {"constraint": 1.0}, "constraint", "SumBox"),
    *(("minimize", {"objective": lambda x: float(x @ x), **given}, *words) for given, *words in [
        ({}, "number of variables"),
        ({"constraint": SumBox(0.0, upper=np.zeros(0))}, "n = 0"),
        ({"constraint": SumBox(0.0), "x0": []}, "n = 0"),
    ]),
    # ------------------------------------------------------------------ quadratic programs
    ("solve_qp", {"c": np.array([NAN, 0.0, 0.0])}, "c must be finite"),
    ("solve_qp", {"total": 4.0, "upper": 1.0}, "total is 4"),
    (TypeError, "solve_qp", {"wieghts": ONES},
     "solve_qp got an unexpected keyword argument 'wieghts'"),
    *((TypeError, call, {"weights": ONES}, "no argument 'weights': use coefficients= for", "x0=")
      for call in ("solve_qp", "simplex_lstsq", "efficient_frontier", "SumBox")),
    (TypeError, "solve_qps", {"weights": 1}, "solve_qps"),
    # Caps.
    *(("solve_qp", {"c": [0.0, 0.1, 0.2], **caps}, *words) for caps, *words in [
        ({"turnover": 0.1}, "turnover must be a pair (x_before, limit)"),
        ({"turnover": (ONES / 3, -0.1)}, "limit of turnover must be at least 0, got -0.1"),
        ({"turnover": (ONES / 3, NAN)}, "limit of turnover must be finite"),
        ({"turnover": ([0.5, 0.5], 0.1)}, "turnover[0] must have length 3, got 2"),
        ({"turnover": ([NAN, 0, 1], 0.1)}, "turnover[0]"),
        ({"tracking_error": (ONES / 3, 0.0)}, "limit of tracking_error must be positive"),
        ({"tracking_error": (ONES, 0.1)}, "benchmark of tracking_error sums to 3, but total"),
        ({"tracking_error": (ONES / 3, 0.1), "coefficients": [1.0, 2.0, 1.0]},
         "benchmark of tracking_error sums to 1.33333, but total"),
        ({"max_risk": -1.0}, "max_risk must be positive, got -1"),
        ({"max_risk": 0.01}, "max_risk cannot be as small as 0.01", "at least 0.57735"),
        ({"min_return": (ONES, 2.0)}, "no x satisfies all rows"),
        ({"turnover": ([3.0, 0, 0], 0.1)}, "turnover cannot be as small as 0.1", "at least 2"),
        ({"turnover": ([1.0, 0, 0], 0.1), "max_risk": 0.6},
         "contradict each other: with turnover at most 0.1, max_risk is at least"),
        ({"turnover": (ONES / 3, 0.5), "l1": 0.1, "center": 0.0},
         "turnover and the costs l1 must start from the same holdings"),
        ({"Q": None, "max_risk": 1.0}, "give Q, or covariance"),
        ({"Q": None, "covariance": EYE}, "covariance needs max_risk or tracking_error"),
        ({"Q": None, "covariance": EYE, "turnover": (ONES / 3, 0.1)},
         "needs max_risk or tracking_error"),
        ({"covariance": EYE, "max_risk": 1.0}, "give Q or covariance, not both"),
    ]),
    (TimeoutError, "solve_qp", {"turnover": (ONES / 3, 0.1), "time_limit": 0.0},
     "time_limit = 0 seconds"),
    # Limits on names.
    *(("solve_qp", {"Q": np.diag([1.0, 2.0, 3.0, 4.0]), **given}, *words) for given, *words in [
        ({"max_names": 0}, f"max_names {AT_LEAST}, got 0"),
        ({"max_names": -2}, f"max_names {AT_LEAST}, got -2"),
        *(({"max_names": bad}, "max_names must be a whole number")
          for bad in (2.0, True, "two", NAN)),
        ({"min_holding": -0.1}, "min_holding must not be negative, but min_holding[0] = -0.1"),
        ({"min_holding": NAN}, "min_holding"),
        ({"min_holding": [0.1, NAN, 0.1, 0.1]}, "min_holding[1]"),
        ({"min_holding": [0.1, 0.1]}, "min_holding must have length 4"),
        ({"min_holding": 0.6, "upper": 0.5}, "min_holding[0] = 0.6 is above upper[0] = 0.5"),
        ({"min_holding": 0.6, "upper": 0.9}, "no x with", "min_holding = 0.6 satisfies the sums"),
        ({"fixed_cost": -1.0}, "fixed_cost must not be negative"),
        ({"fixed_cost": INF}, "fixed_cost"),
        ({"fixed_cost": 0.1, "min_return": (np.ones(4), 0.1)}, "min_return cannot be combined"),
        ({"max_names": 2, "gap": -1.0}, "gap must not be negative"),
        ({"max_names": 2, "gap": NAN}, "gap"),
        ({"max_names": 2, "gap": INF}, "gap must be finite"),
        ({"max_names": 2, "upper": 0.3}, "max_names = 2 is too small", "the sum is at most 0.6"),
        ({"max_names": 1, "lower": 0.1}, "max_names = 1, but 4 variables cannot be 0"),
        ({"max_names": 1, "rows": [[2.0, 1.0, 0.0, 0.0]], "rows_lower": 1.1,
          "upper": [0.4, 0.4, 1.0, 1.0]},
         "max_names = 1 is too small", "row 0 is at most 0.8, but it must be at least 1.1"),
        ({"max_names": 2, "groups": list("aabc"), "group_lower": {"a": 0.1, "b": 0.1, "c": 0.1}},
         "no x with at most max_names = 2 names"),
        ({"max_names": 2, "max_iter": -1}, "max_iter"),
        ({"max_names": 2, "turnover": (np.full(4, 0.25), 0.1)}, "turnover cannot be combined"),
    ]),
    ("solve_qp", {"Q": INDEFINITE, "max_names": 1}, "convex"),
    ("solve_qp", {"Q": ([[1.0, 2.0, 3.0]], 0.0), "lower": -INF, "max_names": 2},
     "finite bounds where Q is singular"),
    ("solve_qp", {"rows": [ONES], "rows_lower": 2.0, "max_names": 1}, "no x satisfies all rows"),
    # Rows.
    *(("solve_qp", given, *words) for given, *words in [
        ({"rows": np.ones((1, 2)), "rows_lower": 0.0}, "one column for each of the 3 variables"),
        ({"rows": [ONES]}, "rows need limits"),
        ({"rows": [ONES], "rows_lower": NAN}, "rows_lower"),
        ({"rows": [ONES * NAN], "rows_lower": 0.0}, "rows[0, 0] = nan"),
        ({"rows": [ONES], "rows_lower": 2.0, "rows_upper": 1.0}, "exceeds rows_upper"),
        ({"rows": [ONES], "rows_lower": [0.0, 1.0]}, "rows_lower"),
        ({"rows_lower": 1.0}, "rows_lower needs rows"),
        ({"rows": pd.DataFrame([ONES, ONES], ["beta", "size"], NAMES),
          "rows_lower": {"bta": 0.1, "size": 0.0}},
         "rows_lower has the label 'bta', but rows have ['beta'"),
        ({"Q": LABELED, "rows": pd.DataFrame([ONES], ["beta"], ["a", "b", "z"]), "rows_lower": 0.1},
         "labels of rows and Q differ", "'z' is not in Q"),
    ]),
    # ------------------------------------------------------------------ labels
    *(("solve_qp", {"Q": LABELED, "l1": 0.1, name: pd.Series(ONES, ["odd", "b", "c"])},
       f"labels of {name} and Q differ: 'a' is not in")
      for name in ("c", "lower", "upper", "coefficients", "l1", "center", "x0")),
    ("solve_qp", {"Q": LABELED, "c": pd.Series(ONES)}, "0, 1, 2 are not in Q"),
    ("solve_qp", {"Q": LABELED, "upper": pd.Series(ONES, NAMES)[1:]},
     "labels of upper and Q differ: 'a' is not in upper"),
    ("solve_qp", {"Q": LABELED, "c": pd.Series(ONES, ["a", "a", "c"])},
     "c cannot be aligned: c has the label 'a' twice"),
    ("solve_qp", {"Q": LABELED, "c": pd.Series(["much"] * 3, NAMES)}, "c must hold real numbers"),
    ("solve_qp", {"Q": LABELED, "c": LABELED}, "c must have 1 dimension(s), got shape (3, 3)"),
    ("solve_qp", {"Q": LABELED, "c": pl.DataFrame({"profit": ONES})},
     "c must have 1 dimension(s), got shape (3, 1)"),
    ("solve_qp", {"Q": pd.Series(ONES, NAMES)}, "Q must have 2 dimension(s), got shape (3,)"),
    ("solve_qp", {"upper": pd.Series(ONES, NAMES)[1:]}, "upper must have length 3, got 2"),
    # ------------------------------------------------------------------ batches
    ("a batch", {"b": np.ones((4, 2))}, "b must have 5 rows", "4"),
    ("a batch", {"A": scipy.sparse.csr_array(np.ones((4, 3)))}, "b must have 4 rows", "5"),
    ("a batch", {"b": np.ones((1, 5, 2))}, "b must have"),
    ("a batch", {"b": scipy.sparse.csr_array(np.ones((5, 2)))}, "b must be dense"),
    ("a batch", {"b": np.ones((5, 2)) * 1j}, "b must hold real numbers"),
    ("a batch", {"A": np.ones((5, 0))}, "A has no columns"),
    ("a batch", {"A": np.full((5, 3), NAN)}, "A must be finite"),
    ("a batch", {"A": np.ones(5)}, "A must have 2 dimensions"),
    ("a batch", {"A": 3.0}, "A"),
    ("a batch", {"ridge": -1.0}, "ridge"),
    ("a batch", {"ridge": NAN}, "ridge"),
    ("a batch", {"x0": np.full(3, 1 / 3)}, "x0"),
    ("a batch", {"total": 8.0}, "total"),
    ("a batch", {"upper": -1.0}, "lower"),
    ("a batch", {"n_jobs": 0}, "n_jobs must not be 0"),
    ("a batch", {"rows": [ONES], "rows_upper": 1.0}, "rows needs one right-hand side"),
    ("matrices", {"rows": [ONES], "rows_upper": 1.0}, "rows needs one problem"),
    ("matrices", {"callback": print}, "callback"),
    ("matrices", {"b": np.ones((1, 5))}, "b must have the shape (2, 5)"),
    ("matrices", {"ridge": -1.0}, "ridge"),
    ("solve_qps", {"lower": [0.0, 1.0]}, "lower"),
    ("solve_qps", {"c": np.zeros((2, 3))}, "3 for Q, 2 for c"),
    ("solve_qps", {"Q": EYE}, "use solve_qp"),
    ("layers", {"arguments": {"Q": np.array([EYE, EYE]), "c": np.zeros((2, 3)),
                              "lower": np.array(0.0),
                          "total": np.array([1.0, 5.0]), "upper": np.array(1.0)}},
     "1 of 2 problems failed; problem 1"),
    # ------------------------------------------------------------------ from_qp, frontiers, paths
    ("from_qp", {"G": np.random.default_rng(0).normal(size=(502, 3)), "h": np.ones(502)},
     "501 rows are neither bounds nor sums", "at most 500"),
    ("from_qp", {"P": np.triu(np.ones((3, 3)))}, "P and q, as Q and c of", "Q must be symmetric"),
    ("from_qp", {"q": np.zeros(2)}, "P and q,", "c must have length 3, got 2"),
    *(("efficient_frontier", given, *words) for given, *words in [
        ({"target_return": 9.0}, "target_return = 9 is above", "the largest"),
        ({"target_return": -9.0}, "target_return = -9 is below", "least risk"),
        ({"target_risk": 1e-3}, "target_risk = 0.001 is below"),
        ({"target_risk": 1e3}, "target_risk = 1000 is above"),
        ({"target_risk": 1.0, "target_return": 0.1}, "not both"),
        ({"target_return": NAN}, "target_return must be finite"),
        ({"target_return": [0.1, INF]}, "target_return[1]"),
        ({"n_points": 0}, f"n_points {AT_LEAST}, got 0"),
        ({"mean": [0.1, 0.2]}, "mean must have length 3, got 2"),
        ({"covariance": (EYE,)}, "pair (F, D)"),
        ({"covariance": np.ones((2, 3))}, "square"),
        ({"covariance": np.diag([1.0, -1.0, 1.0]), "n_points": 4},
         "covariance is not positive semidefinite"),
        # Negative squared distances are convex for a fixed sum, but their variances are negative.
        ({"covariance": -(np.subtract.outer([0.0, 1, 3], [0.0, 1, 3]) ** 2)},
         "covariance is not positive semidefinite"),
    ]),
    (TimeoutError, "efficient_frontier", {"time_limit": 0.0}, "time_limit = 0 seconds"),
    ("max_sharpe", {"risk_free": 0.06}, "returns more than risk_free = 0.06"),
    ("max_sharpe", {"risk_free": 0.01}, "has no maximum: a riskless portfolio"),
    ("at", {}, "give target_return or target_risk"),
    ("path", {}, "function of the parameter"),
    # ------------------------------------------------------------------ derivatives
    ("vjp", {"v": [1.0, 2.0]}, "shape of x"),
    ("vjp", {"v": [1.0, NAN, 0.0]}, "finite"),
    ("vjp", {"derivative": "exact"}, "one-sided"),
    ("jvp", {"banana": 1.0}, "banana"),
    # ------------------------------------------------------------------ rules
    *(row for call in ("propose", "specification") for row in [
        (call, {"gradient": [1.0, NAN, 2.0]}, "gradient[1]", "nan"),
        (call, {"gradient": [1.0, 2.0, INF]}, "gradient[2]", "inf"),
        (call, {"gradient": [1.0, 2.0]}, "gradient", 3, 2),
        (call, {"x": [NAN, 0.5, 0.5]}, "x[0]", "nan"),
        (call, {"x": [0.2, 0.3, 1.5]}, "x[2]", 1.5, "[0, 1]"),
        (call, {"lower": [0.0, NAN, 0.0]}, "lower[1]", "NaN"),
        (call, {"upper": NAN}, "upper", "nan"),
        (call, {"upper": [1.0, 2.0]}, "upper", 3, 2),
        (call, {"lower": [0.0, 0.5, 0.0], "upper": [1.0, 0.25, 1.0]}, 0.5, 0.25),
        *((call, {"alpha": bad}, "alpha", f"{bad:g}") for bad in (0.0, -1.0, NAN, INF)),
        *((call, {"rule": "cyclic", "turn": bad}, "turn", repr(bad))
          for bad in (-1, 0.5, "first")),
    ]),
    ("propose", {"rule": "ratio", "lipschitz": [1.0, 2.0]}, "lipschitz", 3, 2),
    *(("propose", {"rule": rule}, repr(rule), "lipschitz")
      for rule in RULES if RULES[rule].weighted),
    *(("propose", {"rule": rule, "lipschitz": [1.0, bad, 1.0]}, "lipschitz[1]", f"{bad:g}")
      for bad in (0.0, -2.0) for rule in RULES if RULES[rule].weighted),
    *((call, {"rule": typed}, "rule", repr(typed), f"did you mean {meant!r}")
      for call in ("propose", "coordinate_descent")
      for typed, meant in [("gs_q", "gs-q"), ("GS-1", "gs-1"), ("cylic", "cyclic"),
                           ("gs-q-lipshitz", "gs-q-lipschitz")]),
    *((call, {"rule": bad}, "rule", repr(bad)) for call in ("propose", "coordinate_descent")
      for bad in (None, 3, ["gs-s"])),
    *((call, {"rule": "zzzz"}, "rule", "'zzzz'", *RULES)
      for call in ("propose", "coordinate_descent")),
    # ------------------------------------------------------------------ coordinate descent
    *(("coordinate_descent", {"step": bad}, "step", f"{float(bad):g}")
      for bad in (0, -0.5, NAN, INF)),
    *(("coordinate_descent", {"step": typed}, "step", repr(typed), f"did you mean {meant!r}")
      for typed, meant in [("1/l2", "1/L2"), ("exakt", "exact"), ("backtrack", "backtracking")]),
    *(("coordinate_descent", {"step": bad}, "step", repr(bad)) for bad in (None, [1.0])),
    *(("coordinate_descent", {"objective": Quadratic(np.diag([1.0, 2.0, 3.0])),
                              "step": lambda progress, bad=bad: bad}, "step", f"{bad:g}")
      for bad in (0.0, -1.0, NAN)),
    (ZeroDivisionError, "coordinate_descent", {"objective": Quadratic(np.diag([1.0, 2.0, 3.0])),
                                               "step": lambda progress: 1 / 0}),
    *(("coordinate_descent", {"objective": Smooth(lambda x: float(x @ x), lambda x: 2 * x, n=3),
                              "rule": rule}, repr(rule), "lipschitz")
      for rule in RULES if RULES[rule].weighted),
    *(("coordinate_descent", {"objective": Quadratic(np.diag([1.0, -2.0, 1.0])), **given},
       *given.values(), "-2", "1")
      for given in ({"rule": "gs-q-lipschitz"}, {"step": "lipschitz"})),
    # ------------------------------------------------------------------ theory
    *((call, {"objective": Smooth(lambda x: 0.0, lambda x: 0 * x)}, *words) for call, *words in [
        ("lipschitz_constants", "Lipschitz constants of Smooth"),
        ("one_norm_constant", "L2 of Smooth", "is unknown"),
        ("strong_convexity", "constant Hessian"),
    ]),
    ("one_norm_strong_convexity", {"objective": Quadratic(np.eye(17))}, "n <= 16; n is 17"),
    ("strong_convexity", {"objective": Quadratic([[1.0]])}, "none of the 1 variable"),
    ("proximal_pl_constants", {"objective": Quadratic(-EYE)}, "not convex"),
    ("proximal_pl_constants", {"objective": Quadratic(np.ones((3, 3)), ONES)},
     "constant on the sum"),
    ("proximal_pl_constants", {"objective": Quadratic(np.eye(17))}, "n is 17"),
    ("rate", {"rule": "greedy", "mu_2": 0.1, "n": 3}, "rate of rule 'greedy' needs mu_1"),
    ("rate", {"mu_1": 0.1}, "rate of rule 'gs-q' needs n and mu_2"),
    ("rate", {"rule": "greedy", "l2": None, "mu_1": 0.1}, "rate of rule 'greedy' needs l2"),
    ("rate", {"rule": "gs-1-lipschitz", "l_l": 0.5, "mu_l": 0.6},
     "mu_l must be between 0 and 0.5 for l_l"),
    ("rate", {"rule": "gredy", "mu_1": 0.1}, "did you mean 'greedy'"),
    *((call, {"mu_2": 0.5, "n": 4} | given, words)
      for call in ("rate", "sharp_random_rate") for given, words in [
        ({"l2": 0.0}, "l2 must be positive"),
        ({"mu_2": -1.0}, "mu_2 must be between 0 and 1"),
        ({"mu_2": 2.0}, "mu_2 must be between 0 and 1"),
        ({"mu_2": NAN}, "mu_2 must be finite"),
        ({"n": 1}, "n must be at least 2"),
    ]),
    ("small_progress_example", {"n": 2, "epsilon": 0.1}, "n must be at least 3"),
    ("small_progress_example", {"n": 4, "epsilon": 0.3}, "epsilon must be between 0 and 0.25"),
    ("three_updates_example", {"epsilon": 1.0}, "epsilon must be between 0 and 1/2"),
    ("gs_1_by_selection", {"x": [2.0, 0.0]}, "x[0] = 2 is outside"),
    ("conformal_pairs", {"d": [1.0, 0.0]}, "sum of d must be 0, got 1"),
    ("conformal_pairs", {"d": [0.0, 0.0, 0.0], "groups": [[0, 1], [1, 2]]},
     "[0, 1] and [1, 2] overlap"),
    ("block_descent", {"tau": 2}, "tau must be above the rank 2 of A and at most n = 6, got 2"),
    ("block_descent", {"tau": 7}, "at most n = 6, got 7"),
    ("block_descent", {"c": [1.0, 2.0]}, "A x0 differs from c by 2"),
    ("block_descent", {"lower": 0.5},
     "x0[0] = 0 is outside its bounds [0.5, inf]"),
    ("block_descent", {"A": np.ones((2, 5))}, "A must have 6 columns"),
    ("block_descent", {"l2": 0.0}, "l2 must be positive"),
    ("block_descent", {"objective": Quadratic(np.eye(12)), "A": np.ones((1, 12)), "c": [0.0],
                       "x0": np.zeros(12), "tau": 8, "lower": 0.0}, "sets of active bounds"),
    ("block_constant", {"objective": Quadratic(np.eye(40)), "A": np.ones((1, 40)), "tau": 20},
     "too much to enumerate"),
    ("block_rate", {"n": 6, "tau": 7, "l2": 1.0, "mu_2": 0.5},
     "tau must be between 2 and n = 6, got 7"),
    # ------------------------------------------------------------------ estimators
    *(("SimplexRegressor", {**given, "y": y}, *words) for y in (Y, np.column_stack([Y, Y]))
      for given, *words in [
        ({"upper": 0.1}, "the bounds allow sums from 0 to 0.4; total is 1"),
        ({"lower": [0.0, 1.0]}, "lower"),
        ({"ridge": -1.0}, "ridge must not be negative"),
        ({"tol": -1.0}, "tol"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"total": NAN}, "total"),
    ]),
    ("SimplexRegressor", {"sample_weight": -np.ones(150)}, "Negative values"),
    (TypeError, "SimplexRegressor", {"X": scipy.sparse.csr_array(X), "fit_intercept": True},
     "dense data is required"),
    *(("SVC", given, *words) for given, *words in [
        ({"degree": 2**31}, "'degree' parameter", "range [0, 2147483647]"),
        ({"C": 0.0}, "'C' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"kernel": "gauss"}, "'kernel' parameter"),
        ({"gamma": -0.1}, "'gamma' parameter"),
        ({"tol": 0.0}, "'tol' parameter"),
        *(({"dtype": bad}, "'dtype' parameter of SVC must be")
          for bad in ("float16", "double", "f4", np.int32, np.dtype("int32"), int, None)),
        ({"device": "gpu"}, "'device' parameter of SVC"),
        ({"time_limit": -1.0}, "'time_limit' parameter"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"kernel": lambda X, Y: X @ X.T * NAN}, "NaN or infinite"),
        ({"kernel": lambda X, Y: X}, "shape (150, 150) for 150 samples, got (150, 4)"),
        ({"class_weight": {0: 1e200, 1: 1, 2: 1}, "sample_weight": np.full(150, 1e200)},
         "finite sum, got C=1 and weights up to inf"),
        *(({"kernel": kernel, "X": np.finfo(float).max * (X / 8)},
           "coefficients or intercepts are not finite")
          for kernel in ("linear", "poly", "rbf", "sigmoid")),
    ]),
    *(("predict", {"given": bad}, *words) for bad, *words in [
        (None, "kernel must return", "(3, 150)"), (1.0, "kernel must return", "(3, 150)"),
        ("text", "could not convert"), ([[1.0] * 149] * 3, "kernel must return", "(3, 150)"),
        ([[1.0] * 150] * 2, "kernel must return", "(3, 150)"),
    ]),
    *((name, {"y": np.ones(150)}, "number of classes has to be greater than one; got 1")
      for name in ("SVC", "NuSVC")),
    *((name, {"X": wide(width)}, f"X has {width} columns", "at most 2**31 - 1")
      for name in ESTIMATORS for width in (2**31, 2**32 + 5)),
    *((name, {"y": put(Y, 3, bad), "kernel": kernel}, "y contains", word)
      for name in ESTIMATORS[:4] for bad, word in ((NAN, "NaN"), (INF, "infinity"))
      for kernel in ("rbf", lambda A, B: A @ B.T)),
    *((name, {"sample_weight": np.full(150, 1e308)}, "sample_weight must have a finite sum",
       "up to 1e+308") for name in ESTIMATORS),
    *((name, {"C": 1e10, "sample_weight": np.full(150, 1e300)},
       "finite sum, got C=1e+10 and weights up to 1e+300") for name in ("SVC", "SVR", "NuSVR")),
    ("NuSVR", {"C": INF}, "C must be finite"),
    *(("NuSVC", {"nu": nu, "X": X[:20], "y": [0] * 18 + [1] * 2},
       "nu is infeasible", f"nu must be in (0, 0.2]; got nu={nu:g}") for nu in (0.21, 0.5, 1.0)),
    ("NuSVC", {"nu": 0.6, "X": np.eye(4), "y": np.array(["a", "b", "b", "a"]),
               "sample_weight": [1.0, 3.0, 0.0, 0.0]},
     "sum to 1 in class 'a' and to 3 in class 'b', so nu must"),
    *((name, {"quantile": bad} | ({"Cs": 1, "gammas": 1} if name == "SVRCV" else {}), "quantile")
      for name in ("QuantileSVR", "SVRCV")
      for bad in (0.0, 1.0, -0.1, NAN, [0.5, 1.0], [], [0.5, 0.5], [[0.5]])),
    ("SVRCV", {"quantile": 0.9, "epsilons": [0.1, 0.2]},
     "epsilons and quantile exclude each other"),
    *(("SVCCV", given, *words) for given, *words in [
        ({"Cs": []}, "Cs must have at least one value"),
        ({"Cs": [0.0]}, "Cs[0] = 0.0 cannot be tried: The 'C' parameter"),
        ({"Cs": 0}, "'Cs' parameter of SVCCV"),
        *(({"Cs": [1.0, bad]}, f"Cs[1] = {bad!r} cannot be tried") for bad in (-1.0, None, NAN)),
        ({"gammas": [-1.0]}, "gammas[0] = -1.0 cannot be tried: The 'gamma' parameter"),
        ({"gammas": ["scale", "none"]}, "gammas[1] = 'none' cannot be tried"),
        ({"tol": 0.0}, "'tol' parameter of SVCCV"),
        ({"scoring": "beauty"}, "'scoring' parameter of SVCCV"),
        ({"cv": 100}, "n_splits=100"),
        ({"cv": "leave-one-out"}, "cv"),
        ({"cv": "loo", "scoring": lambda model, X, y: 1.0}, "needs a scorer"),
        ({"cv": "loo", "X": X[:101], "y": Y[:101], "Cs": 1, "gammas": 1}, "single sample"),
    ]),
    ("SVRCV", {"Cs": ["1"]}, "Cs[0] = '1' cannot be tried"),
    ("SVRCV", {"gammas": [INF]}, "gammas[0] = inf cannot be tried"),
    ("SVRCV", {"epsilons": [0.1, -1.0]}, "epsilons[1] = -1.0 cannot be tried"),
    (TypeError, "to_sklearn", {}, "scikit-learn has no quantile"),
    (TypeError, "save_libsvm_model", {}, "LIBSVM has no model type QuantileSVR"),
    ("svm.path", {"Cs": [0.0]}, "'C' parameter"),
    ("svm.path", {"Cs": [NAN]}, "Cs"),
    ("svm.path", {"Cs": 1.0}, "Cs"),
    ("leave_one_out", {"X": PAIR[0][:-1], "y": PAIR[1][:-1]}, "fitted to 100"),
    ("leave_one_out", {"X": PAIR[0] + 1}, "X is not the data"),
    ("leave_one_out", {"y": 1 - PAIR[1]}, "y has other labels"),
    (TypeError, "leave_one_out", {"model": object()}, "SVM of pairstep"),
    ("leave_one_out", {"model": svm.SVC().fit(X[:101], Y[:101]), "X": X[:101], "y": Y[:101]},
     "class 2 has a single sample"),
    ("leave_one_out", {"model": svm.NuSVC(nu=1.0).fit(X[40:60], Y[40:60]), "X": X[40:60],
                       "y": Y[40:60]}, "nu is infeasible"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "call", "changes", "words"),
    [
        pytest.param(error, call, changes, words, id=f"{call}-{k}")
        for k, row in enumerate(ROWS)
        for error, call, changes, *words in [
            row if isinstance(row[0], type) else (ValueError, *row)
        ]
    ],
)
def test_refused(error, call, changes, words):
    function, given = CALLS[call]
    with pytest.raises(error) as refusal:
        function(**{**given, **changes})
    message = str(refusal.value)
    for word in words:  # a number must not be a part of another
        assert re.search(rf"(?<![\w.]){re.escape(str(word))}(?!\w)", message), (word, message)


UP = np.nextafter(0.5, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: SumBox(1.0, [0, 0, UP], [1, 1, 0.5]).start(),
        lambda: SumBox((UP, 0.5)).start(3),
        lambda: SumBox(1.0, groups=list("aab"), group_total={"a": (UP, 0.5)}),
        lambda: L1Penalized(L1Penalized(Quadratic(EYE), 1.0, 0.5), 1.0, [0.5, UP, UP]),
        lambda: propose("gs-s", ONES, [0.2, 0.3, UP], 0.0, [1.0, 1.0, 0.5], alpha=1.0),
        lambda: SumBox(1.0, coefficients=[1.0, 1e-50 * (1 - 1e-9)]),
        lambda: Quadratic(np.diag([1.0, np.nextafter(1e100, INF)])),
    ],
)
def test_two_numbers_that_differ_print_differently(call):
    with pytest.raises(ValueError, match=r"\d\.\d{12,}"):
        call()


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_numbers_just_below_the_limits_are_accepted(form):
    assert solve_qp(form(EYE * 9e99)).status == "optimal"
    assert simplex_lstsq(form(EYE * 9e49), np.full(3, 9e49)).status == "optimal"


def test_a_right_hand_side_that_is_too_large_is_invalid_and_the_others_are_solved():
    batch = simplex_lstsq(EYE, np.array([[1.0, 1e60], [0.0, 0.0], [0.0, 0.0]]))
    assert batch.status.tolist() == ["optimal", "invalid"]


def test_models_that_are_not_fitted_are_named():
    for name in ESTIMATORS:
        with pytest.raises(NotFittedError):
            getattr(svm, name)().to_sklearn()


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array, np.ndarray.tolist, list])
def test_allowed_asymmetry_depends_on_the_dtype(convert):
    rng = np.random.default_rng(0)
    returns = rng.standard_normal((200, 40)).astype(np.float32)
    covariance = (returns.T * rng.random(200).astype(np.float32)) @ returns
    assert (covariance != covariance.T).any()
    if convert is np.ndarray.tolist:  # Python's floats are float64
        with pytest.raises(ValueError, match=r"symmetric.*rounding.*\(Q \+ Q.T\) / 2"):
            Quadratic(covariance.tolist())
        return
    Q = Quadratic(convert(covariance)).Q
    assert abs(Q - Q.T).max() == 0
    covariance[0, 1] *= 1.01
    with pytest.raises(ValueError, match=r"symmetric.*Q\[0, 1\]"):
        Quadratic(convert(covariance))
