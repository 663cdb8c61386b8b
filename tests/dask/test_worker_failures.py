"""Failures of workers, scheduler and data during a fit, with real processes."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import dask
import dask.array
import distributed
import numpy as np
import pytest
from clusters import kill, lazy, problem, processes_of
from sklearn.metrics.pairwise import rbf_kernel

import pairstep.dask
from pairstep import svm
from pairstep.dask.cluster import Partitions
from pairstep.dask.waiting import compute

pytestmark = [
    pytest.mark.faults,
    pytest.mark.usefixtures("over_partitions"),
    pytest.mark.xdist_group("dask"),
]

X, Y, _ = problem(1500)
PARAMETERS = {"C": 10.0, "gamma": 0.3, "tol": 1e-6}


@pytest.fixture(scope="module")
def expected():
    return objective(svm.SVC(**PARAMETERS).fit(X, Y))


def objective(model):
    (z,) = model.dual_coef_
    return z @ rbf_kernel(model.support_vectors_, gamma=0.3) @ z / 2 - np.abs(z).sum()


class Fault:
    """Call `act` before the first message of a kind is sent, from round `after` on."""

    def __init__(self, monkeypatch, act, *, after=8, kind="update_gradient"):
        self.rounds, self.done = 0, False
        ask = Partitions.call_each

        def faulty(partitions, each, again=None):
            self.rounds += 1
            due = self.rounds >= after and any(name == kind for name, *_ in each[0])
            if due and not self.done:
                self.done = True
                act(partitions)
            return ask(partitions, each, again)

        monkeypatch.setattr(Partitions, "call_each", faulty)


def killing(client, numbers):
    """Return a function that kills the workers of some partitions."""

    def act(partitions):
        for number in numbers:
            kill(*processes_of(client, partitions.connections[number].worker))

    return act


def check(model, expected):
    assert model.optimality_.kkt_violation <= 1e-6
    assert objective(model) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([1], "update_gradient"),
        *(
            pytest.param(numbers, kind, marks=pytest.mark.slow)
            for numbers, kind in (
                ([0, 1], "update_gradient"),
                ([0], "recompute_gradient"),
                ([1], "begin"),
                ([0], "gradient"),
            )
        ),
    ],
)
def test_killed_workers_are_replaced(monkeypatch, restarting_client, expected, numbers, kind):
    after = 1 if kind == "begin" else 8
    fault = Fault(monkeypatch, killing(restarting_client, numbers), after=after, kind=kind)
    model = pairstep.dask.SVC(**PARAMETERS).fit(*lazy(X, Y))
    assert fault.done
    assert model.traffic_.recoveries == len(numbers)
    check(model, expected)


def test_a_worker_that_dies_before_it_is_connected_is_replaced(
    monkeypatch, restarting_client, expected
):
    start, killed = Partitions._start, []

    def late(partitions, connections):
        if not killed:
            killed.extend(processes_of(restarting_client, connections[0].worker))
            kill(*killed)
            while partitions.connections[0].worker in restarting_client.ncores():
                time.sleep(0.01)
        return start(partitions, connections)

    monkeypatch.setattr(Partitions, "_start", late)
    with dask.config.set({"pairstep.timeout": "5s"}):
        model = pairstep.dask.SVC(**PARAMETERS).fit(*lazy(X, Y))
    assert killed
    assert model.traffic_.recoveries == 1
    check(model, expected)


@pytest.mark.slow
def test_a_worker_that_hangs_is_replaced(monkeypatch, fresh_client, expected):
    monkeypatch.setattr("pairstep.dask.cluster.RESTART_GRACE", 1.0)  # dask does not restart it
    stopped = []

    def act(partitions):
        stopped.extend(processes_of(fresh_client, partitions.connections[0].worker))
        os.kill(stopped[0], signal.SIGSTOP)

    fault = Fault(monkeypatch, act)
    try:
        with dask.config.set({"pairstep.timeout": "5s"}):
            model = pairstep.dask.SVC(**PARAMETERS).fit(*lazy(X, Y))
    finally:
        for process in stopped:
            os.kill(process, signal.SIGCONT)
    assert fault.done
    assert model.traffic_.recoveries == 1
    check(model, expected)


@pytest.mark.slow
def test_an_interrupt_frees_the_workers(monkeypatch, restarting_client):
    Fault(monkeypatch, lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        pairstep.dask.SVC(**PARAMETERS).fit(*lazy(X, Y))
    deadline = time.monotonic() + 60
    while any(restarting_client.run(_handlers_in_use).values()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert not any(restarting_client.processing().values())
    monkeypatch.undo()
    pairstep.dask.SVC(gamma=0.3).fit(*lazy(X[:300], Y[:300]))  # the cluster still works


def _handlers_in_use():
    import gc

    from pairstep.dask import partition

    gc.collect()
    return len(partition._handlers) + sum(
        isinstance(thing, partition.Rows) for thing in gc.get_objects()
    )


@pytest.mark.slow
def test_a_lost_scheduler_is_reported(monkeypatch, tmp_path):
    address_file = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0",
         "--no-dashboard", "--scheduler-file", address_file],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    worker = subprocess.Popen(
        [sys.executable, "-m", "dask", "worker", "--scheduler-file", address_file, "--nthreads",
         "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--death-timeout", "120",
         "--local-directory", tmp_path],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not address_file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with distributed.Client(scheduler_file=address_file, timeout=120) as client:
            client.wait_for_workers(1, timeout=120)

            def act(_):
                scheduler.kill()
                worker.kill()

            Fault(monkeypatch, act)
            with pytest.raises(ConnectionError, match=r"scheduler of .* is gone"):
                pairstep.dask.SVC(client=client, **PARAMETERS).fit(*lazy(X, Y))
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


@pytest.mark.parametrize("what", ["y", "lengths of X"])
def test_no_worker_is_left_while_data_are_computed(fresh_client, what):

    def slowly(block):
        time.sleep(60)
        return block

    dX, dy = lazy(X, Y)
    if what == "y":
        dy = dy.map_blocks(slowly, dtype=int, meta=np.empty(0, int))
    else:
        dX = dX.map_blocks(slowly, dtype=float, meta=np.empty((0, 0)))
        dX = dX[dask.array.from_array(Y >= 0, chunks=dX.chunks[0])]
    for nanny in fresh_client.cluster.workers.values():
        nanny.close_gracefully()  # does not restart its worker
    processes = fresh_client.run(os.getpid).values()
    killer = threading.Thread(target=kill_once_at_work, args=(fresh_client, processes))
    killer.start()
    with (
        dask.config.set({"pairstep.timeout": "2s"}),
        pytest.raises(RuntimeError, match="the cluster has no workers left"),
    ):
        pairstep.dask.SVC(**PARAMETERS).fit(dX, dy)
    killer.join()


def kill_once_at_work(client, processes):
    while not all(client.processing().values()):
        time.sleep(0.05)
    kill(*processes)


def test_a_computation_longer_than_the_timeout_is_awaited(client):
    def slowly(block):
        time.sleep(2.5)
        return block

    dy = dask.array.from_array(Y[:300], chunks=150)  # a block for each worker
    with dask.config.set({"pairstep.timeout": "1s"}):
        y = compute(client, dy.map_blocks(slowly, dtype=int, meta=np.empty(0, int)), "y")
    assert (y == Y[:300]).all()


@pytest.mark.slow
def test_workers_that_die_at_every_message(monkeypatch, fresh_client):
    exchange = Partitions._exchange

    def deadly(partitions, lines, each):
        while any(
            nanny.status.name == "starting" for nanny in fresh_client.cluster.workers.values()
        ):
            time.sleep(0.05)  # a nanny that is starting its worker does not start another one
        killing(fresh_client, [line.number for line in lines])(partitions)
        return exchange(partitions, lines, each)

    monkeypatch.setattr(Partitions, "_exchange", deadly)
    # dask does not restart a worker that is killed before its nanny has seen it run.
    with (
        dask.config.set({"pairstep.timeout": "3s"}),
        pytest.raises(RuntimeError, match=r"lost 6 times in a row|the cluster has no workers left"),
    ):
        pairstep.dask.SVC(**PARAMETERS).fit(*lazy(X, Y))


@pytest.mark.parametrize("kind", [RuntimeError, FileNotFoundError])
def test_errors_while_data_are_computed_are_raised(client, kind):
    def fail(block):
        raise kind("the disk is full")

    (dX,) = lazy(X)
    broken = dX.map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(kind, match="the disk is full"):
        pairstep.dask.SVC(client=client).fit(broken, Y)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_rows_of_two_partitions_that_a_lost_worker_has_computed(
    monkeypatch, restarting_client, expected, number
):
    def slowly(block):
        time.sleep(0.3)
        return block

    dX, dy = lazy(X, Y)
    fault = Fault(monkeypatch, killing(restarting_client, [number]), after=1, kind="summary")
    with dask.config.set({"pairstep.timeout": "15s"}):
        model = pairstep.dask.SVC(**PARAMETERS).fit(
            dX.map_blocks(slowly, dtype=float, meta=np.empty((0, 0))), dy
        )
    assert fault.done
    assert model.traffic_.recoveries == 1
    check(model, expected)


@pytest.mark.slow
def test_rows_that_only_a_lost_worker_may_compute(monkeypatch, restarting_client):
    (dX,) = lazy(X)
    _, other = sorted(restarting_client.run(os.getpid))
    dX = dX.persist(workers=[other], allow_other_workers=False)
    distributed.wait(dX)
    Fault(monkeypatch, killing(restarting_client, [1]), after=1, kind="summary")
    with (
        dask.config.set({"pairstep.timeout": "3s"}),
        pytest.raises(RuntimeError, match=r"rows \d+ to \d+, which worker .* waits for: no worker"),
    ):
        pairstep.dask.SVC(**PARAMETERS).fit(dX, Y)


def test_an_old_dask_is_refused():
    script = """
        import distributed
        distributed.__version__ = "2023.5.1"
        try:
            import pairstep.dask
        except ImportError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert "distributed 2025.1 or newer, got 2023.5.1" in done.stdout
