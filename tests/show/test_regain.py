"""The time that a finding could save, in every format."""

from __future__ import annotations

import html
import re

import msgspec
import pytest

from show.test_build import view_of
from teho.show.html.page import render_html
from teho.show.json.report import render_json
from teho.show.text.document import render_text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("collated_one_by_one", "35–70 % of the run time"),
        ("reads_again", "up to 70 % of the run time"),
        ("decodes_in_main_process", "31–62 % of the run time"),
    ],
)
def test_before_the_evidence(name: str, said: str) -> None:
    view = view_of(name)
    text = " ".join(render_text(view, width=100, color=False, detail="why").split())
    assert f"could save {said}" in text
    page = html.unescape(re.sub(r"<[^>]+>", " ", render_html(view)))
    assert f"could save {said}" in " ".join(page.split())
    (finding,) = msgspec.json.decode(render_json(view))["findings"]
    assert finding["regain_percent"] == list(view.findings[0].regain_percent or ())


@pytest.mark.parametrize("name", ["tiny_steps", "memory_near_limit"])
def test_nothing_if_the_share_is_unknown(name: str) -> None:
    view = view_of(name)
    assert view.findings
    assert "could save" not in render_text(view, width=100, color=False, detail="why")
    assert "could save" not in render_html(view)
    assert all(
        one["regain_percent"] is None for one in msgspec.json.decode(render_json(view))["findings"]
    )
