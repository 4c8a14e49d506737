"""Atomic updates in the code of a program."""

from __future__ import annotations

import pytest

from teho.unwind.atomic import is_atomic

ATOMIC = [
    "f0 48 83 00 01",  # lock addq $1, (%rax)
    "f0 48 01 14 c5 40 40 00 00",  # lock add %rdx, 0x4040(, %rax, 8)
    "f0 48 01 02",  # lock add %rax, (%rdx)
    "f0 83 05 11 2f 00 00 01",  # lock addl $1, 0x2f11(%rip)
    "f0 49 0f b1 14 c0",  # lock cmpxchg %rdx, (%r8, %rax, 8)
    "f0 0f c1 44 24 0c",  # lock xadd %eax, 0xc(%rsp)
    "f0 ff 80 00 01 00 00",  # lock incl 0x100(%rax)
    "66 f0 81 00 34 12",  # lock addw $0x1234, (%rax)
    "f0 81 00 78 56 34 12",  # lock addl $0x12345678, (%rax)
]


@pytest.mark.parametrize("code", ATOMIC)
def test_atomic_updates(code: str) -> None:
    assert is_atomic(bytes.fromhex(code))


@pytest.mark.parametrize("code", ATOMIC)
def test_more_or_less_bytes_are_another_instruction(code: str) -> None:
    content = bytes.fromhex(code)
    assert not is_atomic(content[:-1])
    assert not is_atomic(content + b"\x90")
    assert not is_atomic(content.replace(b"\xf0", b""))


@pytest.mark.parametrize(
    "code",
    [
        "",
        "f0",
        "f0 48",
        "f0 0f",
        "f0 48 01 c2",  # an operand in a register
        "f0 48 8b 02",  # a move cannot be locked
        "48 83 00 01",
        "e8 f0 48 83 00",
    ],
)
def test_look_alikes(code: str) -> None:
    assert not is_atomic(bytes.fromhex(code))
