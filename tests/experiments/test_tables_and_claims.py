"""Tables, claims about speed, and labels of figures."""

import numpy as np
import pytest

from pairstep.experiments import report, style, tables
from pairstep.experiments.bounded import occurrence
from pairstep.experiments.claims import (
    ALIKE_FACTOR,
    TIE,
    Claim,
    alike,
    better,
    consistently_better,
    except_where,
    iterations_to,
    percent,
    ratios,
    speed,
    spread,
)
from pairstep.experiments.races import identified_at


def test_a_table_comes_back_as_it_was(tmp_path):
    table = tables.stack(
        [
            {"rule": "gs-1", "seed": 0, "k": np.arange(3), "f": np.array([1.0, 1e-17, np.nan])},
            {"rule": "gs-q, too", "seed": 1, "k": np.arange(2), "f": np.array([2 / 3, -1.0])},
        ]
    )
    tables.write(tmp_path / "t.csv", table)
    back = tables.read(tmp_path / "t.csv")
    assert list(back) == ["rule", "seed", "k", "f"]
    assert back["rule"].tolist() == ["gs-1"] * 3 + ["gs-q, too"] * 2
    assert back["k"].dtype == np.int64
    np.testing.assert_allclose(back["f"], table["f"], rtol=1e-8)
    only = tables.where(back, rule="gs-q, too")
    assert only["k"].tolist() == [0, 1]
    assert list(tables.distinct(back, "seed")) == [0, 1]


@pytest.mark.parametrize("n", [1, 2, 3, 100, 10**6])
def test_thinning_keeps_both_ends_and_the_requested_rows(n):
    kept = tables.thin(n, also=[n // 2])
    assert kept[0] == 0
    assert kept[-1] == n - 1
    assert n // 2 in kept
    assert len(kept) <= 401
    assert (np.diff(kept) > 0).all()


def test_speed_is_a_ratio_of_iterations():
    slow = 0.99 ** np.arange(3000)
    fast = 0.99 ** (3 * np.arange(1000))
    assert speed(fast, slow) == pytest.approx(3, rel=0.02)
    assert speed(slow, fast) == pytest.approx(1 / 3, rel=0.02)
    assert speed(slow, slow) == 1


def test_one_rule_for_ties():
    assert not better(1.0)
    assert not better(TIE)
    assert better(TIE + 1e-9)
    assert alike(ALIKE_FACTOR - 1e-9)
    assert not alike(ALIKE_FACTOR)
    assert not alike(1 / ALIKE_FACTOR)


def test_consistent_is_at_every_level_not_in_the_mean():
    assert consistently_better(np.array([1.0, 1.0, 1.2]))
    assert consistently_better(np.array([0.995, 1.1]))  # a tie at one level does not count
    assert not consistently_better(np.array([0.9, 3.0, 3.0, 3.0]))
    assert not consistently_better(np.ones(5))
    # Ahead at first, behind in the end: faster on the whole, but not consistently.
    steady = 0.97 ** np.arange(1000)
    fading = np.concatenate([0.9 ** np.arange(60), 0.9**60 * 0.98 ** np.arange(1, 900)])
    assert better(speed(fading, steady))
    assert not consistently_better(ratios(fading, steady))


def claim(exceptions):
    return Claim("n", "s", "", "", "figure1", exceptions, "Not so", "h", "f")


def test_a_verdict_lists_its_exceptions():
    assert claim(()).holds is True
    assert claim(()).why == ""
    assert claim(None).holds is None
    assert claim(None).why == ""
    failed = claim(except_where(better, {"gs-q": [1.2, 1.0], "gs-1": [0.5, 2.0]}, ["a", "b"]))
    assert failed.holds is False
    assert failed.why == "Not so (gs-q, b: 1.00; gs-1, a: 0.50)."
    assert claim(("1", "2", "3", "4", "5", "6")).why == "Not so (1; 2; 3; 4; and 2 more)."
    assert failed.record()["holds"] is False
    assert failed.record()["why"] == failed.why


def test_iterations_to_levels():
    curve = np.array([8.0, 4.0, 5.0, 2.0, 1.0])
    assert iterations_to(np.array([8.0, 4.5, 2.0, 1.5]), curve).tolist() == [0, 1, 3, 4]


def test_identified_at_is_after_the_last_change():
    not_final = np.array([5, 2, 0, 1, 0, 0])
    assert identified_at(not_final) == 4
    assert identified_at(not_final, tolerated=1) == 2
    assert identified_at(np.zeros(3, int)) == 0


def test_numbers_are_written_as_words():
    assert spread([1.0, 2.345]) == "1.00 to 2.35"
    assert spread([12.34, 12.34]) == "12.3"
    assert percent(0.853) == "85.3%"
    assert percent(0.99987) == "99.99%"
    assert [occurrence(k, 10**4) for k in (0, 1, 2, 9, 200)] == [
        "never", "once", "twice", "9 times", "2.0%",
    ]  # fmt: skip
    assert report.words("L_i < 1/L2, n^2, x^{k+1}") == (
        "<i>L</i><sub>i</sub> &lt; 1/<i>L</i><sub>2</sub>, n<sup>2</sup>, x<sup>k+1</sup>"
    )


def test_labels_do_not_overlap_and_stay_near():
    matplotlib = pytest.importorskip("matplotlib.figure")
    ax = matplotlib.Figure().add_axes((0.1, 0.1, 0.5, 0.8))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ends = [(1.0, y, f"{y}", "black") for y in (0.5, 0.51, 0.505, 0.9, 0.0)]
    style.label_ends(ax, ends)
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert (np.diff(sorted(heights.values())) > style.LINE * 0.999).all()
    assert heights["0.5"] < heights["0.505"] < heights["0.51"]
    assert heights["0.9"] == pytest.approx(0.9)
    assert heights["0.0"] == pytest.approx(0.0)
