"""Every example runs, writes its figure, and prints the expected results."""

import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pyplot = pytest.importorskip(
    "matplotlib.pyplot", reason="the examples draw with matplotlib: install pairstep[plots]"
)

EXAMPLES = Path(__file__).parent.parent / "examples"


def check_portfolio(printed: str, real: bool) -> None:
    assert set(values(printed, r"largest \|sum - 1\| ")) == {0.0}
    for cost in ("0%", "0.5%", "2%"):
        risk, gain, untouched = (
            values(printed, rf"cost {cost}: .*?{name} ") for name in ("risk", "gain", "untouched")
        )
        assert len(risk) == len(gain) == len(untouched) == 6
        assert risk == sorted(risk)
        assert gain == sorted(gain)
    assert max(untouched) > 10, "a high cost leaves many holdings exactly as they are"
    if real:
        (off,) = values(printed, "distance to the published frontier: ")
        assert off < 1e-7


def check_synthetic_control(printed: str, real: bool) -> None:
    assert values(printed, "sum of the weights: ") == [1.0]
    (error,) = values(printed, r"\(RMSE\): ")
    (effect,) = values(printed, r"mean effect from 1989: ")
    assert error < (1.8 if real else 1.0)
    assert effect < -10
    if real:
        assert "synthetic California: Utah 39" in printed


def check_unmixing(printed: str, real: bool) -> None:
    correlations = values(printed, r"correlation with the reference, \w+: ")
    assert len(correlations) == 3
    assert min(correlations) > 0.99
    assert values(printed, "smallest fraction: ")[0] >= 0
    assert values(printed, "sum of fractions - 1.: ")[0] <= 2e-16
    solved, count = re.search(r"(\d+) of (\d+) pixels optimal", printed).groups()
    assert solved == count
    assert int(count) == (9025 if real else 2304)


def check_stacking(printed: str, real: bool) -> None:
    low, high = re.search(r"weights of pairstep: sums from (\S+) to (\S+)", printed).groups()
    assert abs(float(low) - 1) <= 2.3e-16
    assert abs(float(high) - 1) <= 2.3e-16
    assert values(printed, "weights of pairstep: the smallest is ")[0] >= 0
    (ours,) = values(printed, "error of pairstep: ")
    (unconstrained,) = values(printed, "error of least squares: ")
    assert ours < unconstrained


def check_covariate_shift(printed: str, real: bool) -> None:
    plain, weighted = re.search(
        r"curve: mean error (\S+) without weights, (\S+) with", printed
    ).groups()
    assert float(weighted) < 0.8 * float(plain)
    total, points, largest = re.search(
        r"sum of the weights: (\S+) for (\d+) points, largest (\S+)", printed
    ).groups()
    assert abs(float(total) / float(points) - 1) <= 0.05
    assert float(largest) <= 10
    assert ("house prices: " in printed) == real


def check_index_tracking(printed: str, real: bool) -> None:
    assert values(printed, "weights sum to ") == [1.0, 1.0, 1.0]
    errors = values(printed, "tracking error ")
    assert len(errors) == 6
    for many, few in zip(errors[::2], errors[1::2], strict=True):
        assert many < few < 0.8
    best, bounds = (values(printed, name) for name in (r"stocks, error ", "at least "))
    for few, ours, bound in zip(errors[1::2], best, bounds, strict=True):
        assert bound <= ours <= few
    assert values(printed, "branch and bound: ") == [10.0, 10.0, 10.0]
    assert ("Hang Seng" in printed) == real


def check_sectors(printed: str, real: bool) -> None:
    assert values(printed, r"largest \|sum - 1\| ")[0] <= 2.3e-16
    assert values(printed, "violation of a limit ")[0] <= 1e-16
    assert values(printed, "the policy costs ")[0] > 0
    shares, worth = values(printed, "weight "), values(printed, "is worth [+]?")
    assert len(shares) == len(worth) == 7
    assert abs(sum(shares) - 100) < 1e-3
    assert max(worth) > 0
    assert worth.count(0.0) >= 1, "not every limit is active"
    (unlimited, limited), at_corners = (
        values(printed, name) for name in ("Sharpe ratio ", "best corner ")
    )
    assert limited < unlimited
    assert min(values(printed, r"limits: (?=\d+ corners)")) > 10
    assert at_corners[0] <= unlimited
    assert at_corners[1] <= limited


def check_rebalancing(printed: str, real: bool) -> None:
    assert values(printed, r": (?=\d+ rebalances)") == [250, 250, 250]
    assert len(values(printed, r"rebalances, (?=\S+ ms per rebalance)")) == 3
    free, costs, capped = values(printed, "turnover ")
    assert capped < costs < 0.5 * free
    assert values(printed, "at most ")[2] == 4.0


def check_mixture_proportions(printed: str, real: bool) -> None:
    assert ": optimal after" in printed
    assert values(printed, "sum of the proportions: ") == [1.0]
    assert values(printed, "the likelihood is within ")[0] < 1e-9
    assert values(printed, "components in use: ")[0] < 40
    (measured,) = values(printed, "error of the measurements: ")
    (shrunk,) = values(printed, "of the shrunk ones: ")
    assert shrunk < 0.9 * measured


def check_kelly(printed: str, real: bool) -> None:
    growth = values(printed, "growth ")
    assert len(growth) == 4
    assert growth == sorted(growth, reverse=True), "every limit costs growth"
    assert values(printed, "largest holding ")[1:] == [0.3, 0.1]
    assert max(abs(total - 1) for total in values(printed, "sum ")) <= 2.3e-16
    if real:
        assert abs(growth[0] - 29.177) < 1e-3


def check_optimal_design(printed: str, real: bool) -> None:
    assert ": optimal after" in printed
    assert abs(values(printed, "largest variance: ")[0] - 6) < 1e-6, "Kiefer and Wolfowitz"
    assert 6 <= values(printed, "points in use: ")[0] <= 21
    assert values(printed, "sum of the weights: ") == [1.0]


def check_risk_parity(printed: str, real: bool) -> None:
    least, most = (
        values(printed, rf"risk parity: contributions {ends}") for ends in ("from ", ".* to ")
    )
    assert abs(least[0] - 5) < 1e-5
    assert abs(most[0] - 5) < 1e-5
    deviation = values(printed, "deviation ")
    assert deviation == sorted(deviation, reverse=True), "risk parity is between the others"
    assert values(printed, "with limits: beta ") == [0.85]
    assert values(printed, "with limits: .*volatile stocks ") == [0.1]
    assert values(printed, "multipliers of the limits: ")[0] < 0


def check_log_loss(printed: str, real: bool) -> None:
    assert values(printed, "sum of the weights: ") == [1.0]
    (stacked,), (alone,) = (
        values(printed, name) for name in ("training log loss: ", "best single model: ")
    )
    assert stacked < alone
    losses = values(printed, "test log loss, .*?: ")
    assert len(losses) == 7
    assert losses[-1] <= 1.2 * min(losses)


def check_photon_counts(printed: str, real: bool) -> None:
    assert values(printed, "sum of the fractions: ") == [1.0]
    (likelihood,), (squares,) = (
        values(printed, name) for name in ("RMSE of maximum likelihood: ", "of least squares: ")
    )
    assert likelihood < squares
    assert values(printed, "get exactly 0: ")[0] > 40


def check_tuning(printed: str, real: bool) -> None:
    assert values(printed, "accuracy ")[0] > (0.96 if real else 0.85)
    supports = values(printed, r"C=\S+: ")
    assert len(supports) == 8
    assert supports[-1] < supports[0], "a large C leaves few support vectors"


def check_quantiles(printed: str, real: bool) -> None:
    ours, *_ = values(printed, "QuantileSVR: ")
    assert 86 < ours < 94
    kernel, linear, boosting = values(printed, "pinball loss ")
    assert kernel < linear
    assert kernel < boosting
    assert values(printed, "predictions cross for ")[0] < 10


def check_decision_focused(printed: str, real: bool) -> None:
    usual, focused = values(printed, "gain ")
    assert focused > usual + 2
    less, more = values(printed, "mean squared error ")
    assert more > less, "a better portfolio from a worse forecast"


def check_simplex_attention(printed: str, real: bool) -> None:
    softmax, simplex = values(printed, "test error ")
    assert simplex < 0.1 * softmax
    everything, few = values(printed, r"(?:softmax|each): (?=\d+ of)")
    assert everything == 32
    assert few <= 6


CHECKS = {
    "simplex_attention": check_simplex_attention,
    "decision_focused": check_decision_focused,
    "risk_parity": check_risk_parity,
    "rebalancing": check_rebalancing,
    "log_loss": check_log_loss,
    "photon_counts": check_photon_counts,
    "mixture_proportions": check_mixture_proportions,
    "kelly": check_kelly,
    "tuning": check_tuning,
    "quantiles": check_quantiles,
    "optimal_design": check_optimal_design,
    "portfolio": check_portfolio,
    "synthetic_control": check_synthetic_control,
    "unmixing": check_unmixing,
    "stacking": check_stacking,
    "covariate_shift": check_covariate_shift,
    "index_tracking": check_index_tracking,
    "sectors": check_sectors,
}
NEEDS_NO_DATA = {
    "stacking", "mixture_proportions", "optimal_design", "log_loss", "photon_counts",
    "decision_focused", "simplex_attention",
}  # fmt: skip


def values(printed: str, before: str) -> list[float]:
    """Return the numbers that follow a pattern."""
    return [float(v) for v in re.findall(before + r"(-?[\d.]+(?:e[-+]?\d+)?)", printed)]


def run(name: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run an example as a script in this process, and return its output.

    A new process would import the same libraries again, which takes longer than most examples.
    """
    script = str(EXAMPLES / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [script, "--out", str(out)])
    pyplot.switch_backend("agg")
    printed = io.StringIO()
    try:
        with pyplot.rc_context(), contextlib.redirect_stdout(printed):
            runpy.run_path(script, run_name="__main__")
    finally:
        pyplot.close("all")
    return printed.getvalue()


def check_picture(out: Path) -> None:
    """Check that the figure is large enough and not nearly blank."""
    from matplotlib.image import imread

    pixels = imread(out)
    assert min(pixels.shape[:2]) >= 600
    drawn = (pixels[..., :3] < 0.9).any(axis=2).mean()
    assert 0.01 < drawn < 0.99


def test_every_example_is_checked() -> None:
    scripts = {path.stem: path.read_text() for path in EXAMPLES.glob("[!_]*.py")}
    del scripts["cluster"]  # tests/dask/test_example.py runs that one
    assert set(scripts) == set(CHECKS)
    assert {name for name in scripts if "PAIRSTEP_DATA" not in scripts[name]} == NEEDS_NO_DATA


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_with_synthetic_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAIRSTEP_DATA", raising=False)
    out = tmp_path / "picture.png"
    printed = run(name, out, monkeypatch)
    assert ("PAIRSTEP_DATA is not set" in printed) == (name not in NEEDS_NO_DATA)
    check_picture(out)
    CHECKS[name](printed, real=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CHECKS if name not in NEEDS_NO_DATA])
def test_with_real_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.environ.get("PAIRSTEP_DATA"):
        pytest.skip("PAIRSTEP_DATA is not set: no real data to run the examples on")
    out = tmp_path / "picture.png"
    printed = run(name, out, monkeypatch)
    assert "synthetic data" not in printed
    check_picture(out)
    CHECKS[name](printed, real=True)


@pytest.mark.slow
def test_in_a_new_process(tmp_path: Path) -> None:
    """As a user would run it: nothing is imported before, and matplotlib chooses its backend."""
    out = tmp_path / "picture.png"
    environment = {key: value for key, value in os.environ.items() if key != "PAIRSTEP_DATA"}
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "synthetic_control.py", "--out", out],
        capture_output=True, text=True, env=environment, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_picture(out)
    check_synthetic_control(done.stdout, real=False)
