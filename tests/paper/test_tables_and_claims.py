"""Tables, claims about speed, and labels of figures."""

import numpy as np
import pytest
import scipy.stats

from pairstep.paper import report, style, tables
from pairstep.paper.bounded import occurrence
from pairstep.paper.claims import (
    ADVANTAGE,
    ALIKE,
    TIE,
    TO_LOWEST,
    Claim,
    Horizon,
    Kind,
    Verdict,
    consistent,
    decide,
    except_where,
    fraction,
    geometric_deviation,
    geometric_mean,
    iterations_to,
    mean,
    never_behind,
    percent,
    speed,
    spread,
    weakest,
    without_horizon,
)
from pairstep.paper.races import identified_at


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


def test_speed_is_a_ratio_of_iterations_to_a_common_level():
    slow = 0.99 ** np.arange(3000)
    fast = 0.99 ** (3 * np.arange(3000))
    for cut in (300, 2000, TO_LOWEST):
        assert speed(fast, slow, cut) == pytest.approx(3, rel=0.02)
        assert speed(slow, fast, cut) == pytest.approx(1 / 3, rel=0.02)
        assert speed(slow, slow, cut) == 1


def test_speed_depends_on_the_horizon():
    steady = 0.97 ** np.arange(1000)
    fading = np.concatenate([0.9 ** np.arange(60), 0.9**60 * 0.98 ** np.arange(1, 900)])
    assert speed(fading, steady, 50) > 2
    assert speed(fading, steady, 800) < 1.3
    assert never_behind(fading, steady, 50)
    behind = np.concatenate([0.999 ** np.arange(200), 0.999**200 * 0.9 ** np.arange(1, 800)])
    assert speed(behind, steady, 800) > TIE
    assert not never_behind(behind, steady, 800)


def test_one_rule_for_ties():
    assert decide((1.0, 1.005), ADVANTAGE) is False
    assert decide((1.0, 1.02), ADVANTAGE) is None
    assert decide((TIE + 1e-9, 2.0), ADVANTAGE) is True
    assert decide((0.67, 1.49), ALIKE) is True
    assert decide((0.66, 1.49), ALIKE) is None
    assert decide((1.5, 1.6), ALIKE) is False
    assert decide((0.5, 0.6), ALIKE) is False


def test_intervals_agree_with_scipy():
    x = np.array([1.0, 2.0, 4.0, 3.0, 2.5, 1.5, 2.2, 3.1, 2.9, 1.8])
    low, high = scipy.stats.t.interval(0.95, 9, x.mean(), scipy.stats.sem(x))
    assert mean(x).interval == pytest.approx((low, high))
    low, high = scipy.stats.t.interval(0.95, 9, np.log(x).mean(), scipy.stats.sem(np.log(x)))
    assert geometric_mean(x).interval == pytest.approx((np.exp(low), np.exp(high)))
    assert fraction([True] * 10).interval == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert mean(x[:9]).interval is None  # too few seeds


def test_a_deviation_has_a_chi_square_interval():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        low, high = geometric_deviation(np.exp(0.2 * rng.standard_normal(10))).interval
        inside.append(np.log(low) < 0.2 < np.log(high))
    assert 0.92 < np.mean(inside) < 0.98


def test_all_comparisons_must_hold_and_the_weakest_is_shown():
    strong, weak = ([2.0, 2.1] * 5, [1.2, 1.3] * 5)
    horizon = weakest(1000, map(geometric_mean, (strong, weak)), ADVANTAGE)
    assert horizon.holds is True
    assert horizon.value == pytest.approx(1.249, abs=1e-3)
    horizon = weakest(1000, map(geometric_mean, (strong, [0.9, 0.8] * 5)), ADVANTAGE)
    assert horizon.holds is False
    assert horizon.value < 0.9
    horizon = weakest(1000, map(geometric_mean, (strong, [0.5, 2.1] * 5)), ADVANTAGE)
    assert horizon.holds is None


def test_consistent_means_across_the_seeds():
    assert consistent(1, {"a": [1.1] * 10, "b": [1.2] * 9 + [1.0]}).holds is True
    assert consistent(1, {"a": [1.1] * 10, "b": [1.2] * 9 + [0.9]}).holds is False
    assert consistent(1, {"a": [1.0] * 10}).holds is False  # ties are not an advantage
    assert consistent(1, {"a": [1.1] * 9}).holds is None


def claim(*holds):
    horizons = tuple(
        Horizon(cut, 1.0, (0.9, 1.1), h)
        for cut, h in zip((1000, 2000, TO_LOWEST), holds, strict=False)
    )
    return Claim("n", Kind.OBSERVATION, "s", "", "", "r", "figure1", "v", horizons, "f")


def test_verdicts_over_horizons():
    assert claim(True, True, True).verdict == Verdict.HOLDS
    assert claim(False, False, False).verdict == Verdict.FAILS
    assert claim(True, True, False).verdict == Verdict.DEPENDS
    assert claim(None, None, True).verdict == Verdict.DEPENDS
    assert claim(None, None, None).verdict == Verdict.UNDECIDED
    assert claim().verdict == Verdict.NOT_JUDGED
    assert claim(True, True, True).summary == "It holds at every horizon."
    assert claim(True, True, False).summary == (
        "It holds after 1,000 and 2,000 iterations; it fails to 1e-9."
    )
    assert claim(True, None, True).summary == (
        "It holds after 1,000 iterations and to 1e-9; it is undecided after 2,000 iterations."
    )


def test_a_claim_without_verdict_keeps_its_values():
    plain = claim(True, False).without_verdict()
    assert plain.verdict == Verdict.NOT_JUDGED
    assert [(h.value, h.interval, h.holds) for h in plain.horizons] == [(1.0, None, None)] * 2


def test_a_claim_without_horizon_lists_its_exceptions():
    def of(exceptions):
        return without_horizon("n", "s", "", "", "figure1", exceptions, "Not so", "h", "f")

    assert of(()).verdict == Verdict.HOLDS
    assert of(None).verdict == Verdict.NOT_JUDGED
    failed = of(except_where(lambda x: x > 1, {"gs-q": [1.2, 1.0], "gs-1": [0.5, 2.0]}, "ab"))
    assert failed.verdict == Verdict.FAILS
    assert failed.found == "Not so (gs-q, b: 1.00; gs-1, a: 0.50). f"
    assert of(("1", "2", "3", "4", "5", "6")).found == "Not so (1; 2; 3; 4; and 2 more). f"


def test_sentences_of_the_paper_are_shown_without_latex():
    assert report.from_latex(r"the $L_i$ of~\eqref{eq:ratio} (over 85\%)") == (
        "the L_i of (17) (over 85%)"
    )
    assert report.from_latex(r"\[ f(x^*) \leq \left(1- \frac{2\mu_1}{L_2}\right)^k") == (
        "f(x*) ≤ (1- 2 mu_1/L2)^k"
    )
    assert report.from_latex(r"$S \subseteq \R^n$: $d_1 + \dots$") == "S ⊆ R^n: d_1 + …"


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
