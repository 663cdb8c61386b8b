"""The commands at the top of examples/cluster.py work."""

import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import distributed
import pytest

pytestmark = pytest.mark.xdist_group("dask")

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster.py"


@pytest.mark.slow
def test_the_commands_as_written(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = str(server.getsockname()[1])  # the port of the example may be in use
    commands = [
        shlex.split(line.replace("8786", free))
        for line in re.findall(r"^    (\S.*)$", EXAMPLE.read_text(), re.M)
    ][:3]
    assert [command[0] for command in commands] == ["dask", "dask", "python"]
    # The commands of this environment, wherever the test is started.
    dask = [sys.executable, "-m", "dask"]
    running = [
        subprocess.Popen([*dask, *command[1:]], cwd=tmp_path, stderr=subprocess.DEVNULL)
        for command in commands[:2]
    ]
    try:
        with distributed.Client(commands[2][-1], timeout=120, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)  # a user would see both in their terminals
        done = subprocess.run(
            [sys.executable, *commands[2][1:]],
            cwd=EXAMPLE.parents[1], capture_output=True, text=True, check=True, timeout=300,
        ).stdout  # fmt: skip
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(60)
    assert "2 workers" in done
    assert float(re.search(r"violation: (\S+)", done)[1]) <= 1e-3
    assert float(re.search(r"at most (\S+)", done)[1]) < 0.01
    assert float(re.search(r"accuracy: (\S+)", done)[1]) > 0.9
