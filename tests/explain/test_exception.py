"""The exception at the end of what a program printed."""

from __future__ import annotations

import pytest

from teho.explain.exception import exception_in, last_exception
from teho.store.layout import output_file

TRACE = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
    ^^^^^^
"""


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("epoch 1\n" + TRACE + "MemoryError\n", "MemoryError"),
        (TRACE + "torch.OutOfMemoryError: CUDA out of memory. Tried\n", None),
        (TRACE + "KeyError: 1\n\nDuring handling of the above exception, another exception "
         "occurred:\n\n" + TRACE + "ValueError: two\n", "ValueError: two"),
        (TRACE + "ValueError: two\n" + "step\n" * 20, "ValueError: two"),
        (TRACE + "ValueError: two\n" + "step\n" * 21, ""),
        ("epoch 1\n", ""),
        ("", ""),
        (TRACE, ""),
        (TRACE + "ValueError: " + "x" * 200, "ValueError: " + "x" * 67 + "…"),
        (TRACE + "ValueError: token=hf_" + "a" * 34, "ValueError: token=•••"),
    ],
)  # fmt: skip
def test_the_last_line_of_the_last_traceback(printed, found):
    expected = "torch.OutOfMemoryError: CUDA out of memory. Tried" if found is None else found
    assert exception_in(printed) == expected


def test_from_a_recording(tmp_path):
    assert last_exception(tmp_path) == ""
    output_file(tmp_path).write_bytes(b"\xff\n" + TRACE.encode() + b"MemoryError\n")
    assert last_exception(tmp_path) == "MemoryError"
