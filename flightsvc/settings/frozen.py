"""A dict that does not change."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dict that refuses every change; it can be copied and pickled.

    Not a ``MappingProxyType``: that one can be neither.
    """

    def _refuse(self, *_args: Any, **_values: Any) -> NoReturn:
        raise TypeError("settings do not change; make new ones")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)
