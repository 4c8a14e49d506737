"""What `teho compare`, `scale` and `tune` share: times, prices, and the lines about their runs."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from teho.cli import say
from teho.cli.declare import flag, option, together
from teho.cli.ended_early import EndedEarly
from teho.cli.here import cluster_here
from teho.cli.plot_file import plot_option
from teho.cli.progress import StatusLine, elapsed_line
from teho.errors import InputError
from teho.units import format_duration, parse_duration

if TYPE_CHECKING:
    from teho.experiment.prices import Prices

__all__ = [
    "RepeatedRuns",
    "measuring_options",
    "prices_of",
    "read_times",
    "read_window",
    "time_options",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def time_options(for_: str, window: str) -> Callable[[_Command], _Command]:
    """Add the options `--for` and `--window`, with these defaults."""
    return together(
        option("--for TIME", "Stop after at most this time.", into="for_", default=for_),
        option("--window TIME", "Measure each run for this time, after its step rate is steady.",
               default=window),
    )  # fmt: skip


def measuring_options(command: _Command) -> _Command:
    """Add the options that `teho compare` and `teho scale` share."""
    return together(
        time_options("10min", "10s"),
        flag("--full", "Let every run end by itself, and compare whole run times."),
        option("--site CLUSTER", "Use the prices of this cluster.",
               unset="this machine's cluster"),
        plot_option,
    )(command)  # fmt: skip


class RepeatedRuns:
    """Several runs of one program.

    Args:
        program: the first word of its command.
        placements: the names of the placements, if there are any.
        for_s: the longest time of all runs together, in s.
    """

    def __init__(self, program: str, placements: Iterable[str], for_s: float) -> None:
        from teho.config.settings import load_settings

        self.home = load_settings().home_directory
        self.id = secrets.token_hex(4)
        """Value of the tag `compare` of all recordings."""
        self.ended = EndedEarly()
        """The signal that ended the runs early, if any."""
        self._for_s = for_s
        self._line = StatusLine()
        self.progress: Callable[[str], None] = (
            self._show_progress if sys.stderr.isatty() else lambda _: None
        )
        """Prints a line about one run, on a terminal."""
        names = ", ".join(placements)
        say(
            f"{program} runs several times{names and f' on {names}'}, for at most "
            f"{format_duration(for_s)}; each run writes its files as usual"
        )

    def _show_progress(self, text: str) -> None:
        self._line("")
        say(text)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Show the time that has passed; a signal ends the runs early."""
        with self.ended, elapsed_line(self._for_s):
            yield


def read_times(for_: str, window: str) -> tuple[float, float]:
    """Return the values of `--for` and `--window` in seconds.

    Raises:
        InputError: a value is not a time, or the window is not the shorter one.
    """
    for_s, window_s = parse_duration(for_, "--for"), read_window(window)
    if not window_s < for_s:
        raise InputError(f"--window {window} is not shorter than --for {for_}", "a shorter window")
    return for_s, window_s


def read_window(window: str, what: str = "--window") -> float:
    """Return the value of `--window`, or of another option, in seconds.

    Raises:
        InputError: the value is not a time above 0.
    """
    window_s = parse_duration(window, what)
    if not window_s > 0:
        raise InputError(f"{what} {window}", "a length of time above 0, such as 10s")
    return window_s


def prices_of(site: str | None) -> Prices | None:
    """Return the prices of a cluster, or of the one that this machine belongs to, if any.

    Raises:
        InputError: the cluster is not in the catalogue.
    """
    from teho.clusters.catalogue import load_cluster
    from teho.experiment.prices import Prices

    found = load_cluster(site) if site is not None else cluster_here()
    return Prices(found) if found else None
