r"""What `teho scale` found, as JSON: `Scaled`, which has the name and version of its form.

`scale.schema.json` is generated from the types; a test holds it in step.
"""

from __future__ import annotations

from typing import Any

import msgspec

from teho.model.scaled import SCHEMA, Scaled
from teho.show.plan_json import legible

__all__ = ["render_scale_json", "schema"]


def render_scale_json(scaled: Scaled) -> str:
    """Render what `schema` describes; ends in a line break."""
    encoded = msgspec.json.encode(legible(msgspec.to_builtins(scaled)))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what `render_scale_json` writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(Scaled),
    }
