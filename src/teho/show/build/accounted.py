"""The report on a job of the accounting: the report of a run, with the source of each figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from teho.explain.analysis import Analysis
from teho.explain.wording import capital, joined
from teho.jobs.as_run import JobRun
from teho.model.accounted import AccountedJob, AccountedStep
from teho.model.document import Fact, Report, Table, VerdictSeverity
from teho.model.finding import Severity
from teho.model.job import JobState
from teho.model.missing import Missing, Reason
from teho.model.summary import Stat
from teho.show.build.jobs import state_sentence, wall_time
from teho.show.build.layout import column, is_known, table
from teho.show.build.report.document import build_report
from teho.show.cells import plain
from teho.units import counted, format_bytes, format_duration

__all__ = ["accounted_report"]

_COVERED_PERCENT = 90.0
"""Teho's own choice: if the store has samples of less of the time, the verdict says so."""
_ZERO_GPU = "Slurm also prints 0 if it cannot measure the GPUs: AMD GPUs, GH200, MIG"
_AT_MOST = "at most: the sum of the peaks of all tasks"
_AT_LEAST = "at least: some steps have no sample"
_NEXT = (
    "To find the causes, write `teho run -- COMMAND` in the script of the next job: it records "
    "every GPU and core over time."
)


def accounted_report(
    found: JobRun,
    runs: Sequence[AccountedJob],
    analysis: Analysis,
    *,
    plots: bool,
) -> Report:
    """Lay out the report on a job.

    Args:
        found: the last run of the job, with its figures.
        runs: all runs of the job; several if it was queued again.
        analysis: what is known about the last run of the job.
        plots: whether to include every metric over time.
    """
    report = build_report(analysis, plots=plots)
    verdict, severity = _verdict(found, report)
    return msgspec.structs.replace(
        report,
        title=f"job {found.job.id}",
        verdict=verdict,
        verdict_severity=severity,
        facts=tuple(_facts(found, report.facts)),
        tables=(*filter(_has_figures, report.tables), *_tables(found, runs)),
        troubles=(),
        notes=(*_notes(found, runs), *report.notes),
        commands=() if found.store else (_next(found.job),),
    )


def _has_figures(made: Table) -> bool:
    """Return whether a table has a figure besides the names and numbers of nodes and GPUs."""
    figures = [one.key for one in made.columns if one.unit or one.decimals is not None]
    return any(is_known(row.get(key)) for row in made.rows for key in figures)


def _next(job: AccountedJob) -> str:
    if job.state is JobState.RUNNING and job.source == "sacct":
        return f"`teho top {job.id}` shows what the job uses now."
    return _NEXT


def _verdict(found: JobRun, report: Report) -> tuple[str, VerdictSeverity]:
    """Return the most important finding; without one, the state of the job and what is unknown."""
    is_judged = any(finding.severity is not Severity.REMARK for finding in report.findings)
    if found.store and not is_judged and found.covered_percent < _COVERED_PERCENT:
        only = f"only {found.covered_percent:.0f} % of this time"
        return f"{report.verdict} The store has samples of {only}.", "unknown"
    if is_judged or found.store:
        return report.verdict, report.verdict_severity
    job = found.job
    sentence = f"Job {job.id} {state_sentence([job])}"
    if job.elapsed_s is not None and job.started_at is not None:
        sentence += f" {'after' if job.state.ended else 'for'} {wall_time(job.elapsed_s)}"
        sentence += f" of {format_duration(job.time_limit_s)}" if job.time_limit_s else ""
    if job.used_until_now:
        return f"{sentence}. {_until_now(found)}", "remark"
    if not job.state.ended:
        return f"{sentence}. Its use of CPU, memory and GPUs is known after its end.", "remark"
    unknown = list(_unknown(found))
    if unknown:
        verb = "is" if len(unknown) == 1 else "are"
        return f"{sentence}. {capital(joined(unknown))} {verb} not known.", "unknown"
    if report.findings:
        return f"{sentence}. {report.findings[0].sentence}", "remark"
    return f"{sentence}. The accounting shows no waste.", "remark"


def _until_now(found: JobRun) -> str:
    known = [
        *(["cores"] if found.job.cpu_s is not None else []),
        *(["memory"] if found.memory.least else []),
    ]
    return f"The figures show the use of {joined(known)} until now."


def _unknown(found: JobRun) -> Iterator[str]:
    """Yield what the accounting does not have, for a sentence."""
    job, summary = found.job, found.summary
    busy = [gpu.stats.get("gpu_busy_percent") for gpu in summary.gpus]
    if job.gpus and (not busy or any(type(one) is Missing for one in busy)):
        yield "the use of the GPUs"
    if isinstance(summary.cpu_s, Missing):
        yield "the CPU time"
    if not found.memory.least and isinstance(found.jobstats, Missing):
        yield "the memory"


# Facts


def _facts(found: JobRun, facts: Iterable[Fact]) -> Iterator[Fact]:
    job = found.job
    changed = {fact.key: fact for fact in _changed(found)}
    yield Fact("source", "Figures from", joined(_programs(found)))
    for fact in facts:
        if fact.key == "gpu_energy_j" and not found.store:
            continue  # no accounting has it
        if job.started_at is None and fact.key in _OF_STARTED:
            changed.pop(fact.key, None)
            continue
        yield changed.pop(fact.key, fact)
        if fact.key == "elapsed_s" and job.wait_s is not None:
            yield Fact("wait_s", "Waited in the queue", job.wait_s, "s")
    yield from changed.values()
    if job.user:
        yield Fact("user", "User", plain(job.user))
    if job.name:
        yield Fact("job_name", "Name", plain(job.name))
    yield from _gpu_samples(job)
    if job.energy_j:
        note = "whole nodes, with the work of other jobs"
        yield Fact("scheduler_energy_j", "Energy", job.energy_j, "J", note)
    if job.read_written_bytes is not None:
        yield Fact("read_written_bytes", "Read and written", job.read_written_bytes, "bytes")


_OF_STARTED = frozenset({"elapsed_s", "cores_used", "memory_peak_bytes", "gpu_busy_percent"})
"""Facts that a job does not have before its start."""


def _local(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M %Z")


def _programs(found: JobRun) -> list[str]:
    names = list(dict.fromkeys(filter(None, (found.job.source, found.job.used_until_now))))
    if not isinstance(found.jobstats, Missing):
        names.append("Jobstats")
    return [*names, found.store] if found.store else names


def _changed(found: JobRun) -> Iterator[Fact]:
    """Yield the facts that differ from the facts of a recording."""
    job, summary = found.job, found.summary
    if job.elapsed_s is not None and job.started_at is not None:
        limit = f"of {format_duration(job.time_limit_s)}" if job.time_limit_s else ""
        # Schedulers count whole seconds.
        note = ", ".join(filter(None, ["" if job.elapsed_s else "less than 1 s", limit]))
        yield Fact("elapsed_s", "Time", job.elapsed_s, "s", note)
    yield Fact("ended", "State", state_sentence([job]))
    cpu_s = summary.cpu_s if job.cpu_s is None else job.cpu_s
    if not isinstance(cpu_s, Missing):
        cpu_s /= job.elapsed_s or summary.elapsed_s or 1.0
    yield Fact("cores_used", "Cores used", cpu_s, note=_of_cores(job))
    if isinstance(found.jobstats, Missing) and not _has_sampled_memory(found):
        yield from _memory(found)
    yield Fact("state_words", "State", _state_words(job), aside=True)
    if job.nodes:
        yield Fact("node_count", "Nodes", job.nodes, aside=True)


def _has_sampled_memory(found: JobRun) -> bool:
    return any(isinstance(node.stats.get("job_memory_bytes"), Stat) for node in found.summary.nodes)


def _of_cores(job: AccountedJob) -> str:
    return f"of {job.cores:,}" if job.cores else ""


def _memory(found: JobRun) -> Iterator[Fact]:
    """Yield the memory of the whole job, from the peaks of its tasks."""
    job, memory = found.job, found.memory
    limit = f"of {format_bytes(job.memory_bytes)}" if job.memory_bytes else ""
    if not memory.least:
        nothing = Missing(Reason.UNRECORDED, f"{job.source} has no memory peak of this job")
        yield Fact("memory_peak_bytes", "Memory", nothing, "bytes", limit)
    else:
        is_sum = memory.most > memory.least
        bound = _AT_MOST if is_sum else "" if memory.most else _AT_LEAST
        note = ", ".join(filter(None, [limit, bound]))
        peak = max(memory.least, memory.most)
        yield Fact("memory_peak_bytes", "Memory", peak, "bytes", note)
        if is_sum:
            yield Fact("task_memory_peak_bytes", "Memory of one task", memory.least, "bytes")
    if job.memory_bytes:
        yield Fact("memory_limit_bytes", "Memory limit", job.memory_bytes, "bytes", aside=True)


def _state_words(job: AccountedJob) -> str:
    """Return the state in the words of `seff`."""
    words = job.state_as_written if job.source == "sacct" else job.state.value.upper()
    if job.state in {JobState.COMPLETED, JobState.FAILED} and job.exit_code is not None:
        return f"{words} (exit code {job.exit_code})"
    return f"{words} (signal {job.signal})" if job.signal else words


def _gpu_samples(job: AccountedJob) -> Iterator[Fact]:
    """Yield the highest samples of the GPUs that Slurm took."""
    percents = [one.gpu_peak_percent for one in job.steps if one.gpu_peak_percent is not None]
    memory = max((one.gpu_memory_peak_bytes or 0 for one in job.steps), default=0)
    note = "highest sample of one task, on all its GPUs"
    if percents:
        most = max(percents)
        yield Fact(
            "gpu_peak_percent", "GPU use", most, "%", note if most else f"{note}. {_ZERO_GPU}"
        )
    if memory:
        yield Fact("gpu_memory_peak_bytes", "GPU memory", memory, "bytes", note)


# Tables


def _tables(found: JobRun, runs: Sequence[AccountedJob]) -> Iterator[Table]:
    if len(runs) > 1:
        yield _runs_table(runs)
    if found.job.steps:
        yield _steps_table(found.job)
    yield _details_table(found.job)
    yield _leveled(
        table(
            "sources", "Sources of the figures", found.sources,
            column("figure", "Figure", lambda one: one.figure),
            column("source", "Source", lambda one: one.source),
        )
    )  # fmt: skip


def _leveled(made: Table) -> Table:
    return msgspec.structs.replace(made, level="why")


def _details_table(job: AccountedJob) -> Table:
    """Return the facts that identify the job."""
    moments = (("Submitted", job.submitted_at), ("Began", job.started_at), ("Ended", job.ended_at))
    details = [
        *((label, _local(moment)) for label, moment in moments if moment),
        *(
            (label, plain(text))
            for label, text in (
                ("Account", job.account), ("QOS", job.qos), ("Nodes", job.node_list),
                ("GPU type", job.gpu_type), ("Reason", job.reason), ("Comment", job.comment),
            )
            if text
        ),
    ]  # fmt: skip
    made = table(
        "details", "The job in the accounting", details,
        column("what", "What", lambda pair: pair[0]),
        column("value", "Value", lambda pair: pair[1]),
    )  # fmt: skip
    return _leveled(made)


def _runs_table(runs: Sequence[AccountedJob]) -> Table:
    return table(
        "runs", "Runs of this job", list(enumerate(runs, 1)),
        column("run", "Run", lambda pair: str(pair[0])),
        column("began", "Began", lambda pair: _began(pair[1])),
        column("elapsed", "Time", lambda pair: pair[1].elapsed_s, unit="s"),
        column("cpu", "CPU time", lambda pair: pair[1].cpu_s, unit="s"),
        column("state", "State", lambda pair: _run_state(pair[1])),
        note="The job was queued again after each run but the last.",
    )  # fmt: skip


def _run_state(job: AccountedJob) -> str:
    is_requeued = job.ended_at is not None and not job.state.ended
    return "queued again" if is_requeued else state_sentence([job])


def _began(job: AccountedJob) -> str | None:
    return _local(job.started_at) if job.started_at else None


def _steps_table(job: AccountedJob) -> Table:
    steps = [step for step in job.steps if step.name != "extern"]
    made = table(
        "steps", "Steps", steps,
        column("step", "Step", lambda step: step.name),
        column("name", "Name", _title),
        column("tasks", "Tasks", lambda step: step.tasks),
        column("elapsed", "Time", lambda step: step.elapsed_s, unit="s"),
        column("cpu", "CPU time", lambda step: step.cpu_s, unit="s"),
        column("memory", "Memory of a task", lambda step: step.memory_peak_bytes, unit="bytes"),
        column("gpu", "GPU use", lambda step: step.gpu_peak_percent, unit="%"),
        column("gpu_memory", "GPU memory", lambda step: step.gpu_memory_peak_bytes, unit="bytes"),
        column("state", "State", _step_state),
        note="The values of memory and GPUs are the highest sample of one task.",
        only_known=True,
    )  # fmt: skip
    return made if len(steps) > 1 else _leveled(made)


def _title(step: AccountedStep) -> str | None:
    return plain(step.title) if step.title != step.name else None


def _step_state(step: AccountedStep) -> str:
    if step.exit_code:
        return f"exit code {step.exit_code}"
    if step.signal:
        return f"signal {step.signal}"
    return step.state.value.replace("_", " ")


# Notes


def _notes(found: JobRun, runs: Sequence[AccountedJob]) -> Iterator[str]:
    job = found.job
    without = "" if found.store else ": only totals and peaks, and no values over time"
    yield f"Teho did not record this job. The values are from {joined(_programs(found))}{without}."
    if found.store and found.covered_percent < _COVERED_PERCENT:
        yield (
            f"The store has samples of {found.covered_percent:.0f} % of the run time. All values "
            "over time are for this part of the run time."
        )
    yield from found.notes
    if isinstance(found.jobstats, Missing) and found.jobstats.reason is Reason.FAILED:
        yield f"{found.jobstats.detail[:1].upper()}{found.jobstats.detail[1:]}."
    elif isinstance(found.jobstats, Missing) and job.admin_comment:
        yield f"Jobstats has no figures of this job: {found.jobstats.detail}."
    if len(runs) > 1:
        yield f"The job has {counted(len(runs), 'run')}: this report is about the last run."
    if found.memory.most > found.memory.least:
        yield (
            "The accounting has the memory peak of each task. The job used at most the sum of "
            "these peaks, because tasks share memory and reach their peaks at different times."
        )
