"""Read the JSON that `teho bench --format json` wrote."""

from __future__ import annotations

from pathlib import Path

import msgspec

from teho.errors import InputError
from teho.model.bench import SCHEMA, Bench

__all__ = ["read_bench_json"]


def read_bench_json(path: Path) -> Bench:
    """Read a result of `teho bench` from a file.

    Raises:
        InputError: the file cannot be read, or has another content.
    """
    try:
        bench = msgspec.json.decode(path.read_bytes(), type=Bench)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: {error}", "the JSON that `teho bench --format json` writes"
        ) from None
    if bench.schema != SCHEMA:
        raise InputError(f"{path}: the schema is {bench.schema}", SCHEMA, "measure again")
    return bench
