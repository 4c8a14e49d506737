"""A plan as JSON: the `Answer` with the name and version of its schema.

`plan.schema.json` is generated from the types; a test compares them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from teho.launchers.registry import launchers
from teho.model.plan import Option, Unfit
from teho.show.json.noun import schema_of

__all__ = ["SCHEMA", "Plan", "schema"]

SCHEMA = "teho.plan/2"
"""Name and version of the schema; a change that breaks readers raises the number."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The options that fit, the cheapest first on each cluster, and why other places do not fit."""

    schema: str = SCHEMA
    options: tuple[Option, ...]
    unfit: tuple[Unfit, ...]


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a `Plan`."""
    found = schema_of(Plan)
    # In the model, the launcher is any text, because launchers are found by their files.
    fields = found["$defs"]["Request"]["properties"]
    fields["launcher"] = {"enum": sorted(launchers()), "default": fields["launcher"]["default"]}
    return found
