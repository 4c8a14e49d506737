"""Texts of messages that logging never writes, and messages that may be written."""

from __future__ import annotations

import pytest

from source.test_costly_options import MAIN, installed
from teho.model.stack import Frame
from teho.source.options.files import OwnFiles
from teho.source.options.search import OptionSearch

SOURCE = """
import logging
import numpy as np
{setup}
log = logging.getLogger("orbits")
def trace(x, v):
    for step in range(9):
        {message}
        x = x + v
"""
SETUP = "logging.basicConfig(level=logging.INFO)"
MESSAGE = 'log.debug(f"step {step}: {x}, speed {v[:, 2]}")'
NAMES = ("unwritten_text", "unwritten_text_of_calls")


def found(message=MESSAGE, setup=SETUP, inner=(), **modules):
    source = SOURCE.format(setup=setup, message=message)
    texts = {MAIN: source} | {f"/home/ada/{name}.py": text for name, text in modules.items()}
    line = source.split("\n").index(f"        {message}") + 1
    frames = [*(Frame(file, name, 0, "") for file, name in inner), Frame(MAIN, "trace", line, "x")]
    read = {path: text.encode() for path, text in texts.items()}.get
    own = OwnFiles([MAIN], read, installed)
    options = OptionSearch(own).found([frames], own.reached([MAIN]))
    return {one.name: one.words for one in options if one.name in NAMES}


def test_a_text_that_logging_can_make():
    assert found() == {
        "unwritten_text": {
            "level": "INFO (train.py:4)",
            "new": "log.debug('step %s: %s, speed %s', step, x, v[:, 2])",
        }
    }


def test_a_text_of_a_call():
    message = 'log.debug("at %d\\n%s" % (step, np.array2string(x, precision=6)))'
    assert found(message)["unwritten_text_of_calls"] == {
        "level": "INFO (train.py:4)",
        "test": "if log.isEnabledFor(logging.DEBUG):",
    }


@pytest.mark.parametrize(
    ("message", "new"),
    [
        ('log.debug(f"{x!r} {step:5d} 100 %")', "log.debug('%r %5d 100 %%', x, step)"),
        ('log.debug(f"{step:.3f}", extra=v)', "log.debug('%.3f', step, extra=v)"),
        ('log.debug("%s at %d" % (x, step))', "log.debug('%s at %d', x, step)"),
        ('logging.debug(f"{x}")', "logging.debug('%s', x)"),
        # With a test of the level instead.
        ('log.debug(f"{step:,}")', None),
        ('log.debug(f"{x:>{step}}")', None),
        ('log.debug(f"{x.sum()}")', None),
        ('log.debug("%s" % x)', None),  # `x` may be a tuple
        ('log.debug("{}".format(x))', None),
        ('log.debug("state " + str(x))', None),
        ('log.debug("%s", np.array2string(x))', None),
    ],
)
def test_the_code(message, new):
    (words,) = found(message).values()
    assert words.get("new") == new


@pytest.mark.parametrize(
    ("setup", "level"),
    [
        ("", "WARNING, the default of Python"),
        ("logging.basicConfig()", "WARNING (train.py:4)"),
        ('logging.basicConfig(level="ERROR")', "ERROR (train.py:4)"),
        ("logging.getLogger().setLevel(20)", "INFO (train.py:4)"),
        ("LEVEL = logging.INFO; logging.basicConfig(level=LEVEL)", "INFO (train.py:4)"),
        # ---- which may write the message ----
        ("logging.basicConfig(level=logging.DEBUG)", None),
        ("logging.basicConfig(level=sys.argv[1])", None),
        ("logging.basicConfig(**settings)", None),
        (f"{SETUP}; logging.getLogger('orbits').setLevel(logging.DEBUG)", None),
        (f"{SETUP}; logging.getLogger('orbits').setLevel(level)", None),
        ("logging.config.dictConfig(settings)", None),
        (f"{SETUP}\nimport unknown_module", None),
        (f"{SETUP}\nfrom helpers import f", None),
    ],
)
def test_the_level(setup, level):
    helpers = "import logging\nlogging.getLogger().setLevel('DEBUG')\ndef f(): pass\n"
    words = next(iter(found(setup=setup, helpers=helpers).values()), {})
    assert words.get("level") == level


@pytest.mark.parametrize(
    "message",
    [
        'log.debug("step %d: %s", step, x)',
        'log.debug("done")',
        'log.debug(f"done")',
        'if log.isEnabledFor(logging.DEBUG): log.debug(f"{x}")',
        'log.info(f"{x}")',
        'log.warning(f"{x}")',
        'own.debug(f"{x}")',
        'print(f"{x}")',
        "log.debug(x)",
    ],
)
def test_messages_that_look_like_it(message):
    assert found(message) == {}


def test_a_message_that_is_written_after_all():
    file = "/usr/lib/python3.11/logging/__init__.py"
    assert found(inner=[(file, "Logger._log"), (file, "Logger.debug")]) == {}
    assert found(inner=[(file, "Logger.debug")]) != {}


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("return x.max()", True),
        ("COUNTS.append(x); return x", False),
        ("global COUNT; COUNT = 3; return x", False),
    ],
)
def test_a_function_of_the_program_that_makes_a_part(body, is_found):
    state = f"COUNTS = []\ndef state(x):\n    {body}\n{SETUP}"
    assert bool(found('log.debug(f"{state(x)}")', state)) is is_found


@pytest.mark.parametrize("part", ["queue.pop()", "next(items)", "(y := x)"])
def test_parts_that_change_something(part):
    assert found(f'log.debug(f"{{{part}}}")') == {}


def test_information_needs_a_level_in_the_source():
    message = 'log.info(f"{x}")'
    assert found(message, "logging.basicConfig(level=logging.WARNING)")
    assert not found(message, "")
