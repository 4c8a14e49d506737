"""Encodes the fields of protocol buffers, and reads a short message."""

from __future__ import annotations

__all__ = ["bytes_field", "bytes_head", "fields_of", "int_field", "varint"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


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
    return bytes_head(field, len(value)) + value


def bytes_head(field: int, length: int) -> bytes:
    """Return what is before the text, bytes, or message of a field."""
    return varint(field << 3 | _BYTES) + varint(length)


def fields_of(message: bytes) -> dict[int, int | bytes]:
    """Return the last value of each field: a whole number, or the bytes of any other type.

    Raises:
        ValueError: it is not a message of protocol buffers.
    """
    found: dict[int, int | bytes] = {}
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            found[key >> 3], at = _read_varint(message, at)
            continue
        if kind == _BYTES:
            size, at = _read_varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"unknown kind of field {kind}")
        if at + size > len(message):
            raise ValueError("the message is cut off")
        found[key >> 3] = message[at : at + size]
        at += size
    return found


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a place, and the place after it."""
    number = shift = 0
    while at < len(message):
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
    raise ValueError("the message is cut off")
