"""`teho stage`: copy data to another file system or to a cluster, and check the copy."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from teho.cli import say
from teho.cli.output import Output, output_options
from teho.cli.progress import StatusLine, hint_if_slow
from teho.errors import InputError
from teho.units import format_bytes

if TYPE_CHECKING:
    from teho.model.staged import Staged
    from teho.stage.machine import Machine
    from teho.stage.staging import Staging, Wanted

__all__ = ["command"]

_SAMPLE = 16
_PROGRESS_S = 0.1
_AGAIN = "Run the same command again: the copy continues."


@click.command(
    epilog="""\b
Examples:
  teho stage images /scratch/ada --dry-run
  teho stage images ada@roihu.csc.fi:/scratch/project_1
  teho stage images /scratch/ada --archive --checksums all"""
)
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DEST")
@click.option("--archive/--no-archive", "archive", default=None,
              help="Pack SRC into one tar archive, or copy the files as they are.  [default: pack "
              "many small files that go to a network file system]")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the plan, and do not copy.")
@click.option("--checksums", metavar="N|all", default=str(_SAMPLE), show_default=True,
              help="Compare the checksums of this number of files after the copy.")  # fmt: skip
@output_options()
def command(
    source: str,
    destination: str,
    archive: bool | None,
    *,
    dry_run: bool,
    checksums: str,
    output: Output,
) -> None:
    """Copy SRC into the folder DEST, here or on another machine, and check the copy.

    DEST is a path, or HOST:PATH for ssh. The copy has the name of SRC. An interrupted copy
    continues if you run the same command again. Teho deletes no files at DEST. Teho replaces a file
    at DEST only if this file is an older copy that `teho stage` made from SRC. Links are copied as
    links.

    Reads: SRC, DEST, and the facts about both file systems.

    Writes: DEST, a record in TEHO_HOME, and the -o file.

    Network: not used if DEST is a path on this machine. Otherwise ssh to HOST; rsync also uses ssh.

    Exit code: 0 if all files are at DEST and are equal to SRC. 1 if a file is missing, differs or
    cannot be read. 2 if the copy cannot be made. 130 after Ctrl-C.
    """
    from teho.stage.machine import Machine, read_place
    from teho.stage.staging import Wanted

    if (from_ := read_place(source, "SRC")).host:
        raise InputError(
            f"{from_}: SRC is on another machine",
            "a path on this machine, such as ./a:b",
            f"run `teho stage` on {from_.host}",
        )
    wanted = Wanted(source, read_place(destination, "DEST"), archive, _read_count(checksums))
    with Machine() as here, Machine(wanted.destination.host) as there, _ended_by_signals():
        with hint_if_slow("reading the source and the destination…"):
            staging = _planned(wanted, here, there)
        planned = staging.planned()
        if dry_run:
            _show(planned, output)
            staging.check_space()
            return
        _say_plan(planned, output)
        staging.check_space()
        staged = _copied(staging)
    _show(staged, output)
    if staged.state == "different":
        raise click.exceptions.Exit(1)


def _read_count(text: str) -> int | None:
    """Return the number of `--checksums`; None for all files."""
    if text == "all":
        return None
    if not (text.isascii() and text.isdecimal()):
        raise InputError(f"--checksums {text}", "a number of files, or all")
    return int(text)


def _planned(wanted: Wanted, here: Machine, there: Machine) -> Staging:
    from teho.config.settings import expanded, load_settings
    from teho.explain.policy import load_policy
    from teho.explain.shared_thresholds import SMALL_FILES
    from teho.stage.staging import Staging

    settings = load_settings()
    policy = load_policy(expanded(settings.thresholds) if settings.thresholds else None)
    limits = policy.thresholds[SMALL_FILES]
    return Staging(wanted, here, there, settings.home_directory, limits)


def _say_plan(planned: Staged, output: Output) -> None:
    """Print the plan on stderr, because standard output gets the result."""
    from teho.cli.terminal import wants_color, width
    from teho.show.build.stage import stage_document
    from teho.show.text.document import render_text

    text = render_text(
        stage_document(planned), width=width(), color=wants_color(sys.stderr), detail=output.detail
    )
    click.echo(f"{text}\n" if text.count("\n") > 1 else text, nl=False, err=True)


def _show(staged: Staged, output: Output) -> None:
    from teho.show.build.stage import stage_document

    output.show(stage_document(staged), staged)


def _copied(staging: Staging) -> Staged:
    """Copy, show the progress on a terminal, and check.

    Raises:
        TehoError: the copy failed.
        Exit: a signal ended it.
    """
    line = StatusLine()
    next_s = 0.0

    def progress(what: str, done: int, total: int) -> None:
        nonlocal next_s
        if (now_s := time.monotonic()) < next_s:
            return
        next_s = now_s + _PROGRESS_S
        percent = f", {100 * done / total:.0f} %" if total else ""
        line(f"teho: {what}, {format_bytes(done)} of {format_bytes(total)}{percent}")

    try:
        messages = staging.copy(progress)
        return staging.check(messages, progress)
    except OSError as error:
        raise InputError(
            f"{error.filename or 'the record of the copy'}: {error.strerror}"
        ) from error
    except KeyboardInterrupt:
        line("")
        say(f"interrupted. {_AGAIN}")
        raise click.exceptions.Exit(130) from None
    finally:
        line("")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end rsync and ssh too, as Ctrl-C does."""

    def end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
