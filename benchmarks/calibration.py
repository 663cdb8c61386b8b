"""Calibration of `SVC(probability=True)`, compared with CalibratedClassifierCV.

    python -m benchmarks.calibration

Brier score, log loss and calibration error (the mean distance between probabilities and
frequencies, over ten intervals) on test samples, and seconds of the fit. PAIRSTEP_DATA names the
folder with the data.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

from pairstep.svm import SVC

from .qp_problems import data_folder

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
    folder = data_folder()
    if folder is None:
        raise SystemExit("set PAIRSTEP_DATA to the folder with the data")
    print("| data | method | Brier score | log loss | calibration error | seconds |")
    for name, (count, parameters) in DATA.items():
        sparse, y = load_svmlight_file(str(folder / "svm" / f"{name}.gz"))
        X, new, y, actual = train_test_split(
            sparse.toarray(), y, train_size=count, random_state=0, stratify=y
        )
        methods = {
            "probability=True": SVC(probability=True, random_state=0, **parameters),
            "CalibratedClassifierCV(ensemble=False)": CalibratedClassifierCV(
                SVC(**parameters), ensemble=False
            ),
            "CalibratedClassifierCV()": CalibratedClassifierCV(SVC(**parameters)),
        }
        for method, model in methods.items():
            began = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - began
            probability = model.predict_proba(new)[:, 1]
            outcome = (actual == model.classes_[1]).astype(float)
            print(
                f"| {name} | {method} | {brier_score_loss(outcome, probability):.4f} | "
                f"{log_loss(outcome, probability):.4f} | "
                f"{calibration_error(outcome, probability):.3f} | {seconds:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
