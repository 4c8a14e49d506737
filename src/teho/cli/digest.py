"""`teho digest`: what the jobs of a period used and wasted."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from teho.cli import say
from teho.cli.declare import first_given, flag, option, plain_command
from teho.cli.output import Output, output_options
from teho.cli.progress import hint_if_slow
from teho.cli.selection import job_options, period_begin, privacy_notes, selected, selection_text
from teho.errors import InputError
from teho.units import parse_duration

if TYPE_CHECKING:
    from pathlib import Path

    from teho.cli.digest_mail import Wish
    from teho.model.accounted import AccountedJob

__all__ = ["command"]


@plain_command("""\
  teho digest
  teho digest --since 30d
  teho digest --account project_2001234 --since 30d -o digest.html
  teho digest --all --since 2026-11-01 --format json
  teho digest --all --since 30d --mail-to '{user}@example.org'
  teho digest --refuse anna
  teho digest --accept anna""")
@job_options("7d")
@option(
    "--mail-to ADDRESS",
    "Show the mails to all users whose jobs wasted much; {user} stands for the user's name.",
)
@flag("--send", "Send the mails of --mail-to through this machine's sendmail.")
@option("--every TIME", "Send at most one mail to each user in this time.", default="30d")
@option("--refuse NAME", "Never send mails to this user again. No digest is made.")
@option("--accept NAME", "Send mails to this user again, after --refuse. No digest is made.")
@output_options()
def command(
    since: str,
    user: str | None,
    account: str | None,
    everyone: bool,
    mail_to: str | None,
    send: bool,
    every: str,
    refuse: str | None,
    accept: str | None,
    output: Output,
) -> None:
    """Add up what the jobs of a period used and wasted, and what would save most.

    Each kind of waste has the threshold of a rule and its source. Jobs that were short, and jobs
    with missing figures, never count as waste. The digest compares the period with the period of
    the same length before it.

    Reads: the recordings in TEHO_HOME, and the thresholds file if you have one.

    Writes: the -o file, and a cache in ~/.cache/teho; with --send, --refuse and --accept,
    TEHO_HOME/mailed.json.

    Network: only through commands: of the scheduler, such as sacct; with --send, sendmail.
    """
    from teho.cli.digest_mail import group_by_user, mail_digests
    from teho.config.settings import load_settings
    from teho.explain.policy import policy_of
    from teho.explain.waste.cost import Costs
    from teho.explain.waste.digest import digest_of
    from teho.explain.waste.recorded import Recordings
    from teho.jobs.ask import accounting_here, gpu_nodes_here, jobs_since
    from teho.show.build.digest import digest_document
    from teho.show.build.digest_mail import mailing_document
    from teho.store.mailed import Mailed

    settings = load_settings()
    home = settings.home_directory
    if refuse is not None or accept is not None:
        _note_refusal(home, refuse, accept)
        return
    wish = _wish(mail_to, every, send=send)
    gc.disable()  # a list has millions of objects, and most of them are needed or gone at once
    begin, now = period_begin(since), datetime.now(timezone.utc)
    before = begin - (now - begin)
    selection = selected(before, user, account, everyone=everyone, every_run=True)
    backend = accounting_here(home)
    users: set[str] = set()
    policy = policy_of(settings)
    recordings = Recordings.of(home, policy)
    with hint_if_slow(f"waiting for the accounting of {backend.title}…"):
        digest = partial(
            digest_of,
            policy=policy,
            since=begin,
            until=now,
            recordings=recordings,
            gpu_nodes=gpu_nodes_here(backend),
            costs=Costs(),
        )
        jobs = _noted(jobs_since(backend, selection), users)
        if wish is not None:
            by_user = group_by_user(jobs)
        else:
            found = digest(jobs, selection=selection_text(selection))
    notes = tuple(privacy_notes(backend, selection, users))
    if wish is not None:
        digests = {name: digest(own, selection=f"user {name}") for name, own in by_user.items()}
        mailing = mail_digests(digests, policy, Mailed(home), wish)
        mailing = msgspec.structs.replace(mailing, notes=notes)
        output.show(mailing_document(mailing), mailing)
        return
    found = msgspec.structs.replace(found, notes=(*found.notes, *notes))
    output.show(digest_document(found), found)


def _note_refusal(home: Path, refuse: str | None, accept: str | None) -> None:
    """Note that a user refuses the mails, or accepts them again.

    Raises:
        InputError: it is not the name of a user, or there are other options.
    """
    from teho.cli.digest_mail import is_user_name
    from teho.store.mailed import Mailed

    own = "refuse" if accept is None else "accept"
    others = {one.name for one in click.get_current_context().command.params} - {own}
    if given := first_given(others):
        raise InputError(
            f"{given} has no effect with --{own}", f"only --{own} NAME", f"leave out {given}"
        )
    if refuse is not None:
        if not is_user_name(refuse):
            raise InputError(
                f"--refuse {refuse!r} is not the name of a user",
                "letters, digits and ._-",
                "`teho digest --refuse NAME`",
            )
        Mailed(home).refuse(refuse)
        say(f"{refuse} gets no more mails of `teho digest`")
    elif accept is not None:
        did = "gets the mails of `teho digest` again"
        say(f"{accept} {did if Mailed(home).accept(accept) else 'has not refused these mails'}")


def _wish(mail_to: str | None, every: str, *, send: bool) -> Wish | None:
    if mail_to is None:
        if given := first_given({"send", "every"}):
            raise InputError(f"{given} has no effect without --mail-to", "both, or none")
        return None
    from teho.cli.digest_mail import Wish

    return Wish(mail_to, parse_duration(every, "--every"), sends=send)


def _noted(jobs: Iterable[AccountedJob], users: set[str]) -> Iterator[AccountedJob]:
    """Yield the jobs, and note their users."""
    for job in jobs:
        users.add(job.user)
        yield job
