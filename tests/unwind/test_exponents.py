"""Constant exponents of calls of `pow` in the code of a program."""

from __future__ import annotations

import struct

import pytest

from teho.unwind.exponents import with_exponent

LOAD, LOAD_AVX = "f2 0f 10 0d", "c5 fb 10 0d"
TO_RAX = "48 8b 05"
MOVE, MOVE_AVX = "66 48 0f 6e c8", "c4 e1 f9 6e c8"
BESIDE = "f2 0f 11 54 24 08"  # movsd %xmm2, 0x8(%rsp)
CALL_BYTES, NUMBER_AT = 5, 4096


class Code:
    """A file with some code before the call of `pow`, and a number at its end."""

    def __init__(self, parts: list[str], exponent: float) -> None:
        self.code = b"\x90" * 160
        for part in parts:
            self.code += bytes.fromhex(part)
            if part in (LOAD, LOAD_AVX, TO_RAX):
                self.code += struct.pack("<i", NUMBER_AT - len(self.code) - 4)
        self.end = len(self.code) + CALL_BYTES
        self.content = self.code.ljust(NUMBER_AT, b"\0") + struct.pack("<d", exponent)

    def code_at(self, virtual: int, size: int) -> bytes:
        return self.content[virtual : virtual + size]


def shown(parts: list[str], exponent: float, called: str = "pow") -> str:
    code = Code(parts, exponent)
    return with_exponent(called, code, code.end)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "parts",
    [
        [LOAD],
        [LOAD_AVX],
        [LOAD, BESIDE],
        [TO_RAX, BESIDE, MOVE, BESIDE],
        [TO_RAX, MOVE_AVX],
        [MOVE, LOAD],
    ],
)
def test_exponents_in_the_file(parts: list[str]) -> None:
    assert shown(parts, 3.0) == "pow(x, 3)"


@pytest.mark.parametrize(
    ("exponent", "name"),
    [
        (2.0, "pow(x, 2)"), (8.0, "pow(x, 8)"), (9.0, "pow"), (0.5, "pow(x, 0.5)"), (0.7, "pow"),
        (-1.0, "pow(x, -1)"), (-3.0, "pow"), (1.0, "pow"), (0.0, "pow"),
        (float("nan"), "pow"), (float("inf"), "pow"),
    ],
)  # fmt: skip
def test_exponents_for_which_multiplying_is_faster(exponent: float, name: str) -> None:
    assert shown([LOAD], exponent) == name


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [MOVE],  # from another place
        [LOAD, "f2 0f 59 c8"],  # mulsd %xmm0, %xmm1
        [LOAD, "66 0f 28 ca"],  # movapd %xmm2, %xmm1
        [LOAD, *["90"] * 130],
        ["f2 0f 10 05 00 00 00 00"],  # movsd to %xmm0
    ],
)
def test_exponents_that_are_not_known(parts: list[str]) -> None:
    assert shown(parts, 3.0) == "pow"


def test_other_functions() -> None:
    assert shown([LOAD], 3.0, "fmod") == "fmod"
