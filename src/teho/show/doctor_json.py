r"""What `teho doctor` found, as JSON: `Examination`, which has the name and version of its form.

`doctor.schema.json` is generated from the types; a test holds it in step.
"""

from __future__ import annotations

from typing import Any

import msgspec

from teho.model.doctor import SCHEMA, Examination
from teho.show.plan_json import legible

__all__ = ["render_doctor_json", "schema"]


def render_doctor_json(examination: Examination) -> str:
    """Render what `schema` describes; ends in a line break."""
    encoded = msgspec.json.encode(legible(msgspec.to_builtins(examination)))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what `render_doctor_json` writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(Examination),
    }
