"""CuPy: its copies between host and device, and its memory on the device.

The device is asked only after a copy. Asking earlier would initialise it.
"""

from __future__ import annotations

from functools import wraps

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable

    from _teho_probe.notes import Notes

_EXAMINED_COPIES = frozenset((1, 10, 100, 1000, 10_000, 100_000))


def cupy(module: Any, notes: Notes) -> None:
    """Count copies, by direction and type."""
    notes.fact("cupy", version=str(module.__version__))
    copies = _Copies(module, notes)
    for name in ("asarray", "array"):
        copies.watch(module, name, copies.came)
    copies.watch(module.ndarray, "set", copies.given)
    # If the method cannot be replaced, the function that calls it can.
    if not copies.watch(module.ndarray, "get", copies.got):
        copies.watch(module, "asnumpy", copies.got)


class _Copies:
    def __init__(self, module: Any, notes: Notes) -> None:
        self._module = module
        self._notes = notes

    def watch(self, place: Any, name: str, note: Callable[[Any, Any], None]) -> bool:
        """Note the first argument and the result of a function; return whether this is possible."""
        function = getattr(place, name)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            try:
                note(args[0] if args else None, result)
            except Exception as error:
                self._notes.failed("cupy", error)
            return result

        try:
            setattr(place, name, call)
        except TypeError:  # an immutable class
            return False
        return True

    def came(self, source: Any, result: Any) -> None:
        if not isinstance(source, self._module.ndarray):
            self._add("to_device", result)

    def given(self, array: Any, _: Any) -> None:
        self._add("to_device", array)

    def got(self, source: Any, result: Any) -> None:
        if isinstance(source, self._module.ndarray):
            self._add("to_host", result)

    def _add(self, way: str, array: Any) -> None:
        facts = self._notes.libraries.get("cupy", {})
        before = facts.get(way) or {"copies": 0, "bytes": 0, "dtypes": {}}
        dtype, size = str(array.dtype), int(array.nbytes)
        copies = before["copies"] + 1
        now = {
            "copies": copies,
            "bytes": before["bytes"] + size,
            "dtypes": {**before["dtypes"], dtype: before["dtypes"].get(dtype, 0) + size},
        }
        how = self._how() if copies in _EXAMINED_COPIES else {}
        self._notes.fact("cupy", **{way: now}, **how)

    def _how(self) -> dict[str, Any]:
        pool = self._module.get_default_memory_pool()
        return {
            "device": int(self._module.cuda.runtime.getDevice()),
            "pool_used_bytes": int(pool.used_bytes()),
            "pool_held_bytes": int(pool.total_bytes()),
        }
