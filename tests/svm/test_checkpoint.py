"""The checkpoint of a search keeps its results."""

import numpy as np
import pytest
import scipy.sparse

from pairstep.svm import SVCCV
from pairstep.svm.checkpoint import Checkpoint, fingerprint

CELL = ((("C", 1.0), ("gamma", "scale")), 2)


def test_scores_are_read_back(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint", "a")
    checkpoint[CELL] = 0.1 + 0.2
    checkpoint[((("C", np.float64(2.0)),), 0)] = np.float64(0.5)
    again = Checkpoint(tmp_path / "checkpoint", "a")
    assert dict(again) == {CELL: 0.1 + 0.2, ((("C", 2.0),), 0): 0.5}
    assert not Checkpoint(tmp_path / "checkpoint", "b")
    with pytest.raises(TypeError):
        del again[CELL]


def test_every_score_is_on_the_disk_at_once(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint", "a")
    checkpoint[CELL] = 0.5
    assert CELL in Checkpoint(tmp_path / "checkpoint", "a")


def test_an_incomplete_last_line_is_ignored(tmp_path):
    path = tmp_path / "checkpoint"
    checkpoint = Checkpoint(path, "a")
    checkpoint[CELL] = 0.5
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole + whole[:length])
        checkpoint = Checkpoint(path, "a")
        assert dict(checkpoint) == {CELL: 0.5}
        checkpoint[((("C", 3.0),), 1)] = 0.25
        assert len(Checkpoint(path, "a")) == 2


@pytest.mark.parametrize("line", [b"[]", b"{}", b"1", b"\xff", b"[" * 9999, b'{"candidate": 1}'])
def test_lines_in_another_format_are_ignored(line, tmp_path):
    (tmp_path / "checkpoint").write_bytes(line + b"\n")
    assert len(Checkpoint(tmp_path / "checkpoint", "a")) == 0


NUMBERS = [("1e999", "0.5"), ("1.5", "0.5"), ("true", "0.5"), ("0", "1" + "0" * 400), ("0", '"1"')]


@pytest.mark.parametrize(("split", "score"), NUMBERS)
def test_lines_with_invalid_scores_are_ignored(split, score, tmp_path):
    line = f'{{"search": "a", "candidate": [["C", 1.0]], "split": {split}, "score": {score}}}\n'
    (tmp_path / "checkpoint").write_text(line)
    assert len(Checkpoint(tmp_path / "checkpoint", "a")) == 0


def test_data_are_identified():
    X, y = np.eye(3), np.array(["a", "b", "a"])
    assert fingerprint(X, y, 1) == fingerprint(X.copy(), y.copy(), 1)
    others = [
        fingerprint(X + 1e-12, y, 1), fingerprint(X, np.roll(y, 1), 1), fingerprint(X, y, 2),
        fingerprint(X.astype(np.float32), y, 1), fingerprint(scipy.sparse.csr_array(X), y, 1),
        fingerprint(X[:, :2], y, 1), fingerprint(scipy.sparse.csr_array(np.eye(3, 4)), y, 1),
    ]  # fmt: skip
    assert len({fingerprint(X, y, 1), *others}) == 8


def test_a_search_does_not_repeat_itself(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1], 30)
    checkpoint = Checkpoint(tmp_path / "checkpoint", "a")
    search = SVCCV(Cs=[1.0, 10.0], gammas=[0.1, "scale"], cv=3, checkpoint=checkpoint).fit(X, y)
    before = (tmp_path / "checkpoint").read_bytes()
    again = SVCCV(
        Cs=[1.0, 10.0],
        gammas=[0.1, "scale"],
        cv=3,
        checkpoint=Checkpoint(tmp_path / "checkpoint", "a"),
    ).fit(X, y)
    assert (tmp_path / "checkpoint").read_bytes() == before
    found = "mean_test_score"
    np.testing.assert_array_equal(again.cv_results_[found], search.cv_results_[found])
