"""Clusters for the tests in this folder, which are skipped if Dask is not installed."""

import contextlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore = []
if find_spec("distributed") is None:
    collect_ignore = [path.name for path in Path(__file__).parent.glob("test_*.py")]


@pytest.fixture
def fresh_client():
    """Return a client of two workers that a test may kill for good."""
    from clusters import cluster_of

    with cluster_of(2) as client:
        yield client


@pytest.fixture(scope="session")
def restarting_cluster():
    """Return a function that returns a client of two workers, of a new cluster if one is lost."""
    from clusters import cluster_of, is_complete

    with contextlib.ExitStack() as stack:
        clients = []

        def complete():
            if not clients or not is_complete(clients[-1], 2):
                stack.close()
                clients.append(stack.enter_context(cluster_of(2)))
            return clients[-1]

        yield complete


@pytest.fixture
def restarting_client(restarting_cluster):
    """Return a client of two workers that a test may kill, because their nannies restart them."""
    client = restarting_cluster()
    with client.as_current():
        yield client


@pytest.fixture
def over_partitions(monkeypatch):
    """Have partitions solve duals that the coordinator would solve alone."""
    import pairstep.dask

    tuning = replace(pairstep.dask.svm.TUNING, local_size=0)
    monkeypatch.setattr("pairstep.dask.svm.TUNING", tuning)
