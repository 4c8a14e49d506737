r"""A plan as JSON: the `Answer` with the name and version of its form.

`plan.schema.json` is generated from the types; a test holds it in step.
"""

from __future__ import annotations

from typing import Any

import msgspec

from teho.model.plan import Answer, Option, Unfit

__all__ = ["SCHEMA", "legible", "render_plan_json", "schema"]

SCHEMA = "teho.plan/1"
"""Name and version of the form; a change that breaks readers raises the number."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What fits, cheapest first on each cluster, and why the rest does not."""

    schema: str = SCHEMA
    options: tuple[Option, ...]
    unfit: tuple[Unfit, ...]


def render_plan_json(answer: Answer) -> str:
    r"""Render a plan that `schema` describes; ends in a line break.

    A byte of the command line that is no text is written out, as `\udcff`.
    """
    plan = Plan(options=answer.options, unfit=answer.unfit)
    encoded = msgspec.json.encode(legible(msgspec.to_builtins(plan)))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def legible(value: Any) -> Any:
    """Return a value in which every byte that is no text is written out."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {key: legible(inner) for key, inner in value.items()}
    return [legible(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what `render_plan_json` writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(Plan),
    }
