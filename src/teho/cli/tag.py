"""Tags, as `--tag` takes them."""

from __future__ import annotations

from collections.abc import Sequence

import click

__all__ = ["read_tags"]


def read_tags(
    _context: click.Context, _option: click.Parameter, tags: Sequence[str]
) -> dict[str, str]:
    """Return keys and values; an option's callback.

    Raises:
        BadParameter: one of them is not `KEY=VALUE`.
    """
    parts = [tag.partition("=") for tag in tags]
    for tag, (key, sign, _) in zip(tags, parts, strict=True):
        if not (key and sign):
            raise click.BadParameter(f"{tag!r} is not KEY=VALUE.")
    return {key: value for key, _, value in parts}
