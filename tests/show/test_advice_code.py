"""Code in an advice: several statements become lines that a user can copy."""

from __future__ import annotations

import ast

import msgspec
import pytest

from show.test_build import view_of
from teho.show.advice_code import advice_parts
from teho.show.html.page import render_html
from teho.show.text.document import render_text

ADVICE = (
    "Instead of lines 4 to 6, write: `a = f(x)`; `return a`. Define `def f(x): y = x + 1; return "
    "y`, and call it once."
)


def test_statements_and_functions_are_blocks():
    assert advice_parts(ADVICE) == (
        "Instead of lines 4 to 6, write:",
        ("a = f(x)", "return a"),
        "Define:",
        ("def f(x):", "    y = x + 1", "    return y"),
        "and call it once.",
    )


@pytest.mark.parametrize(
    "advice",
    [
        "Write `x = 1` instead of `x = 2`.",
        "Use `.item()`, `.cpu()` and `print(loss)` seldom.",
        "Run `module load python; srun teho run -- python train.py`.",
        'Read `f["counts"][:]`; the file must be open.',
        "Remove `x = '\udcff\x00'; y`.",
        f"Remove `{'(' * 5000}`.",
        "",
    ],
)
def test_other_code_stays_in_the_text(advice):
    assert advice_parts(advice) == ((advice,) if advice else ())


def test_the_lines_are_whole_in_the_text_and_on_the_page():
    view = view_of("decodes_in_main_process")
    long = f"`first = {'x + ' * 40}1`; `return first < 2`"
    finding = msgspec.structs.replace(view.findings[0], action=f"Write: {long}. That is all.")
    view = msgspec.structs.replace(view, verdict="One finding.", findings=(finding,))
    shown = render_text(view, width=80, color=False)
    block = [line[8:] for line in shown.splitlines() if line.startswith("        ")]
    code = "\n".join(line for line in block if line.startswith(("first =", "return")))
    assert (
        len(ast.parse(f"def f():\n    {code.replace(chr(10), chr(10) + '    ')}").body[0].body) == 2
    )
    assert "    That is all." in shown
    assert "1\nreturn first &lt; 2</code>" in render_html(view)
