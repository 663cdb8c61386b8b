"""The checkpoint of a search keeps its scores."""

import contextlib
import json

import numpy as np
import pandas
import pytest
import scipy.sparse
from sklearn.metrics import accuracy_score, make_scorer

from pairstep.svm import SVCCV, SVRCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.repeat(["a", "b"], 30)
WEIGHT = RNG.uniform(0.5, 2.0, 60)


def search(path, X=X, y=Y, Search=SVCCV, sample_weight=None, **options):
    """Search with a checkpoint; return the number of lines, and the scores."""
    given = {"Cs": [1.0, 10.0], "gammas": [0.1, "scale"], "cv": 3, "refit": False} | options
    found = Search(**given, checkpoint=path).fit(X, y, sample_weight=sample_weight)
    return len(path.read_bytes().splitlines()), found.cv_results_["mean_test_score"]


def test_a_search_does_not_repeat_itself(tmp_path):
    path = tmp_path / "checkpoint"
    count, scores = search(path)
    assert count == 12
    again, same = search(path)
    assert again == 12
    np.testing.assert_array_equal(same, scores)
    wider, _ = search(path, Cs=[1.0, 10.0, 100.0])  # of the same search
    assert wider == 18
    for same in ({"n_jobs": 2}, {"verbose": True}, {"cache_size": 10.0}):
        assert search(path, **same)[0] == 18
    assert search(path, X=X.tolist(), y=pandas.Series(Y))[0] == 18


OTHERS = {
    "X": {"X": X + 1e-12}, "y": {"y": np.roll(Y, 1)}, "sparse": {"X": scipy.sparse.csr_array(X)},
    "weights": {"sample_weight": WEIGHT}, "folds": {"cv": 4}, "loo": {"cv": "loo"},
    "shuffled": {"random_state": 0}, "tol": {"tol": 1e-4}, "scoring": {"scoring": "f1_macro"},
    "class_weight": {"class_weight": {"a": 2.0}}, "kernel": {"kernel": "sigmoid"},
}  # fmt: skip


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_scores_of_other_searches_are_ignored(change, tmp_path):
    path, other = tmp_path / "checkpoint", tmp_path / "other"
    search(path)
    before = path.read_bytes()
    expected, scores = search(other, **change)
    count, found = search(path, **change)
    assert count == 12 + expected
    assert path.read_bytes().startswith(before)
    np.testing.assert_array_equal(found, scores)


def test_estimators_are_distinguished(tmp_path):
    path, y = tmp_path / "checkpoint", X[:, 0]
    options = {"Search": SVRCV, "y": y}
    assert search(path, **options)[0] == 12
    assert search(path, quantile=0.5, **options)[0] == 24
    assert search(path, quantile=[0.5, 0.6], **options)[0] == 36


@pytest.mark.parametrize(
    "change",
    [
        {"scoring": make_scorer(accuracy_score)}, {"kernel": lambda A, B: A @ B.T},
        {"random_state": np.random.RandomState(0)},
    ],
    ids=["scoring", "kernel", "random_state"],
)  # fmt: skip
def test_what_has_no_name_is_refused(change, tmp_path):
    (name,) = change
    with pytest.raises(ValueError, match=f"{name}=.* cannot be saved"):
        search(tmp_path / "checkpoint", **change)
    assert not list(tmp_path.iterdir())


def test_an_incomplete_last_line_is_ignored(tmp_path):
    path = tmp_path / "checkpoint"
    _, scores = search(path)
    whole = path.read_bytes()
    *kept, last = whole.splitlines(keepends=True)
    for length in range(0, len(last), 7):
        path.write_bytes(b"".join(kept) + last[:length])
        _, again = search(path)
        np.testing.assert_array_equal(again, scores)
        assert path.read_bytes().endswith(last)
    path.write_bytes(whole[:-1])  # complete, but for the end of the line
    assert search(path)[0] == 12


def test_a_full_disk_keeps_the_scores_before(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "checkpoint"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            search(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    kept = path.read_bytes()
    assert kept.count(b"\n") >= 5
    assert len(kept) == 700  # the last line is incomplete
    count, scores = search(path)
    assert path.read_bytes().startswith(kept)
    assert count == 13
    np.testing.assert_array_equal(scores, search(tmp_path / "other")[1])


VALID = {"candidate": [["C", 1.0], ["gamma", 0.1]], "split": 0, "score": 0.5}
LINES = [
    b"[]", b"{}", b"1", b"\xff", b"[" * 9999, b'{"candidate": 1}',
    *(json.dumps(VALID | wrong).encode() for wrong in (
        {"split": 1.5}, {"split": True}, {"score": "1"}, {"score": 10**400}, {"candidate": [1]},
    )),
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_lines_in_another_format_are_ignored(line, tmp_path):
    path = tmp_path / "checkpoint"
    _, scores = search(path)
    entry = json.loads(path.read_text().splitlines()[0])
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        line = json.dumps(json.loads(line) | {"search": entry["search"]}).encode()
    path.write_bytes(line + b"\n")
    count, again = search(path)
    assert count == 13
    np.testing.assert_array_equal(again, scores)


def test_scores_in_the_file_are_not_computed_again(tmp_path):
    """Scores that no model has show that they were read."""
    path = tmp_path / "checkpoint"
    search(path)
    entry = json.loads(path.read_text().splitlines()[0])
    entry |= {"candidate": [["C", 10.0], ["gamma", 0.1]], "split": 1, "score": 2.0}
    path.write_text(path.read_text() + json.dumps(entry) + "\n")
    count, scores = search(path)
    assert count == 13
    assert scores[2] == max(scores) > 0.9
