"""Real data sets from the folder that PAIRSTEP_DATA names; tests are skipped without it."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file


def _file(*parts):
    path = Path(os.environ.get("PAIRSTEP_DATA", ""), *parts)
    if not path.is_file():
        pytest.skip(f"PAIRSTEP_DATA is not set or has no {'/'.join(parts)}")
    return path


def table(name):
    """Return X and y of a table in the folder regression, whose target is the first column."""
    rows = np.loadtxt(_file("regression", name), delimiter=",", skiprows=1)
    return rows[:, 1:], rows[:, 0]


def samples(name):
    """Return dense X and y of an svmlight file in the folder svm."""
    X, y = load_svmlight_file(str(_file("svm", name)))
    return X.toarray(), y
