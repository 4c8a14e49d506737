"""How commands are declared: their examples, their options, and what happens without an option."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, TypeVar

import click
from click.core import ParameterSource

__all__ = ["first_given", "flag", "option", "plain_command", "program_command", "together"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def plain_command(examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command with the examples that end its help, one in a line."""
    return click.command(epilog=f"\b\nExamples:\n{examples}")


def program_command(examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command that starts a program: options after the program are the program's."""
    settings = {"allow_interspersed_args": False}
    return click.command(context_settings=settings, epilog=f"\b\nExamples:\n{examples}")


def option(
    names: str, words: str, *, unset: str = "", into: str = "", **settings: Any
) -> Callable[[_Command], _Command]:
    """Declare an option with a value.

    Args:
        names: with a placeholder for the value, such as `-o --output FILE`.
        words: the sentence of its help.
        unset: what happens without the option, for the end of the help.
        into: name of the parameter, if it is not the name of the option.
        settings: other arguments of `click.option`.
    """
    *flags, last = names.split(" ")
    metavar = None if last.startswith("-") else last
    return click.option(
        *flags,
        *([] if metavar else [last]),
        *([into] if into else []),
        metavar=metavar,
        help=f"{words}  [default: {unset}]" if unset else words,
        show_default=bool(settings.get("default")),
        **settings,
    )


def flag(names: str, words: str, *, into: str = "") -> Callable[[_Command], _Command]:
    """Declare an option without a value, such as `-f --follow`."""
    parameter = [into] if into else []
    return click.option(*names.split(" "), *parameter, is_flag=True, help=words)


def first_given(names: Container[str | None]) -> str:
    """Return the first option on the command line whose parameter has one of these names, or ""."""
    context = click.get_current_context()
    for one in context.command.params:
        is_typed = context.get_parameter_source(str(one.name)) is ParameterSource.COMMANDLINE
        if is_typed and one.name in names:
            return one.opts[0]
    return ""


def together(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Declare several options, in the order of the help."""

    def decorate(command: _Command) -> _Command:
        for one in reversed(options):
            command = one(command)
        return command

    return decorate
