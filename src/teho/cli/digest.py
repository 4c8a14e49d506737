"""`teho digest`: what the jobs of a period used and wasted."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from teho.cli.declare import plain_command
from teho.cli.output import Output, output_options
from teho.cli.progress import hint_if_slow
from teho.cli.selection import earliest, job_options, privacy_notes, selected, whose

if TYPE_CHECKING:
    from teho.model.accounted import AccountedJob

__all__ = ["command"]


@plain_command("""\
  teho digest
  teho digest --since 30d
  teho digest --account project_2001234 --since 30d -o digest.html
  teho digest --all --since 2026-11-01 --format json""")
@job_options("7d")
@output_options()
def command(
    since: str, user: str | None, account: str | None, everyone: bool, output: Output
) -> None:
    """Add up what the jobs of a period used and wasted, and what would save most.

    Each kind of waste has the threshold of a rule and its source. Jobs that were short, and jobs
    with missing figures, never count as waste. The digest compares the period with the period of
    the same length before it.

    Reads: the recordings in TEHO_HOME, and the thresholds file if you have one.

    Writes: only the -o file, and a cache in TEHO_HOME.

    Network: only through commands of the scheduler, such as sacct.
    """
    from teho.config.settings import load_settings
    from teho.explain.policy import policy_of
    from teho.explain.waste.digest import digest_of
    from teho.explain.waste.recorded import Recordings
    from teho.jobs.ask import accounting_here, jobs_since
    from teho.show.build.digest import digest_document

    gc.disable()  # a list has millions of objects, and most of them are needed or gone at once
    settings = load_settings()
    begin, now = earliest(since), datetime.now(timezone.utc)
    before = begin - (now - begin)
    selection = selected(before, user, account, everyone=everyone, every_run=True)
    backend = accounting_here(settings.home_directory)
    users: set[str] = set()
    with hint_if_slow(f"waiting for the accounting of {backend.title}…"):
        jobs = _noted(jobs_since(backend, selection), users)
        found = digest_of(
            jobs,
            policy_of(settings),
            since=begin,
            until=now,
            whose=whose(selection),
            recordings=Recordings.of(settings.home_directory),
        )
    notes = privacy_notes(backend, selection, users)
    if notes:
        import msgspec

        found = msgspec.structs.replace(found, notes=(*found.notes, *notes))
    output.show(digest_document(found), found)


def _noted(jobs: Iterable[AccountedJob], users: set[str]) -> Iterator[AccountedJob]:
    """Yield the jobs, and note their users."""
    for job in jobs:
        users.add(job.user)
        yield job
