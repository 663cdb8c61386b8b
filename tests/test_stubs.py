"""The stub of the native module declares what the module contains."""

import ast
import re
from enum import EnumMeta
from pathlib import Path

import pytest

import pairstep
from pairstep import _core

STUB = Path(pairstep.__file__).with_name("_core.pyi")
DECLARED = {
    name: node
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body
    for name in (
        [node.name]
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        else [node.target.id] if isinstance(node, ast.AnnAssign) else []
    )
}  # fmt: skip
FUNCTIONS = {
    name: value for name, value in vars(_core).items() if hasattr(value, "__nb_signature__")
}
CLASSES = {name: value for name, value in vars(_core).items() if isinstance(value, type)}


def arguments(node):
    """Return the names of positional and keyword-only arguments, and how many have defaults."""
    given = node.args
    positional = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    keyword = [argument.arg for argument in given.kwonlyargs]
    optional = len(given.defaults) + sum(default is not None for default in given.kw_defaults)
    return [name for name in positional if name != "self"], keyword, optional


def native(function):
    """Return the arguments of each overload of a native function."""
    for signature, *_ in function.__nb_signature__:
        # nanobind writes \0, \1, ... for default values, and types that are no Python.
        names = re.sub(r"\\\d+", "None", signature)
        names = re.sub(r"ndarray\[[^\]]*\]", "Any", names)
        (node,) = ast.parse(f"{names}: ...").body
        yield arguments(node)


def members(node):
    """Return the names that a class of the stub declares."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            yield part.name
        elif isinstance(part, ast.AnnAssign):
            yield part.target.id
        elif isinstance(part, ast.Assign):
            yield from (target.id for target in part.targets)


def test_every_name_of_the_native_module_is_declared_and_exists():
    assert {name for name in vars(_core) if not name.startswith("_")} == set(DECLARED)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_arguments_of_functions_are_those_declared(name):
    assert arguments(DECLARED[name]) in list(native(FUNCTIONS[name]))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_members_of_classes_are_those_declared(name):
    kind = CLASSES[name]
    if isinstance(kind, EnumMeta):
        found = set(kind.__members__)
    else:
        found = {member for member in vars(kind) if not member.startswith("_")}
    assert set(members(DECLARED[name])) - {"__init__"} == found
    for method in (part for part in DECLARED[name].body if isinstance(part, ast.FunctionDef)):
        bound = vars(kind)[method.name]
        if hasattr(bound, "__nb_signature__"):  # a property has none
            assert arguments(method) in [
                ([each for each in positional if each != "self"], keyword, optional)
                for positional, keyword, optional in native(bound)
            ], method.name
