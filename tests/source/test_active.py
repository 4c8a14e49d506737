"""The expression that a frame executes, by the line and the text that a recording has."""

from __future__ import annotations

import ast
import dis
import sys

import pytest

from teho.source.parsed import parsed

CHAIN = """\
def table(rows):
    found = (rows
             .where(1)
             .name
             .sort(
                 2, 3)
             .first())
    return [
        found.again(), found]
"""
CALLS = {
    "the method's name begins the text of a call": (7, "first()", "first"),
    "a call over two lines": (5, "sort(2, 3)", "sort"),
    "the first call of a chain": (3, "where(1)", "where"),
    "a call on one line": (9, "found.again()", "again"),
    "Python before 3.11 has only the line": (7, ".first())", "first"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_active_call_of_a_chain(name):
    line, text, method = CALLS[name]
    node = parsed(CHAIN.encode()).active(line, text)
    assert isinstance(node, ast.Call)
    assert node.func.attr == method


def test_an_attribute_of_a_chain_begins_at_its_name():
    node = parsed(CHAIN.encode()).active(4, "name")
    assert isinstance(node, ast.Attribute)
    assert node.attr == "name"


@pytest.mark.parametrize(
    ("line", "text"), [(3, "first()"), (7, "sort(2, 3)"), (2, "where(1)"), (7, "found.first()")]
)
def test_a_text_of_another_line_is_not_active(line, text):
    assert parsed(CHAIN.encode()).active(line, text) is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="has no positions of expressions")
def test_the_begin_of_each_call_is_that_of_python():
    code = compile(CHAIN, "chain.py", "exec").co_consts[0]
    lines = CHAIN.split("\n")
    calls = {
        (line, end, column, end_column)
        for instruction, (line, end, column, end_column) in zip(
            code.co_code[::2], code.co_positions(), strict=False
        )
        if dis.opname[instruction] in ("CALL", "CALL_KW")
    }
    assert len(calls) == 4
    for line, end, column, end_column in calls:
        part = [*lines[line - 1 : end]]
        part[-1] = part[-1].encode()[:end_column].decode()
        part[0] = part[0][column:]
        text = " ".join(one.strip() for one in part).replace("( ", "(")
        assert isinstance(parsed(CHAIN.encode()).active(line, text), ast.Call)
