"""Time a reference loop next to each benchmark, and shorten the files of pytest-benchmark."""

import time

import numpy as np
import pytest

REFERENCE_CALLS = 15  # before and after each benchmark; the fastest call counts
failed = set()


def reference() -> float:
    """Do a fixed amount of work without pairstep: Python, sorting and memory; a few milliseconds.

    A computer that is slower at the moment is slower here, too, so the ratio of a benchmark to
    this loop depends less on the host than a time does.
    """
    total = 0.0
    for k in range(20_000):
        total += k * 0.5
    numbers = np.sin(np.arange(30_000.0))
    total += np.sort(numbers)[100]
    for _ in range(20):
        total += np.add(numbers, total).max()
    return total


def reference_time() -> float:
    """Return the time of the fastest of several calls, in seconds."""
    times = []
    for _ in range(REFERENCE_CALLS):
        began = time.perf_counter()
        reference()
        times.append(time.perf_counter() - began)
    return min(times)


@pytest.fixture(autouse=True)
def measured_reference(request, benchmark):
    """Store the time of the reference loop with each benchmark."""
    if benchmark.disabled:
        yield
        return
    before = reference_time()
    yield
    benchmark.extra_info["reference"] = min(before, reference_time())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        failed.add(item.name)
    return report


def pytest_benchmark_update_machine_info(config, machine_info):
    """Keep no host name."""
    machine_info.pop("node", None)
    cpu = machine_info["cpu"]
    machine_info["cpu"] = {key: cpu.get(key) for key in ("brand_raw", "count", "arch")}


def pytest_benchmark_update_json(config, benchmarks, output_json):
    """Keep statistics instead of all times, and no benchmark whose result is wrong."""
    for benchmark in output_json["benchmarks"]:
        benchmark["stats"].pop("data", None)
    for where in ("project", "branch"):
        output_json["commit_info"].pop(where, None)
    output_json["benchmarks"] = [b for b in output_json["benchmarks"] if b["name"] not in failed]
