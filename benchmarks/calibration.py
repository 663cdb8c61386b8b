"""Calibration of `SVC(probability=True)`, compared with CalibratedClassifierCV.

    PAIRSTEP_DATA=... python -m benchmarks.calibration [--only PART...]

Table "calibration". Brier score, log loss and calibration error (the mean distance between
probabilities and frequencies, over ten intervals) on test samples, and seconds of the fit.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

from pairstep.svm import SVC

from .harness import Table, data_folder, digits, named, parser, times_of
from .svm_problems import svmlight

# Training samples and parameters.
DATA = {
    "a9a": (4000, {"C": 1.0, "gamma": 0.05}),
    "phishing": (4000, {"C": 10.0, "gamma": 0.1}),
    "splice": (1500, {"C": 1.0, "gamma": 0.01}),
    "german.numer_scale": (600, {"C": 1.0, "gamma": 0.05}),
}


def calibration_error(outcome: np.ndarray, probability: np.ndarray) -> float:
    interval = np.minimum((10 * probability).astype(int), 9)
    return sum(
        np.mean(some) * abs(outcome[some].mean() - probability[some].mean())
        for some in (interval == k for k in range(10))
        if some.any()
    )


def main() -> None:
    warnings.filterwarnings("ignore", "The `probability` parameter", FutureWarning)
    options = parser(__doc__).parse_args()
    table = Table(options.out, "calibration", "Probabilities of classes", [
        "data", "method", "Brier score", "log loss", "calibration error", "seconds"],
        ["scikit-learn"])  # fmt: skip
    for name, (count, parameters) in DATA.items():
        if not named(name, options.only):
            continue
        data = svmlight(data_folder(), f"svm/{name}.gz")
        X, new, y, actual = train_test_split(
            data.X, data.y, train_size=count, random_state=0, stratify=data.y
        )
        methods = {
            "probability=True": SVC(probability=True, random_state=0, **parameters),
            "CalibratedClassifierCV(ensemble=False)": CalibratedClassifierCV(
                SVC(**parameters), ensemble=False
            ),
            "CalibratedClassifierCV()": CalibratedClassifierCV(SVC(**parameters)),
        }
        for method, model in methods.items():
            (seconds,), _ = times_of(partial(model.fit, X, y), most=1)
            probability = model.predict_proba(new)[:, 1]
            outcome = (actual == model.classes_[1]).astype(float)
            table.add(name, method, digits(brier_score_loss(outcome, probability), 4),
                      digits(log_loss(outcome, probability), 4),
                      digits(calibration_error(outcome, probability)), digits(seconds))  # fmt: skip


if __name__ == "__main__":
    main()
