"""Results of commands as JSON: structs of the model with the name and version of their schema.

docs/generate.py makes each schema from the types; a test compares them.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["legible", "render_noun", "schema_of"]


def render_noun(noun: msgspec.Struct) -> str:
    r"""Render a result as `schema_of` its type describes; ends in a line break.

    A byte of the command line that is not text is escaped, as `\udcff`.
    """
    encoded = msgspec.json.encode(legible(msgspec.to_builtins(noun)))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def legible(value: Any) -> Any:
    """Return a value in which every byte that is not text is escaped."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {key: legible(inner) for key, inner in value.items()}
    return [legible(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def schema_of(noun: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the output of `render_noun` for a type."""
    title = next(field.default for field in msgspec.structs.fields(noun) if field.name == "schema")
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": title, **msgspec.json.schema(noun)}
