"""Where a Python keeps what makes up a stack, version by version.

From 3.13 on a Python says so itself (`_Py_DebugOffsets`, the first thing in `_PyRuntime`; see
`Include/internal/pycore_runtime.h` of 3.13 and `pycore_debug_offsets.h` of 3.14). For those before,
the numbers are `offsetof` of their own headers on a 64-bit Linux; tests/unwind compares them
with every Python that is installed. They stay the same within a minor version.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from teho.unwind.memory import Memory, UnwindError

__all__ = ["Layout", "layout_of"]


class Layout(NamedTuple):
    """Offsets in bytes, from the beginning of what is named first."""

    interpreters: int
    """`_PyRuntime` -> the newest interpreter; the main one is the last of the list."""
    interpreter_next: int
    threads: int
    """Interpreter -> its newest thread."""
    thread_next: int
    thread_native_id: int | None
    """None: the thread does not keep it; the main one is the last of the list."""
    thread_frame: int
    """Thread -> its innermost frame, or what points to it."""
    frame_pointer: int | None
    """What the thread points to -> its innermost frame; None: the thread points to the frame."""
    thread_chunk: int | None
    """Thread -> the block that its newest frames are in; None: frames are objects."""
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
    """Code -> its instructions."""
    instruction_bytes: int
    """What one unit of an instruction's place counts for."""
    object_type: int
    bytes_size: int
    bytes_data: int
    str_size: int
    str_state: int
    str_ascii: int
    """String -> its characters, if all are ASCII."""
    str_other: int
    """The same for other strings."""
    first_foreign_owner: int
    """Frames with this owner or a later one are no function's."""


def _objects(lasti: int, unit: int) -> Layout:
    """Return the layout of 3.8 to 3.10, which have an object for each frame."""
    return Layout(
        interpreters=32, interpreter_next=0, threads=8, thread_next=8, thread_native_id=None,
        thread_frame=24, frame_pointer=None, thread_chunk=None,
        frame_previous=24, frame_code=32, frame_instruction=lasti, frame_owner=None,
        code_filename=104, code_name=112, code_qualname=None, code_linetable=120,
        code_firstlineno=40, code_instructions=0, instruction_bytes=unit,
        object_type=8, bytes_size=16, bytes_data=32,
        str_size=16, str_state=32, str_ascii=48, str_other=72, first_foreign_owner=0,
    )  # fmt: skip


_BEFORE_3_13 = {
    (3, 8): _objects(lasti=104, unit=1),
    (3, 9): _objects(lasti=104, unit=1),
    (3, 10): _objects(lasti=96, unit=2),
    (3, 11): Layout(
        interpreters=40, interpreter_next=0, threads=16, thread_next=8, thread_native_id=160,
        thread_frame=56, frame_pointer=8, thread_chunk=296,
        frame_previous=48, frame_code=32, frame_instruction=56, frame_owner=69,
        code_filename=112, code_name=120, code_qualname=128, code_linetable=136,
        code_firstlineno=72, code_instructions=184, instruction_bytes=1,
        object_type=8, bytes_size=16, bytes_data=32,
        str_size=16, str_state=32, str_ascii=48, str_other=72, first_foreign_owner=3,
    ),
    (3, 12): Layout(
        interpreters=40, interpreter_next=0, threads=72, thread_next=8, thread_native_id=144,
        thread_frame=56, frame_pointer=0, thread_chunk=232,
        frame_previous=8, frame_code=0, frame_instruction=56, frame_owner=70,
        code_filename=112, code_name=120, code_qualname=128, code_linetable=136,
        code_firstlineno=68, code_instructions=192, instruction_bytes=1,
        object_type=8, bytes_size=16, bytes_data=32,
        str_size=16, str_state=32, str_ascii=40, str_other=56, first_foreign_owner=3,
    ),
}  # fmt: skip

# What `_Py_DebugOffsets` holds after its magic word, in its order, each eight bytes.
_HEAD = ("version", "free_threaded", "runtime: size finalizing interpreters_head")
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
_GIL = (
    "gil_runtime_state gil_runtime_state_enabled gil_runtime_state_locked gil_runtime_state_holder"
)
_INTERPRETER_3_13 = (
    f"interpreter: size id next threads_head gc imports_modules sysdict builtins ceval_gil {_GIL}"
)
_INTERPRETER_3_14 = (
    "interpreter: size id next threads_head threads_main gc imports_modules sysdict builtins "
    f"ceval_gil {_GIL} code_object_generation tlbc_generation"
)
_PUBLISHED = {
    (3, 13): (
        *_HEAD,
        _INTERPRETER_3_13,
        _THREAD, _FRAME, _CODE, *_OBJECTS, *_REST,
    ),
    (3, 14): (
        *_HEAD,
        _INTERPRETER_3_14,
        _THREAD, f"{_FRAME} stackpointer tlbc_index", f"{_CODE} co_tlbc", *_OBJECTS,
        "set: size used table mask", *_REST,
    ),
}  # fmt: skip
_MAGIC = b"xdebugpy"
_FOREIGN_OWNER = 3
"""`FRAME_OWNED_BY_CSTACK` of 3.12 and 3.13, `FRAME_OWNED_BY_INTERPRETER` of 3.14."""


def layout_of(version: tuple[int, int], memory: Memory, runtime: int) -> Layout:
    """Return the layout of a process's Python.

    Args:
        version: its major and minor version.
        memory: the process's.
        runtime: where its `_PyRuntime` is.

    Raises:
        UnwindError: there is none for this Python.
    """
    if version in _BEFORE_3_13:
        return _BEFORE_3_13[version]
    if version not in _PUBLISHED:
        raise UnwindError(f"the stacks of Python {version[0]}.{version[1]} are not known")
    names = [
        f"{head}:{name}" if name else head
        for head, _, fields in (line.partition(": ") for line in _PUBLISHED[version])
        for name in fields.split() or [""]
    ]
    data = memory.read(runtime, 8 * (len(names) + 1))
    if data[:8] != _MAGIC:
        raise UnwindError("it does not say where its stacks are")
    at = dict(zip(names, struct.unpack(f"<{len(names)}Q", data[8:]), strict=True))
    if (at["version"] >> 24, at["version"] >> 16 & 0xFF) != version:
        raise UnwindError("it says of another version where its stacks are")
    if at["free_threaded"]:
        raise UnwindError("a Python without GIL has stacks of another kind")
    if (at["object:ob_type"], at["bytes:ob_size"], at["unicode:length"]) != (8, 16, 16):
        raise UnwindError("where it says that its stacks are makes no sense")
    return Layout(
        interpreters=at["runtime:interpreters_head"],
        interpreter_next=at["interpreter:next"],
        threads=at["interpreter:threads_head"],
        thread_next=at["thread:next"],
        thread_native_id=at["thread:native_thread_id"],
        thread_frame=at["thread:current_frame"],
        frame_pointer=None,
        thread_chunk=at["thread:datastack_chunk"],
        frame_previous=at["frame:previous"],
        frame_code=at["frame:executable"],
        frame_instruction=at["frame:instr_ptr"],
        frame_owner=at["frame:owner"],
        code_filename=at["code:filename"],
        code_name=at["code:name"],
        code_qualname=at["code:qualname"],
        code_linetable=at["code:linetable"],
        code_firstlineno=at["code:firstlineno"],
        code_instructions=at["code:co_code_adaptive"],
        instruction_bytes=1,
        object_type=at["object:ob_type"],
        bytes_size=at["bytes:ob_size"],
        bytes_data=at["bytes:ob_sval"],
        str_size=at["unicode:length"],
        str_state=at["unicode:state"],
        str_ascii=at["unicode:asciiobject_size"],
        # Two more fields of eight bytes: the length in UTF-8, and where that is.
        str_other=at["unicode:asciiobject_size"] + 16,
        first_foreign_owner=_FOREIGN_OWNER,
    )
