"""Fields of protocol buffers, written and read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.store.protobuf import bytes_field, fields_of, int_field

_NUMBERS = st.integers(min_value=1, max_value=2**29 - 1)
_VALUES = st.one_of(st.integers(min_value=0, max_value=2**64 - 1), st.binary(max_size=300))


def _field(number: int, value: int | bytes) -> bytes:
    return int_field(number, value) if isinstance(value, int) else bytes_field(number, value)


@given(st.dictionaries(_NUMBERS, _VALUES))
def test_what_is_written_is_read(values: dict[int, int | bytes]) -> None:
    assert fields_of(b"".join(_field(*item) for item in values.items())) == values


def test_fields_of_fixed_size_are_bytes() -> None:
    assert fields_of(b"\x19" + b"12345678" + b"\x25" + b"1234") == {3: b"12345678", 4: b"1234"}


def test_the_last_value_of_a_field_counts() -> None:
    assert fields_of(int_field(1, 5) + int_field(1, 6)) == {1: 6}


@pytest.mark.parametrize(
    "message", [b"\x0a\x05abc", b"\x08\x80", b"\x08", b"\x19123", b"\x0b", b"{}"]
)
def test_bytes_that_are_no_message_are_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"the message is cut off|unknown kind of field"):
        fields_of(message)
