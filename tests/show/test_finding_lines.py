"""A finding of the default text report has at most five lines on a terminal of 80 columns."""

from __future__ import annotations

import msgspec
import pytest
import views

from explain.scenarios import SCENARIOS
from show.test_build import view_of
from teho.show.text.document import render_text


@pytest.mark.parametrize("name", [*SCENARIOS, *views.SOUND])
def test_at_most_five_lines(name: str) -> None:
    view = views.SOUND[name]() if name in views.SOUND else view_of(name)
    for finding in view.findings:
        alone = msgspec.structs.replace(view, verdict="One finding.", findings=(finding,))
        blocks = render_text(alone, width=80, color=False).split("\n\n")
        lines = blocks[1].splitlines()
        assert lines[0][2:6] == finding.sentence[:4]
        assert len(lines) <= 5, blocks[1]
