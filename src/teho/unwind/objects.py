"""Objects of another Python process: the names of their types, and values in dictionaries."""

from __future__ import annotations

import random
import struct

from teho.unwind.code import text_of
from teho.unwind.layout import Layout
from teho.unwind.memory import Memory, UnwindError

__all__ = ["Objects"]

_POINTER = struct.Struct("<Q")
_TYPE_NAME = 24
"""Type -> the address of its name, in every Python with a GIL."""
_LONGEST_NAME = 64
_MOST_TYPES = 10_000
_MOST_ITEMS = 1 << 13

# These offsets are the same in all these versions. tests/unwind compares them with the headers.
_DICT_KEYS, _DICT_VALUES = 32, 40
_SET_MASK, _SET_TABLE = 32, 40
_MODULE_DICT = 16
_REFERENCE_OBJECT = 16
_SET_ENTRY = struct.Struct("<Qq")
"""The address of an item, and its hash."""
_REMOVED = -1
"""Hash of an entry whose item was removed."""
_MOST_ENTRIES = 1 << 12
_PART_ENTRIES = 1 << 7
"""Entries of a large set that are read together."""


class Objects:
    """The objects of one process.

    Args:
        memory: the process's.
        layout: its Python's.
        version: its Python's major and minor version.
    """

    def __init__(self, memory: Memory, layout: Layout, version: tuple[int, int]) -> None:
        self._memory, self._layout, self._version = memory, layout, version
        self._types: dict[int, str] = {}

    def type_name(self, address: int) -> str:
        """Return the name of an object's type, such as `coroutine` or `_asyncio.Future`.

        Raises:
            UnwindError: the address cannot be read.
        """
        kind = self._memory.pointer(address + self._layout.object_type)
        name = self._types.get(kind)
        if name is None:
            data = self._memory.some(self._memory.pointer(kind + _TYPE_NAME), _LONGEST_NAME)
            if len(self._types) >= _MOST_TYPES:
                self._types.clear()
            name = self._types[kind] = data.partition(b"\0")[0].decode("ascii", "replace")
        return name

    def in_module(self, module: int, name: str) -> int:
        """Return the address of a value of a module.

        Raises:
            UnwindError: there is no such value.
        """
        return self.in_dict(self._memory.pointer(module + _MODULE_DICT), name)

    def in_dict(self, dictionary: int, name: str) -> int:
        """Return the address of the value of a key.

        Raises:
            UnwindError: there is no such key.
        """
        keys = self._memory.pointer(dictionary + _DICT_KEYS)
        head = self._memory.read(keys, 40)
        if self._version < (3, 11):
            slots, count = _POINTER.unpack_from(head, 8)[0], _POINTER.unpack_from(head, 32)[0]
            index_bytes = 1 if slots <= 0xFF else 2 if slots <= 0xFFFF else 4
            entries, size, at = keys + 40 + slots * index_bytes, 24, 8
        else:
            count = _POINTER.unpack_from(head, 24)[0]
            has_hashes = head[10] == 0
            entries, size = keys + 32 + (1 << head[9]), 24 if has_hashes else 16
            at = 8 if has_hashes else 0
        data = self._memory.read(entries, size * min(count, _MOST_ITEMS))
        for place in range(0, len(data), size):
            key, value = struct.unpack_from("<QQ", data, place + at)
            if key and value and self._is_text(key, name):
                return int(value)
        raise UnwindError(f"a dictionary of the process has no key {name}")

    def _is_text(self, address: int, text: str) -> bool:
        length = self._memory.pointer(address + self._layout.str_size)
        return length == len(text) and text_of(self._memory, self._layout, address) == text

    def set_of_weak_set(self, address: int) -> int:
        """Return the address of the set in a `weakref.WeakSet`: the first one of its attributes.

        Raises:
            UnwindError: it is not there.
        """
        pointer = self._memory.pointer
        if self._version < (3, 11):
            found = pointer(pointer(pointer(address + 16) + _DICT_VALUES))
        elif self._version == (3, 11):
            found = pointer(pointer(address - 32))
        elif self._version == (3, 12):  # the lowest bit marks the address of values
            found = pointer(pointer(address - 24) + 1)
        else:  # the values are in the object
            found = pointer(address + 24)
        if self.type_name(found) != "set":
            raise UnwindError("a weak set of the process has other attributes")
        return found

    def items_of_set(self, address: int) -> list[int]:
        """Return the addresses of the items of a set; of a large one, only a part of them.

        Raises:
            UnwindError: the set cannot be read.
        """
        entries = self._memory.pointer(address + _SET_MASK) + 1
        table = self._memory.pointer(address + _SET_TABLE)
        if entries <= _MOST_ENTRIES:
            data = self._memory.read(table, _SET_ENTRY.size * entries)
        else:  # neighbours in the table are neighbours in memory, and often of the same age
            begins = random.sample(range(0, entries, _PART_ENTRIES), _MOST_ENTRIES // _PART_ENTRIES)
            size = _SET_ENTRY.size
            data = b"".join(
                self._memory.read(table + size * one, size * _PART_ENTRIES) for one in begins
            )
        return [item for item, hash_ in _SET_ENTRY.iter_unpack(data) if item and hash_ != _REMOVED]

    def referent(self, reference: int) -> int:
        """Return the address of the object of a weak reference.

        Raises:
            UnwindError: the reference cannot be read.
        """
        return self._memory.pointer(reference + _REFERENCE_OBJECT)
