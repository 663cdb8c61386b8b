"""Claims about speed, their verdicts, and their texts."""

import numpy as np
import pytest
import scipy.stats

pytest.importorskip("joblib")

from pairstep.paper import report
from pairstep.paper.claims import (
    ADVANTAGE,
    ALIKE,
    TIE,
    TO_LOWEST,
    Claim,
    Horizon,
    Reading,
    Verdict,
    checked,
    consistent,
    decide,
    every_seed,
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
)
from pairstep.paper.races import identified_at


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
    judge = weakest(geometric_mean, ADVANTAGE)
    horizon = judge(1000, {"a": strong, "b": weak})
    assert horizon.holds is True
    assert horizon.value == pytest.approx(1.249, abs=1e-3)
    horizon = judge(1000, {"a": strong, "b": [0.9, 0.8] * 5})
    assert horizon.holds is False
    assert horizon.value < 0.9
    assert judge(1000, {"a": strong, "b": [0.5, 2.1] * 5}).holds is None


def test_consistent_means_across_the_seeds():
    assert consistent(1, {"a": [1.1] * 10, "b": [1.2] * 9 + [1.0]}).holds is True
    assert consistent(1, {"a": [1.1] * 10, "b": [1.2] * 9 + [0.9]}).holds is False
    assert consistent(1, {"a": [1.0] * 10}).holds is False  # ties are not an advantage
    assert consistent(1, {"a": [1.1] * 9}).holds is None


def test_every_seed_means_without_exception():
    judge = every_seed(lambda a, b: a < b)
    assert judge(1, {"a": [1] * 10, "b": [2] * 10}).holds is True
    horizon = judge(1, {"a": [1] * 10, "b": [2] * 9 + [1]})
    assert (horizon.holds, horizon.value) == (False, 0.9)
    assert judge(1, {"a": [1] * 9, "b": [2] * 9}).holds is None


def claim(*holds):
    horizons = tuple(
        Horizon(cut, 1.0, (0.9, 1.1), h)
        for cut, h in zip((1000, 2000, TO_LOWEST), holds, strict=False)
    )
    return Claim("n", "s", (Reading("r", "v", horizons),), "f")


def test_verdicts_over_horizons():
    assert claim(True, True, True).verdict == Verdict.HOLDS
    assert claim(False, False, False).verdict == Verdict.FAILS
    assert claim(True, True, False).verdict == Verdict.DEPENDS
    assert claim(None, None, True).verdict == Verdict.DEPENDS
    assert claim(None, None, None).verdict == Verdict.UNDECIDED
    assert claim().verdict == Verdict.NOT_JUDGED


def test_a_claim_without_verdict_keeps_its_values():
    plain = claim(True, False).record(judged=False)
    assert plain["verdict"] == plain["readings"][0]["verdict"] == Verdict.NOT_JUDGED
    for horizon in plain["readings"][0]["horizons"]:
        assert (horizon["value"], horizon["interval"], horizon["holds"]) == (1.0, None, None)


def test_a_claim_without_horizon_lists_its_exceptions():
    assert checked("n", "s", [], "r", "f", {}).verdict == Verdict.HOLDS
    failed = checked("n", "s", ["1", "2", "3", "4", "5", "6"], "r", "f", {"a": 1})
    assert failed.verdict == Verdict.FAILS
    assert failed.readings[0].numbers == {"a": 1}
    assert failed.found == "It does not hold: 1; 2; 3; 4; and 2 more. f"


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
    assert report.words("L_i < 1/L2, n^2, x^{k+1}") == (
        "<i>L</i><sub>i</sub> &lt; 1/<i>L</i><sub>2</sub>, n<sup>2</sup>, x<sup>k+1</sup>"
    )
