"""`teho digest --mail-to`: a mail to each user whose jobs wasted much."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from teho.cli.progress import ProgressLine
from teho.errors import InputError, MissingCommandError
from teho.model.digest import Amounts, Digest, Mail, Mailing
from teho.observe.notify import words_of
from teho.patterns import lazy_pattern
from teho.process.sendmail import find_sendmail, send_mail
from teho.store.mailed import Mailed

if TYPE_CHECKING:
    from teho.explain.policy import Policy
    from teho.model.accounted import AccountedJob

__all__ = ["Wish", "group_by_user", "is_user_name", "mail_digests"]

_USER = lazy_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_ADDRESS = lazy_pattern(r"[^\s@<>,;]+@[^\s@<>,;]+")
_TIMEOUT_S = 30.0


def is_user_name(text: str) -> bool:
    """Return whether a text can be the name of a user, and part of an address."""
    return _USER.fullmatch(text) is not None


class Wish:
    """What the options of the mails ask for.

    Args:
        address: with `{user}` for the name of the user.
        every_s: at most one mail per user in this time.
        sends: whether to send the mails, not only to show them.

    Raises:
        InputError: the address is not valid.
        MissingCommandError: the mails should be sent, but this machine has no sendmail.
    """

    def __init__(self, address: str, every_s: float, *, sends: bool) -> None:
        if "{user}" not in address or not _ADDRESS.fullmatch(address.replace("{user}", "u")):
            raise InputError(
                f"--mail-to {address!r}",
                "an address with {user}, such as '{user}@example.org'",
                "`teho digest --help`",
            )
        if sends and find_sendmail() is None:
            raise MissingCommandError(
                "--send: this machine has no sendmail command",
                "a machine that can send mails",
                "without --send, Teho only shows the mails",
            )
        self.address = address
        self.every = timedelta(seconds=every_s)
        self.sends = sends


def group_by_user(jobs: Iterable[AccountedJob]) -> dict[str, list[AccountedJob]]:
    """Return the jobs of each user."""
    by_user: dict[str, list[AccountedJob]] = defaultdict(list)
    for job in jobs:
        by_user[job.user].append(job)
    return by_user


def mail_digests(
    digests: Mapping[str, Digest], policy: Policy, mailed: Mailed, wish: Wish
) -> Mailing:
    """Send a mail to each user whose jobs wasted much, or only say what would be sent.

    Args:
        digests: the digest of each user.
        policy: says from which waste on a user gets a mail.
        mailed: who got a mail or refused.
        wish: what the options ask for.
    """
    order = sorted(digests, key=lambda user: _weight(digests[user].wasted), reverse=True)
    now = datetime.now(timezone.utc)
    mails: list[Mail] = []
    example = "", ""
    progress = ProgressLine(quiet=not wish.sends)
    for user in order:
        found = digests[user]
        if not found.jobs:
            continue
        reason = _why_not(user, found, policy, mailed, wish, now)
        state = "skipped" if reason else "planned"
        before = mailed.last_at(user)
        if not reason:
            mail = _written(user, found)
            example = example if example[0] else mail
            if wish.sends:
                progress()
                state, reason = _sent(user, mail, mailed, wish, now)
        mails.append(
            Mail(
                user=user,
                address=wish.address.replace("{user}", user),
                wasted=found.wasted,
                state=state,
                reason=reason,
                last_at=before,
            )
        )
    first = next(iter(digests.values()), None)
    return Mailing(
        since=first.since if first else now,
        until=first.until if first else now,
        is_sent=wish.sends,
        mails=tuple(mails),
        example_title=example[0],
        example=example[1],
    )


def _weight(amounts: Amounts) -> tuple[float, float]:
    return amounts.gpu_hours, amounts.core_hours


def _why_not(
    user: str, found: Digest, policy: Policy, mailed: Mailed, wish: Wish, now: datetime
) -> str:
    from teho.explain.shared_thresholds import DIGEST

    limits = policy.thresholds[DIGEST]
    gpu_hours, core_hours = limits["mail_gpu_hours"].value, limits["mail_core_hours"].value
    if not is_user_name(user):
        return "the name cannot be part of an address"
    if mailed.has_refused(user):
        return "refused these mails"
    if found.wasted.gpu_hours < gpu_hours and found.wasted.core_hours < core_hours:
        return f"less than {gpu_hours:g} GPU-hours and {core_hours:g} core-hours"
    last_at = mailed.last_at(user)
    if last_at is not None and now - last_at < wish.every:
        return f"got a mail on {last_at.astimezone():%Y-%m-%d}"
    return ""


def _written(user: str, found: Digest) -> tuple[str, str]:
    """Return the title and the text of a mail.

    Raises:
        InputError: the site's template has a mistake.
    """
    from teho.schedulers.script.render import render
    from teho.show.build.digest import amounts_text
    from teho.show.cells import plain

    values = {
        "user": user,
        "since": found.since.astimezone(),
        "until": found.until.astimezone(),
        "jobs": found.jobs,
        "used": amounts_text(found.used),
        "wasted": amounts_text(found.wasted),
        "waste": [
            {
                "kind": one.kind,
                "title": one.title,
                "jobs": one.jobs,
                "amount": amounts_text(one.amounts),
                "examples": [plain(example) for example in one.examples],
            }
            for one in found.waste
        ],
        "changes": [
            {"kind": one.kind, "sentence": plain(one.sentence), "action": one.action,
             "jobs": one.jobs, "saves": amounts_text(one.saves)}
            for one in found.changes
        ],
    }  # fmt: skip
    title, _, text = render("digest_mail.txt.j2", values).partition("\n")
    return title.strip(), text.lstrip("\n")


def _sent(
    user: str, mail: Sequence[str], mailed: Mailed, wish: Wish, now: datetime
) -> tuple[str, str]:
    """Send one mail: `(state, why it failed)`."""
    before = mailed.last_at(user)
    # Before the mail: if this process is killed, no user gets a second mail.
    mailed.note_mail(user, now)
    try:
        send_mail(wish.address.replace("{user}", user), mail[0], mail[1], _TIMEOUT_S)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        mailed.note_mail(user, before)
        return "failed", words_of(error)
    return "sent", ""
