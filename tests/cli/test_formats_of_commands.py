"""Every command with a result has the three formats, `-o` and the three levels."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from teho.cli.group import teho

OPTIONS = {"--format", "-o", "--short", "--why"}
FORMATS = {"text", "html", "json"}
_DONE = "says in a line what it did"
_FILE = "its result is a file or a server"
# Command -> why it does not have them.
EXCEPTIONS = {
    "clusters check": "says which files are right, and ends with an exit code",
    "clusters discover": "-o is the cluster file that it writes; it has the formats and levels",
    "submit": "its result is a job: `teho status` and `teho report` show it",
    "cancel": _DONE,
    "launch": "becomes the program of a task",
    "run": "its output is the program's; --report chooses what comes after it, on stderr",
    "always script": "prints the commands for a shell's start file",
    "top": "a screen; --format text and json print the values of a moment",
    "import": "its result is a recording: `teho report` shows it",
    "show": "prints the stored description, which is JSON",
    "tag": _DONE,
    "export": _FILE,
    "serve-metrics": _FILE,
    "log": _FILE,
    "portal": _FILE,
    "share": _DONE,
    "unshare": _DONE,
    "merge": _DONE,
    "rm": _DONE,
    "completion": "prints a script for a shell",
}


def commands(
    command: click.Command, context: click.Context, name: str
) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    for part in command.list_commands(context):
        inner = command.get_command(context, part)
        assert inner is not None
        yield from commands(inner, context, f"{name} {part}".strip())


COMMANDS = dict(commands(teho, click.Context(teho), ""))


def lacks(command: click.Command) -> set[str]:
    """Return the options and formats that a command does not have."""
    options = {name for one in command.params for name in one.opts}
    choices = {
        choice
        for one in command.params
        if "--format" in one.opts and isinstance(one.type, click.Choice)
        for choice in one.type.choices
    }
    return (OPTIONS - options) | (FORMATS - choices)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_formats_and_levels(name: str) -> None:
    # An exception that is none any more fails too.
    assert bool(lacks(COMMANDS[name])) == (name in EXCEPTIONS), lacks(COMMANDS[name])


def test_each_exception_is_a_command() -> None:
    assert EXCEPTIONS.keys() <= COMMANDS.keys()
    assert {"report", "plan", "list", "status", "always on", "env plan"} <= COMMANDS.keys()
