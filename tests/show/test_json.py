from __future__ import annotations

import json
import math

import jsonschema
import msgspec
import pytest
import views
from golden import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from teho.model.document import SCHEMA, Fact, PlotSeries, Report, Table
from teho.model.missing import Missing, Reason
from teho.show.json.noun import schema_of
from teho.show.json.report import render_json


def strict(text):
    """Decode, and refuse the words that JSON does not have."""
    return json.loads(text, parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def validator():
    jsonschema.Draft202012Validator.check_schema(schema_of(Report))
    return jsonschema.Draft202012Validator(schema_of(Report))


@pytest.mark.parametrize("name", [*views.SOUND, "hostile"])
def test_report_fits_its_schema(name, validator):
    view = getattr(views, name)()
    validator.validate(strict(render_json(view)))


@pytest.mark.parametrize("name", views.SOUND)
def test_report_comes_back_as_it_went_out(name):
    view = views.SOUND[name]()
    assert msgspec.json.decode(render_json(view), type=Report) == view


cells = st.one_of(
    st.none(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.builds(Missing, st.sampled_from(Reason), st.text()),
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(), cells)), cells)
def test_every_cell_comes_back(rows, value):
    table = Table(key="t", title="t", columns=(), rows=tuple(rows))
    view = views.base(facts=(Fact("x", "x", value),), tables=(table,))
    assert msgspec.json.decode(render_json(view), type=Report) == view


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_number_that_is_not_finite_is_missing(number, validator):
    table = Table(key="t", title="t", columns=(), rows=({"values": number, "elapsed_s": number},))
    line = views.plot("p", "p", "W", "GPU", [PlotSeries("a", [1.0, number])])
    view = views.base(facts=(Fact("x", "x", number),), tables=(table,), plots=(line,))
    data = strict(render_json(view))
    validator.validate(data)
    missing = {"type": "missing", "reason": "failed", "detail": "not a finite number"}
    assert data["facts"][0]["value"] == missing
    assert data["tables"][0]["rows"] == [{"values": missing, "elapsed_s": missing}]
    assert data["plots"][0]["series"][0]["values"] == [1.0, None]


def test_missing_zero_and_nothing_stay_three_things():
    row = {"zero": 0, "nothing": None, "missing": Missing(Reason.ABSENT)}
    table = Table(key="t", title="t", columns=(), rows=(row,))
    data = strict(render_json(views.base(tables=(table,))))
    assert data["tables"][0]["rows"][0] == {
        "zero": 0,
        "nothing": None,
        "missing": {"type": "missing", "reason": "absent", "detail": ""},
    }


def test_byte_that_is_no_text_is_written_out():
    assert strict(render_json(views.base(command="echo \udcff")))["command"] == "echo \\udcff"


def test_very_long_json_is_one_line():
    text = render_json(views.base(notes=("long " * 10**6,)))
    assert text.count("\n") == 1
    assert text.endswith("}\n")
    assert render_json(views.bare()).startswith('{\n  "')


def test_schema_names_the_version():
    assert schema_of(Report)["title"] == strict(render_json(views.bare()))["schema"] == SCHEMA


def test_page_has_every_field_of_the_schema():
    page = (ROOT / "docs" / "report-json.md").read_text()
    for name, definition in schema_of(Report)["$defs"].items():
        section = page.split(f"## {name}\n")[1].split("\n## ")[0]
        if definition.get("type") == "object":
            for field in definition["properties"]:
                assert f"| `{field}` |" in section
        else:
            assert all(f'- `"{word}"`: ' in section for word in definition["enum"])
    assert all(line.count(" | ") == 2 for line in page.splitlines() if line.startswith("| "))
