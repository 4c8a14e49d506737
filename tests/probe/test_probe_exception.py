"""The exception that ends a program is noted; what the program prints stays as it is."""

from __future__ import annotations

import pytest

from probe.probed import Probed
from probe.test_probe import pythons


@pytest.mark.parametrize("python", pythons())
def test_the_exception_that_ends_a_program(probed: Probed, python: str) -> None:
    code = """
    import json
    def load(text): return json.loads(text)
    load("{")
    """
    done = probed.both(code, python=python)
    assert done.returncode == 1
    (process,) = probed.watched()
    assert process.raised is not None
    # The last place of the program's own, though the standard library raised it.
    assert process.raised.text.startswith("json.decoder.JSONDecodeError: Expecting property name")
    assert process.raised.at is not None
    place = process.raised.at
    assert (place.file, place.function, place.line) == (str(probed.script), "load", 9)
    assert place.text in {"json.loads(text)", "def load(text): return json.loads(text)"}
    assert process.raised.at_s == process.until_s


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("raise MemoryError", "MemoryError"),
        ("class Own(Exception): pass\nraise Own('a\\nb')", "Own: a"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise ValueError('x' * 400)", "ValueError: " + "x" * 300),
        ("raise OSError('no', 'https://ann:pass@host')", "OSError"),
        ("raise OSError('api_key=abc')", "OSError"),
        ("raise OSError('Invalid Token abc')", "OSError"),
        ("raise OSError('hf_abcdefghijklmnopqrstuvwxyz0123456789')", "OSError"),
        ("class Odd(Exception):\n  def __str__(self): raise OSError\nraise Odd", "Odd"),
        ("import no_such_one", "ModuleNotFoundError: No module named 'no_such_one'"),
    ],
)  # fmt: skip
def test_its_first_line_unless_that_may_contain_a_secret(
    probed: Probed, code: str, text: str
) -> None:
    probed.run(code)
    (process,) = probed.watched()
    assert process.raised is not None
    assert process.raised.text == text


@pytest.mark.parametrize(
    "code",
    [
        "sys.exit(3)",
        "sys.exit('no')",
        "try: 1 / 0\nexcept ZeroDivisionError: pass",
        "import threading\nt = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
    ],
)
def test_what_did_not_end_it_is_not_noted(probed: Probed, code: str) -> None:
    probed.both(code)
    (process,) = probed.watched()
    assert process.raised is None
