"""Makes `oracles` importable from every test, whatever pytest's import mode; shared fixtures."""

import sys
from pathlib import Path

import pytest

from pairstep import _core

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    """Every instruction set that this processor has, in turn."""
    before = _core.instruction_set()
    assert _core.use_instruction_set(request.param)
    yield request.param
    assert _core.use_instruction_set(before)
