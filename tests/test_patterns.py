"""Every pattern of Teho can be compiled, and one that is compiled later is used like any other."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys

import pytest

from teho.patterns import lazy_pattern

COMPILES_ALL = """
import gc, importlib, pkgutil, teho
from teho.patterns import _LazyPattern
for found in pkgutil.walk_packages(teho.__path__, "teho."):
    if found.name != "teho.__main__":
        try:
            importlib.import_module(found.name)
        except ImportError:  # an extra that is not installed
            pass
patterns = [one for one in gc.get_objects() if type(one) is _LazyPattern]
for one in patterns:
    try:
        one.pattern
    except Exception as error:
        print(one._text, error)
print(len(patterns), "patterns")
"""


def test_every_pattern_of_teho_can_be_compiled() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPILES_ALL], capture_output=True, text=True, check=True
    )
    *wrong, count = done.stdout.splitlines()
    assert wrong == []
    assert int(count.split()[0]) > 300


def test_it_is_used_like_a_compiled_pattern() -> None:
    lazy, compiled = (
        lazy_pattern(r"(\d+) (ms|S)", re.IGNORECASE),
        re.compile(r"(\d+) (MS|s)", re.IGNORECASE),
    )
    text = "12 s, 3 MS"
    assert lazy.findall(text) == compiled.findall(text) == [("12", "s"), ("3", "MS")]
    assert lazy.sub(r"\2", text) == compiled.sub(r"\2", text)
    assert lazy.flags == compiled.flags
    assert [found[1] for found in lazy.finditer(text)] == ["12", "3"]
    assert lazy_pattern(rb"a+").fullmatch(b"aaa")


def test_a_mistake_is_an_error_of_the_first_use() -> None:
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.search("(")


def test_a_copy_can_be_used() -> None:
    lazy = lazy_pattern("a+")
    for one in (copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert one.search("baa")
