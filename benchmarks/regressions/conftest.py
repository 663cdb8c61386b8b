"""Shorten the files of pytest-benchmark: no host name, and statistics instead of all times."""


def pytest_benchmark_update_machine_info(config, machine_info):
    machine_info.pop("node", None)
    cpu = machine_info["cpu"]
    machine_info["cpu"] = {key: cpu.get(key) for key in ("brand_raw", "count", "arch")}


def pytest_benchmark_update_json(config, benchmarks, output_json):
    for benchmark in output_json["benchmarks"]:
        benchmark["stats"].pop("data", None)
    for where in ("project", "branch"):
        output_json["commit_info"].pop(where, None)
