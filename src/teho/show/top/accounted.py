"""Frames of a job that Teho does not record: what the scheduler reports, with its age."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import msgspec
from rich.text import Text

from teho.config.settings import Settings
from teho.errors import InputError, SchedulerError
from teho.jobs.ask import job_until_now
from teho.model.accounted import AccountedJob
from teho.model.document import Fact, Report
from teho.model.job import JobState
from teho.model.watched import WatchedProcess
from teho.schedulers.backend import Backend
from teho.show.accounted import report_on
from teho.show.cells import labelled_value, plain
from teho.show.text.table import table_lines
from teho.show.top.frame import Answer, Curve, Frame
from teho.show.top.rows import DIM, Row, View
from teho.units import format_duration

__all__ = ["AccountedSource", "accounted_document", "accounted_view"]

_PERIOD_S = 30.0
"""sstat asks each node of the job, and by default Slurm takes a sample of each task every 30 s."""
_RUNS = frozenset({JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})


class AccountedSource:
    """Asks the scheduler again and again.

    Args:
        backend: the scheduler.
        job_id: the job.
        settings: the user's settings.
        why: why there are no samples.

    Raises:
        TehoError: the scheduler does not answer the first time.
    """

    def __init__(self, backend: Backend, job_id: str, settings: Settings, why: str) -> None:
        self._backend = backend
        self._job_id = job_id
        self._settings = settings
        self._why = why
        self._problem = ""
        self._report: Report | None = None
        self._job: AccountedJob | None = None
        self._queried_s = time.monotonic()
        self._asking = threading.Thread(target=self._ask_again, daemon=True)
        self._ask()

    @property
    def is_running(self) -> bool:
        """Whether the scheduler reports that the job is running."""
        return self._job is not None and self._job.state in _RUNS

    def poll(self, *, reads_all: bool = False) -> None:
        """Ask again if it is time; do not wait for the answer."""
        del reads_all  # there is one question
        is_due = time.monotonic() - self._queried_s >= _PERIOD_S
        if is_due and self.is_running and not self._asking.is_alive():
            self._asking = threading.Thread(target=self._ask_again, name="asking", daemon=True)
            self._asking.start()

    def frame(self) -> Frame:
        """Return the newest answer."""
        job, report = self._job, self._report
        if job is None or report is None:
            raise RuntimeError("the scheduler has not answered")
        by = next((str(fact.value) for fact in report.facts if fact.key == "source"), job.source)
        answer = Answer(by, time.monotonic() - self._queried_s, job.elapsed_s or 0.0)
        notes = tuple(filter(None, (self._why, self._problem)))
        return Frame(report, (), job.time_limit_s, notes, answer=answer)

    def curves(self, node: str, position: int) -> Sequence[Curve]:
        """Return nothing: there are no samples."""
        del node, position
        return ()

    def process(self, node: str, pid: int) -> WatchedProcess | None:
        """Return None: no probe recorded a process."""

    def close(self) -> None:
        """Do nothing."""

    def _ask(self) -> None:
        began_s = time.monotonic()
        runs = job_until_now(self._backend, self._job_id)
        if len(tasks := {job.id for job in runs}) > 1:
            raise InputError(f"job {self._job_id} has {len(tasks)} tasks", "one of these tasks")
        if runs:
            report = report_on(runs, self._settings, plots=False)
            # They name `teho top`.
            self._report = msgspec.structs.replace(report, commands=())
            self._job, self._queried_s = runs[-1], began_s

    def _ask_again(self) -> None:
        try:
            self._ask()
            self._problem = ""
        except (SchedulerError, InputError) as error:
            self._problem = error.found


def accounted_view(frame: Frame, width: int) -> View:
    """Return the figures and tables of the scheduler's answer."""
    if frame.answer is None:
        return View(Text(), [])
    title = Text(plain(frame.answer.by), "bold")
    title.append(f"  asked {format_duration(frame.answer.age_s)} ago", DIM)
    rows = []
    for fact in frame.report.facts:
        if fact.value is not None and not fact.aside:
            line = Text(f"{plain(fact.label):<28}{labelled_value(fact.value, fact.unit)}")
            rows.append(Row(line.append(f" ({plain(fact.note)})" if fact.note else "", DIM)))
    for table in frame.report.tables:
        if table.rows and table.level != "why":
            rows += [Row(Text()), *map(Row, table_lines(table, width))]
    return View(title, rows).cut(width)


def accounted_document(frame: Frame) -> Report:
    """Return the scheduler's answer as a document, with its age and the reason for it."""
    report, answer = frame.report, frame.answer
    if answer is None:
        return report
    age = Fact("age_s", "Age of the answer", answer.age_s, "s")
    return msgspec.structs.replace(
        report,
        facts=(*(fact for fact in report.facts if not fact.aside), age),
        findings=(),
        abstentions=(),
        notes=(*frame.notes, *report.notes),
    )
