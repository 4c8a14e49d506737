"""The report as JSON, with its schema and the page that describes its fields.

`report.schema.json` and docs/report-json.md are generated from the classes of
`teho.model.document`; a test compares them.
"""

from __future__ import annotations

import ast
import enum
import inspect
import math
import textwrap
from typing import Any

import msgspec

from teho.model import document as nouns
from teho.model import finding, missing
from teho.model.document import SCHEMA, Document, Report
from teho.model.missing import Missing, Reason

__all__ = ["describe", "render_json", "schema"]

_NOT_FINITE = msgspec.to_builtins(Missing(Reason.FAILED, "not a finite number"))
_MOST_INDENTED = 4 * 1024**2
"""Size in bytes up to which the output is indented; indented output is three times as large."""
_DESCRIBED = (
    Report,
    nouns.Item,
    nouns.Listing,
    nouns.Fact,
    nouns.Table,
    nouns.Column,
    finding.Finding,
    finding.Severity,
    finding.Evidence,
    finding.Threshold,
    finding.Abstention,
    finding.Lack,
    nouns.Plot,
    nouns.PlotSeries,
    nouns.RooflinePlot,
    nouns.Roof,
    nouns.RooflinePoint,
    missing.Missing,
    missing.Reason,
)


def render_json(document: Document) -> str:
    r"""Render a document as JSON; ends in a line break. `schema` describes a report.

    JSON has no numbers that are not finite: in a plot they become `null`, as values that were not
    recorded, and elsewhere a missing value. A byte of a command line that is not text is escaped,
    as `\udcff`. The output is indented, unless it is large.
    """
    encoded = msgspec.json.encode(_sound(msgspec.to_builtins(document)))
    if len(encoded) <= _MOST_INDENTED:
        encoded = msgspec.json.format(encoded, indent=2)
    return encoded.decode() + "\n"


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else _NOT_FINITE
    if isinstance(value, dict):
        # The millions of points are finite already.
        return {
            key: inner
            if key in {"values", "elapsed_s"} and isinstance(inner, list)
            else _sound(inner)
            for key, inner in value.items()
        }
    return [_sound(item) for item in value] if isinstance(value, (list, tuple)) else value


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what `render_json` writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(Report),
    }


def describe() -> str:
    """Return the Markdown page on the fields, made from the classes' own docstrings."""
    head = f"""\
# The report as JSON

<!-- Made by teho.show.json.report.describe; TEHO_UPDATE_GOLDEN=1 pytest tests/show writes it. -->

`teho report --format json` writes one object, a [`Report`](#report).

- Its `schema` is `{SCHEMA}`. The number is raised when a field changes its meaning or is removed.
- New fields can be added at any time. A reader ignores fields that it does not know.
- The JSON schema is the file `report.schema.json` of the package `teho.show`.
- The output is indented. If it is larger than 4 MiB, it is on one line.

Numbers are in base units: bytes, seconds, joules, watts, per cent.

A cell is one of these:

- a number or a text;
- `null`, if the question does not apply;
- an object [`Missing`](#missing), which has the reason.

A missing value is never written as zero.
"""
    return "\n".join([head, *map(_section, _DESCRIBED)])


def _section(noun: type) -> str:
    summary = (inspect.getdoc(noun) or "").partition("\n")[0]
    if issubclass(noun, enum.Enum):
        lines = [f'- `"{value}"`: {words}' for value, words in _described_values(noun)]
    else:
        lines = ["| field | type | meaning |", "|---|---|---|"]
        lines += ['| `type` | `"missing"` |  |'] if noun is Missing else []
        lines += [
            f"| `{name}` | {kind} | {words} |" for name, kind, words in _described_fields(noun)
        ]
    return "\n".join([f"## {noun.__name__}", "", summary, "", *lines, ""])


def _body(noun: type) -> list[ast.stmt]:
    module = ast.parse(textwrap.dedent(inspect.getsource(noun)))
    definition = module.body[0]
    return definition.body if isinstance(definition, ast.ClassDef) else []


def _doc_after(body: list[ast.stmt], index: int) -> str:
    """Return the docstring below a field on one line, escaped for a cell of a table."""
    follower = body[index + 1] if index + 1 < len(body) else None
    if not isinstance(follower, ast.Expr) or not isinstance(follower.value, ast.Constant):
        return ""
    return " ".join(str(follower.value.value).split()).replace("|", "\\|")


def _described_fields(noun: type) -> list[tuple[str, str, str]]:
    found: dict[str, tuple[str, str, str]] = {}
    for own in reversed(noun.__mro__):
        body = _body(own) if own.__module__.startswith("teho.") else []
        for index, statement in enumerate(body):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                words = _doc_after(body, index) or found.get(name, ("", "", ""))[2]
                found[name] = (name, _kind(statement.annotation), words)
    return list(found.values())


def _described_values(noun: type) -> list[tuple[str, str]]:
    body = _body(noun)
    return [
        (str(statement.value.value), _doc_after(body, index))
        for index, statement in enumerate(body)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
    ]


def _kind(annotation: ast.expr) -> str:
    """Write the JSON name of a type: `list of Table`, `number or null`."""
    words = {"str": "text", "float": "number", "int": "whole number", "Cell": "cell"}
    if isinstance(annotation, ast.Name):
        known = annotation.id in {noun.__name__ for noun in _DESCRIBED}
        link = f"[{annotation.id}](#{annotation.id.lower()})"
        return link if known else words.get(annotation.id, annotation.id)
    if isinstance(annotation, ast.Constant):
        return "null" if annotation.value is None else f'`"{annotation.value!s}"`'
    if isinstance(annotation, ast.BinOp):
        return f"{_kind(annotation.left)} or {_kind(annotation.right)}"
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.value, ast.Name):
        return ast.unparse(annotation)
    inner = annotation.slice
    parts = [_kind(part) for part in (inner.elts if isinstance(inner, ast.Tuple) else [inner])]
    if annotation.value.id in {"Union", "Literal"}:
        return " or ".join(parts)
    return f"object of {parts[-1]}" if annotation.value.id == "dict" else f"list of {parts[0]}"
