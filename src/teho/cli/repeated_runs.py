"""What commands share that run a program again and again: its times, prices, and recordings."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from teho.cli import say
from teho.errors import InputError
from teho.units import format_duration, parse_duration

if TYPE_CHECKING:
    from teho.experiment.prices import Prices

__all__ = ["RepeatedRuns", "prices_of", "read_times", "read_window"]


class RepeatedRuns:
    """Runs of one program that belong together.

    Args:
        program: its first word.
        where: the names of the placements, if it has any.
        for_s: how long all may take.
    """

    def __init__(self, program: str, where: Iterable[str], for_s: float) -> None:
        from teho.config.settings import load_settings

        self.home: Path = load_settings().home_directory
        self.id = secrets.token_hex(4)
        """Tag `compare` of all their recordings."""
        self.tell: Callable[[str], None] = say if sys.stderr.isatty() else lambda _: None
        """Takes a line for each run."""
        names = ", ".join(where)
        say(
            f"{program} is run again and again{names and f' on {names}'}, for "
            f"{format_duration(for_s)} or less; each run writes what it writes, where it always "
            "does"
        )


def read_times(for_: str, window: str) -> tuple[float, float]:
    """Return the values of `--for` and `--window` in seconds.

    Raises:
        InputError: one of them is not a time, or the window is not the shorter one.
    """
    for_s, window_s = parse_duration(for_, "--for"), read_window(window)
    if not window_s < for_s:
        raise InputError(f"--window {window} and --for {for_}", "a window shorter than that")
    return for_s, window_s


def read_window(window: str) -> float:
    """Return the value of `--window` in seconds.

    Raises:
        InputError: it is not a time, or none at all.
    """
    window_s = parse_duration(window, "--window")
    if not window_s > 0:
        raise InputError(f"--window {window}", "a length of time above 0, such as 10s")
    return window_s


def prices_of(site: str | None) -> Prices | None:
    """Return the prices of a cluster; None if none is named and this is none of them.

    Raises:
        InputError: there is no such cluster.
    """
    from teho.clusters.catalogue import load_catalogue, load_cluster
    from teho.clusters.current import current_cluster
    from teho.experiment.prices import Prices

    if site is not None:
        return Prices(load_cluster(site))
    found = current_cluster(os.environ, os.uname().nodename, load_catalogue().values())
    return Prices(found) if found else None
