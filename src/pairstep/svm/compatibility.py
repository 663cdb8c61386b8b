"""Everything that this package uses from scikit-learn's private modules, in one place.

A new release of scikit-learn may rename or change these names without notice, so all other modules
import them from here. The module also hides the differences between the releases that are
supported, from 1.6 on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import Any, Self, TypeVar

from sklearn.metrics._scorer import _BaseScorer, _PassthroughScorer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import _score as score
from sklearn.model_selection._validation import (
    _warn_or_raise_about_fit_failures as warn_of_failures,
)
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import (
    Hidden,
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.metaestimators import _safe_split as take_split
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _check_sample_weight
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "BaseSearchCV", "CallbackSupportMixin", "Hidden", "Interval",
    "Options", "StrOptions", "check_method_params", "check_sample_weight", "is_builtin_scorer",
    "may_need_probabilities", "num_samples", "parameter_defaults", "routing_enabled", "score",
    "take_rows", "take_split", "validate_parameter_constraints", "warn_of_failures",
    "with_callbacks",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])

# Recent releases reject weights that are all 0. The estimators here raise their own error for them.
check_sample_weight: Callable[..., Any] = _check_sample_weight
if "allow_all_zero_weights" in inspect.signature(_check_sample_weight).parameters:
    check_sample_weight = partial(_check_sample_weight, allow_all_zero_weights=True)

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # estimators have no callbacks before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for scikit-learn's mixin, without callbacks."""

        def _init_callback_context(self, max_subtasks: int) -> NoCallbacks:
            return NoCallbacks()

    def with_callbacks(fit: Function) -> Function:
        """Return the method with one more frame, so that `stacklevel` matches scikit-learn's."""

        @wraps(fit)
        def without_callbacks(*arguments: Any, **options: Any) -> Any:
            return fit(*arguments, **options)

        return without_callbacks  # type: ignore[return-value]


class NoCallbacks:
    """A callback context that calls nothing."""

    def subcontext(self, task_name: str) -> Self:
        """Return the context of a part of the fit."""
        return self

    def call_on_fit_task_begin(self, **given: Any) -> None:
        """Do nothing."""

    def call_on_fit_task_end(self, **given: Any) -> bool:
        """Return False: the fit need not stop."""
        return False


def is_builtin_scorer(scorer: Any) -> bool:
    """Return whether a scorer is scikit-learn's own, or was made by `make_scorer`.

    Such a scorer passes exactly the X that it was given to the estimator. A function of the user
    may do anything with it.
    """
    return isinstance(scorer, (_BaseScorer, _PassthroughScorer))


def may_need_probabilities(scorer: Any) -> bool:
    """Return whether a scorer may call `predict_proba` of an estimator with `decision_function`."""
    if isinstance(scorer, _PassthroughScorer):
        return False
    methods = getattr(scorer, "_response_method", "predict_proba")
    return methods == "predict_proba" or methods[0] == "predict_proba"


@lru_cache
def parameter_defaults(estimator: type) -> dict[str, Any]:
    """Return the names and default values of the parameters of an estimator's class."""
    _, *parameters = inspect.signature(estimator.__init__).parameters.values()  # type: ignore[misc]
    return {parameter.name: parameter.default for parameter in parameters}
