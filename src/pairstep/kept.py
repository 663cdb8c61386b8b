"""A property that is computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# To a type checker `kept` is a property, which is what a protocol may ask for.
if TYPE_CHECKING:
    kept = property
else:

    class kept:
        """Compute on first use, then keep in the instance.

        functools.cached_property holds one lock per class in Python 3.11: threads wait for each
        other's Hessians, and a child forked meanwhile waits for ever. Here two threads may both
        compute; each leaves the same value.
        """

        def __init__(self, compute):
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance: Any, owner: Any = None):
            if instance is None:
                return self
            value = self.compute(instance)
            instance.__dict__[self.name] = value
            return value
