"""The workflows for GitHub: targets of make that exist, and how wheels are published."""

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
if not WORKFLOWS:
    pytest.skip("not in a checkout", allow_module_level=True)


def test_the_targets_of_make_exist():
    text = (ROOT / "Makefile").read_text()
    jobs = [j for path in WORKFLOWS for j in yaml.safe_load(path.read_text())["jobs"].values()]
    steps = "\n".join(step.get("run", "") for job in jobs for step in job["steps"])
    called = set(re.findall(r"^make ([\w-]+)", steps, re.MULTILINE))
    for job in jobs:
        called |= {*job.get("strategy", {}).get("matrix", {}).get("target", [])}
    assert {"test-python", "test-oldest", "test-sanitize", "test-threads", "docs"} <= called
    for name in called:
        assert re.search(rf"^{name}:", text, re.MULTILINE), name


def test_wheels_are_published_with_a_token_of_the_workflow_alone():
    jobs = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())["jobs"]
    publish = jobs.pop("publish")
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "pypi"
    assert set(publish["needs"]) == set(jobs)
    assert all("permissions" not in job for job in jobs.values())
    assert not any("password" in str(step) for step in publish["steps"])
