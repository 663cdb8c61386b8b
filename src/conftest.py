"""Doctests of what needs a library that is not installed are left out."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("distributed") else ["pairstep/dask"]
