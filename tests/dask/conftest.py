"""Clusters for the tests in this folder, which are skipped if Dask is not installed."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore = []
if find_spec("distributed") is None:
    collect_ignore = [path.name for path in Path(__file__).parent.glob("test_*.py")]


@pytest.fixture(scope="session")
def client():
    """Return a client of two workers that tests must leave as they found it."""
    from clusters import cluster_of

    with cluster_of(2) as client:
        yield client


@pytest.fixture
def fresh_client():
    """Return a client of two workers that a test may kill."""
    from clusters import cluster_of

    with cluster_of(2) as client:
        yield client


@pytest.fixture
def over_partitions(monkeypatch):
    """Have partitions solve duals that the coordinator would solve alone."""
    import pairstep.dask

    tuning = replace(pairstep.dask.svm.TUNING, local_size=0)
    monkeypatch.setattr("pairstep.dask.svm.TUNING", tuning)
