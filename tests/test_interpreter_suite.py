"""Tests of the interpreter's own suite come out the same under `teho run` as without it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import TEHO

# Those that look at what a start leaves behind: warnings, modules, paths, encodings, signals, ends.
MODULES = (
    "test_warnings",
    "test_sys",
    "test_atexit",
    "test_utf8_mode",
    "test_site",
    "test_io.CMiscIOTest",
)
# It counts the memory blocks of all threads, so a sample at this moment can change the count. If
# only this test differs, the module runs again.
COUNTS_MEMORY = {"test.test_sys.SysModuleTest.test_getallocatedblocks"}
RUNNER = """
import io, json, sys, unittest
found = {}
class Result(unittest.TextTestResult):
    def stopTest(self, test): found.setdefault(test.id(), "ok"); super().stopTest(test)
    def addError(self, test, error): found[test.id()] = repr(error[1])[:300]
    def addFailure(self, test, error): found[test.id()] = repr(error[1])[:300]
    def addSkip(self, test, reason): found[test.id()] = "skipped"
    def addSubTest(self, test, sub, error):
        if error is not None: found[test.id()] = repr(error[1])[:300]
suite = unittest.defaultTestLoader.loadTestsFromName("test." + sys.argv[1])
unittest.TextTestRunner(stream=io.StringIO(), resultclass=Result).run(suite)
open(sys.argv[2], "w", encoding="utf-8").write(json.dumps(found))
"""


def outcomes(module: str, folder: Path, *around: str) -> dict[str, str]:
    told = folder / f"{module}{len(around)}.json"
    script = folder / "runner.py"
    script.write_text(RUNNER)
    argv = [*around, sys.executable, "-X", "warn_default_encoding", script, module, told]
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert told.exists(), done.stderr
    return json.loads(told.read_text())


@pytest.mark.skipif(
    importlib.util.find_spec("test.support") is None,
    reason="the interpreter's own tests are not installed beside it",
)
@pytest.mark.drawn(2)
@pytest.mark.parametrize("module", MODULES)
def test_its_own_tests_end_as_without(module: str, tmp_path: Path) -> None:
    alone = outcomes(module, tmp_path)
    assert len(alone) > 3
    for left in (2, 1, 0):
        recorded = outcomes(module, tmp_path, *TEHO, "run", "--quiet", "--report", "none", "--")
        assert {*recorded} == {*alone}
        differing = {name: (alone[name], recorded[name]) for name in alone}
        differing = {name: two for name, two in differing.items() if two[0] != two[1]}
        if not (left and differing and {*differing} <= COUNTS_MEMORY):
            break
    assert differing == {}


def test_encodings_that_the_probe_leaves_out_are_not_reported(tmp_path: Path) -> None:
    code = "import time; time.sleep(0.5)"
    strict = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
    argv = [*TEHO, "run", "--quiet", "--report", "none", "--", sys.executable, *strict, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("", "")
