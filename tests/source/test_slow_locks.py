"""Locks that a thread holds while it reads data, and locks that it has to hold."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.model.stack import Frame
from teho.source.slow_calls.search import find_slow_calls

ARCHIVE = """
import bz2, threading, zlib
class Archive:
    def __init__(self, names):
        self.names = names
        self.lock = threading.Lock()
        self.files = 0
    def load(self, number):
        with self.lock:
            with open(self.names[number], "rb") as f:
                raw = bz2.decompress(f.read())
            self.files += 1
        return raw
def main(archive, pool):
    rows = list(pool.map(archive.load, range(84)))
"""
CALL = "bz2.decompress(f.read())"
UNPACK = "    def unpack(self, number):\n        return np.load(self.names[number]).sum()\n"
MAIN = "pool.map(archive.load, range(84))"
INNER = "lib:bz2.py:decompress"


def found(source, *active, inner=INNER):
    """Return the lock that another thread holds; `active` are its functions, outermost first."""
    frames, purity = stack_of(source, MAIN, *active, *([inner] if inner else []))
    (main,) = (place for place, one in enumerate(frames) if one.text == MAIN)
    frames.insert(main, Frame("<thread>", "", 0, ""))
    for one in find_slow_calls(frames, purity):
        if one.name == "lock_held":
            return one
    return None


def changed(source, *changes):
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    return source


def test_names_the_lock_and_the_work():
    one = found(ARCHIVE, CALL)
    assert (one.at.text, one.at.line) == ("with self.lock", 16)
    assert one.words == {}
    assert [line.line for line in one.lines] == [18]


@pytest.mark.parametrize(
    ("changes", "call"),
    [
        ((CALL, "np.fromfile(f).sum()"), "np.fromfile(f).sum()"),
        (("threading.Lock()", "threading.RLock()"), CALL),
        (("import bz2, threading", "from threading import Lock\nimport bz2",
          "threading.Lock", "Lock"), CALL),
        ((CALL, "unpacked(self.names[number])", "def main(",
          "def unpacked(name):\n    return bz2.decompress(open(name, 'rb').read())\ndef main("),
         "unpacked(self.names[number])"),
        # A method of the program that changes nothing.
        ((CALL, "self.unpack(number)", "def main(", UNPACK + "def main("), "self.unpack(number)"),
        # An array that the thread has made before the block.
        (("        with self.lock:", "        rows = self.rows[0] + 1\n        with self.lock:",
          CALL, "zlib.compress(rows.tobytes(), 6)"), "zlib.compress(rows.tobytes(), 6)"),
    ],
)  # fmt: skip
def test_other_programs(changes, call):
    assert found(changed(ARCHIVE, *changes), call) is not None


@pytest.mark.parametrize(
    ("changes", "call"),
    [
        # A file that all threads read.
        ((CALL, "self.file.read(100)"), "self.file.read(100)"),
        ((CALL, "bz2.decompress(self.file.read(100))"), "bz2.decompress(self.file.read(100))"),
        (("def load(self, number)", "def load(self, number, f)",
          'with open(self.names[number], "rb") as f', "for _ in range(1)"), CALL),
        ((CALL, "zlib.compress(self.rows.tobytes())"), "zlib.compress(self.rows.tobytes())"),
        (("        with self.lock:", "        rows = self.rows\n        with self.lock:",
          CALL, "bz2.decompress(rows.read(100))"), "bz2.decompress(rows.read(100))"),
        # A method may change what the threads share.
        ((CALL, "self.unpack(number)", "def main(",
          UNPACK.replace("return", "self.files += 2\n        return") + "def main("),
         "self.unpack(number)"),
        ((CALL, "self.unpack(number)", "def main(",
          UNPACK.replace("self.names", "self.files") + "def main("), "self.unpack(number)"),
        ((CALL, "self.unpack(f)"), "self.unpack(f)"),
        # A cache: the block has to be around the test and the work.
        (("            with open(", "            if self.names:\n              with open("), CALL),
        # Another lock, or none.
        (("threading.Lock()", "multiprocessing.Lock()"), CALL),
        (("threading.Lock()", "asyncio.Lock()"), CALL),
        (("threading.Lock()", "names.lock"), CALL),
        (("with self.lock:", "if self.lock:"), CALL),
        # The work is outside of the block.
        (("            self.files += 1", "            pass", "        with self.lock:\n",
          "        with self.lock:\n            self.files += 1\n        if self.names:\n"), CALL),
    ],
)  # fmt: skip
def test_look_alikes(changes, call):
    assert found(changed(ARCHIVE, *changes), call) is None


def test_python_code_in_the_block_needs_the_interpreter_lock():
    assert found(changed(ARCHIVE, CALL, "sum(map(int, f))"), "sum(map(int, f))", inner="") is None


def test_the_main_thread_may_hold_it():
    frames, purity = stack_of(ARCHIVE, MAIN, CALL, INNER)
    assert not [one for one in find_slow_calls(frames, purity) if one.name == "lock_held"]
