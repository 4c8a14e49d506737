from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import TEHO
from teho.observe.uninstrumented import Uninstrumented

NOBODY = "No Python program loaded the probe"
ONE = "A Python program did not load the probe"


def seen(*argv: str, is_any_in: bool = False) -> str:
    """Return what is said of a process that waits for its input."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.read(1) == b"x"  # it is what it is to be
        uninstrumented = Uninstrumented()
        for _ in range(2):
            uninstrumented.check(frozenset({process.pid}))
        process.stdin.close()
    return uninstrumented.sentence(is_any_in=is_any_in)


# It goes on until the recorder has flushed twice, however late on a loaded machine: then it has
# checked the processes at least twice.
UNTIL_CHECKED = """
import glob, os, time
sizes, until = set(), time.monotonic() + 60
while len(sizes) < 2 and time.monotonic() < until:
    time.sleep(0.1)
    files = glob.glob(glob.escape(os.environ["TEHO_HOME"]) + "/runs/*/live/*")
    sizes |= {os.path.getsize(file) for file in files} - {0}
"""

WAIT = "print('x', end='', flush=True); input()"


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        (["-I"], "-I"),
        (["-BE"], "-E"),
        (["-W", "ignore", "-S"], "-S"),
        (["-Wignore", "-X", "dev", "-uS"], "-S"),
    ],
)
def test_the_option_that_shuts_it_out_is_named(options: list[str], flag: str) -> None:
    assert f"was started with {flag}" in seen(sys.executable, *options, "-c", WAIT)


@pytest.mark.parametrize("options", [[], ["-W", "-I"], ["-X", "-E"]])
def test_what_only_resembles_one_does_not_count(options: list[str]) -> None:
    said = seen(sys.executable, *options, "-c", WAIT, "-I", "-E")
    assert "does not get PYTHONPATH" in said


def test_others_are_not_mentioned() -> None:
    assert not seen("sh", "-c", "printf x; read line")
    uninstrumented = Uninstrumented()
    uninstrumented.check(frozenset({os.getpid()}))  # it may be about to become another
    assert not uninstrumented.sentence(is_any_in=False)


@pytest.mark.parametrize(("options", "is_told"), [([], False), (["-I"], True)])
def test_next_to_an_instrumented_process_only_an_option_counts(
    options: list[str], is_told: bool
) -> None:
    said = seen(sys.executable, *options, "-c", WAIT, is_any_in=True)
    assert said.startswith(f"{ONE}: ") is is_told
    assert bool(said) is is_told


def test_one_with_an_option_is_named_before_others() -> None:
    uninstrumented = Uninstrumented()
    with contextlib.ExitStack() as stack:
        pids = set()
        for options in ([], ["-E"]):
            argv = [sys.executable, *options, "-c", WAIT]
            process = stack.enter_context(
                subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            assert process.stdin
            assert process.stdout
            assert process.stdout.read(1) == b"x"
            stack.callback(process.stdin.close)
            pids.add(process.pid)
            for _ in range(2):
                uninstrumented.check(frozenset(pids))
    assert "was started with -E" in uninstrumented.sentence(is_any_in=False)


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler, which would make a static program")
    folder = tmp_path_factory.mktemp("static")
    (folder / "rest.c").write_text("#include <unistd.h>\nint main(void) { return sleep(2); }\n")
    argv = [compiler, "-static", "-o", str(folder / "rest"), str(folder / "rest.c")]
    made = subprocess.run(argv, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"the C compiler makes no static program: {made.stderr[:200]}")
    return folder / "rest"


def report(*argv: str) -> str:
    done = subprocess.run(
        [*TEHO, "run", "--every", "200ms", "--probe", "auto", "--report", "full", "--", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    return " ".join(done.stderr.split())


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_the_report_says_that_python_shut_it_out(option: str, home: Path) -> None:
    said = report("sh", "-c", f'{sys.executable} {option} -c "$0"; :', UNTIL_CHECKED)
    assert NOBODY in said
    assert f"was started with {option}, so Python did not load the probe" in said
    assert "Where the time went" not in said


def test_the_report_says_nothing_without_python(static: Path, home: Path) -> None:
    assert NOBODY not in report(str(static))
    assert NOBODY not in report("sh", "-c", "sleep 1; :")


def test_the_report_says_nothing_if_the_probe_is_loaded(home: Path) -> None:
    said = report(sys.executable, "-c", UNTIL_CHECKED)
    assert NOBODY not in said
    assert ONE not in said
    assert "Where the time went" in said


def test_the_report_says_that_one_of_several_shut_it_out(home: Path) -> None:
    start = "import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', sys.argv[1]])"
    said = report(sys.executable, "-c", start, UNTIL_CHECKED)
    assert NOBODY not in said
    assert ONE in said
    assert "was started with -I, so Python did not load the probe" in said
    assert "Where the time went" in said
