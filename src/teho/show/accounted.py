"""The report on a job that Teho did not record, from the accounting and the site's monitoring."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from teho.config.settings import Settings
from teho.errors import InputError, StoreError
from teho.explain.analysis import Analysis
from teho.explain.judge import judge_all
from teho.explain.policy import policy_of
from teho.jobs.as_run import JobRun, as_run
from teho.model.accounted import AccountedJob
from teho.model.finding import Abstention, Finding
from teho.show.build.accounted import accounted_report

if TYPE_CHECKING:
    from teho.jobs.http import Store
    from teho.model.document import Report

__all__ = ["known_of", "report_on"]


def report_on(
    runs: Sequence[AccountedJob],
    settings: Settings,
    *,
    is_judged: bool = True,
    store: Store | None = None,
    plots: bool = True,
    problems: list[str] | None = None,
) -> Report:
    """Judge the last run of a job, and lay out its report.

    Args:
        runs: all runs of the job, in their order; a job has several if it was queued again.
        settings: the user's settings, for example for the thresholds.
        is_judged: whether the rules judge it; `seff` has no findings, and arrays have many tasks.
        store: the site's monitoring; None: it is not asked.
        plots: whether to include every metric over time; text does not need them.
        problems: gets a sentence if the store cannot be asked.
    """
    policy = policy_of(settings)
    last = known_of(runs[-1], store, problems)
    findings: tuple[Finding, ...] = ()
    abstentions: tuple[Abstention, ...] = ()
    # Before its end, the accounting does not have what a job uses.
    if is_judged and (last.job.state.ended or last.store):
        findings, abstentions = judge_all(last.run, last.summary, policy)
    analysis = Analysis(last.run, last.state, last.summary, findings, abstentions, policy=policy)
    return accounted_report(last, runs, analysis, plots=plots and bool(last.store))


def known_of(
    job: AccountedJob, store: Store | None = None, problems: list[str] | None = None
) -> JobRun:
    """Return what the accounting and the site's monitoring know of a job.

    Args:
        job: one run of a job.
        store: the site's monitoring; None: it is not asked.
        problems: gets a sentence if the store cannot be asked.
    """
    found = as_run(job)
    if store is None or job.started_at is None:
        return found
    try:
        return _with_samples(found, store)
    except (StoreError, InputError) as error:
        (problems if problems is not None else []).append(str(error))
        return msgspec.structs.replace(found, notes=(f"{error.found}.",))


def _with_samples(found: JobRun, store: Store) -> JobRun:
    """Return a job with the figures of its samples in a store, if the store has any."""
    from teho.explain.summary import summarise
    from teho.jobs.measured import joined, record
    from teho.jobs.monitoring import ask_store

    monitored = ask_store(store, found.job)
    with TemporaryDirectory(prefix="teho-") as folder:
        recorded = record(monitored, found, store, Path(folder))
        if recorded is None:
            nothing = f"The store {store.host} has no samples of this job."
            return msgspec.structs.replace(found, notes=(nothing, *monitored.notes))
        with_samples, directory = recorded
        summary = joined(found, summarise(with_samples.run, directory, []))
    return msgspec.structs.replace(with_samples, summary=summary)
