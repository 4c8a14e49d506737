"""Encodes the fields of protocol buffers."""

from __future__ import annotations

__all__ = ["bytes_field", "int_field", "varint"]


def varint(value: int) -> bytes:
    """Return a whole number: seven bits in each byte, the lowest first; a negative one has 64."""
    found, value = bytearray(), value & 0xFFFF_FFFF_FFFF_FFFF
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def int_field(field: int, value: int) -> bytes:
    """Return a field with a whole number."""
    return varint(field << 3) + varint(value)


def bytes_field(field: int, value: bytes) -> bytes:
    """Return a field with a text, bytes, or another message."""
    return varint(field << 3 | 2) + varint(len(value)) + value
