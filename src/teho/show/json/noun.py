"""What a command found, as JSON: a noun of the model that has the name and version of its form.

Each noun's schema is generated from its types (docs/generate.py); a test holds it in step.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["legible", "render_noun", "schema_of"]


def render_noun(noun: msgspec.Struct) -> str:
    r"""Render what `schema_of` its type describes; ends in a line break.

    A byte of the command line that is not text is written out, as `\udcff`.
    """
    encoded = msgspec.json.encode(legible(msgspec.to_builtins(noun)))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def legible(value: Any) -> Any:
    """Return a value in which every byte that is not text is written out."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {key: legible(inner) for key, inner in value.items()}
    return [legible(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def schema_of(noun: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what `render_noun` writes of this type."""
    title = next(field.default for field in msgspec.structs.fields(noun) if field.name == "schema")
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": title, **msgspec.json.schema(noun)}
