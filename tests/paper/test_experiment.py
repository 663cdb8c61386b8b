"""Parts of an experiment run once, in parallel, and continue after an interruption."""

import os
import shutil
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("threadpoolctl")

import pairstep
from pairstep.paper import experiment
from pairstep.paper.experiment import Experiment, Scale, fingerprint, part, run


def measure(k, log):
    with open(log, "a") as file:
        file.write(f"{k}\n")
    if Path(log).with_suffix(".stop").exists() and k == 2:
        raise KeyboardInterrupt
    return {"square": np.array(k**2), "worker": np.array(os.getpid())}


def np_square(k):
    return {"square": np.array(k**2)}


def numbers(log):
    return [int(line) for line in log.read_text().split()]


def squares(results):
    return [int(measured["square"]) for measured in results.values()]


def test_repetitions_are_measured_once_and_kept(tmp_path):
    log = tmp_path / "log"
    with joblib.parallel_config(backend="sequential"):
        parts = [part(measure, k=k, log=str(log)) for k in (0, 1, 1, 0)]
        assert squares(run(parts, tmp_path / "kept")) == [0, 1]
        assert squares(run(parts, tmp_path / "kept")) == [0, 1]
    assert numbers(log) == [0, 1]


def test_an_interrupted_run_continues(tmp_path):
    log = tmp_path / "log"
    log.with_suffix(".stop").touch()
    parts = [part(measure, k=k, log=str(log)) for k in range(5)]
    with joblib.parallel_config(backend="sequential"):
        with pytest.raises(KeyboardInterrupt):
            run(parts, tmp_path / "kept")
        assert numbers(log) == [0, 1, 2]
        log.with_suffix(".stop").unlink()
        log.unlink()
        assert squares(run(parts, tmp_path / "kept")) == [0, 1, 4, 9, 16]
    assert numbers(log) == [2, 3, 4]


def test_a_changed_source_or_compiled_module_changes_the_key(tmp_path):
    """Every Python source of the package counts, and the compiled module."""
    source = Path(pairstep.__file__).parent
    package, core = tmp_path / "pairstep", tmp_path / "core.so"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    core.write_bytes(b"compiled")
    seen = {fingerprint(package, str(core))}
    for file in ("solve/__init__.py", "paper/theory.py", "paper/bounded.py"):
        with (package / file).open("a") as changed:
            changed.write("\n# changed\n")
        seen.add(fingerprint(package, str(core)))
    (package / "paper/added.py").touch()
    seen.add(fingerprint(package, str(core)))
    core.write_bytes(b"compiled again")
    seen.add(fingerprint(package, str(core)))
    assert len(seen) == 6
    assert fingerprint() == fingerprint(source)


def test_other_code_measures_again(tmp_path, monkeypatch):
    log = tmp_path / "log"
    with joblib.parallel_config(backend="sequential"):
        for code in ("old", "new", "new", "old"):
            monkeypatch.setattr(experiment, "fingerprint", lambda code=code: code)
            run([part(measure, k=3, log=str(log))], tmp_path / "kept")
    assert numbers(log) == [3, 3]


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_any_joblib_backend(tmp_path, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert squares(run([part(np_square, k=k) for k in range(4)], tmp_path)) == [0, 1, 4, 9]


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_shown_on_a_terminal(tmp_path, terminal, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    with joblib.parallel_config(backend="sequential"):
        run([part(np_square, k=k) for k in range(4)], tmp_path)
    output = capsys.readouterr()
    assert output.out == ""
    assert ("4 out of" in output.err) == terminal
    assert bool(output.err) == terminal


def test_parts_that_must_run_alone_run_in_this_process(tmp_path):
    alone = part(measure, alone=True, k=1, log=str(tmp_path / "log"))
    assert int(run([alone], tmp_path / "kept")[alone]["worker"]) == os.getpid()


@pytest.mark.faults
def test_measurements_that_cannot_be_kept_are_an_error(tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("joblib._store_backends.numpy_pickle.dump", full)
    with (
        joblib.parallel_config(backend="sequential"),
        pytest.raises(Warning, match="No space left on device"),
    ):
        run([part(np_square, k=1)], tmp_path)


def table(results, columns, scale, **options):
    """Return the table of an experiment whose parts are those of the results."""
    nothing = dict.fromkeys(("name", "title", "caption", "claims", "panels"))
    e = Experiment(**nothing, parts=lambda scale: list(results), columns=columns, **options)
    return e.table(results, scale)


@pytest.mark.parametrize("n", [1, 2, 3, 100, 10**6])
def test_a_table_by_iteration_keeps_both_ends_and_the_requested_rows(n):
    results = {part(np_square, k=7): {"f": np.arange(n)}}
    found = table(results, ["f"], Scale(), also=lambda run: np.array([n // 2]))
    assert found.f.tolist() == found.iteration.tolist()
    assert {0, n // 2, n - 1} <= set(found.iteration)
    assert len(found) <= 401
    assert found.iteration.is_monotonic_increasing
    assert set(found.k) == {7}


def test_a_table_by_iteration_has_the_first_seeds_and_the_first_function():
    results = {part(np_square, seed=seed): {"f": np.zeros(3)} for seed in range(6)}
    results[part(measure, seed=0)] = {"other": np.zeros(3)}
    found = table(results, ["f"], Scale(seeds=tuple(range(6))))
    assert found.seed.tolist() == [seed for seed in range(4) for _ in range(3)]


def test_a_table_of_single_measurements_has_a_row_for_each():
    parts = [part(np_square, k=k) for k in (2, 3)]
    found = table({p: np_square(**dict(p.parameters)) for p in parts}, ["square"], Scale())
    pd.testing.assert_frame_equal(found, pd.DataFrame({"k": [2, 3], "square": [4, 9]}))


def test_nothing_measured_is_an_empty_table():
    assert table({}, ["square"], Scale()).empty
