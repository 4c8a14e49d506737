"""Options that select jobs of the accounting: since when, and whose."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from teho.cli.declare import flag, option, together
from teho.errors import InputError, UnitError
from teho.units import parse_duration

if TYPE_CHECKING:
    from teho.schedulers.backend import Backend, Selection

__all__ = [
    "earliest",
    "job_options",
    "period_begin",
    "period_words",
    "privacy_notes",
    "selected",
    "selection_text",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FIRST = datetime(1970, 1, 1, tzinfo=timezone.utc)
"""No scheduler has older jobs."""


def job_options(default: str) -> Callable[[_Command], _Command]:
    """Give a command the options --since, --user, --account and --all.

    Args:
        default: the period without --since, such as `7d`.
    """
    return together(
        option("--since TIME", "Begin at this date; 30d: in the last 30 days.", default=default),
        option("--user NAME", "Show the jobs of this user.", unset="you"),
        option("--account NAME", "Show the jobs of this account, of all its users."),
        flag("--all", "Show the jobs of all users.", into="everyone"),
    )


def earliest(text: str) -> datetime:
    """Return the time that an option `--since` means.

    Raises:
        InputError: the text is neither a date nor a length of time.
    """
    with contextlib.suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).astimezone()
    try:
        return datetime.now(timezone.utc) - timedelta(seconds=parse_duration(text, "--since"))
    except (UnitError, OverflowError):
        raise InputError(
            f"--since {text}", "a date such as 2026-11-20, or a length of time such as 7d"
        ) from None


def period_begin(text: str) -> datetime:
    """Return the begin of a period that ends now, from an option `--since`.

    Raises:
        InputError: the text is neither a date nor a length of time, or the time is not in the past.
    """
    now = datetime.now(timezone.utc)
    begin = earliest(text)
    if not _FIRST < begin < now:
        raise InputError(
            f"--since {text} is not a time between 1970 and now",
            "a date such as 2026-11-20, or a length of time such as 7d",
        )
    return begin


def period_words(since: str) -> str:
    """Return the period in words: `the last 7 days`, or `the time since 2026-11-20`."""
    number = since.removesuffix("d")
    if number.isdecimal():
        return "the last day" if number == "1" else f"the last {int(number)} days"
    return f"the time since {since}" if "-" in since else f"the last {since}"


def selected(
    since: datetime, user: str | None, account: str | None, *, everyone: bool, every_run: bool
) -> Selection:
    """Return which jobs the options select.

    Raises:
        InputError: two options contradict each other, or a name is empty.
    """
    from teho.schedulers.backend import Selection

    for name, given in (("--user", user), ("--account", account)):
        if given is not None and not given.strip():
            raise InputError(f"{name} is empty", "a name", f"leave out {name}, or give a name")
    if everyone and (user or account):
        other = f"--user {user}" if user else f"--account {account}"
        raise InputError(f"--all cannot be used together with {other}", "one of them")
    own = "" if everyone or account else getpass.getuser()
    return Selection(since=since, user=user or own, account=account or "", every_run=every_run)


def selection_text(selection: Selection) -> str:
    """Return whose jobs are selected, in words."""
    parts = [
        *([f"user {selection.user}"] if selection.user else []),
        *([f"account {selection.account}"] if selection.account else []),
    ]
    return ", ".join(parts) or "all users"


def privacy_notes(backend: Backend, selection: Selection, users: set[str]) -> list[str]:
    """Return a sentence if the site may hide the jobs of other users.

    Args:
        backend: the scheduler.
        selection: the selected jobs.
        users: the users whose jobs were found.
    """
    from teho.jobs.ask import hides_others

    own = getpass.getuser()
    if selection.user == own or users - {own}:
        return []
    if hides_others(backend, selection):
        hidden = "This site hides the jobs of other users (`PrivateData=jobs`)"
        return [f"{hidden}: only your jobs are counted. The site's support can see all jobs."]
    return ["Only your own jobs were found. The accounting may hide the jobs of other users."]
