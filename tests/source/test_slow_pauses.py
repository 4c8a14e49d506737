"""Pauses between two checks, from the source."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

WAITS = """
import os, time
PAUSE = 0.5
def run_case(path):
    while not os.path.exists(path + ".result"):
        time.sleep(1.0)
    return open(path + ".result").read()
"""
SERVES = """
import os, time
def serve(spool):
    while True:
        for name in sorted(os.listdir(spool)):
            work(name)
        time.sleep(0.01)
"""


def found(source, call="time.sleep(1.0)"):
    names = ("checked_seldom", "tasks_awaited")
    return next(
        (one for one in find_slow_calls(*stack_of(source, call)) if one.name in names), None
    )


def changed(source, *changes):
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    return source


def test_a_long_pause_between_checks():
    one = found(WAITS)
    assert (one.name, one.at.text) == ("checked_seldom", "time.sleep(1.0)")
    assert one.words["pause"] == "1"
    assert one.words["check"] == 'os.path.exists(path + ".result")'
    assert one.words["checked_at"] == f"train.py:{one.at.line - 1}"


@pytest.mark.parametrize(
    ("changes", "call"),
    [
        (('not os.path.exists(path + ".result")', "worker.is_alive()"), "time.sleep(1.0)"),
        (("sleep(1.0)", "sleep(PAUSE)"), "time.sleep(PAUSE)"),
        (('while not os.path.exists(path + ".result"):',
          "while True:\n        if os.path.exists(path): break"), "time.sleep(1.0)"),
    ],
)  # fmt: skip
def test_other_checks(changes, call):
    assert found(changed(WAITS, *changes), call).name == "checked_seldom"


def test_a_process_that_looks_for_tasks():
    assert found(SERVES, "time.sleep(0.01)").name == "tasks_awaited"


@pytest.mark.parametrize(
    "changes",
    [
        # The pause is short, or not known.
        ("sleep(1.0)", "sleep(0.01)"),
        ("sleep(1.0)", "sleep(pause)"),
        # It measures something after each pause.
        ("time.sleep(1.0)", "time.sleep(1.0)\n        print(device.read())"),
        ("        time.sleep(1.0)", "        rows.append(device.read())\n        time.sleep(1.0)",
         'os.path.exists(path + ".result")', "stopped"),
        # It checks nothing that ends at once.
        ('not os.path.exists(path + ".result")', "not device.read()"),
        # A pause between two attempts, and one without a loop.
        ('while not os.path.exists(path + ".result"):', "for _ in range(9):"),
        ('while not os.path.exists(path + ".result"):', "if not os.path.exists(path):"),
        ("time.sleep", "device.sleep"),
    ],
)  # fmt: skip
def test_look_alikes(changes):
    source = changed(WAITS, *changes)
    call = next(one.strip() for one in source.split("\n") if "sleep(" in one)
    one = found(source, call)
    assert one is None or one.name == "tasks_awaited"
    assert one is None or "listdir" in source or "exists" in source
