"""`teho always`: record every job, without a command in its script."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from teho.cli.folder import make_folder
from teho.cli.output import Output, output_options
from teho.errors import InputError, RecordingError, SchedulerError, UnconfiguredError
from teho.patterns import lazy_pattern

if TYPE_CHECKING:
    from teho.model.always import Always, Hook

__all__ = ["command"]

_DIRECTORIES = ("TEHO_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
"""Variables that the recorder needs. A job may not have them."""
_NEW = "new-folder"
"""File next to the program: the path of the highest folder that is new, if ~/.config is new."""
_PING_S = 5.0
_SAFE = lazy_pattern(r"[\w./+@%=:~-]+", re.ASCII)


@click.group(
    no_args_is_help=False,  # one line says what is missing
    epilog="""\b
Examples:
  teho always on
  teho always status
  teho always off""",
)
def command() -> None:
    """Record all your jobs, without a change in their scripts.

    Teho adds lines to ~/.bashrc, for Grid Engine to ~/.profile. With these lines, each job with a
    script of bash starts a recorder in the background. A job never waits for the recorder, and
    never fails because of it.

    Reads, writes, network: see the help of each command.
    """


def _examples(line: str) -> str:
    return f"\b\nExamples:\n  {line}"


@command.command(short_help="Record every job from now on.", epilog=_examples("teho always on"))
@output_options()
def on(output: Output) -> None:
    """Record every job that you submit from now on.

    With Slurm, this begins with the next shell: log in again, or read ~/.bashrc again. Teho removes
    old recordings of this kind: see `keep` and `keep_gb` in the settings.

    Reads: ~/.bashrc or ~/.zshrc, and the files of login shells, such as ~/.profile.

    Writes: the same files, and ~/.config/teho/always.

    Network: only through commands of the scheduler, such as scontrol or qconf.
    """
    from teho.config.marked_lines import add_lines

    start = _start_file()
    hooks = _hooks(start)
    for hook in hooks:
        folder = Path(hook.file).parent
        if not folder.is_dir():
            raise InputError(
                f"{folder} is not a folder",
                f"the folder of your file {Path(hook.file).name}",
                "set HOME to your home directory (for zsh, also ZDOTDIR)",
            )
    was_on = start.exists()
    try:
        _make_folder(start.parent)
        _write_program(start)
        for hook in hooks:
            add_lines(Path(hook.file), hook.lines)
    except InputError:
        if not was_on:
            _remove_program(start)
        raise
    _show(output)


@command.command(short_help="Stop recording every job.", epilog=_examples("teho always off"))
@output_options()
def off(output: Output) -> None:
    """Stop recording every job, and remove what `teho always on` added.

    Your files are then as they were before, byte for byte. The recordings stay. Open shells keep
    the variable BASH_ENV, which has no effect then.

    Reads: ~/.bashrc or ~/.zshrc, and the files of login shells, such as ~/.profile.

    Writes: the same files; deletes ~/.config/teho/always and TEHO_HOME/.always.

    Network: not used.
    """
    from teho.config.marked_lines import remove_lines
    from teho.config.settings import load_settings
    from teho.store.automatic import remove_stamp

    start = _start_file()
    for file in _files():
        remove_lines(file)
    _remove_program(start)
    remove_stamp(load_settings().home_directory)
    _show(output)


@command.command(
    short_help="Show what is recorded, and why jobs are not.",
    epilog=_examples("teho always status\n  teho always status --format json"),
)
@output_options()
def status(output: Output) -> None:
    """Show whether jobs are recorded, the last recording, and what prevents recordings.

    Asks the accounting how the recorded jobs ended.

    Reads: ~/.bashrc or ~/.zshrc, the files of login shells, such as ~/.profile, and the recordings
    in TEHO_HOME.

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
    """Return the hooks of all schedulers of this machine.

    Raises:
        InputError: this machine has no scheduler, or a hook cannot be added.
    """
    from teho.config.settings import expanded
    from teho.schedulers.command import run
    from teho.schedulers.registry import schedulers

    able = [one for one in schedulers().values() if one.inventory_command]
    here = [one for one in able if shutil.which(one.inventory_command)]
    home = expanded("~")
    hooks = tuple(hook for one in here for hook in one.hooks(str(start), home, os.environ, run))
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
    names = (".bashrc", ".bash_profile", ".bash_login", ".profile")
    return *(home / name for name in names), zsh / ".zshrc"


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


def _make_folder(folder: Path) -> None:
    """Make the folder of the program, and note the highest folder that is new."""
    new = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
    make_folder(folder, "set XDG_CONFIG_HOME to a folder that you can write", mode=0o700)
    if folder.parents[1] in new:
        with contextlib.suppress(OSError):  # `off` then leaves an empty folder
            (folder / _NEW).write_text(f"{new[-1]}\n", encoding="utf-8")


def _remove_program(start: Path) -> None:
    """Delete the program, and the folders that `on` made, if they have no other files."""
    folder = start.parent
    highest = folder.parent
    with contextlib.suppress(OSError, UnicodeDecodeError):
        highest = Path((folder / _NEW).read_text(encoding="utf-8").strip())
    if folder.is_dir():
        shutil.rmtree(folder)
    with contextlib.suppress(OSError):  # it has other files
        for one in folder.parents:
            one.rmdir()
            if one == highest or highest not in one.parents:
                break


def _show(output: Output, *, settles: bool = False) -> None:
    from teho.show.build.always import always_document

    found = _status(settles=settles)
    output.show(always_document(found), found)


def _status(*, settles: bool) -> Always:
    from teho.config.marked_lines import has_lines, why_broken
    from teho.config.settings import load_settings
    from teho.jobs.settle import settle
    from teho.model.always import Always
    from teho.store.automatic import automatic_runs, nearest_directory

    settings, start = load_settings(), _start_file()
    home = settings.home_directory
    problems: list[str] = []
    try:
        hooks = _hooks(start)
    except InputError as error:
        hooks = ()
        problems.append(str(error))
    try:
        runs = automatic_runs(home)
        if settles and settle(home, runs):
            runs = automatic_runs(home)
    except RecordingError:
        runs = []
    last = runs[-1].run if runs else None
    files = [Path(hook.file) for hook in hooks] or _files()
    broken = {str(path): why for path in files if (why := why_broken(path))}
    hooks = tuple(
        msgspec.structs.replace(hook, problem=broken.get(hook.file, hook.problem)) for hook in hooks
    )
    added = [has_lines(Path(hook.file)) for hook in hooks] or [any(map(has_lines, files))]
    is_on = all(added) and start.exists()
    is_off = not (any(added) or start.exists() or broken)
    state = "on" if is_on else "off" if is_off else "partly"
    if not is_off:
        problems += dict.fromkeys(hook.problem for hook in hooks if hook.problem) or broken.values()
        problems += _unconfigured()
        problems += _failures(start, last.started_at.timestamp() if last else 0.0)
        nearest = nearest_directory(home)
        if not nearest.is_dir() or not os.access(nearest, os.W_OK):
            problems.append(f"{home} cannot be written")
        if not is_on and not broken:
            problems.append("a part of `teho always on` is missing: run it again")
    return Always(
        state=state,
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
        next_step=_next_step(hooks, state),
    )


def _next_step(hooks: Sequence[Hook], state: str) -> str:
    """Return what to do so that this shell fits the state; empty: it fits."""
    wanted = [hook for hook in hooks if hook.needs_new_shell]
    unread = [hook.file for hook in wanted if not hook.is_active]
    if state == "on" and unread:
        return f"log in again, or run `. {unread[0]}`"
    if state == "off" and len(unread) < len(wanted):
        return (
            "log in again: this shell still has the variable `BASH_ENV` of Teho, which has no "
            "effect now"
        )
    return ""


def _unconfigured() -> list[str]:
    """Return a sentence for each scheduler whose commands are here, but which serves no cluster."""
    from teho.schedulers.command import accepted, run
    from teho.schedulers.registry import schedulers

    found = []
    for one in schedulers().values():
        if not one.ping_command or not shutil.which(one.ping_command[0]):
            continue
        try:
            accepted(run(one.ping_command, timeout_s=_PING_S))
        except UnconfiguredError as error:
            found.append(str(error))
        except SchedulerError:
            continue  # a scheduler that does not answer now may answer later
    return found


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
