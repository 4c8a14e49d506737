"""Which imported function a program calls, from the instruction before a return address.

Only x86-64 is read. Source: Intel's manual, volume 2 (CALL, JMP), and the psABI for x86-64,
section 5.2 (procedure linkage table).
"""

from __future__ import annotations

import platform
import struct

from teho.unwind.symbols import Symbols

__all__ = ["called_import", "may_jump_away"]

_OFFSET = struct.Struct("<i")
_DIRECT, _INDIRECT = 5, 6
"""Bytes of `call target`, and of `call *slot(%rip)`."""
_STUB_BYTES = 16
_END_BRANCH = b"\xf3\x0f\x1e\xfa"
_JUMP = b"\xff\x25"
"""`jmp *slot(%rip)`."""
_JUMP_FAR = b"\xe9"
"""`jmp target`."""
_MOST_CODE = 65_536
_IS_READ = platform.machine() == "x86_64"


def called_import(symbols: Symbols, virtual: int) -> str:
    """Return the imported function that is called just before an address; empty if there is none.

    Args:
        symbols: of the file with the address.
        virtual: a possible return address.
    """
    if not _IS_READ or not symbols.imports:
        return ""
    code = symbols.code_before(virtual, _INDIRECT)
    if len(code) < _INDIRECT:
        return ""
    (offset,) = _OFFSET.unpack(code[-4:])
    target = virtual + offset
    if code[:2] == b"\xff\x15":
        return symbols.imports.get(target, "")
    if code[-_DIRECT] == 0xE8:
        return symbols.imports.get(_slot_of_stub(symbols, target), "")
    return ""


def may_jump_away(symbols: Symbols, begin: int, end: int) -> bool:
    """Return whether a function ends with a jump into another function (a tail call).

    Then the function leaves no return address on the stack.

    Args:
        symbols: of the file with the function.
        begin: its first byte.
        end: the byte after it.
    """
    code = symbols.code_at(begin, min(end - begin, _MOST_CODE))
    place = code.find(_JUMP_FAR)
    while 0 <= place <= len(code) - _DIRECT:
        (offset,) = _OFFSET.unpack_from(code, place + 1)
        target = begin + place + _DIRECT + offset
        if not begin <= target < end and symbols.function_at(target)[0] == target:
            return True
        place = code.find(_JUMP_FAR, place + 1)
    return not code


def _slot_of_stub(symbols: Symbols, target: int) -> int:
    """Return the slot that a stub of the procedure linkage table jumps to; -1 if it is no stub."""
    code = symbols.code_at(target, _STUB_BYTES)
    begin = len(_END_BRANCH) if code.startswith(_END_BRANCH) else 0
    if code[begin : begin + 1] == b"\xf2":  # a prefix of older linkers
        begin += 1
    if code[begin : begin + 2] != _JUMP or len(code) < begin + 6:
        return -1
    return int(target + begin + 6 + _OFFSET.unpack_from(code, begin + 2)[0])
