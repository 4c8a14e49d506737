"""What `teho bench` measured, as JSON: `Bench`, which has the name and version of its form.

`bench.schema.json` is generated from the types; a test holds it in step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from teho.errors import InputError
from teho.model.bench import SCHEMA, Bench
from teho.show.plan_json import legible

__all__ = ["read_bench_json", "render_bench_json", "schema"]


def render_bench_json(bench: Bench) -> str:
    """Render what `schema` describes; ends in a line break."""
    encoded = msgspec.json.encode(legible(msgspec.to_builtins(bench)))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def read_bench_json(path: Path) -> Bench:
    """Return what `render_bench_json` wrote into a file.

    Raises:
        InputError: it does not read, or holds something else.
    """
    try:
        bench = msgspec.json.decode(path.read_bytes(), type=Bench)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}", "what `teho bench --format json` writes") from None
    if bench.schema != SCHEMA:
        raise InputError(f"{path}: the schema is {bench.schema}", SCHEMA, "time it anew")
    return bench


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what `render_bench_json` writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(Bench),
    }
