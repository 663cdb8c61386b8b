"""The stub of the native module declares what the module contains."""

import ast
import inspect
import pkgutil
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


def public_functions(module):
    """Yield the functions, and the public methods of classes, that a module exports."""
    for name in getattr(module, "__all__", None) or vars(module):
        value = getattr(module, name)
        home = getattr(value, "__module__", "") or ""
        if name.startswith("_") or not home.startswith("pairstep"):
            continue
        if inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        elif inspect.isclass(value):
            for member in dir(value):
                method = inspect.getattr_static(value, member)
                method = getattr(method, "fget", None) or getattr(method, "__func__", method)
                if (
                    inspect.isfunction(method)
                    and (not member.startswith("_") or member == "__init__")
                    and method.__module__.startswith("pairstep")
                ):
                    yield f"{module.__name__}.{name}.{member}", method


@pytest.mark.parametrize(
    "module", ["pairstep", "pairstep.svm", "pairstep.dask", "pairstep.rules", "pairstep.theory"]
)
def test_every_public_function_is_annotated(module):
    pytest.importorskip("sklearn")
    if module == "pairstep.dask":
        pytest.importorskip("distributed")
    functions = dict(public_functions(pkgutil.resolve_name(module)))
    assert functions
    for name, function in functions.items():
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        unannotated = [p.name for p in parameters if p.annotation is p.empty]
        assert not unannotated, (name, unannotated)
        if not name.endswith("__init__"):
            assert signature.return_annotation is not signature.empty, name
