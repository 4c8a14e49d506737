"""The program starts many processes that run only for a short time."""

from __future__ import annotations

from teho.explain.rule import Certainty, Evidence, Findings, RuleContext, Severity, chosen

RANK = 452
SEVERITY = "warning"
THRESHOLDS = {
    "short_percent": chosen(
        30.0,
        "%",
        "if short processes use less than this share of the CPU time, starting them is not the "
        "main cost",
    ),
    "short_ms": chosen(
        50.0,
        "ms",
        "a process below this limit does little except starting: starting a program takes 1 to "
        "5 ms, and starting Python 20 ms or more",
    ),
    "short_min_s": chosen(
        5.0, "s", "programs that a script starts only at its beginning need less CPU time"
    ),
}
MUTES = ("serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says what the program does with the one core that it uses"


def judge(context: RuleContext) -> Findings:
    """Divide the CPU time of ended child processes by the number of started processes.

    The kernel counts the processes and threads of all programs on the node, so the program may have
    started fewer. If other jobs may share the node, the finding is only possible. Programs in
    Python are not judged: their samples show which line starts the processes.
    """
    if context.mains:
        return
    for node in context.summary.nodes:
        whole_s = context.total(node, "job_cpu_s")
        ended_s = context.total(node, "job_ended_cpu_s")
        started = context.total(node, "tasks_started")
        if not whole_s or not ended_s or not started:
            continue
        share = 100 * ended_s / whole_s
        each_ms = 1000 * ended_s / started
        if (
            share < context.limit("short_percent")
            or ended_s < context.limit("short_min_s")
            or each_ms > context.limit("short_ms")
        ):
            continue
        per_s = started / context.summary.elapsed_s
        recorded = context.run.node(node.name)
        is_whole = recorded is not None and recorded.core_count_node == node.cores
        yield context.finding(
            Severity.WARNING,
            f"The program started about {per_s:.0f} short processes per second on {node.name}. "
            f"These processes used {share:.0f} % of the program's CPU time.",
            evidence=(
                Evidence("share of the CPU time that ended child processes used", share, "%"),
                Evidence("processes started on the node", per_s, "1/s"),
                Evidence("mean CPU time of a process, at least", each_ms, "ms"),
            ),
            action=(
                "Start fewer processes, and give each process more work. For example, let one "
                "program read the whole file, instead of starting a program for each line."
            ),
            subjects=(node,),
            certainty=Certainty.LIKELY if is_whole else Certainty.POSSIBLE,
            # The start of a process is a part of its time.
            regain_percent=(share / 2, share),
        )
