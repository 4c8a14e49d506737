"""HDF5 data sets that are decompressed as a whole for each part, and others."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

CUBE = """
import h5py
ROWS, COLS, CHANNELS = 160, 200, 1024
def scan(path, data):
    with h5py.File(path, "w") as f:
        f.create_dataset("counts", (ROWS, COLS, CHANNELS), dtype="u2",
                         chunks=(8, 50, CHANNELS), compression="gzip")
        f["counts"][:] = data
def window(cube, low, high):
    return cube[:, :, low:high].sum(axis=2)
def main(path, centres, data):
    scan(path, data)
    with h5py.File(path, "r") as f:
        cube = f["counts"]
        for centre in centres:
            window(cube, centre - 10, centre + 11)
"""
PART = "cube[:, :, low:high]"
STACK = ("window(cube, centre - 10, centre + 11)", PART)
GET = "lib:h5py/_hl/dataset.py:Dataset.__getitem__"


def found(source, *stack):
    for one in find_slow_calls(*stack_of(source, *stack, GET)):
        if one.name in ("data_set_read_again", "data_set_of_loop_read_again"):
            return one
    return None


def changed(*changes):
    source = CUBE
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    return source


def test_names_the_data_set_and_its_size():
    one = found(CUBE, *STACK)
    assert one.name == "data_set_read_again"
    assert (one.at.text, one.at.line) == (PART, 17)
    assert one.words == {
        "set": 'f["counts"]',
        "set_at": "train.py:21",
        "megabytes": "66",
        "chunk": "(8, 50, CHANNELS)",
        "loop": "train.py:22",
    }


def test_a_data_set_without_a_name():
    source = changed('        cube = f["counts"]\n', "", "window(cube, centre - 10, centre + 11)",
                     'f["counts"][:, :, centre]')  # fmt: skip
    one = found(source, 'f["counts"][:, :, centre]')
    assert one.name == "data_set_of_loop_read_again"
    assert one.words["loop"] == "train.py:21"


@pytest.mark.parametrize(
    ("changes", "stack"),
    [
        # Each part needs only a few chunks.
        (("(8, 50, CHANNELS)", "(160, 200, 8)"), STACK),
        ((PART, "cube[low:high]"), (STACK[0], "cube[low:high]")),
        ((PART, "cube[low, :, high]"), (STACK[0], "cube[low, :, high]")),
        # One chunk, no compression, a size that is not known or too large.
        (("(8, 50, CHANNELS)", "(ROWS, COLS, CHANNELS)"), STACK),
        ((', compression="gzip"', ""), STACK),
        (("(ROWS, COLS, CHANNELS), dtype", "data.shape, dtype"), STACK),
        (("160, 200, 1024", "16000, 20000, 1024"), STACK),
        # The data set is opened again for each part, or may be changed.
        (('        cube = f["counts"]\n        for centre in centres:\n',
          '        for centre in centres:\n            cube = f["counts"]\n'), STACK),
        (('h5py.File(path, "r")', 'h5py.File(path, "r+")'), STACK),
        (('h5py.File(path, "r")', "opened(path)"), STACK),
        # The whole data set, and a few parts.
        ((PART, "cube[:, :, :]"), (STACK[0], "cube[:, :, :]")),
        (("in centres:", "in (92, 132):"), STACK),
        # It is in memory already.
        (('cube = f["counts"]', 'cube = f["counts"][:]'), STACK),
    ],
)  # fmt: skip
def test_look_alikes(changes, stack):
    assert found(changed(*changes), *stack) is None
