"""A finding of the default text report has at most five lines on a terminal of 80 columns.

A finding with a block of code stays whole, so that the code can be copied.
"""

from __future__ import annotations

import msgspec
import pytest
import views

from explain.scenarios import SCENARIOS
from show.test_build import view_of
from teho.model.finding import Evidence
from teho.show.advice_code import advice_parts
from teho.show.html.page import render_html
from teho.show.text.document import render_text


@pytest.mark.parametrize("name", [*SCENARIOS, *views.SOUND])
def test_at_most_five_lines(name: str) -> None:
    view = views.SOUND[name]() if name in views.SOUND else view_of(name)
    for finding in view.findings:
        alone = msgspec.structs.replace(view, verdict="One finding.", findings=(finding,))
        blocks = render_text(alone, width=80, color=False).split("\n\n")
        lines = blocks[1].splitlines()
        assert lines[0][2:6] == finding.sentence[:4]
        has_code = any(isinstance(part, tuple) for part in advice_parts(finding.action))
        assert len(lines) <= (20 if has_code else 5), blocks[1]


@pytest.mark.parametrize(
    ("label", "value", "unit", "said", "in_html"),
    [
        ("workers", 0.0, "", "· 0 workers ·", "<dt>workers</dt><dd>0</dd>"),
        ("cores", 2.0, "cores", "· 2 cores ·", "<dt>cores</dt><dd>2</dd>"),
        ("cores", 1.0, "cores", "· 1 core ·", "<dt>cores</dt><dd>1</dd>"),
        # Not counts of what the label names:
        (
            "cores used, mean", 1.5, "cores",
            "· cores used, mean 1.50 cores ·", "<dt>cores used, mean</dt><dd>1.50 cores</dd>",
        ),
        ("batch size", 8.0, "samples", "· batch size 8 samples ·", "<dd>8 samples</dd>"),
        ("workers", "main process", "", "· workers main process ·", "<dd>main process</dd>"),
    ],
)  # fmt: skip
def test_evidence_that_counts_is_a_number_with_its_noun(
    label: str, value: float | str, unit: str, said: str, in_html: str
) -> None:
    view = view_of("decodes_in_main_process")
    evidence = (Evidence("first", "a"), Evidence(label, value, unit), Evidence("last", "b"))
    finding = msgspec.structs.replace(view.findings[0], evidence=evidence, regain_percent=None)
    view = msgspec.structs.replace(view, findings=(finding,))
    assert said in " ".join(render_text(view, width=400, color=False, detail="why").split())
    assert in_html in render_html(view)
