"""`teho always`: record every job, without a command in its script."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli.output import Output, output_options
from teho.errors import InputError, RecordingError

if TYPE_CHECKING:
    from teho.model.always import Always, Hook

__all__ = ["command"]

_DIRECTORIES = ("TEHO_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
"""Variables that the recorder needs. A job may not have them."""
_SAFE = re.compile(r"[\w./+@%=:~-]+", re.ASCII)


@click.group(
    epilog="""\b
Examples:
  teho always on
  teho always status
  teho always off""",
)
def command() -> None:
    """Record all your jobs, without a change in their scripts.

    Teho adds lines to ~/.bashrc. With these lines, each Slurm job with a script of bash starts a
    recorder in the background. A job never waits for the recorder, and never fails because of it.

    Reads, writes, network: see the help of each command.
    """


def _examples(line: str) -> str:
    return f"\b\nExamples:\n  {line}"


@command.command(short_help="Record every job from now on.", epilog=_examples("teho always on"))
@output_options(file=False)
def on(output: Output) -> None:
    """Record every job that you submit from now on.

    Begins with the next shell: log in again, or read ~/.bashrc again. Teho removes old recordings
    of this kind: see `keep` and `keep_gb` in the settings.

    Reads: ~/.bashrc or ~/.zshrc.

    Writes: the same file, and ~/.config/teho/always.

    Network: not used.
    """
    from teho.config.marked_lines import add_lines

    start = _start_file()
    hooks = _hooks(start)
    was_on = start.exists()
    start.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_program(start)
    try:
        for hook in hooks:
            add_lines(Path(hook.file), hook.lines)
    except InputError:
        if not was_on:
            _remove_program(start)
        raise
    _show(output)


@command.command(short_help="Stop recording every job.", epilog=_examples("teho always off"))
@output_options(file=False)
def off(output: Output) -> None:
    """Stop recording every job, and remove what `teho always on` added.

    Your file is then as it was before, byte for byte. The recordings stay.

    Reads: ~/.bashrc or ~/.zshrc.

    Writes: the same file; deletes ~/.config/teho/always.

    Network: not used.
    """
    from teho.config.marked_lines import remove_lines

    start = _start_file()
    for file in _files():
        remove_lines(file)
    _remove_program(start)
    _show(output)


@command.command(
    short_help="Show what is recorded, and why jobs are not.",
    epilog=_examples("teho always status\n  teho always status --format json"),
)
@output_options(file=False)
def status(output: Output) -> None:
    """Show whether jobs are recorded, the last recording, and what prevents recordings.

    Asks the accounting how the recorded jobs ended.

    Reads: ~/.bashrc or ~/.zshrc, and the recordings in TEHO_HOME.

    Writes: the ends of jobs to their recordings.

    Network: only through commands of the scheduler, such as sacct.
    """
    _show(output, settles=True)


@command.command(
    short_help="Print the program with which a site records all jobs.",
    epilog=_examples("teho always script > /etc/slurm/teho-task-prolog"),
)
def script() -> None:
    """Print the program that starts the recorder: Slurm's TaskProlog, Grid Engine's prolog.

    With it, a site records the jobs of all users, each in the user's own TEHO_HOME.

    Reads: no files.

    Writes: no files.

    Network: not used.
    """
    click.echo(_program(()), nl=False)


def _start_file() -> Path:
    from teho.config.settings import settings_file

    path = settings_file(os.environ).parent / "always" / "start"
    if not _SAFE.fullmatch(str(path)):
        raise InputError(
            f"{path}: this path has characters that a shell would change",
            "letters, digits and ./+@%=:~-",
            "set XDG_CONFIG_HOME to a directory with a simple name",
        )
    return path


def _hooks(start: Path) -> tuple[Hook, ...]:
    """Return the hook of each scheduler of this machine.

    Raises:
        InputError: this machine has no scheduler, or a hook cannot be added.
    """
    from teho.config.settings import expanded
    from teho.schedulers.registry import schedulers

    able = [one for one in schedulers().values() if one.inventory_command]
    here = [one for one in able if shutil.which(one.inventory_command)]
    found = [one.hook(str(start), expanded("~"), os.environ) for one in here]
    hooks = tuple(hook for hook in found if hook)
    if hooks:
        return hooks
    if here:
        raise InputError(
            f"{here[0].title} has no file with which a user can start a program in each job",
            next_step="ask an administrator to install the program that `teho always script` "
            "prints, or use `teho run` in your scripts",
        )
    commands = " nor ".join(f"{one.title}'s `{one.inventory_command}`" for one in able)
    raise InputError(
        f"this machine has no scheduler: neither {commands} is on PATH",
        next_step="run the command on a login node of the cluster",
    )


def _files() -> tuple[Path, ...]:
    """Return all files that may have lines of `teho always`."""
    from teho.config.settings import expanded

    home = expanded("~")
    zsh = Path(os.environ.get("ZDOTDIR") or home)
    return home / ".bashrc", zsh / ".zshrc"


def _program(names: Iterable[str] = _DIRECTORIES) -> str:
    """Return the program that starts the recorder, with the values of these variables."""
    from teho.cli.own_path import own_path

    text = Path(__file__).parents[1].joinpath("observe", "start_recorder.sh").read_text()
    # The PYTHONPATH of the job is for another Python, and is not set any more at these lines.
    values = {name: os.environ.get(name) for name in ("PYTHONPATH", *names)}
    lines = [
        f'[ -n "${{{name}-}}" ] || export {name}={shlex.quote(value)}\n'
        for name, value in values.items()
        if value
    ]
    return text.replace("@VARIABLES@", "".join(lines)).replace("@COMMAND@", shlex.join(own_path()))


def _write_program(start: Path) -> None:
    from teho.store.layout import replace_file

    try:
        replace_file(start, _program().encode())
        start.chmod(0o700)
    except OSError as error:
        raise InputError(f"{start}: {error.strerror}", "a file that can be written") from error


def _remove_program(start: Path) -> None:
    if start.parent.is_dir():
        shutil.rmtree(start.parent)
    with contextlib.suppress(OSError):  # it has other files
        start.parents[1].rmdir()


def _show(output: Output, *, settles: bool = False) -> None:
    from teho.show.build.always import always_document

    found = _look(settles=settles)
    output.show(always_document(found), found)


def _look(*, settles: bool) -> Always:
    from teho.config.marked_lines import has_lines
    from teho.config.settings import load_settings
    from teho.jobs.settle import settle
    from teho.model.always import Always
    from teho.store.unasked import nearest_directory, unasked_runs

    settings, start = load_settings(), _start_file()
    home = settings.home_directory
    problems: list[str] = []
    try:
        hooks = _hooks(start)
    except InputError as error:
        hooks = ()
        problems.append(str(error))
    try:
        runs = unasked_runs(home)
        if settles and settle(home, runs):
            runs = unasked_runs(home)
    except RecordingError:
        runs = []
    last = runs[-1].run if runs else None
    added = [has_lines(Path(hook.file)) for hook in hooks] or [any(map(has_lines, _files()))]
    is_on = all(added) and start.exists()
    if any(added) or start.exists():
        problems += [hook.problem for hook in hooks if hook.problem]
        problems += _failures(start, last.started_at.timestamp() if last else 0.0)
        nearest = nearest_directory(home)
        if not nearest.is_dir() or not os.access(nearest, os.W_OK):
            problems.append(f"{home} cannot be written")
        if not is_on:
            problems.append("a part of `teho always on` is missing: run it again")
    unread = [hook.file for hook in hooks if not hook.is_active] if is_on else []
    return Always(
        state="on" if is_on else "partly" if any(added) or start.exists() else "off",
        hooks=hooks,
        start=str(start),
        home=str(home),
        recordings=len(runs),
        used_bytes=sum(one.used_bytes for one in runs),
        keep_s=settings.keep_s,
        keep_bytes=settings.keep_bytes,
        last_id=last.id if last else "",
        last_at=last.started_at if last else None,
        problems=tuple(problems),
        next_step=f"log in again, or run `. {unread[0]}`" if unread else "",
    )


def _failures(start: Path, recorded_s: float) -> list[str]:
    """Return what is wrong with the program, and its last failure since the last recording.

    Args:
        start: the program.
        recorded_s: when the last recording began, in s since 1970.
    """
    found = []
    problem = start.parent / "problem"
    with contextlib.suppress(OSError):
        if problem.stat().st_mtime > recorded_s:
            found.append(f"the last failure: {problem.read_text(errors='replace').strip()}")
    try:
        program = start.read_text()
    except OSError:
        return found
    if program != _program():
        found.append(
            "the recorder is of another Teho, or uses other directories: run `teho always on` again"
        )
    return found
