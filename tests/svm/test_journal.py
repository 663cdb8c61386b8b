"""What a search has found outlives it."""

import numpy as np
import pytest
import scipy.sparse

from pairstep.svm import SVCCV
from pairstep.svm.journal import Journal, fingerprint

CELL = ((("C", 1.0), ("gamma", "scale")), 2)


def test_scores_come_back(tmp_path):
    journal = Journal(tmp_path / "journal", "a")
    journal[CELL] = 0.1 + 0.2
    journal[((("C", np.float64(2.0)),), 0)] = np.float64(0.5)
    again = Journal(tmp_path / "journal", "a")
    assert dict(again) == {CELL: 0.1 + 0.2, ((("C", 2.0),), 0): 0.5}
    assert not Journal(tmp_path / "journal", "b")
    with pytest.raises(TypeError):
        del again[CELL]


def test_every_score_is_on_the_disk_at_once(tmp_path):
    journal = Journal(tmp_path / "journal", "a")
    journal[CELL] = 0.5
    assert CELL in Journal(tmp_path / "journal", "a")


def test_a_last_line_that_is_not_whole_is_passed_over(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path, "a")
    journal[CELL] = 0.5
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole + whole[:length])
        journal = Journal(path, "a")
        assert dict(journal) == {CELL: 0.5}
        journal[((("C", 3.0),), 1)] = 0.25
        assert len(Journal(path, "a")) == 2


@pytest.mark.parametrize("line", [b"[]", b"{}", b"1", b"\xff", b"[" * 9999, b'{"candidate": 1}'])
def test_lines_that_are_none_of_ours(line, tmp_path):
    (tmp_path / "journal").write_bytes(line + b"\n")
    assert len(Journal(tmp_path / "journal", "a")) == 0


def test_data_have_names():
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
    journal = Journal(tmp_path / "journal", "a")
    search = SVCCV(Cs=[1.0, 10.0], gammas=[0.1, "scale"], cv=3, journal=journal).fit(X, y)
    before = (tmp_path / "journal").read_bytes()
    again = SVCCV(
        Cs=[1.0, 10.0], gammas=[0.1, "scale"], cv=3, journal=Journal(tmp_path / "journal", "a")
    ).fit(X, y)
    assert (tmp_path / "journal").read_bytes() == before
    found = "mean_test_score"
    np.testing.assert_array_equal(again.cv_results_[found], search.cv_results_[found])
