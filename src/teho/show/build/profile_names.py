"""Short names of kernels and operators, for the tables of traces."""

from __future__ import annotations

import re

__all__ = ["short_kernel", "short_operator"]

_KERNEL_WIDTH = 23
_OPERATOR_WIDTH = 14
"""Largest width of these names in a terminal of 80 columns."""


def short_operator(name: str, width: int = _OPERATOR_WIDTH) -> str:
    """Return the name of an operator without `aten::`; a compiled graph without its hash."""
    if "CompiledFxGraph" in name:
        return "compiled graph"
    return _cut(name.removeprefix("aten::"), width)


def short_kernel(name: str) -> str:
    """Return the name of a kernel without its type, name space, template and parameters."""
    text = name.replace("(anonymous namespace)::", "").removeprefix("void ")
    if text.startswith(("Memcpy", "Memset")):
        return _cut(text, _KERNEL_WIDTH)
    text = re.split(r"[<(]", text, maxsplit=1)[0].strip()
    return _cut(text.rpartition("::")[2] or name, _KERNEL_WIDTH)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
