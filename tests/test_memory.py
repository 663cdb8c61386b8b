"""Free memory, and what `cache_size="auto"` stands for.

The files of cgroups are replaced, because no call can show what another computer would do.
"""

import pytest

from pairstep import memory, threads
from pairstep.svm import SVC

GIGABYTE = 2**30


@pytest.fixture
def cgroup(tmp_path, monkeypatch):
    """Write the files of a cgroup with a limit of 4 GB, of which 3 GB are in use, 1 for files."""
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(f"{4 * GIGABYTE}\n")
    (tmp_path / "memory.current").write_text(f"{3 * GIGABYTE}\n")
    (tmp_path / "memory.stat").write_text(f"anon {2 * GIGABYTE}\ninactive_file {GIGABYTE}\n")
    return tmp_path


def test_the_limit_of_a_cgroup_is_honored(cgroup):
    assert memory.free_bytes() == min(2 * GIGABYTE, memory.free_bytes())
    (cgroup / "memory.max").write_text("max\n")
    assert memory.free_bytes() > 0
    (cgroup / "memory.max").write_text(f"{3 * GIGABYTE // 2}\n")  # below the use
    assert memory.free_bytes() == 0


def test_cgroup_version_1(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/memory.limit_in_bytes").write_text("1000000")
    (tmp_path / "memory/memory.usage_in_bytes").write_text("600000")
    (tmp_path / "memory/memory.stat").write_text("cache 0")
    assert memory.free_bytes() == 400_000


@pytest.fixture(autouse=True)
def forget():
    """Forget what was computed in the same second, before and after a test."""
    memory._cache_bytes.cache_clear()
    yield
    memory._cache_bytes.cache_clear()


def test_auto_is_a_quarter_of_what_is_free(monkeypatch):
    monkeypatch.setattr(threads, "allowed", lambda: 4)
    monkeypatch.setattr(memory.os, "cpu_count", lambda: 4)
    for free, expected in (
        (16 * GIGABYTE, 4 * GIGABYTE),
        (31 * GIGABYTE, 4 * GIGABYTE),  # rounded down to a power of two
        (GIGABYTE // 4, memory.MIN_CACHE_BYTES),
        (0, memory.MIN_CACHE_BYTES),  # unknown
    ):
        monkeypatch.setattr(memory, "free_bytes", lambda free=free: free)
        memory._cache_bytes.cache_clear()
        assert memory.automatic_cache_bytes() == expected
    # A worker of joblib that may use one of four CPUs takes a quarter of that.
    monkeypatch.setattr(threads, "allowed", lambda: 1)
    monkeypatch.setattr(memory, "free_bytes", lambda: 16 * GIGABYTE)
    memory._cache_bytes.cache_clear()
    assert memory.automatic_cache_bytes() == GIGABYTE


def test_estimators_export_the_default_of_scikit_learn():
    model = SVC().fit([[0.0], [1.0]], [0, 1])
    assert model.cache_size == "auto"
    assert model.to_sklearn().cache_size == 200
    with pytest.raises(ValueError, match="cache_size"):
        SVC(cache_size="all").fit([[0.0], [1.0]], [0, 1])
