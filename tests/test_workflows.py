"""The workflows for GitHub: shell steps that parse, and targets of make that exist."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
if not WORKFLOWS:
    pytest.skip("not in a checkout", allow_module_level=True)


def values(matrix):
    """Return the values of each variable of a matrix."""
    found = {name: list(listed) for name, listed in matrix.items() if name != "include"}
    for row in matrix.get("include", []):
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return found


def steps(path):
    """Return the shell steps of a workflow, once for each value of the matrix that they use."""
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        matrix = values(job.get("strategy", {}).get("matrix", {}))
        for step in job["steps"]:
            if "run" not in step:
                continue
            commands = [step["run"]]
            for name, listed in matrix.items():
                pattern = re.compile(r"\$\{\{\s*matrix\." + name + r"\s*\}\}")
                commands = [pattern.sub(v, c) for c in commands for v in map(str, listed)]
            yield from dict.fromkeys(commands)


STEPS = [(path.name, step) for path in WORKFLOWS for step in steps(path)]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on the PATH")
@pytest.mark.parametrize(("workflow", "step"), STEPS)
def test_a_shell_step_parses(workflow, step):
    assert "${{" not in step, "a value that is not in the matrix"
    done = subprocess.run(["bash", "-n"], input=step, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_targets_of_make_exist():
    text = (ROOT / "Makefile").read_text()
    known = set(re.search(r"^\.PHONY:((?:.*\\\n)*.*)$", text, re.MULTILINE)[1].split())
    called = {name for _, step in STEPS for name in re.findall(r"^make (\S+)$", step, re.MULTILINE)}
    assert {"wheels", "test-aarch64", "test-musl", "cross-check", "test-python"} <= called
    assert called <= known
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
