"""What the user means by a word: traces in files, traces in a folder, or a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from teho.cli import say
from teho.errors import RunNotFoundError

__all__ = ["say_if_large", "traces_or_run"]

_LARGE_BYTES = 200_000_000
_ENDINGS = (".json", ".gz", ".xplane.pb")


def traces_or_run(words: Sequence[str]) -> tuple[Path, ...] | Path:
    """Return the files of traces, or the directory of the run.

    Args:
        words: files, or one folder with traces, or one run.

    Raises:
        RunNotFoundError: there is neither a file, nor a folder, nor a run with this name.
        InputError: the folder has no traces.
    """
    path = Path(words[0])
    if len(words) > 1 or path.name.endswith(_ENDINGS):
        return tuple(map(Path, words))
    from teho.config.settings import load_settings
    from teho.store.index import find_run

    try:
        return find_run(words[0], load_settings().home_directory)
    except RunNotFoundError as error:
        if path.is_file():
            return (path,)
        if path.is_dir():
            from teho.profile.summary import trace_files

            return tuple(trace_files(path))
        raise RunNotFoundError(
            f"{words[0]!r} is not a file, and {error.found}",
            "a trace (.json or .json.gz), a folder with traces, or a run",
            "`teho list` shows the runs",
        ) from error


def say_if_large(paths: Sequence[Path]) -> None:
    """Print a note if it may take more memory to read traces than is free.

    Args:
        paths: the files.
    """
    from teho.profile.needs import needed_bytes

    needed = needed_bytes(paths)
    if needed < _LARGE_BYTES:
        return
    from teho.feed.room import free_host_bytes
    from teho.units import format_bytes

    free = free_host_bytes()
    if needed > free:
        say(
            f"reading the trace needs about {format_bytes(needed)} of memory, but only "
            f"{format_bytes(free)} are free. If it fails: record fewer steps, or read the trace in "
            "a job with more memory"
        )
