"""Threads that fail, cannot be started, are lost by a fork or outlive the interpreter."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from pairstep.kept import kept

pytestmark = pytest.mark.faults
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="uses limits of Linux")


def run(script, timeout=120, **arguments):
    """Run a script that must exit with 0, and return the lines it printed."""
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script) % arguments],
        env=env, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr[-1000:])
    return done.stdout.strip().splitlines()


# ------------------------------------------------------------------ memory

# The solves need much memory, so the little memory that a thread needs is still available.
MEMORY = """
    import resource
    import numpy as np, pairstep
    from pairstep import threads
    from pairstep.svm import SVC
    threads.available = lambda: 3
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 30)), rng.integers(0, 2, 3000)
    A, B = rng.normal(size=(50, 2500)), rng.normal(size=(50, 200))
    def work():
        %(work)s
    said = set()
    for megabytes in (24, 64, 256):  # first steps in float32 store 36 MB
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        try:
            work()
            said.add("done")
        except MemoryError:
            said.add("MemoryError")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    work()
    print(*sorted(said))
"""


@pytest.mark.unsanitized
@linux_only
@pytest.mark.parametrize(
    "work",
    [
        "SVC(C=10.0, cache_size=500, max_iter=3000).fit(X, y)",
        "pairstep.simplex_lstsq(A, B, time_limit=1)",
    ],
    ids=["SVC.fit", "batch"],
)
def test_memory_that_runs_out_is_a_memory_error(work):
    (said,) = run(MEMORY, work=work)
    assert set(said.split()) <= {"MemoryError", "done"}
    assert "MemoryError" in said


# ------------------------------------------------------------------ threads that cannot be started

FEW = """
    import os, resource
    import numpy as np, pairstep
    from pairstep import threads
    from pairstep.svm import SVC
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 4, 300)
    B = rng.normal(size=(300, 500))
    F, D = rng.normal(size=(30, 600)), 0.1 + rng.random(600)
    def work():
        model = SVC().fit(X, y)
        return [
            model.dual_coef_, model.decision_function(X), pairstep.simplex_lstsq(X, B).x,
            pairstep.solve_qp((F, D)).x,
        ]
    threads.available = lambda: 8  # as on a computer with 8 CPUs
    expected = [part.tobytes() for part in work()]
    if os.getuid() == 0:  # limits do not apply to root
        os.setgid(65534)
        os.setuid(%(uid)d)
    for extra in (3, 1, 0):
        running = len(os.listdir("/proc/self/task"))
        resource.setrlimit(resource.RLIMIT_NPROC, (running + extra,) * 2)
        print([part.tobytes() for part in work()] == expected)
"""


@linux_only
def test_fewer_threads_than_requested_give_the_same_result():
    assert run(FEW, uid=61000 + os.getpid() % 4000) == ["True"] * 3


# ------------------------------------------------------------------ fork and exit

FORKS = """
    import os, signal, threading, warnings
    import numpy as np, pairstep
    from pairstep.svm import SVC
    warnings.simplefilter("ignore")  # Python's own warning of forks among threads
    rng = np.random.default_rng(0)
    F, X, y = rng.normal(size=(70, 70)), rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
    Q, B, over = F.T @ F, rng.normal(size=(70, 50)), threading.Event()
    def work():
        return [
            pairstep.solve_qp(Q).x.tobytes(), pairstep.simplex_lstsq(F, B).x.tobytes(),
            SVC().fit(X, y).dual_coef_.tobytes(),
        ]
    expected = work()
    def keep_busy():
        while not over.is_set():
            work()
    workers = [threading.Thread(target=keep_busy) for _ in range(3)]
    for worker in workers:
        worker.start()
    codes = set()
    for _ in range(%(count)d):
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(0 if work() == expected else 1)
        codes.add(os.waitpid(child, 0)[1])
    over.set()
    for worker in workers:
        worker.join()
    print(codes)
"""


@pytest.mark.unsanitized
@pytest.mark.xdist_group("fork")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_children_forked_while_threads_solve_do_not_hang():
    assert run(FORKS, count=20) == ["{0}"]


def test_cached_properties_of_two_objects_do_not_wait_for_each_other():
    begun, finished = threading.Event(), threading.Event()

    class Slow:
        @kept
        def value(self):
            begun.set()
            return finished.wait(60)

    objects = Slow(), Slow()
    workers = [threading.Thread(target=lambda slow: slow.value, args=(one,)) for one in objects]
    began = []
    for worker in workers:
        begun.clear()
        worker.start()
        began.append(begun.wait(20))
    finished.set()
    for worker in workers:
        worker.join()
    assert began == [True, True]
    assert [one.value for one in objects] == [True, True]


EXIT = """
    import threading, time
    import numpy as np, pairstep
    from pairstep.svm import SVC
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, 2, 2000)
    F = rng.normal(size=(300, 300))
    Q = F.T @ F
    wide, b = rng.normal(size=(30, 1100)), rng.normal(size=(300, 200))
    model = SVC().fit(X[:500], y[:500])
    class Slow:
        def __call__(self, progress):
            time.sleep(0)
    def endless(work):
        while True:
            work()
    for work in (%(works)s):
        for _ in range(2):
            threading.Thread(target=endless, args=(work,), daemon=True).start()
    time.sleep(0.4)
"""


@pytest.mark.parametrize(
    "works",
    [
        [
            "pairstep.solve_qp(Q, lower=-1)",
            "pairstep.solve_qp((wide, 0.1), callback=Slow())",
            "pairstep.simplex_lstsq(F, b, lower=-1)",
        ],
        ["SVC(C=100).fit(X, y)", "model.decision_function(X)"],
    ],
    ids=["solve", "svm"],
)
def test_the_interpreter_exits_while_daemon_threads_solve(works):
    assert run(EXIT, works=", ".join(f"lambda: {work}" for work in works)) == []
