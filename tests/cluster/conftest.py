"""Clusters that tests share; without dask only the native share is tested."""

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore = []
if find_spec("distributed") is None:
    collect_ignore = [
        path.name for path in Path(__file__).parent.glob("test_*.py") if path.stem != "test_share"
    ]


@pytest.fixture(scope="session")
def client():
    """For tests that leave it as it was."""
    from clusters import cluster_of

    with cluster_of(2) as client:
        yield client


@pytest.fixture
def fresh_client():
    """For tests that kill its workers."""
    from clusters import cluster_of

    with cluster_of(2) as client:
        yield client


@pytest.fixture
def over_shares(monkeypatch):
    """Have shares solve duals that the coordinator would solve alone."""
    monkeypatch.setattr("pairstep.dask.machine.LOCAL", 0)
