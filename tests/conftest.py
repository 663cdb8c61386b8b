"""Settings and fixtures for all tests.

Hypothesis tries the same examples in every run; PAIRSTEP_EXAMPLES=search tries many new ones.
"""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from pairstep import _core

sys.path.insert(0, str(Path(__file__).parent))  # for the helper modules: oracles, pairwise, ...

collect_ignore = ["attacks"]  # standalone programs: `make attack`

# A shell that starts pytest in the background makes it ignore SIGINT, and child processes inherit
# that. Tests of Ctrl-C need the default handler.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("pairstep", deadline=None, derandomize=True, max_examples=150)
settings.register_profile("search", deadline=None, max_examples=5000)
settings.load_profile(os.environ.get("PAIRSTEP_EXAMPLES", "pairstep"))


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    """Run a test once with each instruction set that this CPU supports."""
    before = _core.instruction_set()
    assert _core.use_instruction_set(request.param)
    yield request.param
    assert _core.use_instruction_set(before)


@pytest.fixture(scope="session")
def shared_cluster():
    """Return a client of two workers of Dask for all tests."""
    from clusters import cluster_of

    with cluster_of(2) as client:
        yield client


@pytest.fixture
def client(shared_cluster):
    """Return a client of two workers that tests must leave as they found it."""
    with shared_cluster.as_current():
        yield shared_cluster
