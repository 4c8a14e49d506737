"""Whether the instruction before an address is an atomic update, such as `lock add`.

Only x86-64 is read. If several threads update the same memory, such an instruction waits until the
core has got the memory from the other core. The sample is then at the instruction after it. Source:
Intel's manual, volume 2 (LOCK, and chapter 2, instruction format).
"""

from __future__ import annotations

import platform

from teho.unwind.symbols import Symbols

__all__ = ["follows_atomic", "is_atomic"]

_LOCK, _LONGEST = 0xF0, 15
_PREFIXES = frozenset((0x2E, 0x3E, 0x64, 0x65, 0x66, 0x67, _LOCK))
_ONE_BYTE = frozenset(
    (0x00, 0x01, 0x08, 0x09, 0x10, 0x11, 0x18, 0x19, 0x20, 0x21, 0x28, 0x29, 0x30, 0x31, 0x80, 0x81,
     0x83, 0x86, 0x87, 0xF6, 0xF7, 0xFE, 0xFF)
)  # fmt: skip
"""ADD, OR, ADC, SBB, AND, SUB, XOR, XCHG, NOT, NEG, INC and DEC."""
_TWO_BYTES = frozenset((0xAB, 0xB0, 0xB1, 0xB3, 0xBA, 0xBB, 0xC0, 0xC1, 0xC7))
"""After 0F: BTS, CMPXCHG, BTR, BTC, XADD and CMPXCHG8B."""
_IS_READ = platform.machine() == "x86_64"


def follows_atomic(symbols: Symbols, virtual: int) -> bool:
    """Return whether an atomic update is just before an address.

    Args:
        symbols: of the file with the address.
        virtual: the address.
    """
    if not _IS_READ:
        return False
    code = symbols.code_before(virtual, _LONGEST)
    return any(is_atomic(code[place:]) for place in range(len(code)) if code[place] == _LOCK)


def is_atomic(code: bytes) -> bool:
    """Return whether some bytes are exactly one instruction with the prefix LOCK."""
    place, is_locked, is_short = 0, False, False
    while place < len(code) and code[place] in _PREFIXES:
        is_locked |= code[place] == _LOCK
        is_short |= code[place] == 0x66
        place += 1
    if place < len(code) and code[place] & 0xF0 == 0x40:  # REX
        place += 1
    is_long = code[place : place + 1] == b"\x0f"
    place += is_long
    rest = code[place:]
    if not is_locked or len(rest) < 2 or rest[0] not in (_TWO_BYTES if is_long else _ONE_BYTE):
        return False
    operand = _operand_bytes(rest[1:])
    return operand > 0 and len(rest) == 1 + operand + _constant_bytes(
        rest[0], is_long=is_long, is_short=is_short
    )


def _constant_bytes(operation: int, *, is_long: bool, is_short: bool) -> int:
    """Return the number of bytes of a constant in an instruction."""
    if is_long:
        return int(operation == 0xBA)
    if operation == 0x81:
        return 2 if is_short else 4
    return int(operation in (0x80, 0x83))


def _operand_bytes(code: bytes) -> int:
    """Return the number of bytes of an operand in memory; 0 if it is a register."""
    kind, base = code[0] >> 6, code[0] & 7
    if kind == 3:
        return 0
    size = 1
    if base == 4:
        size += 1
        base = code[1] & 7 if len(code) > 1 else 0
    if kind == 1:
        return size + 1
    # Without a base, or relative to the instruction, there are four bytes too.
    return size + 4 if kind == 2 or base == 5 else size
