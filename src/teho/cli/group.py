"""The group of all commands: options, help, and how errors are printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

import click

from teho.cli import COMMANDS, say
from teho.cli.arrow_docs import skip_parsing
from teho.cli.overview import ABOUT, MOST_COLUMNS, overview
from teho.cli.streams import exit_code_of, open_streams
from teho.errors import TehoError
from teho.version import __version__

__all__ = ["run", "teho"]

# pyarrow imports these if they are installed, which costs 170 ms and 60 MB, and no command uses
# them. `import teho` in a user's Python does not block them.
_UNUSED = (
    "numpy",
    "pandas",
    *(f"pyarrow.{name}" for name in ("_azurefs", "_gcsfs", "_hdfs", "_s3fs")),
)
_HIDDEN = frozenset({"portal-page", "record-job", "record-node", "record-process"})
"""Commands that only Teho starts."""


class _Commands(click.Group):
    """Imports the module of a command only when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in {*COMMANDS, *_HIDDEN}:
            return None
        # `import` is no name of a module that Python code can import.
        name = f"{cmd_name.replace('-', '_')}{'_' if iskeyword(cmd_name) else ''}"
        module = import_module(f"teho.cli.{name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in {*COMMANDS, *_HIDDEN} and not args[0].startswith("-"):
            from teho.config.toml import did_you_mean

            raise TehoError(
                f"{args[0]!r} is not a command{did_you_mean(args[0], COMMANDS)}",
                next_step="`teho --help`, or `teho run -- COMMAND` to record a program",
            )
        return super().resolve_command(ctx, args)

    # `ctx` belongs to the signature of click.
    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        formatter.write(overview(formatter.width))


@click.command(
    cls=_Commands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": MOST_COLUMNS,
    },
    help=ABOUT,
)
@click.version_option(__version__, message="teho %(version)s")
def teho() -> None:
    """The command line; the module of each command is imported when it is called."""


def run(arguments: Sequence[str]) -> None:
    """Run a command line and end the process with its exit code."""
    open_streams()
    for name in _UNUSED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type] # None: "cannot be imported"
    skip_parsing()
    words = list(arguments) or ["--help"]
    sys.exit(_guarded(words))


def _sentence(error: click.ClickException, words: Sequence[str]) -> str:
    """Return an error of click in one line, with the next step."""
    context = getattr(error, "ctx", None)
    # click does not know the command of an option without its value.
    named = f"teho {words[0]}" if words[0] in COMMANDS else "teho"
    path = context.command_path if context else named
    text = " ".join(error.format_message().split())
    return f"{text}{'' if text.endswith(('.', '?')) else '.'} Next: `{path} --help`"


def _guarded(words: Sequence[str]) -> int:
    """Run a command line, and return the exit code; an expected error is printed as one line."""
    return exit_code_of(lambda: _result(words))


def _result(words: Sequence[str]) -> object:
    """Run a command line; return its result, or the exit code of an error that was printed."""
    try:
        return teho.main(words, prog_name="teho", standalone_mode=False)
    except TehoError as error:
        say(str(error))
        return error.exit_code
    except click.ClickException as error:
        say(_sentence(error, words))
        return error.exit_code
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.Abort:
        return 130
