"""A cached property without locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._validation import read_only

# For type checkers `kept` is a property, which protocols may require.
if TYPE_CHECKING:
    kept = property
else:

    class kept:
        """Compute on first use, then store in the instance.

        In Python 3.11, functools.cached_property has one lock for all instances, held during the
        computation: threads wait for each other, and a process forked in the meantime deadlocks.
        Here two threads may both compute the value, and both store the same one. Arrays are
        read-only, because changing one would change later results.
        """

        def __init__(self, compute):
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance: Any, owner: Any = None):
            if instance is None:
                return self
            value = read_only(self.compute(instance))
            instance.__dict__[self.name] = value
            return value
