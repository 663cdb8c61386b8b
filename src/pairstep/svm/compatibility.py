"""What differs between the versions of scikit-learn that we work with, from 1.6 on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Self, TypeVar

from sklearn.utils.validation import _check_sample_weight

__all__ = ["CallbackSupportMixin", "check_sample_weight", "with_callbacks"]

Function = TypeVar("Function", bound=Callable[..., Any])

# Of late it refuses weights that are all 0, of which support vector machines speak themselves.
check_sample_weight: Callable[..., Any] = _check_sample_weight
if "allow_all_zero_weights" in inspect.signature(_check_sample_weight).parameters:
    check_sample_weight = partial(_check_sample_weight, allow_all_zero_weights=True)

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9 estimators have no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Estimators whose fits nobody watches."""

        def _init_callback_context(self, max_subtasks: int) -> Unwatched:
            return Unwatched()

    def with_callbacks(fit: Function) -> Function:
        """The method, as far below its caller as scikit-learn puts it: warnings count the calls."""

        @wraps(fit)
        def unwatched(*arguments: Any, **options: Any) -> Any:
            return fit(*arguments, **options)

        return unwatched  # type: ignore[return-value]


class Unwatched:
    """Takes what a callback context takes, and tells nobody."""

    def subcontext(self, task_name: str) -> Self:
        """For a part of the fit."""
        return self

    def call_on_fit_task_begin(self, **told: Any) -> None:
        """Nothing happens."""

    def call_on_fit_task_end(self, **told: Any) -> bool:
        """Nobody asks to stop."""
        return False
