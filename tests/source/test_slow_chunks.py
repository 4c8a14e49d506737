"""Compressed chunks of HDF5 that are larger than the cache for chunks."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

ARCHIVE = """
import h5py
ROWS, WIDTH, BLOCK = 8192, 1024, 128
CHUNK = (4096, WIDTH)
def main(path, blocks, order):
    with h5py.File({file}) as archive:
        data = archive.create_dataset(
            "velocity", {made})
        {loop}
            {use}
"""
MADE = 'shape=(ROWS, WIDTH), dtype="f4", chunks=(4096, WIDTH), compression="gzip"'
LOOP = "for start in range(0, ROWS, BLOCK):"
USE = "data[start:start + BLOCK] = blocks[start]"
SET = "lib:h5py/_hl/dataset.py:Dataset.__setitem__"


def chunks(made=MADE, loop=LOOP, use=USE, file='path, "w"', active="", library=SET):
    source = ARCHIVE.format(made=made, loop=loop, use=use, file=file)
    return found(source, active or use.partition(" = ")[0], library)


def test_the_words():
    assert chunks() == {
        "chunks_above_cache": {
            "needed_mb": "16.8",
            "parts": "32",
            "cache": "32 * 2**20",
            "opened": " at train.py:13",
            "smaller": "(128, 1024)",
        }
    }


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (MADE.replace("(4096, WIDTH)", "CHUNK"), "chunks_above_cache"),
        (MADE.replace('"f4"', "np.float32"), "chunks_above_cache"),
        (MADE.replace('dtype="f4", ', ""), "chunks_above_cache"),
        (MADE.replace('"f4"', '"uint8"'), "chunks_above_old_cache"),
        (MADE.replace('"gzip"', '"lzf"'), "chunks_above_cache"),
        (f"(ROWS, WIDTH), np.float64, {MADE.partition('f4')[2][3:]}", "chunks_above_cache"),
        # Each part needs 64 chunks of 0.3 MB.
        (MADE.replace("(4096, WIDTH)", "(4096, 16)"), "chunks_above_cache"),
        # ---- which look like it ----
        (MADE.replace(', compression="gzip"', ""), None),
        (MADE.replace('"gzip"', "None"), None),
        (MADE.replace("4096", "128"), None),  # each part is a whole chunk
        (MADE.replace("4096", "256"), None),
        (MADE.replace("(4096, WIDTH)", "(1024, 8)"), None),  # the cache has too few places for them
        (MADE.replace("(4096, WIDTH)", "True"), None),
        (MADE.replace("(4096, WIDTH)", "order"), None),
        (MADE.replace('"f4"', "order.dtype"), None),
        ('data=order, chunks=(4096, WIDTH), compression="gzip"', None),
    ],
)
def test_data_sets(made, name):
    assert list(chunks(made=made)) == ([name] if name else [])


@pytest.mark.parametrize(
    ("loop", "use", "is_found"),
    [
        ("for i in range(9):", "data[i * BLOCK:(i + 1) * BLOCK] = blocks[i]", True),
        ("for row in range(ROWS):", "data[row] = blocks[row]", True),
        ("for row, block in enumerate(blocks):", "data[row, :] = block", True),
        (LOOP, "stop = min(start + BLOCK, ROWS); data[start:stop] = blocks[start]", True),
        # ---- which look like it ----
        ("if order:", "data[0:128] = blocks[0]", False),
        ("for row in order:", "data[row] = blocks[row]", False),  # any order needs another cache
        (LOOP, "data[:] = blocks", False),
        (LOOP, "data[start:order] = blocks[start]", False),
        ("for start in range(0, ROWS, 4096):", "data[start:start + 4096] = blocks[start]", False),
    ],
)
def test_parts(loop, use, is_found):
    active = use.partition(" = ")[0] if "stop" not in use else "data[start:stop]"
    names = list(chunks(loop=loop, use=use, active=active))
    assert names == (["chunks_above_cache"] if is_found else [])


def test_a_cache_that_the_program_sets():
    assert chunks(file='path, "w", rdcc_nbytes=96 * 2**20') == {}


def test_another_library():
    assert chunks(library="lib:zarr/core.py:Array.__setitem__") == {}


def test_reading_what_the_program_wrote():
    source = ARCHIVE.format(made=MADE, loop=LOOP, use=USE, file='path, "w"')
    source += """
def sums(path):
    with h5py.File(path, "r") as stored:
        rows = stored["velocity"]
        return [rows[row].sum() for row in range(ROWS)]
"""
    words = found(source, "rows[row]", "lib:h5py/_hl/dataset.py:Dataset.__getitem__")
    assert words["chunks_above_cache"]["parts"] == "4096"
