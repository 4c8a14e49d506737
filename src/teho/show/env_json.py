"""A planned or checked environment as JSON: `EnvironmentPlan` or `Checked`, which name their form.

`env-plan.schema.json` and `env-check.schema.json` are generated from the types; a test holds them
in step.
"""

from __future__ import annotations

from typing import Any, Union

import msgspec

from teho.model.software import CHECK_SCHEMA, PLAN_SCHEMA, Checked, EnvironmentPlan
from teho.show.plan_json import legible

__all__ = ["check_schema", "plan_schema", "render_env_json"]


def render_env_json(noun: Union[Checked, EnvironmentPlan]) -> str:
    """Render what one of the schemas describes; ends in a line break."""
    encoded = msgspec.json.encode(legible(msgspec.to_builtins(noun)))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def check_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a checked environment."""
    return _schema(CHECK_SCHEMA, Checked)


def plan_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a planned environment."""
    return _schema(PLAN_SCHEMA, EnvironmentPlan)


def _schema(title: str, noun: type) -> dict[str, Any]:
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": title, **msgspec.json.schema(noun)}
