"""The constant exponent of a call of `pow`, from the instructions before its return address.

Only x86-64 is read. The exponent is the second argument, in the register `xmm1`: the compiler loads
it from the file directly before the call. Source: Intel's manual, volume 2 (MOVSD, MOVQ), and the
psABI for x86-64, section 3.2.3 (passing of arguments).
"""

from __future__ import annotations

import platform
import re
import struct

from teho.patterns import lazy_pattern
from teho.unwind.symbols import Symbols

__all__ = ["with_exponent"]

_CALL, _BEFORE = 5, 128
"""Bytes of `call target`, and of the instructions before it that are read."""
_LOAD = lazy_pattern(rb"(?:\xf2\x0f|\xc5\xfb)\x10\x0d(.{4})", re.DOTALL)
"""`movsd place(%rip), %xmm1`, and `vmovsd`."""
_MOVE = lazy_pattern(rb"\x66\x48\x0f\x6e\xc8|\xc4\xe1\xf9\x6e\xc8")
"""`movq %rax, %xmm1`, and `vmovq`."""
_TO_RAX = lazy_pattern(rb"\x48\x8b\x05(.{4})", re.DOTALL)
"""`mov place(%rip), %rax`."""
_WRITE = lazy_pattern(rb"(?:\x0f|\xc5.)[\x10\x12\x16\x28\x2a\x51-\x5f\x6e\x6f\x7e](.)", re.DOTALL)
"""An instruction that may write a register, with the byte that names the register."""
_OFFSET, _NUMBER = struct.Struct("<i"), struct.Struct("<d")
_LARGEST = 8
_ROOTS = (0.5, 1.5)
_IS_READ = platform.machine() == "x86_64"


def with_exponent(called: str, symbols: Symbols, virtual: int) -> str:
    """Return `pow(x, 3)` if a call of `pow` has this exponent; otherwise the name of the function.

    Only exponents count for which a few multiplications or a root give the same result.

    Args:
        called: the function that is called just before an address.
        symbols: of the file with the address.
        virtual: the address.
    """
    if not _IS_READ or called != "pow":
        return called
    begin = virtual - _CALL - _BEFORE
    code = symbols.code_at(begin, _BEFORE)
    loads = [*_LOAD.finditer(code), *_MOVE.finditer(code)]
    last = max(loads, key=lambda one: one.start(), default=None)
    if last is None or _is_written(code[last.end() :]):
        return called
    if last.re.groups == 0:
        last = max(
            _TO_RAX.finditer(code, 0, last.start()), key=lambda one: one.start(), default=None
        )
    if last is None:
        return called
    place = begin + last.end() + _OFFSET.unpack(last[1])[0]
    content = symbols.code_at(place, _NUMBER.size)
    exponent = _NUMBER.unpack(content)[0] if len(content) == _NUMBER.size else 0.0
    is_whole = exponent in (-2.0, -1.0) or (exponent.is_integer() and 2 <= exponent <= _LARGEST)
    return f"pow(x, {exponent:g})" if is_whole or exponent in _ROOTS else called


def _is_written(code: bytes) -> bool:
    """Return whether some code may write `xmm1`."""
    return any(one[1][0] >> 3 & 7 == 1 for one in _WRITE.finditer(code))
