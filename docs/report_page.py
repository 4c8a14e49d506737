"""Make the page about the JSON report, from the docstrings of the report's classes."""

from __future__ import annotations

import ast
import enum
import inspect
import textwrap
from itertools import pairwise

from teho.model import document as nouns
from teho.model import finding, missing, trace, trace_memory
from teho.model.document import SCHEMA, Report
from teho.model.missing import Missing

__all__ = ["report_page", "statements_of"]

_DESCRIBED = (
    Report,
    nouns.Item,
    nouns.Listing,
    nouns.Fact,
    nouns.Table,
    nouns.Column,
    finding.Finding,
    finding.Severity,
    finding.Certainty,
    finding.Evidence,
    finding.Threshold,
    finding.Moments,
    finding.Abstention,
    finding.Lack,
    nouns.Plot,
    nouns.PlotSeries,
    nouns.RooflinePlot,
    nouns.Roof,
    nouns.RooflinePoint,
    trace.StepPicture,
    trace.Lane,
    trace.Band,
    trace.Pause,
    trace_memory.MemoryPicture,
    trace_memory.MemoryBand,
    missing.Missing,
    missing.Reason,
)


def statements_of(noun: type) -> list[tuple[ast.stmt, str]]:
    """Return the statements of a class, each with the docstring below it on one line."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(noun))).body
    body = getattr(definition, "body", [])
    return [(statement, _docstring(below)) for statement, below in pairwise([*body, ast.Pass()])]


def _docstring(statement: ast.stmt) -> str:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return ""
    return " ".join(str(statement.value.value).split())


def report_page() -> str:
    """Return the Markdown page on the fields, made from the classes' own docstrings."""
    head = f"""\
# The report as JSON

`teho report --format json` writes one object, a [`Report`](#report).

- The field `schema` has the value `{SCHEMA}`. If a new version of Teho removes a field or
  changes the meaning of a field, the number after the slash becomes larger.
- A new version of Teho can add new fields without a change of this number. A program that reads the
  report must ignore all fields that the program does not know.
- The JSON schema is the file `report.schema.json` of the package `teho.show`.
- Output of up to 4 MiB is indented. Larger output is on one line.

Numbers are in base units: bytes, seconds, joules, watts, per cent.

A value of the type *cell* is one of these:

- a number or a text;
- `null`, if the column does not apply to the row: for example, a column about GPUs in the row of a
  node without GPUs;
- an object [`Missing`](#missing), if the value is missing. The object has the reason.

A missing value is never written as zero.
"""
    return "\n".join([head, *map(_section, _DESCRIBED)])


def _section(noun: type) -> str:
    summary = (inspect.getdoc(noun) or "").partition("\n")[0]
    if issubclass(noun, enum.Enum):
        lines = [
            textwrap.fill(f'- `"{value}"`: {words}', 100, subsequent_indent="  ")
            for value, words in _described_values(noun)
        ]
    else:
        lines = ["| field | type | meaning |", "|---|---|---|"]
        lines += ['| `type` | `"missing"` |  |'] if noun is Missing else []
        lines += [
            f"| `{name}` | {kind} | {words} |" for name, kind, words in _described_fields(noun)
        ]
    return "\n".join([f"## {noun.__name__}", "", summary, "", *lines, ""])


def _described_fields(noun: type) -> list[tuple[str, str, str]]:
    found: dict[str, tuple[str, str, str]] = {}
    for own in reversed(noun.__mro__):
        for statement, text in statements_of(own) if own.__module__.startswith("teho.") else ():
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                words = text.replace("|", "\\|") or found.get(name, ("", "", ""))[2]
                found[name] = (name, _kind(statement.annotation), words)
    return list(found.values())


def _described_values(noun: type) -> list[tuple[str, str]]:
    return [
        (str(statement.value.value), words.replace("|", "\\|"))
        for statement, words in statements_of(noun)
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
