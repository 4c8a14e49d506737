"""JAX: its devices, and its compilations.

JAX's listeners report all of this. Devices are asked only after a compilation. Asking earlier
would initialise them.
"""

from __future__ import annotations

import sys

from _teho_probe.lines import TYPE_CHECKING, is_library
from _teho_probe.notes import caller

if TYPE_CHECKING:
    from typing import Any

    from _teho_probe.notes import Notes

_PARTS = "/jax/core/compile/"
_LAST_PART = "/jax/core/compile/backend_compile_duration"
_CACHE_HIT = "/jax/compilation_cache/cache_hits"
_MOST_FUNCTIONS = 100
_MOST_ITERATORS = 100
_GENERATOR = 0x20
"""Flag of a generator's code."""


def jax(module: Any, notes: Notes) -> None:
    """Note its version."""
    notes.fact("jax", version=str(module.__version__))


def jax_monitoring(module: Any, notes: Notes) -> None:
    """Note the number and the time of compilations, by function."""
    compiled = _Compiled(notes)
    module.register_event_duration_secs_listener(compiled.lasted)
    module.register_event_listener(compiled.happened)


class _Compiled:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._compiling: set[tuple[str, str, int]] = set()
        """Code below which JAX has compiled: it computes, so it does not only load data."""

    def happened(self, event: str, **_: Any) -> None:
        if event == _CACHE_HIT:
            facts = self._notes.libraries.get("jax", {})
            self._notes.fact("jax", cache_hits=facts.get("cache_hits", 0) + 1)

    def lasted(self, event: str, duration_s: float, **about: Any) -> None:
        if event.startswith(_PARTS):
            try:
                self._add(event, duration_s, str(about.get("fun_name", "")))
            except Exception as error:
                self._notes.failed("jax", error)

    def _add(self, event: str, duration_s: float, name: str) -> None:
        facts = self._notes.libraries.get("jax", {})
        functions = dict(facts.get("functions", {}))
        if name.startswith("jit(") and name.endswith(")"):
            name = name[4:-1]
        if name not in functions and len(functions) >= _MOST_FUNCTIONS:
            name = "(others)"
        known = functions.get(name) or {"compiles": 0, "compile_s": 0.0, "at": caller()}
        is_done = event == _LAST_PART
        functions[name] = {
            "compiles": known["compiles"] + is_done,
            "compile_s": round(known["compile_s"] + duration_s, 4),
            "at": known["at"],
        }
        self._notes.fact(
            "jax",
            compiles=facts.get("compiles", 0) + is_done,
            compile_s=round(facts.get("compile_s", 0.0) + duration_s, 4),
            functions=functions,
            **(_how() if is_done else {}),
            **({"iterators": self._iterators()} if is_done else {}),
        )

    def _iterators(self) -> list[list[Any]]:
        """Return file, function and first line of the program's generators that do not compute."""
        frame: Any = sys._getframe(1)
        codes: dict[tuple[str, str, int], int] = {}
        namespaces: dict[int, Any] = {}
        while frame is not None:
            code = frame.f_code
            if not is_library(code.co_filename):
                self._compiling.add(_key(code))
                namespaces[id(frame.f_globals)] = frame.f_globals
                _add_codes(code, codes)
            frame = frame.f_back
        for names in namespaces.values():
            for value in list(names.values()):
                code = getattr(value, "__code__", None)
                if code is not None and not is_library(code.co_filename):
                    _add_codes(code, codes)
        found = [
            list(key) for key, flags in codes.items()
            if flags & _GENERATOR and key not in self._compiling
        ]  # fmt: skip
        return sorted(found)[:_MOST_ITERATORS]


def _key(code: Any) -> tuple[str, str, int]:
    return code.co_filename, code.co_name, code.co_firstlineno


def _add_codes(code: Any, codes: dict[tuple[str, str, int], int]) -> None:
    """Add the flags of a function and of the functions in it."""
    if _key(code) not in codes and hasattr(code, "co_consts"):
        codes[_key(code)] = code.co_flags
        for one in code.co_consts:
            if hasattr(one, "co_flags") and not one.co_name.startswith("<"):
                _add_codes(one, codes)


def _how() -> dict[str, Any]:
    """Return how the program computes."""
    module = sys.modules["jax"]
    found = {
        "x64": bool(module.config.jax_enable_x64),
        "matmul_precision": module.config.jax_default_matmul_precision,
        "disable_jit": bool(module.config.jax_disable_jit),
        "debug_nans": bool(module.config.jax_debug_nans),
    }
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        found["platform"] = module.default_backend()
        found["devices"] = sorted({str(one.device_kind) for one in module.local_devices()})
        found["device_count"] = module.device_count()
        found["local_device_count"] = module.local_device_count()
        found["process_count"] = module.process_count()
        found["process_index"] = module.process_index()
    return found
