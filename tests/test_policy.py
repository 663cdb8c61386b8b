"""The constants and enumerations that Python takes from the native code."""

from typing import get_args

from pairstep import Status, _core
from pairstep.svm import engine


def test_kernel_names_of_type_checkers_match_the_native_enumeration() -> None:
    assert get_args(engine.KernelName) == engine.KERNELS == tuple(_core.KernelName.__members__)


def test_stop_reasons_that_end_a_solve_are_statuses() -> None:
    passing = {"paused", "solved_directly"}
    assert {reason.name for reason in _core.StopReason} - passing <= {*Status}


def test_patience_grows_with_the_number_of_variables() -> None:
    policy = _core.NumericalPolicy
    assert policy.patience(0) == policy.base_patience < policy.patience(1)
