"""Parts of an experiment run once, in parallel, and continue after an interruption."""

import os
from pathlib import Path

import joblib
import numpy as np
import pytest

from pairstep.paper.parts import part, run

BACKENDS = ["sequential", "threading", "loky", "multiprocessing"]


def measure(k, log):
    with open(log, "a") as file:
        file.write(f"{k}\n")
    if Path(log).with_suffix(".stop").exists() and k == 2:
        raise KeyboardInterrupt
    return {"square": np.array(k**2), "worker": np.array(os.getpid())}


def numbers(log):
    return [int(line) for line in log.read_text().split()]


def squares(results):
    return [int(measured["square"]) for measured in results.values()]


def test_repetitions_are_measured_once(tmp_path):
    log = tmp_path / "log"
    seen = []
    with joblib.parallel_config(backend="sequential"):
        parts = [part(measure, k=k, log=str(log)) for k in (0, 1, 1, 0)]
        results = run(parts, tmp_path / "parts", seen.append)
    assert numbers(log) == [0, 1]
    assert squares(results) == [0, 1]
    assert len(seen) == 2


def test_an_interrupted_run_continues(tmp_path):
    log = tmp_path / "log"
    log.with_suffix(".stop").touch()
    parts = [part(measure, k=k, log=str(log)) for k in range(5)]
    with joblib.parallel_config(backend="sequential"):
        with pytest.raises(KeyboardInterrupt):
            run(parts, tmp_path / "parts")
        assert numbers(log) == [0, 1, 2]
        assert len(list((tmp_path / "parts").iterdir())) == 2
        log.with_suffix(".stop").unlink()
        log.unlink()
        assert squares(run(parts, tmp_path / "parts")) == [0, 1, 4, 9, 16]
    assert numbers(log) == [2, 3, 4]


def test_parameters_and_code_identify_a_part(tmp_path):
    one, two = part(measure, k=1, log="a"), part(measure, log="a", k=1)
    assert one == two
    assert one.key == two.key
    assert one.key != part(measure, k=2, log="a").key
    assert one.key != part(numbers, k=1, log="a").key


@pytest.mark.parametrize("backend", BACKENDS)
def test_any_joblib_backend(tmp_path, backend):
    parts = [part(np_square, k=k) for k in range(4)]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        results = run(parts, tmp_path)
    assert squares(results) == [0, 1, 4, 9]


def np_square(k):
    return {"square": np.array(k**2)}


def test_parts_that_must_run_alone_run_in_this_process(tmp_path):
    log = tmp_path / "log"
    alone = part(measure, alone=True, k=1, log=str(log))
    assert int(run([alone], tmp_path / "parts")[alone]["worker"]) == os.getpid()
