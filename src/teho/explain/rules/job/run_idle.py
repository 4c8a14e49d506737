"""A program without stacks has used no core and no GPU for minutes, and may be stuck."""

from __future__ import annotations

from statistics import fmean

from teho.explain.idle import at_end, is_idle
from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.step import absent_hosts
from teho.explain.wording import joined, listed
from teho.model.missing import Missing
from teho.model.run import IdleProcess
from teho.model.stack import State
from teho.patterns import lazy_pattern
from teho.units import format_duration

RANK = 6
SEVERITY = "warning"
CERTAINTY = Certainty.POSSIBLE
THRESHOLDS = {
    "idle_min_s": chosen(
        600.0,
        "s",
        "most intended pauses are shorter than 10 min. Without the probe, Teho knows less about a "
        "program, so this limit is longer than the limit of `run_stuck`",
    ),
    "cores_max": chosen(
        0.2, "cores", "threads that only wait, and check from time to time, use less than 0.2 cores"
    ),
    "gpu_busy_max_percent": chosen(
        1.0, "%", "if a GPU is busier than this limit, the program makes progress"
    ),
    "worked_min_s": chosen(
        60.0, "s", "a program that used less than 60 s of CPU time may not have begun its work"
    ),
    "bytes_max_per_s": chosen(
        1e5,
        "bytes/s",
        "a program that reads, writes, sends or receives more bytes per second than this limit "
        "makes progress",
    ),
}
MUTES = ("cores_unused", "gpu_used_only_at_first")
MUTES_BECAUSE = "the run may be stuck"
_TRAFFIC = (
    "job_read_calls_bytes", "job_write_calls_bytes", "net_receive_bytes", "net_send_bytes",
)  # fmt: skip
_WAITS = {
    State.LOCK.value: "another thread",
    State.PROCESS.value: "another process",
    State.DISK.value: "a file",
    State.DEVICE.value: "a device",
}
"""Waits that other processes or threads of the run have to end, and for what. A program that
sleeps, waits for the network, for a terminal or for an event may do so on purpose."""
_STARTS_ELSEWHERE = lazy_pattern(
    r"srun|mpirun|mpiexec|prterun|orterun|orted|prted|hydra_\w+|slurmstepd|ssh|qrsh|pdsh|clush|jsrun"
    r"|aprun|docker|podman|kubectl"
)
"""Programs that wait for work which may be on another node."""


def judge(context: ProgramContext) -> Findings:
    """Find out whether a run without Python processes has been idle for too long.

    It must have worked before. All its processes must wait for each other, for a lock or for a
    file. A process that wakes up often, reads or writes data, sleeps, listens for connections, has
    a terminal as its input, or waits for the network or for work on another node is not stuck.
    """
    end = context.run.end
    if context.mains or (end is not None and (end.exit_code == 0 or end.on_purpose)):
        return
    idle_s = context.limit("idle_min_s")
    if context.summary.elapsed_s < idle_s or absent_hosts(context.run):
        return
    if not is_idle(
        context, idle_s,
        cores_max=context.limit("cores_max"),
        gpu_busy_max_percent=context.limit("gpu_busy_max_percent"),
    ) or _moves_data(context, idle_s):  # fmt: skip
        return
    if not _has_worked(context):
        return
    processes = _waiting(context)
    if not processes:
        return
    since_s = context.summary.elapsed_s - max(
        node.idle.since_s + context.run.moment_s(node.name, node.started_at)
        for node in context.run.nodes
        if node.idle is not None
    )
    if since_s < idle_s:
        return
    what = "All cores and GPUs have" if context.gpus else "All cores have"
    names = listed([f"{process.pid} (`{process.name}`)" for process in processes])
    one = len(processes) == 1
    whom = joined(list(dict.fromkeys(_WAITS[process.state] for process in processes)))
    yield context.finding(
        Severity.WARNING,
        f"The run may be stuck. {what} been idle for {format_duration(since_s)}. "
        f"{'Process' if one else 'Processes'} {names} {'waits' if one else 'wait'} for {whom}.",
        evidence=(Evidence("time without use of cores", since_s, "s"),),
        action=(
            "Look in the log for an error. If the program does not wait on purpose, end the job: "
            "each further hour is billed. For a Python program, record it with the probe: then the "
            "report names the line in which it waits."
        ),
    )


def _moves_data(context: ProgramContext, idle_s: float) -> bool:
    """Return whether a node has read, written or transferred data."""
    for node in context.summary.nodes:
        for metric in _TRAFFIC:
            values = at_end(context, node, metric, idle_s)
            if values and fmean(values) > context.limit("bytes_max_per_s"):
                return True
    return False


def _has_worked(context: ProgramContext) -> bool:
    """Return whether the run has used its cores or GPUs before."""
    cpu_s = context.summary.cpu_s
    if not isinstance(cpu_s, Missing) and cpu_s >= context.limit("worked_min_s"):
        return True
    return any(context.gpu_used(node) for node in context.summary.nodes if node.gpus)


def _waiting(context: ProgramContext) -> list[IdleProcess]:
    """Return the processes for which the run waits; empty if one of them may wait on purpose."""
    found: list[IdleProcess] = []
    for node in context.run.nodes:
        if node.idle is None or not node.idle.processes:
            return []
        found += node.idle.processes
    working = [one for one in found if not _STARTS_ELSEWHERE.fullmatch(one.name)]
    if any(one.name in {"ssh", "qrsh"} for one in found) or not all(map(_is_stuck, working)):
        return []
    return working


def _is_stuck(one: IdleProcess) -> bool:
    on_purpose = one.listens or one.terminal or one.uninterruptible or one.wakes_up
    return one.state in _WAITS and not on_purpose
