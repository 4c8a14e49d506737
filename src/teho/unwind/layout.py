"""Memory layout of Python's stacks, for each version.

From 3.13 on, Python publishes its layout (`_Py_DebugOffsets`, the first field of `_PyRuntime`; see
`Include/internal/pycore_runtime.h` of 3.13 and `pycore_debug_offsets.h` of 3.14). For older
versions, the numbers are `offsetof` of their headers on 64-bit Linux. tests/unwind compares them
with every installed Python. They stay the same within a minor version.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from teho.unwind.memory import Memory, UnwindError

__all__ = ["Layout", "layout_of"]


class Layout(NamedTuple):
    """Offsets in bytes, from the beginning of the object that is named first."""

    interpreters: int
    """`_PyRuntime` -> the newest interpreter; the main one is the last of the list."""
    interpreter_next: int
    threads: int
    """Interpreter -> its newest thread."""
    thread_next: int
    thread_native_id: int | None
    """None: the thread does not have it; the main thread is the last of the list."""
    thread_frame: int
    """Thread -> its innermost frame, or an object that points to it."""
    frame_pointer: int | None
    """That object -> the innermost frame; None: the thread points to the frame."""
    thread_chunk: int | None
    """Thread -> the block with its newest frames; None: frames are objects."""
    frame_previous: int
    frame_code: int
    frame_instruction: int
    """Frame -> the instruction: its address, or its number if frames are objects."""
    frame_owner: int | None
    code_filename: int
    code_name: int
    code_qualname: int | None
    code_linetable: int
    code_firstlineno: int
    code_instructions: int
    """Code -> its first instruction."""
    instruction_bytes: int
    """Bytes per unit in which an instruction's place is counted."""
    object_type: int
    bytes_size: int
    bytes_data: int
    str_size: int
    str_state: int
    str_ascii: int
    """String -> its characters, if all are ASCII."""
    str_other: int
    """String -> its characters, if not all are ASCII."""
    first_foreign_owner: int
    """Frames with this owner or a later one belong to no function."""


_3_8 = Layout(  # frames are objects
    interpreters=32, interpreter_next=0, threads=8, thread_next=8, thread_native_id=None,
    thread_frame=24, frame_pointer=None, thread_chunk=None,
    frame_previous=24, frame_code=32, frame_instruction=104, frame_owner=None,
    code_filename=104, code_name=112, code_qualname=None, code_linetable=120,
    code_firstlineno=40, code_instructions=0, instruction_bytes=1,
    object_type=8, bytes_size=16, bytes_data=32,
    str_size=16, str_state=32, str_ascii=48, str_other=72, first_foreign_owner=0,
)  # fmt: skip
_3_11 = _3_8._replace(
    interpreters=40, threads=16, thread_native_id=160,
    thread_frame=56, frame_pointer=8, thread_chunk=296,
    frame_previous=48, frame_instruction=56, frame_owner=69,
    code_filename=112, code_name=120, code_qualname=128, code_linetable=136,
    code_firstlineno=72, code_instructions=184, first_foreign_owner=3,
)  # fmt: skip
_3_12 = _3_11._replace(
    threads=72, thread_native_id=144, frame_pointer=0, thread_chunk=232,
    frame_previous=8, frame_code=0, frame_owner=70,
    code_firstlineno=68, code_instructions=192, str_ascii=40, str_other=56,
)  # fmt: skip
_BEFORE_3_13 = {
    (3, 8): _3_8,
    (3, 9): _3_8,
    (3, 10): _3_8._replace(frame_instruction=96, instruction_bytes=2),
    (3, 11): _3_11,
    (3, 12): _3_12,
}

# Fields of `_Py_DebugOffsets` after its magic word, in order, eight bytes each.
_BEFORE_INTERPRETER = ("version", "free_threaded", "runtime: size finalizing interpreters_head")
_INTERPRETER = (
    "imports_modules sysdict builtins ceval_gil gil_runtime_state gil_runtime_state_enabled "
    "gil_runtime_state_locked gil_runtime_state_holder"
)
_COUNTERS = "code_object_generation tlbc_generation"
_THREAD = (
    "thread: size prev next interp current_frame thread_id native_thread_id datastack_chunk status"
)
_FRAME = "frame: size previous executable instr_ptr localsplus owner"
_CODE = (
    "code: size filename name qualname linetable firstlineno argcount localsplusnames "
    "localspluskinds co_code_adaptive"
)
_OBJECTS = (
    "object: size ob_type", "type: size tp_name tp_repr tp_flags", "tuple: size ob_item ob_size",
    "list: size ob_item ob_size",
)  # fmt: skip
_REST = (
    "dict: size ma_keys ma_values", "float: size ob_fval", "long: size lv_tag ob_digit",
    "bytes: size ob_size ob_sval", "unicode: size state length asciiobject_size",
)  # fmt: skip
_PUBLISHED = {
    (3, 13): (
        *_BEFORE_INTERPRETER,
        f"interpreter: size id next threads_head gc {_INTERPRETER}",
        _THREAD, _FRAME, _CODE, *_OBJECTS, *_REST,
    ),
    (3, 14): (
        *_BEFORE_INTERPRETER,
        f"interpreter: size id next threads_head threads_main gc {_INTERPRETER} {_COUNTERS}",
        _THREAD, f"{_FRAME} stackpointer tlbc_index", f"{_CODE} co_tlbc", *_OBJECTS,
        "set: size used table mask", *_REST,
    ),
}  # fmt: skip
_NAMES = {
    "interpreters": "runtime:interpreters_head", "interpreter_next": "interpreter:next",
    "threads": "interpreter:threads_head", "thread_next": "thread:next",
    "thread_native_id": "thread:native_thread_id", "thread_frame": "thread:current_frame",
    "thread_chunk": "thread:datastack_chunk", "frame_previous": "frame:previous",
    "frame_code": "frame:executable", "frame_instruction": "frame:instr_ptr",
    "frame_owner": "frame:owner", "code_filename": "code:filename", "code_name": "code:name",
    "code_qualname": "code:qualname", "code_linetable": "code:linetable",
    "code_firstlineno": "code:firstlineno", "code_instructions": "code:co_code_adaptive",
    "object_type": "object:ob_type", "bytes_size": "bytes:ob_size", "bytes_data": "bytes:ob_sval",
    "str_size": "unicode:length", "str_state": "unicode:state",
    "str_ascii": "unicode:asciiobject_size",
}  # fmt: skip
"""Field of `Layout` -> its published name."""
_MAGIC = b"xdebugpy"
_FOREIGN_OWNER = 3
"""`FRAME_OWNED_BY_CSTACK` of 3.12 and 3.13, `FRAME_OWNED_BY_INTERPRETER` of 3.14."""


def layout_of(version: tuple[int, int], memory: Memory, runtime: int) -> Layout:
    """Return the layout of a process's Python.

    Args:
        version: its major and minor version.
        memory: the process's.
        runtime: address of its `_PyRuntime`.

    Raises:
        UnwindError: the layout of this Python is not known.
    """
    if version in _BEFORE_3_13:
        return _BEFORE_3_13[version]
    if version not in _PUBLISHED:
        raise UnwindError(f"the stack layout of Python {version[0]}.{version[1]} is not known")
    names = [
        f"{head}:{name}" if name else head
        for head, _, fields in (line.partition(": ") for line in _PUBLISHED[version])
        for name in fields.split() or [""]
    ]
    data = memory.read(runtime, 8 * (len(names) + 1))
    if data[:8] != _MAGIC:
        raise UnwindError("this Python does not publish its stack layout")
    at = dict(zip(names, struct.unpack(f"<{len(names)}Q", data[8:]), strict=True))
    if (at["version"] >> 24, at["version"] >> 16 & 0xFF) != version:
        raise UnwindError("this Python publishes the stack layout of another version")
    if at["free_threaded"]:
        raise UnwindError("the stack layout of a Python without GIL is not known")
    if (at["object:ob_type"], at["bytes:ob_size"], at["unicode:length"]) != (8, 16, 16):
        raise UnwindError("the stack layout that this Python publishes is not plausible")
    return Layout(
        **{field: at[name] for field, name in _NAMES.items()},
        # After two more fields of eight bytes: the length in UTF-8, and its address.
        str_other=at["unicode:asciiobject_size"] + 16,
        frame_pointer=None,
        instruction_bytes=1,
        first_foreign_owner=_FOREIGN_OWNER,
    )
