"""scikit-learn's callback protocol: progress is shown, and a fit can be stopped."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVC
from pairstep.svm.progress import STEPS, FitProgress

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has them from 1.9 on")

X, Y = load_iris(return_X_y=True)
RNG = np.random.default_rng(3)
ENDLESS = RNG.normal(size=(3000, 20)), RNG.integers(0, 2, 3000)


class Recorder:
    """A callback that records its calls and may ask to stop."""

    def __init__(self, stop_after=None):
        self.events = []
        self.stop_after = stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {context.task_name}")
        return self.stop_after is not None and self.events.count("end percent") >= self.stop_after


def test_torn_down_after_an_error():
    recorder = Recorder()
    with pytest.raises(ValueError, match="kernel fails"):
        SVC(kernel=failing_kernel).set_callbacks(recorder).fit(X, Y)
    assert recorder.events in (["setup", "teardown"], ["setup", "begin fit", "teardown"])
    assert not hasattr(SVC(), "_callback_fit_ctx")


def failing_kernel(X, Y):
    raise ValueError("kernel fails")


def test_progress_is_reported():
    recorder = Recorder()
    model = SVC(C=100.0, gamma=0.05, tol=1e-6).set_callbacks(recorder).fit(*ENDLESS)
    assert model.fit_status_ == 0
    assert 0 < recorder.events.count("end percent") <= STEPS


def test_scoring_monitor():
    monitor = callback.ScoringMonitor(scoring="accuracy")
    weights = np.linspace(0.5, 1.5, 150)
    model = SVC().set_callbacks(monitor).fit(X, Y, sample_weight=weights)
    (row,) = monitor.get_logs().data
    assert row["task_name"] == "fit"
    assert row["accuracy"] == pytest.approx(model.score(X, Y, sample_weight=weights))


def test_progress_bar(capsys):
    SVC().set_callbacks(callback.ProgressBar()).fit(X, Y)
    shown = capsys.readouterr().out
    assert "SVC - fit" in shown
    assert "100%" in shown


def test_propagated_by_a_search(capsys):
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10]}, cv=2)
    search.set_callbacks(callback.ProgressBar(max_propagation_depth=2)).fit(X, Y)
    assert "SVC - fit" in capsys.readouterr().out


class Context:
    """Counts tasks like scikit-learn's context, which refuses more than announced."""

    def __init__(self, stop_at=None):
        self.ended = 0
        self.stop_at = stop_at

    def subcontext(self, task_name):
        return self

    def call_on_fit_task_begin(self, estimator):
        assert self.ended < STEPS

    def call_on_fit_task_end(self, estimator):
        self.ended += 1
        return self.ended == self.stop_at


def test_progress_counts_digits_and_duals():
    context = Context()
    progress = FitProgress(None, context, tol=1e-3, duals=4)
    ended = []
    for violation, solved in [
        (10.0, 0), (0.1, 0), (1.0, 0), (1e-3, 0), (5.0, 2), (np.inf, 3), (1.0, 3), (0.0, 4),
    ]:  # fmt: skip
        assert progress(violation, 1, solved)
        ended.append(context.ended)
    assert ended == [0, 12, 12, 25, 50, 75, 75, 100]


def test_progress_before_the_first_violation_is_known():
    """The first round takes longer than the interval between reports, as with large data."""
    context = Context()
    progress = FitProgress(None, context, tol=1e-3, duals=2)
    ended = []
    for violation, solved in [
        (0.0, 0), (10.0, 0), (0.1, 0), (1e-3, 0), (1e-3, 1), (10.0, 1), (0.1, 1),
    ]:  # fmt: skip
        assert progress(violation, 1, solved)
        ended.append(context.ended)
    assert ended == [0, 0, 25, 50, 50, 50, 75]


@pytest.mark.parametrize("violation", [0.0, np.inf, np.nan, 1e-300, 1e300])
def test_progress_survives_odd_violations(violation):
    progress = FitProgress(None, Context(), tol=1e-3, duals=1)
    assert progress(violation, 0, 0)
    assert progress(1.0, 1, 0)
    assert progress(violation, 2, 1)


def test_progress_stops_once():
    context = Context(stop_at=30)
    progress = FitProgress(None, context, tol=1e-3, duals=1)
    assert progress(1.0, 1, 0)
    assert not progress(1e-3, 1, 0)
    assert not progress(1e-3, 1, 1)
    assert context.ended == 30
