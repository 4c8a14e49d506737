"""`teho tag`: change the tags of recordings; and how `--tag` is read."""

from __future__ import annotations

from collections.abc import Sequence

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.declare import option, plain_command

__all__ = ["command", "read_tags"]


def read_tags(
    _context: click.Context, _option: click.Parameter, tags: Sequence[str]
) -> dict[str, str]:
    """Return keys and values; a callback of click.

    Raises:
        BadParameter: one of the tags is not `KEY=VALUE`.
    """
    parts = [tag.partition("=") for tag in tags]
    for tag, (key, sign, _) in zip(tags, parts, strict=True):
        if not (key and sign):
            raise click.BadParameter(f"{tag!r} is not KEY=VALUE.")
    return {key: value for key, _, value in parts}


@plain_command("""\
  teho tag last dataset=cifar10
  teho tag baseline workers=4 lr=0.1
  teho tag last --remove workers""")
@click.argument("run", shell_complete=complete_run)
@click.argument("tags", metavar="[KEY=VALUE…]", nargs=-1, callback=read_tags)
@option("--remove KEY", "Remove this tag; may be repeated.", unset="none", into="removed",
        multiple=True)  # fmt: skip
def command(run: str, tags: dict[str, str], removed: tuple[str, ...]) -> None:
    """Add tags to RUN, or change the values of its tags.

    Reads: run.json of the recording.

    Writes: run.json of the recording.

    Network: not used.
    """
    from teho.config.privacy import masked_tags
    from teho.config.settings import load_settings
    from teho.errors import InputError
    from teho.store.index import change_tags, find_run

    if not (tags or removed):
        raise InputError("no tag was given", "KEY=VALUE, or `--remove KEY`", "`teho tag --help`")
    directory = find_run(run, load_settings().home_directory)
    now = change_tags(directory, masked_tags(tags), removed)
    shown = ", ".join(f"{key}={value}" for key, value in now.items())
    say(f"{directory.name}: {shown or 'no tags'}")
