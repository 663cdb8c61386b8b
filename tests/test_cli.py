"""The `pairstep` command, apart from the experiments themselves."""

import importlib.util

import pytest

from pairstep import __version__, cli
from pairstep.experiments import progress


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pairstep {__version__}\n"


def test_no_command_shows_help(capsys):
    assert cli.main([]) == 2
    assert "reproduce" in capsys.readouterr().out


def test_an_unknown_figure_is_named(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    assert cli.main(["reproduce", "--figure", "figure7", "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "no figure figure7" in message
    assert "figure1, figure2" in message


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_seeds_must_be_positive(number, capsys):
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "--seeds", number])
    assert "--seeds" in capsys.readouterr().err


def test_redraw_needs_tables(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    assert cli.main(["reproduce", "--redraw", "--out", str(tmp_path)]) == 2
    assert "no claims.json" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["{", "[]", '{"about": {}}', '{"about": {"figures": ["f7"]}}'])
def test_redraw_says_what_is_wrong_with_claims(content, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "claims.json").write_text(content)
    assert cli.main(["reproduce", "--redraw", "--out", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path / "claims.json") in line


@pytest.mark.parametrize("inside", ["", "folder"])
@pytest.mark.parametrize("redraw", [[], ["--redraw"]])
def test_a_file_is_not_a_folder(inside, redraw, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" / inside
    assert cli.main(["reproduce", "--quick", "--out", str(out), *redraw]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pairstep: ")
    assert str(out) in line
    assert (tmp_path / "file").read_text() == "mine"


def test_without_matplotlib_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.main(["reproduce"]) == 2
    assert "pairstep[plots]" in capsys.readouterr().err


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "speedy.py").write_text("import sys\nprint(sys.argv[1:])\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    for name in [m for m in __import__("sys").modules if m.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(__import__("sys").modules, name)


@pytest.mark.usefixtures("checkout")
def test_bench_runs_a_module_of_the_checkout(capsys):
    assert cli.main(["bench", "speedy", "--n", "3"]) == 0
    assert capsys.readouterr().out == "['--n', '3']\n"


@pytest.mark.usefixtures("checkout")
def test_bench_says_what_there_is(capsys):
    assert cli.main(["bench"]) == 2
    assert "speedy" in capsys.readouterr().err


def test_bench_needs_a_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "a" / "b" / "cli.py"))
    assert cli.main(["bench", "rules"]) == 2
    assert "source checkout" in capsys.readouterr().err


def test_plain_progress_goes_to_stderr(capsys):
    with progress.progress(2) as done:
        done("one")
        done("two")
    output = capsys.readouterr()
    assert output.out == ""
    assert "[1/2]" in output.err
    assert "two" in output.err
