"""The headings and facts of an HTML report lead to their definitions on the same page."""

from __future__ import annotations

import re
from collections import Counter

import msgspec
import pytest
import views

from explain.scenarios import SCENARIOS
from show.test_build import view_of
from show.test_html import browser, visit  # noqa: F401 - fixtures
from teho.model.document import Fact, Table
from teho.show.html.page import render_html
from teho.show.html.words import read_glossary

LINK = re.compile(r'<a class="word" href="#word-([\w-]+)">(.*?)</a>')
ENTRY = re.compile(r'<div id="word-([\w-]+)"><dt>')


def facts_and_titles(page: str) -> tuple[list[str], list[str]]:
    facts = re.search(r'<dl class="facts">(.*?)</dl>', page, re.DOTALL)
    titles = re.findall(r'<div class="table">\n<h3>(.*?) <small>', page)
    return re.findall(r"<dt>(.*?)</dt>", facts[1]) if facts else [], titles


@pytest.mark.parametrize("name", [*SCENARIOS, *views.SOUND])
def test_each_fact_and_each_table_leads_to_its_definition(name: str) -> None:
    view = views.SOUND[name]() if name in views.SOUND else view_of(name)
    page = render_html(view)
    facts, titles = facts_and_titles(page)
    without = [one for one in [*facts, *titles] if not LINK.fullmatch(one)]
    assert without == []
    # Each link has its definition, and there is no other definition.
    wanted = {place for place, _ in LINK.findall(page)}
    assert ENTRY.findall(page) == [
        entry.ids[0] for entry in read_glossary() if entry.ids[0] in wanted
    ]
    assert set(re.findall(r'href="#word-([\w-]+)"', page)) == wanted
    assert "](" not in page.partition('<dl class="words">')[2].partition("</dl>")[0]


def test_a_heading_has_one_meaning() -> None:
    labels = Counter(
        label
        for entry in read_glossary()
        for label in {one.casefold() for one in (entry.name, *entry.labels)}
        | {f"{key}:" for key in entry.tables}
    )
    assert [label for label, count in labels.items() if count > 1] == []
    places = Counter(place for entry in read_glossary() for place in entry.ids)
    assert [place for place, count in places.items() if count > 1] == []


def test_a_heading_that_means_something_else_in_one_table() -> None:
    tables = [table for name in SCENARIOS for table in view_of(name).tables]
    for key, place in (("gpu_activity", "sm-activity"), ("time", "activity")):
        table = next(table for table in tables if table.key == key)
        page = render_html(views.base(tables=(table,)))
        assert {to for to, label in LINK.findall(page) if label == "Activity"} == {place}


def test_what_the_glossary_does_not_have_is_only_text() -> None:
    table = views.node_tables()[0]
    table = msgspec.structs.replace(table, key="mine", title="<Mine>", columns=table.columns[:1])
    fact = Fact("a", "Memory & more", 3)
    page = render_html(views.base(facts=(fact,), tables=(table,)))
    assert facts_and_titles(page) == (["Memory &amp; more"], ["&lt;Mine&gt;"])
    assert "Memory &amp; more" not in "".join(re.findall(r"<a .*?</a>", page))
    nothing = render_html(views.base(facts=(fact,)))
    assert "What the words mean" not in nothing


def test_a_page_without_headings_of_the_glossary_does_not_have_the_section() -> None:
    empty = Table(key="mine", title="Mine", columns=(), rows=())
    assert "What the words mean" not in render_html(views.base(facts=(), tables=(empty,)))


@pytest.mark.parametrize("script", [True, False])
def test_a_link_opens_the_definitions(visit, script) -> None:  # noqa: F811 - a fixture
    page = visit(views.eight_gpus(), script=script, width=390)
    definition = page.locator("#word-gpu-busy dd")
    assert not definition.is_visible()
    page.locator("a.word[href='#word-gpu-busy']").first.click()
    definition.wait_for(state="visible", timeout=5000)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["eight_gpus", "laptop"])
def test_axe_finds_nothing(browser, tmp_path, scheme, name) -> None:  # noqa: F811 - a fixture
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    path = tmp_path / "page.html"
    path.write_text(render_html(getattr(views, name)()), encoding="utf-8")
    page = browser.new_page(color_scheme=scheme, bypass_csp=True)
    page.goto(path.as_uri())
    for summary in page.locator("summary").all():
        summary.click()
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
    found = axe.run(page, options=options).response
    page.close()
    assert len(found["passes"]) > 5
    assert [
        (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:200])
        for one in found["violations"]
    ] == []
