"""The `pairstep` command: output, error messages and exit codes.

Most tests call `main` in this process, because a new one takes a second or two to import
scikit-learn. Tests of pipes, terminals and signals start real processes.
"""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file, load_iris

from pairstep import __version__, cli, show_versions, solve_qp, svm
from pairstep.figures import Figure

X, Y = load_iris(return_X_y=True)
COMMAND = [sys.executable, "-W", "error", "-m", "pairstep"]


def run(*arguments, given=b"", code=0, **options):
    """Run the command; returns what it prints to stdout and stderr."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], input=given, capture_output=True, timeout=120, **options
    )
    assert done.returncode == code, (done.stdout[-300:], done.stderr.decode())
    return done.stdout, done.stderr.decode()


@contextlib.contextmanager
def standard_input(given):
    """Let bytes come from standard input, as a file."""
    with tempfile.TemporaryFile("w+") as file, pytest.MonkeyPatch.context() as monkeypatch:
        file.buffer.write(given)
        file.buffer.seek(0)
        monkeypatch.setattr(sys, "stdin", file)
        yield


def called(capfdbinary, *arguments, given=b"", code=0):
    """Run the command in this process, where that makes no difference."""
    try:
        with standard_input(given):
            ended = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:
        ended = stop.code
    found = capfdbinary.readouterr()
    assert ended == code, found.err.decode()
    return found.out, found.err.decode()


def mistake(capfdbinary, *arguments):
    """Run the command with an error, and return the one line that it prints."""
    out, err = called(capfdbinary, *arguments, code=2)
    assert out == b""
    (line,) = err.splitlines()
    assert line.startswith("pairstep: ")
    return line


@pytest.fixture
def data(tmp_path):
    """A folder with samples in all formats."""
    dump_svmlight_file(X, Y, str(tmp_path / "iris.svm"), zero_based=False)
    content = (tmp_path / "iris.svm").read_bytes()
    for name, library in (("gz", gzip), ("bz2", bz2), ("xz", lzma)):
        (tmp_path / f"iris.{name}").write_bytes(library.compress(content))
    table = pandas.DataFrame(X, columns=["a", "b", "ü", "d"])
    table["kind"] = np.array(["setosa", "versicolor", "virginica"])[Y]
    table.to_csv(tmp_path / "iris.csv", index=False)
    table.to_csv(tmp_path / "iris.tsv", index=False, sep="\t")
    table.to_csv(tmp_path / "bare.csv", index=False, header=False)
    table.to_parquet(tmp_path / "iris.parquet")
    np.savez(tmp_path / "iris.npz", X=X, y=Y)
    np.savez_compressed(tmp_path / "packed.npz", X=X.astype(np.float32), y=Y)
    sparse = scipy.sparse.csr_matrix(X)
    np.savez(
        tmp_path / "sparse.npz", data=sparse.data, indices=sparse.indices, indptr=sparse.indptr,
        shape=sparse.shape, y=Y,
    )  # fmt: skip
    return tmp_path


def test_version(capfdbinary):
    out, _ = called(capfdbinary, "--version")
    assert out.decode() == f"pairstep {__version__}\n"
    assert run("--version")[0] == out


def test_no_command_shows_help(capfdbinary):
    out, _ = called(capfdbinary, code=2)
    assert b"reproduce" in out


def test_info_prints_versions_for_bug_reports(capfdbinary):
    out, _ = called(capfdbinary, "info")
    facts = dict(line.split(maxsplit=1) for line in out.decode().splitlines())
    assert facts["pairstep"] == __version__
    assert facts["numpy"] == np.__version__
    assert facts["threads"]
    assert {"BLAS", "GPU", "instruction"} <= facts.keys()
    show_versions()
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == out


@pytest.mark.parametrize("command", [c.__name__.rpartition(".")[2] for c in cli.COMMANDS])
def test_help_has_examples(command, capfdbinary):
    out, _ = called(capfdbinary, command, "--help")
    assert re.search(rf"examples?:\n  .*pairstep {command}", out.decode())


def test_help_lists_all_figures(capfdbinary):
    pytest.importorskip("matplotlib")
    from pairstep.paper.reproduce import EXPERIMENTS

    assert list(EXPERIMENTS) == list(Figure)
    out, _ = called(capfdbinary, "reproduce", "--help")
    assert all(name in out.decode() for name in EXPERIMENTS)


# train and predict


NAMES = [
    "iris.svm", "iris.gz", "iris.bz2", "iris.xz", "iris.csv", "iris.tsv", "bare.csv",
    "iris.parquet", "iris.npz", "packed.npz", "sparse.npz",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_all_formats(name, data, capfdbinary):
    model, out = data / "model", data / "out"
    said, _ = called(capfdbinary, "train", data / name, model, "--c", 10, "--gamma", 0.1)
    assert re.search(r"^\d+ support vectors of 150 samples, KKT violation", said.decode())
    said, _ = called(capfdbinary, "predict", data / name, model, out)
    assert float(said.split()[1]) > 0.97
    assert len(out.read_text().splitlines()) == 150
    model = svm.load(model)
    assert (model.C, model.gamma) == (10.0, 0.1)
    if name.startswith("iris."):
        named = name.endswith(("csv", "tsv", "parquet"))
        assert model.classes_.tolist() == (
            ["setosa", "versicolor", "virginica"] if named else [0, 1, 2]
        )
        assert hasattr(model, "feature_names_in_") == named


@pytest.mark.parametrize(
    ("kind", "Estimator", "options"),
    [
        ("svc", svm.SVC, {"c": 2.0, "kernel": "poly", "degree": 2, "coef0": 1.0}),
        ("nusvc", svm.NuSVC, {"nu": 0.3}),
        ("svr", svm.SVR, {"epsilon": 0.2, "c": 3.0}),
        ("nusvr", svm.NuSVR, {"nu": 0.3, "tol": 1e-4}),
        ("oneclass", svm.OneClassSVM, {"nu": 0.1, "kernel": "sigmoid", "gamma": "auto"}),
    ],
)
@pytest.mark.parametrize("libsvm", [[], ["--libsvm"]])
def test_all_types(kind, Estimator, options, libsvm, data, capfdbinary):
    given = [text for name, value in options.items() for text in (f"--{name}", value)]
    arguments = ["train", data / "iris.npz", data / "model", "--type", kind, *given, *libsvm]
    called(capfdbinary, *arguments)
    called(capfdbinary, "predict", data / "iris.npz", data / "model", data / "out")
    if "c" in options:
        options = {**options, "C": options["c"]}
        del options["c"]
    expected = Estimator(**options).fit(X, Y).predict(X)
    np.testing.assert_allclose(np.loadtxt(data / "out"), expected, atol=1e-8)


def test_cross_validation_and_probabilities(data, capfdbinary):
    said, _ = called(
        capfdbinary, "train", data / "iris.csv", data / "model", "--cv", 5, "--probability"
    )
    first, _ = said.decode().splitlines()
    assert re.fullmatch(r"5-fold cross-validation: accuracy 0\.9\d+ \(\d+ of 150\)", first)
    out, err = called(capfdbinary, "predict", data / "iris.csv", data / "model", "--probability")
    table = pandas.read_csv(io.BytesIO(out))
    assert table.columns.tolist() == ["class", "setosa", "versicolor", "virginica"]
    np.testing.assert_allclose(table.iloc[:, 1:].sum(axis=1), 1.0)
    assert err.startswith("accuracy 0.9")


def test_libsvm_options(data, capfdbinary):
    """The options of svm-train and the long options give the same model."""
    short = "-s 0 -t 1 -d 2 -r 1 -c 2 -g 0.5 -e 0.01 -m 100 -h 0 -b 0 -w0 2 -w2 0.5"
    out, _ = called(
        capfdbinary, "train", *short.split(), "-v", 3, data / "iris.svm", data / "short"
    )
    assert out.startswith(b"3-fold cross-validation: accuracy")
    long = (
        "--type svc --kernel poly --degree 2 --coef0 1 --c 2 --gamma 0.5 --tol 0.01 --cache-size "
        "100 --class-weight 0=2 --class-weight 2=0.5"
    )
    called(capfdbinary, "train", data / "iris.svm", data / "long", *long.split())
    models = [svm.load(data / name) for name in ("short", "long")]
    assert models[0].get_params() == models[1].get_params()
    assert models[0].class_weight == {0: 2.0, 2: 0.5}
    np.testing.assert_array_equal(models[0].intercept_, models[1].intercept_)


def test_libsvm_types_and_probabilities(data, capfdbinary):
    called(capfdbinary, "train", "-s", 3, "-p", 0.3, data / "iris.svm", data / "svr")
    assert svm.load(data / "svr").epsilon == 0.3
    called(capfdbinary, "train", "-s", 2, "-n", 0.2, data / "iris.svm", data / "one")
    assert svm.load(data / "one").nu == 0.2
    called(capfdbinary, "train", "-b", 1, data / "iris.svm", data / "likely")
    assert hasattr(svm.load(data / "likely"), "predict_proba")
    out, _ = called(capfdbinary, "predict", "-b", 1, data / "iris.svm", data / "likely")
    assert out.startswith(b"class,0,1,2")
    called(capfdbinary, "tune", "-v", 2, data / "iris.svm", data / "m", "-c", 1, 10, "-g", 0.5)
    assert svm.load(data / "m").gamma == 0.5
    out, _ = called(capfdbinary, "train", "-h")
    assert out.startswith(b"usage")


def test_class_weights(data, capfdbinary):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(200, 2)), np.where(rng.random(200) < 0.2, 1, -1)
    np.savez(data / "two.npz", X=rows, y=labels)
    called(capfdbinary, "train", data / "two.npz", data / "m", "-w1", 4, "-w-1", 0.5)
    expected = svm.SVC(class_weight={1: 4.0, -1: 0.5}).fit(rows, labels)
    np.testing.assert_array_equal(svm.load(data / "m").dual_coef_, expected.dual_coef_)
    called(capfdbinary, "train", data / "two.npz", data / "m", "--class-weight", "balanced")
    assert svm.load(data / "m").class_weight == "balanced"
    line = mistake(capfdbinary, "train", data / "iris.csv", data / "m", "--class-weight", "rose=2")
    assert line.endswith("there is no class rose, only setosa, versicolor, virginica")
    for weight in ("setosa", "setosa=-1", "setosa=x"):
        given = "--class-weight", weight
        assert f"--class-weight: invalid class_weight value: '{weight}'" in mistake(
            capfdbinary, "train", data / "iris.csv", data / "m", *given
        )
    called(capfdbinary, "tune", data / "two.npz", data / "m", *TUNE, "-w1", 3)
    assert svm.load(data / "m").class_weight == {1: 3.0}


@pytest.mark.parametrize("name", ["iris.csv", "iris.svm", "iris.npz"])
@pytest.mark.parametrize("command", ["train", "tune"])
def test_scaling_is_kept_in_the_model(name, command, data, capfdbinary):
    arguments = TUNE if command == "tune" else ["--cv", 3]
    called(capfdbinary, command, data / name, data / "model", "--scale", *arguments)
    model = svm.load(data / "model")
    np.testing.assert_allclose(model["scale"].scale_, X.std(axis=0))
    out, _ = called(capfdbinary, "predict", data / name, data / "model", data / "out")
    assert float(out.split()[1]) > 0.95
    new = scipy.sparse.csr_array(X) if name == "iris.svm" else X
    predicted = model.predict(pandas.DataFrame(X, columns=list("abüd")) if "csv" in name else new)
    assert (data / "out").read_text().split() == list(map(str, predicted))


def test_scaling_has_limits(data, capfdbinary):
    train = "train", data / "iris.svm", data / "model", "--scale"
    assert "svm-scale" in mistake(capfdbinary, *train, "--libsvm")
    assert "precomputed" in mistake(capfdbinary, *train, "--kernel", "precomputed")


def precomputed(path, K, y, serials):
    """Write a kernel matrix as LIBSVM reads it."""
    with path.open("w") as file:
        for label, serial, row in zip(y, serials, K, strict=True):
            entries = " ".join(f"{j}:{value!r}" for j, value in enumerate(row.tolist(), 1))
            file.write(f"{label} 0:{serial} {entries}\n")


@pytest.mark.parametrize("libsvm", [[], ["--libsvm"]])
def test_precomputed_kernels_of_libsvm(libsvm, data, capfdbinary):
    K = X @ X.T
    precomputed(data / "kernel", K, Y, range(1, 151))
    precomputed(data / "test", K[::3], Y[::3], range(1, 51))
    called(capfdbinary, "train", "-t", 4, data / "kernel", data / "model", *libsvm)
    out, _ = called(capfdbinary, "predict", data / "test", data / "model", data / "out")
    assert out.startswith(b"accuracy 1.0")
    expected = svm.SVC(kernel="precomputed").fit(K, Y).predict(K[::3])
    assert (data / "out").read_text().split() == list(map(str, expected))
    precomputed(data / "kernel", K, Y, [2, 1, *range(3, 151)])
    line = mistake(capfdbinary, "train", "-t", 4, data / "kernel", data / "model")
    assert "sample 1 has 0:2" in line
    line = mistake(capfdbinary, "train", data / "kernel", data / "model")
    assert "--kernel precomputed" in line


def test_labels_in_the_first_column(data, capfdbinary):
    table = pandas.read_csv(data / "iris.csv")
    table[["kind", "a", "b", "ü", "d"]].to_csv(data / "first.csv", index=False)
    table[["kind", "a", "b", "ü", "d"]].to_csv(data / "bare.csv", index=False, header=False)
    numbered = pandas.DataFrame({"label": Y, **{f"x{k}": X[:, k] for k in range(4)}})
    numbered.to_csv(data / "numbered.csv", index=False)
    for name in ("first.csv", "bare.csv", "numbered.csv"):
        called(capfdbinary, "train", data / name, data / "model")
        out, _ = called(capfdbinary, "predict", data / name, data / "model", data / "out")
        assert out.startswith(b"accuracy 0.9")
    numbered.to_csv(data / "numbered.csv", index=False, header=False)
    line = mistake(capfdbinary, "train", data / "numbered.csv", data / "model")
    assert "continuous" in line
    assert "--label" in line
    numbered["x3"] = 0
    numbered.to_csv(data / "numbered.csv", index=False, header=False)
    line = mistake(capfdbinary, "train", data / "numbered.csv", data / "model")
    assert "the number of classes is 1; they were taken from column 5" in line


def test_columns_are_found_by_their_names(data, capfdbinary):
    called(capfdbinary, "train", data / "iris.csv", data / "model")
    table = pandas.read_csv(data / "iris.csv")
    table[["kind", "d", "ü", "b", "a"]].to_csv(data / "turned.csv", index=False)
    table[["d", "ü", "b", "a"]].to_csv(data / "unlabeled.csv", index=False)
    _, err = called(capfdbinary, "predict", data / "turned.csv", data / "model", "--label", "kind")
    assert err.startswith("accuracy 0.9")
    _, err = called(capfdbinary, "predict", data / "unlabeled.csv", data / "model")
    assert err == ""
    called(capfdbinary, "train", data / "turned.csv", data / "first", "--label", 1)
    assert svm.load(data / "first").feature_names_in_.tolist() == ["d", "ü", "b", "a"]


def test_train_and_predict_through_pipes(data, capfdbinary):
    model, err = run("train", "-", "-", given=(data / "iris.svm").read_bytes())
    assert model.startswith(b"PK")
    assert "support vectors" in err
    (data / "model").write_bytes(model)
    out, err = run("predict", "-", data / "model", given=(data / "iris.svm").read_bytes())
    assert len(out.splitlines()) == 150
    assert re.fullmatch(r"accuracy 0\.9\d+ \(\d+ of 150\)\n", err)
    text, _ = called(capfdbinary, "train", data / "iris.svm", "-", "--libsvm")
    assert text.startswith(b"svm_type c_svc")
    _, err = called(capfdbinary, "predict", data / "iris.svm", "-", data / "out", given=text)
    assert err == ""


@pytest.mark.faults
def test_a_closed_pipe_is_no_error(data):
    called_model = data / "model"
    svm.save(svm.SVC().fit(X, Y), called_model)
    dump_svmlight_file(np.tile(X, (300, 1)), np.tile(Y, 300), str(data / "many"), zero_based=False)
    shell = f"{' '.join(COMMAND)} predict {data / 'many'} {called_model} | head -n 1"
    done = subprocess.run(["bash", "-c", f"{shell}; exit ${{PIPESTATUS[0]}}"], capture_output=True)
    assert done.stdout == b"0\n"
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


@pytest.mark.faults
def test_a_model_is_written_if_the_reader_of_the_output_has_exited(data):
    shell = f"{' '.join(COMMAND)} train {data / 'iris.svm'} {data / 'model'} --cv 3 | true"
    done = subprocess.run(["bash", "-c", f"{shell}; exit ${{PIPESTATUS[0]}}"], capture_output=True)
    assert done.returncode == 1
    assert done.stderr == b""
    assert svm.load(data / "model").n_features_in_ == 4


def terminal(*arguments):
    """The output of a run in a terminal, and its exit code."""
    pid, screen = pty.fork()
    if pid == 0:
        os.execv(COMMAND[0], [*COMMAND, *map(str, arguments)])
    seen = b""
    with contextlib.suppress(OSError):  # the terminal closes with the process
        while piece := os.read(screen, 10_000):
            seen += piece
    os.close(screen)
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_progress_on_a_terminal_and_none_in_a_pipe(data, capfdbinary):
    arguments = "train", data / "iris.svm", data / "model"
    seen, code = terminal(*arguments)
    assert code == 0
    assert "solved" in seen
    assert "\r\x1b[K" in seen
    out, err = called(capfdbinary, *arguments)
    assert err == ""
    assert len(out.splitlines()) == 1


def test_a_model_is_not_written_to_a_terminal(data):
    seen, code = terminal("train", data / "iris.svm", "-")
    assert code == 2
    assert "will not write a model to a terminal" in seen


def test_unusual_characters_in_paths(data, capfdbinary):
    odd = data / "mödel ✓ 'quoted'\n"
    called(capfdbinary, "train", data / "iris.svm", odd)
    called(capfdbinary, "predict", data / "iris.svm", odd, data / "-- out")
    assert len((data / "-- out").read_text().splitlines()) == 150


@pytest.mark.faults
@pytest.mark.parametrize("libsvm", [[], ["--libsvm"]])
def test_a_full_disk_leaves_the_old_model(data, libsvm, capfdbinary):
    resource = pytest.importorskip("resource")
    called(capfdbinary, "train", data / "iris.svm", data / "model", *libsvm)
    before = (data / "model").read_bytes()
    files = {p.name for p in data.iterdir()}
    _, err = run(
        "train", data / "iris.svm", data / "model", "--c", 5, *libsvm, code=2,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900)),
    )  # fmt: skip
    (line,) = err.splitlines()
    assert "too large" in line
    assert (data / "model").read_bytes() == before
    assert {p.name for p in data.iterdir()} == files


@pytest.mark.faults
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interrupt_ends_a_fit_with_one_line(tmp_path):
    rng = np.random.default_rng(0)
    hard = io.BytesIO()
    np.savez(hard, X=rng.normal(size=(20000, 20)), y=rng.integers(0, 2, 20000))
    process = subprocess.Popen(
        [*COMMAND, "train", "-", str(tmp_path / "model"), "--c", "1000"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdin.write(hard.getvalue())  # returns when almost all of it has been read
    process.stdin.close()
    process.stdin = None
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.strip() == b"Interrupted."
    assert not list(tmp_path.iterdir())


# Errors


# The content of a file, and what the error says. A few errors are those of the estimator, which
# does not know the name of the file.
FILES = {
    "empty.svm": (b"", "empty.svm: the file is empty"),
    "comment.svm": (b"# nothing\n", "comment.svm: the file is empty"),
    "one.svm": (b"1 1:2\n1 1:3\n", "number of classes"),
    "letter.svm": (b"1 1:2\n2 1:x\n", "letter.svm: line 2"),
    "zero.svm": (b"1 0:2\n2 0:3\n", "zero.svm: line 1: Invalid index 0"),
    "huge.svm": (b"1 1:2\n2 99999999999999999999:3\n", "huge.svm: line 2: an index is larger"),
    "wide.svm": (b"1 1:2\n2 2147483648:3\n", "wide.svm: line 2: an index is larger"),
    "negative.svm": (b"1 1:2\n2 -5:3\n", "negative.svm: line 2"),
    "nan.svm": (b"1 1:2\n2 1:nan\n", "NaN"),
    "label.svm": (b"a 1:2\nb 1:3\n", "label.svm: line 1"),
    "infinite.svm": (b"1e400 1:2\n1 1:3\n", "infinity"),
    "damaged.gz": (gzip.compress(b"1 1:2\n" * 1000)[:-20], "damaged.gz: "),
    "broken.gz": (b"x" * 50, "broken.gz: Not a gzipped file"),
    "broken.xz": (b"\xfd7zXZ\x00" + b"x" * 50, "broken.xz: "),
    "broken.bz2": (b"BZh9" + b"x" * 50, "broken.bz2: "),
    "broken.npz": (b"PK\x03\x04" + b"x" * 50, "broken.npz: not an npz file"),
    "broken.parquet": (b"PAR1" + b"x" * 50, "broken.parquet: "),
    "nan.csv": (b"a,b\n1,x\nnan,y\n", "NaN"),
    "word.csv": (b"a,b\n1,x\nhello,y\n", "word.csv: line 3, column a: 'hello' is not a number"),
    "twice.csv": (b"a,a,c\n1,2,x\n1,3,y\n", "twice.csv: two columns have the name 'a'"),
    "header.csv": (b"a,b,c\n", "header.csv: the file has names of columns, but no samples"),
    "alone.csv": (b"a\n1\n2\n", "alone.csv: the table must have at least one column"),
    "long.csv": (b"1,x\n2," + b"y" * 1000 + b"\n", "long.csv: a label has 1000 characters"),
    "binary.csv": (b"\xff\xfe,1\n\x00\xff,2\n", "binary.csv: not a file of samples"),
    "real.csv": (b"1,0.5\n2,0.7\n3,0.1\n", "real.csv: the labels are continuous numbers"),
}


@pytest.mark.parametrize("name", FILES)
def test_malformed_files_are_refused(name, tmp_path, capfdbinary):
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    assert message in mistake(capfdbinary, "train", tmp_path / name, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "absent", "model"], "absent: No such file"),
        (["train", "iris.svm", "absent/model"], "absent/model: No such file"),
        (["train", "iris.svm", "."], "directory"),
        (["train", "iris.svm", "model", "--nu", "0.5"], "--nu is not an option of --type svc"),
        (["train", "iris.svm", "model", "--c", "-1"], "'C'"),
        (["train", "iris.svm", "model", "--c", "nan"], "--c"),
        (["train", "iris.svm", "model", "--c", "many"], "--c"),
        (["train", "iris.svm", "model", "--kernel", "rbg"], "did you mean rbf?"),
        (["train", "iris.svm", "model", "-t", "5"], "--kernel"),
        (["train", "iris.svm", "model", "--type", "nusvm"], "did you mean nusvr?"),
        (["train", "iris.svm", "model", "--gama", "1"], "did you mean --gamma?"),
        (["train", "iris.svm", "model", "-C", "1"], "did you mean -c?"),
        (["train", "iris.svm", "model", "--class_weight", "1=2"], "did you mean --class-weight?"),
        (["train", "iris.svm", "model", "--nothing-of-the-kind"], "unrecognized"),
        (["train", "iris.svm", "model", "-s", "3", "-w1", "2"], "--class-weight is not an option"),
        (["tune", "iris.svm", "model", "-s", "1"], "--type"),
        (["tune", "iris.svm", "model", "-p", "1"], "--epsilon is not an option of --type svc"),
        (["trian", "iris.svm", "model"], "did you mean train?"),
        (["train", "iris.svm", "model", "--cv", "1"], "n_splits"),
        (["train", "iris.csv", "model", "--label", "nobody"], "'nobody'"),
        (["train", "iris.csv", "model", "--type", "svr"], "setosa"),
        (["train", "iris.csv", "model", "--libsvm"], "whole numbers"),
        (["train"], "required"),
        (["predict", "iris.svm", "iris.svm"], "not a LIBSVM model"),
        (["predict", "iris.svm", "iris.npz"], "header.json"),
        (["predict", "iris.svm", "iris.gz"], "not a LIBSVM model"),  # is not decompressed
        (["predict", "-", "-"], "standard input"),
        (["predict", "two.svm", "fitted"], "5 features"),
        (["predict", "iris.svm", "fitted", "--probability"], "--probability"),
        (["predict", "iris.svm", "fitted", "absent/out"], "absent/out"),
        (["solve", "iris.csv"], "first column"),
        (["solve", "iris.npz"], "'X'"),
        (["bogus"], "bogus"),
        (["reproduce", "--seeds", "-1"], "--seeds"),
        (["reproduce", "--seeds", "two"], "--seeds"),
        (["reproduce", "--figure", "figure7"], "figure1"),
    ],
)
def test_bad_arguments_are_explained(arguments, message, data, capfdbinary, monkeypatch):
    monkeypatch.chdir(data)
    svm.save(svm.SVC().fit(X, Y), "fitted")
    (data / "two.svm").write_bytes(b"1 5:1\n")
    assert message in mistake(capfdbinary, *arguments)
    assert not (data / "model").exists()


# solve


RISK = np.array([[0.003, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.02]])
PROBLEM = """name,bonds,stocks,gold,c,upper
bonds,0.003,0.001,0.000,-0.004,0.6
stocks,0.001,0.030,0.002,-0.014,1
gold,0.000,0.002,0.020,-0.006,0.1
"""


def test_solve_a_table(capfdbinary):
    expected = solve_qp(RISK, [-0.004, -0.014, -0.006], upper=[0.6, 1.0, 0.1])
    out, err = called(capfdbinary, "solve", "-", given=PROBLEM.encode())
    table = pandas.read_csv(io.BytesIO(out), index_col=0, dtype=str)  # as text, with all digits
    assert table.index.tolist() == ["bonds", "stocks", "gold"]
    np.testing.assert_array_equal(table["weight"].map(float), expected.x)
    assert err.startswith("optimal: objective")


def test_damaged_problems_are_refused(tmp_path, capfdbinary):
    packed = gzip.compress(PROBLEM.encode())
    for content, message in (
        (packed[:-20], "not a problem in csv or npz format"),
        (gzip.compress(PROBLEM.replace("0.030", "").encode()), "line 3, column stocks: ''"),
        (gzip.compress(PROBLEM.replace("gold", "silver", 1).encode()), "'silver'"),
    ):
        (tmp_path / "problem.csv.gz").write_bytes(content)
        line = mistake(capfdbinary, "solve", tmp_path / "problem.csv.gz")
        assert f"{tmp_path / 'problem.csv.gz'}: " in line
        assert message in line
    (tmp_path / "problem.csv.gz").write_bytes(packed)
    out, _ = called(capfdbinary, "solve", tmp_path / "problem.csv.gz")
    assert out == called(capfdbinary, "solve", "-", given=PROBLEM.encode())[0]


def test_solve_arrays(tmp_path, capfdbinary):
    rng = np.random.default_rng(0)
    F, d = rng.normal(size=(3, 8)), rng.uniform(1, 2, 8)
    np.savez(tmp_path / "a.npz", F=F, d=d, c=-np.ones(8), total=2.0, names=list("abcdefgh"))
    called(capfdbinary, "solve", tmp_path / "a.npz", tmp_path / "x.npz", "--upper", 0.5)
    with np.load(tmp_path / "x.npz") as found:
        assert found["names"].tolist() == list("abcdefgh")
        expected = solve_qp((F, d), -np.ones(8), total=2.0, upper=0.5)
        np.testing.assert_array_equal(found["x"], expected.x)
    np.savez(tmp_path / "b.npz", Q=F.T @ F, total=[0.5, 1.5])
    out, _ = called(capfdbinary, "solve", tmp_path / "b.npz", "--total", 3)
    weights = pandas.read_csv(io.BytesIO(out))
    assert weights["name"].tolist() == list(range(1, 9))
    assert weights["weight"].sum() == pytest.approx(3.0)


def test_solve_tightens_the_bounds_of_the_file(tmp_path, capfdbinary):
    Q, c = np.eye(3), [-1.0, 0.0, 1.0]
    bounds = {"lower": np.array([0.0, 0.2, 0.1]), "upper": np.array([0.6, 1.0, 1.0])}
    np.savez(tmp_path / "a.npz", Q=Q, c=c, **bounds)
    out, _ = called(capfdbinary, "solve", tmp_path / "a.npz", "--upper", 0.8, "--lower", 0.15)
    expected = solve_qp(Q, c, lower=[0.15, 0.2, 0.15], upper=[0.6, 0.8, 0.8])
    np.testing.assert_array_equal(pandas.read_csv(io.BytesIO(out))["weight"], expected.x)
    line = mistake(capfdbinary, "solve", tmp_path / "a.npz", "--lower", 0.7)
    assert "lower[0] = 0.7, upper[0] = 0.6" in line


@pytest.mark.parametrize(
    "arrays",
    [
        {"c": [1.0]}, {"Q": [[1.0]], "F": [[1.0]]}, {"Q": [[1.0]], "d": [1.0]}, {"Q": 1.0},
        {"Q": [[1.0]], "names": ["a", "b"]}, {"Q": [["a"]]}, {"Q": [[np.nan]]},
        {"Q": np.eye(2), "total": 9.0, "upper": [1.0, 1.0]}, {"Q": np.eye(2), "lower": [1.0]},
    ],
)  # fmt: skip
def test_malformed_problems_are_refused(arrays, tmp_path, capfdbinary):
    np.savez(tmp_path / "problem.npz", **{name: np.array(a) for name, a in arrays.items()})
    mistake(capfdbinary, "solve", tmp_path / "problem.npz")


# tune


TUNE = ["--c", "0.1", "1", "10", "--gamma", "0.01", "0.1", "--cv", "3"]


def test_tune(data, capfdbinary):
    said, _ = called(capfdbinary, "tune", data / "iris.csv", data / "model", *TUNE)
    found = re.fullmatch(
        r"best of 6: C (\S+), gamma (\S+); 3-fold accuracy (\S+)\n", said.decode()
    ).groups()
    search = svm.SVCCV(Cs=[0.1, 1, 10], gammas=[0.01, 0.1], cv=3)
    search.fit(X, np.array(["setosa", "versicolor", "virginica"])[Y])
    best = search.best_params_
    assert [float(text) for text in found[:2]] == [best["C"], best["gamma"]]
    assert float(found[2]) == pytest.approx(search.best_score_, abs=1e-4)
    model = svm.load(data / "model")
    assert best["C"] == model.C
    assert model.feature_names_in_.tolist() == ["a", "b", "ü", "d"]
    lines = (data / "model.checkpoint").read_text().splitlines()
    assert len(lines) == 18


def test_tune_regression(data, capfdbinary):
    said, _ = called(
        capfdbinary, "tune", data / "iris.npz", data / "model", "--type", "svr", *TUNE,
        "--epsilon", "0.1", "0.5", "--seed", "0",
    )  # fmt: skip
    assert re.match(r"best of 12: C .*epsilon .*3-fold R2 0\.", said.decode())


def test_quantiles(data, capfdbinary):
    given = "--type", "quantilesvr", "--quantile", "0.1", "0.9"
    said, _ = called(capfdbinary, "train", data / "iris.npz", data / "model", *given, "--cv", "3")
    assert re.match(
        r"3-fold cross-validation: pinball loss .* 0\.\d+ below quantile 0\.9", said.decode()
    )
    said, _ = called(capfdbinary, "predict", data / "iris.npz", data / "model", data / "out")
    expected = svm.QuantileSVR(quantile=[0.1, 0.9]).fit(X, Y)
    table = pandas.read_csv(data / "out")
    assert table.columns.tolist() == ["0.1", "0.9"]
    np.testing.assert_allclose(table, expected.predict(X), atol=1e-8)
    assert f"D2 {expected.score(X, Y):.4f}" in said.decode()


def test_tune_a_quantile(data, capfdbinary):
    said, _ = called(
        capfdbinary, "tune", data / "iris.npz", data / "model", "--type", "svr", *TUNE,
        "--quantile", "0.9", "--seed", "0", "--scale",
    )  # fmt: skip
    assert re.match(r"best of 6: C .*3-fold D2 of the pinball loss 0\.", said.decode())
    said, _ = called(capfdbinary, "predict", data / "iris.npz", data / "model", data / "out")
    assert re.match(r"pinball loss .*, D2 0\.\d+, 0\.\d+ below quantile 0\.9", said.decode())


@pytest.mark.faults
def test_tune_continues_after_a_kill(tmp_path, capfdbinary):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    np.savez(tmp_path / "a.npz", X=X, y=(X[:, :3] ** 2).sum(axis=1) + rng.normal(size=300) > 2.4)
    arguments = ["tune", str(tmp_path / "a.npz"), str(tmp_path / "model"), "--cv", "2"]
    checkpoint = tmp_path / "model.checkpoint"
    process = subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not checkpoint.exists() or checkpoint.read_bytes().count(b"\n") < 20:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)
    process.kill()
    process.communicate()
    kept = checkpoint.read_bytes()
    assert 20 <= kept.count(b"\n") < 200
    assert not (tmp_path / "model").exists()
    checkpoint.write_bytes(kept + b'{"search": "half a li')
    out, _ = run(*arguments)
    assert checkpoint.read_bytes().startswith(kept)
    entries = []
    for line in checkpoint.read_text().splitlines():
        with contextlib.suppress(ValueError):
            entries.append(json.loads(line))
    cells = [(str(entry["candidate"]), entry["split"]) for entry in entries]
    assert len(cells) == len(set(cells)) == 200  # none was computed twice
    again, _ = called(capfdbinary, "tune", tmp_path / "a.npz", tmp_path / "other", "--cv", "2")
    assert out == again
    assert svm.load(tmp_path / "model").get_params() == svm.load(tmp_path / "other").get_params()


# reproduce


def test_seeds_are_chosen(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    from pairstep.paper import reproduce

    given = {}
    monkeypatch.setattr(reproduce, "reproduce", lambda out, **rest: given.update(rest) or out)
    assert cli.main(["reproduce", "--seeds", "3", "7", "3", "9", "--out", str(tmp_path)]) == 0
    assert given["scale"].seeds == (3, 7, 9)
    assert cli.main(["reproduce", "--seeds", "0", "--out", str(tmp_path)]) == 0
    assert given["scale"].seeds == (0,)


@pytest.mark.parametrize("inside", ["", "folder"])
def test_a_file_is_not_a_folder(inside, capfdbinary, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" / inside
    assert str(out) in mistake(capfdbinary, "reproduce", "--quick", "--out", out)
    assert (tmp_path / "file").read_text() == "mine"
