"""The group of all commands: options, help, and how errors are printed."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

import click

from teho.cli import COMMANDS, say
from teho.errors import TehoError
from teho.version import __version__

__all__ = ["run", "teho"]

# pyarrow imports these if they are installed, which costs 170 ms and 60 MB, and no command uses
# them. `import teho` in a user's Python does not block them.
_UNUSED = ("numpy", "pandas")
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        groups: dict[str, list[tuple[str, str]]] = {}
        width = max(map(len, COMMANDS))
        for name, (group, line) in COMMANDS.items():
            groups.setdefault(group, []).append((name.ljust(width), line))
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl(rows, col_spacing=4)


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with:  teho run -- python train.py",
)
@click.version_option(__version__, message="teho %(version)s")
def teho() -> None:
    """Teho shows how well a job uses the GPUs and CPU cores of a shared cluster."""


def run(arguments: Sequence[str]) -> None:
    """Run a command line and end the process with its exit code."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII terminal gets ? instead of ✗
    for name in _UNUSED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type] # None: "cannot be imported"
    words = list(arguments) or ["--help"]
    sys.exit(_guarded(words))


def _open_streams() -> None:
    """Open /dev/null for closed streams (`>&-`), so no other file gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, False)
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def _discard_output() -> None:
    """Discard the buffered output: Python would report the error again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    try:
        result = teho.main(words, prog_name="teho", standalone_mode=False)
        sys.stdout.flush()
    except TehoError as error:
        say(str(error))
        return error.exit_code
    except click.ClickException as error:
        say(_sentence(error, words))
        return error.exit_code
    except click.exceptions.Exit as request:
        return request.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe.
        _discard_output()
        return 141
    except OSError as error:
        _discard_output()
        with contextlib.suppress(OSError):
            say(str(error))
        return 2
    return result if isinstance(result, int) else 0
