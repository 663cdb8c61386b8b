"""Clusters that tests share; without dask there is nothing to test."""

import pytest

pytest.importorskip("distributed")
from clusters import cluster_of


@pytest.fixture(scope="session")
def client():
    """For tests that leave it as it was."""
    with cluster_of(2) as client:
        yield client


@pytest.fixture
def fresh_client():
    """For tests that kill its workers."""
    with cluster_of(2) as client:
        yield client


@pytest.fixture
def over_shares(monkeypatch):
    """Have shares solve duals that the coordinator would solve alone."""
    monkeypatch.setattr("pairstep.dask.machine.LOCAL", 0)
