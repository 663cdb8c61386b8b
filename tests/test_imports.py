"""Which module imports which: only the command `reproduce` and the top level import the paper."""

import ast
from pathlib import Path

import pytest

import pairstep

PACKAGE = Path(pairstep.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


def imported(file):
    """Return the modules that a file imports, also inside functions, as full names."""
    package = ["pairstep", *file.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = [*above, *filter(None, [node.module])]
            yield from (".".join([*module, name.name]) for name in node.names)


def users_of_the_paper(file):
    return [name for name in imported(file) if f"{name}.".startswith("pairstep.paper.")]


def test_only_the_top_level_and_reproduce_import_the_paper():
    found = {
        str(file.relative_to(PACKAGE))
        for file in MODULES
        if "paper" not in file.relative_to(PACKAGE).parts and users_of_the_paper(file)
    }
    assert found == {"__init__.py", "cli/reproduce.py"}


def test_the_top_level_imports_the_paper_only_for_type_checkers():
    """At run time, the names of `_LAZY` are loaded on first use."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    eager = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert all(not (node.module or "").startswith("paper") for node in eager)
    assert {name for name, module in pairstep._LAZY.items() if module.startswith("paper.")} == {
        "coordinate_descent",
        "propose",
        "theory",
    }


@pytest.mark.parametrize("name", pairstep._LAZY)
def test_the_table_of_lazy_names_is_right(name):
    assert getattr(pairstep, name).__name__.rpartition(".")[2] == name
