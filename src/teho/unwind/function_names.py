"""Readable names of compiled functions.

Source: the Itanium C++ ABI, section 5.1 (mangled names). Only the parts of the name are read:
types of parameters and of templates are left out.
"""

from __future__ import annotations

from teho.patterns import lazy_pattern

__all__ = ["readable_name"]

_LONGEST = 80
_NESTED = lazy_pattern(r"_ZN[VKr]*[RO]?")
_LENGTH = lazy_pattern(r"\d+")
_CALLS = {
    "_Znwm": "operator new",
    "_Znam": "operator new[]",
    "_ZdlPv": "operator delete",
    "_ZdlPvm": "operator delete",
    "_ZdaPv": "operator delete[]",
}
_STANDARD = {
    "St": ["std"],
    "Sa": ["std", "allocator"],
    "Ss": ["std", "string"],
    "Si": ["std", "istream"],
    "So": ["std", "ostream"],
    "Sd": ["std", "iostream"],
}
"""Names of the standard library that are abbreviated."""
_OPERATORS = {"ls": "operator<<", "rs": "operator>>", "cl": "operator()", "ix": "operator[]"}
_ADDED = lazy_pattern(r"(?:\.(?:constprop|isra|part|cold|lto_priv)(?:\.\d+)*)+$|@.*$")
"""What a compiler or linker adds to a name."""


def readable_name(name: str) -> str:
    """Return a short name: of `_ZN4mesh6Solver4stepEv`, it is `mesh::Solver::step`.

    A name that is not mangled stays as it is, without what the compiler added to it. The name of a
    parallel region of OpenMP stays too (`main._omp_fn.0`).
    """
    name = _ADDED.sub("", name)
    if name in _CALLS:
        return _CALLS[name]
    if not name.startswith("_Z"):
        return name[:_LONGEST]
    nested = _NESTED.match(name)
    place = nested.end() if nested else 2
    if name[place : place + 1] == "L":  # a function that only its file knows
        place += 1
    parts: list[str] = []
    while True:
        if not parts and (known := _STANDARD.get(name[place : place + 2])):
            parts += known
            place += 2
        elif name.startswith("12_GLOBAL__N_1", place):
            place += len("12_GLOBAL__N_1")
        elif length := _LENGTH.match(name, place):
            end = length.end() + int(length.group())
            parts.append(name[length.end() : end])
            place = end
        elif name[place : place + 1] == "I":
            place = _after_template(name, place)
            if place < 0:
                break
        elif nested and name[place : place + 2] in {"C1", "C2", "D0", "D1", "D2"} and parts:
            parts.append(("~" if name[place] == "D" else "") + parts[-1])
            break
        elif parts and (operator := _OPERATORS.get(name[place : place + 2])):
            parts.append(operator)
            break
        else:
            break
        if not nested and parts != ["std"]:
            break
    if parts == ["std"]:
        return name[:_LONGEST]
    return "::".join(filter(None, parts))[:_LONGEST] or name[:_LONGEST]


def _after_template(name: str, place: int) -> int:
    """Return the place after the arguments of a template; -1 if they cannot be read."""
    depth = 0
    while place < len(name):
        if length := _LENGTH.match(name, place):
            place = length.end() + int(length.group())
            continue
        if name[place] == "L":  # the digits of a literal do not give a length
            place = name.find("E", place)
            if place < 0:
                break
        elif name[place] in "INJX":
            depth += 1
        elif name[place] == "E":
            depth -= 1
            if depth == 0:
                return place + 1
        place += 1
    return -1
