"""`pairstep reproduce` ends with one line, no traceback, and no worker left running."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("matplotlib")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.faults,
    pytest.mark.skipif(os.name != "posix", reason="uses POSIX signals and mounts"),
]

# Many short parts: the first ends soon, the last takes long.
SEEDS = [str(seed) for seed in range(500)]
ARGUMENTS = ["reproduce", "--quick", "--figure", "figure2", "--seeds", *SEEDS, "--out"]
COMMAND = [sys.executable, "-m", "pairstep", *ARGUMENTS]
FORKING = """import sys, joblib, pairstep.cli
with joblib.parallel_config("multiprocessing", n_jobs=2):
    sys.exit(pairstep.cli.main())"""


@pytest.fixture
def running(request, tmp_path):
    """Start a run in a new session, and end all its processes after the test."""
    command = getattr(request, "param", COMMAND)
    process = subprocess.Popen(
        [*command, str(tmp_path / "out")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    yield process
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def ending(process):
    """The last lines of output. Workers hold the pipe too, so its end means that none is left."""
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.mark.parametrize(
    ("running", "number"),
    [
        (COMMAND, signal.SIGTERM),
        (COMMAND, signal.SIGKILL),
        ([sys.executable, "-c", FORKING, *ARGUMENTS], signal.SIGKILL),
    ],
    indirect=["running"], ids=["loky, SIGTERM", "loky, SIGKILL", "multiprocessing, SIGKILL"],
)  # fmt: skip
def test_workers_end_with_their_parent(running, tmp_path, number):
    wait_for(lambda: list(tmp_path.glob("out/.parts/*.npz")))
    os.kill(running.pid, number)
    code, errors = ending(running)
    if number == signal.SIGKILL:  # a worker that was about to answer may print that it failed
        assert code == -number
    else:
        assert "Traceback" not in errors
        assert code == 128 + number
        assert errors.splitlines()[-1].startswith("Interrupted. Finished parts are in")
    assert {p.name for p in tmp_path.glob("out/*")} == {".parts"}


@pytest.mark.parametrize(("number", "later"), [(signal.SIGINT, 0.3), (signal.SIGKILL, 0.02)])
def test_workers_that_are_still_starting_end_too(running, tmp_path, number, later):
    wait_for((tmp_path / "out" / ".parts").exists)
    time.sleep(later)
    if number == signal.SIGINT:
        os.killpg(running.pid, number)  # as a terminal does
    else:
        os.kill(running.pid, number)
    code, errors = ending(running)
    assert code == (130 if number == signal.SIGINT else -number)
    if number == signal.SIGINT:
        assert "Traceback" not in errors
        assert "Warning" not in errors
        assert errors.splitlines()[-1].startswith("Interrupted. Finished parts are in")


@pytest.mark.skipif(shutil.which("pgrep") is None, reason="looks for a worker with pgrep")
def test_a_killed_worker_is_reported_in_one_line(running, tmp_path):
    wait_for(lambda: list(tmp_path.glob("out/.parts/*.npz")))
    workers = subprocess.run(
        ["pgrep", "-P", str(running.pid), "-f", "LokyProcess"], capture_output=True, text=True
    ).stdout.split()
    os.kill(int(workers[0]), signal.SIGKILL)
    code, errors = ending(running)
    assert code == 2
    # joblib's tracker of temporary folders ends later and may print a message
    assert "\npairstep: a worker process was killed" in f"\n{errors}", errors
    assert "Traceback" not in errors


def on_a_mount(options, tmp_path):
    """Run on a temporary file system, and return the remaining files."""
    script = (
        'mount -t tmpfs -o "$1" tmpfs "$2" || exit 77; folder=$2; shift 2; "$@"; code=$?; '
        'cd "$folder" && find . -type f; exit $code'
    )
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on the PATH")
    run = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", options, str(tmp_path),
         *COMMAND, str(tmp_path)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if run.returncode == 77 or run.stderr.startswith("unshare: "):
        pytest.skip(f"may not mount here: {run.stderr}")
    return run


def test_a_full_disk_is_reported_in_one_line(tmp_path):
    run = on_a_mount("size=1m", tmp_path)
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1] == f"pairstep: {tmp_path}: No space left on device"
    assert "Traceback" not in run.stderr
    left = run.stdout.split()
    assert left
    # A worker that is ended while it writes may leave its temporary file.
    assert all(name.endswith((".npz", ".tmp")) for name in left)


def test_a_read_only_folder_is_reported_in_one_line(tmp_path):
    run = on_a_mount("ro", tmp_path)
    assert run.returncode == 2
    (line,) = run.stderr.splitlines()
    assert line == f"pairstep: {tmp_path / '.parts'}: Read-only file system"


STUBBORN = """
import sys, threading
from pairstep.cli import main, reproduce
reproduce.SHUTDOWN_SECONDS = 0.3
def stubborn(options):
    print("begun", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        threading.Event().wait()
reproduce.experiment = stubborn
sys.exit(main(["reproduce", "--out", sys.argv[1]]))
"""


@pytest.mark.parametrize("running", [[sys.executable, "-c", STUBBORN]], indirect=True)
def test_a_worker_that_does_not_end_is_killed(running):
    assert running.stdout.readline() == "begun\n"
    os.kill(running.pid, signal.SIGTERM)
    code, errors = ending(running)
    assert code == 128 + signal.SIGTERM
    assert errors.splitlines()[-1].startswith("Interrupted. Finished parts are in")
