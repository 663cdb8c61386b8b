"""Concurrent solves do not affect each other, the BLAS settings, or forked children."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from pairstep import simplex_lstsq, solve_qp


def test_bits_do_not_depend_on_solves_in_other_threads():
    rng = np.random.default_rng(0)
    problems = [
        (rng.normal(size=(160 + 5 * k, 180 + 5 * k)), rng.normal(size=160 + 5 * k))
        for k in range(16)
    ]
    alone = [simplex_lstsq(A, b).x for A, b in problems]
    for _ in range(3):
        found = [None] * 16

        def work(first, found=found):
            for k in range(first, 16, 8):
                found[k] = simplex_lstsq(*problems[k]).x

        threads = [threading.Thread(target=work, args=(t,)) for t in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for x, expected in zip(found, alone, strict=True):
            np.testing.assert_array_equal(x, expected)


def test_blas_settings_are_not_changed():
    threadpoolctl = pytest.importorskip("threadpoolctl")  # comes with scikit-learn

    def setting():
        return [(p["filepath"], p["num_threads"]) for p in threadpoolctl.threadpool_info()]

    before, seen = setting(), []

    def look(_):
        seen.append(setting())
        return True

    F = np.random.default_rng(1).normal(size=(90, 120))
    solve_qp(F.T @ F, callback=look)
    assert seen == [before]
    assert setting() == before


# A slow limit on BLAS ensures that some child is forked while the limit is being set.
FORKS = """
    import os, signal, threading, time, warnings
    import numpy as np, pairstep, threadpoolctl

    set_limit = threadpoolctl.ThreadpoolController.limit

    def slow_limit(self, **limits):
        time.sleep(0.01)
        return set_limit(self, **limits)

    threadpoolctl.ThreadpoolController.limit = slow_limit
    warnings.simplefilter("ignore")  # Python's own warning of forks among threads
    F = np.random.default_rng(0).normal(size=(70, 70))
    Q, over = F.T @ F, threading.Event()
    expected = pairstep.solve_qp(Q).x

    def work():
        while not over.is_set():
            pairstep.solve_qp(Q)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    failed = 0
    for _ in range(20):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if (pairstep.solve_qp(Q).x == expected).all() else 1)
        failed = os.waitpid(child, 0)[1]
        if failed:
            break
    over.set()
    for worker in workers:
        worker.join()
    print(failed)
"""


@pytest.mark.unsanitized
@pytest.mark.xdist_group("fork")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_children_forked_during_solves_do_not_hang():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKS)],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "0"
