"""One OpenMP thread has more work than the other threads, which wait for this thread."""

from __future__ import annotations

from teho.explain.native import region_words
from teho.explain.places import stats_of
from teho.explain.rule import Evidence, Findings, RuleContext, Severity, chosen
from teho.model.summary import NodeSummary, Stat

RANK = 454
SEVERITY = "warning"
THRESHOLDS = {
    "busiest_percent": chosen(
        50.0,
        "%",
        "if no thread is busier than this limit, the program waits for something other than its "
        "threads",
    ),
    "unequal_percent": chosen(
        20.0,
        "%",
        "if the threads of a loop have equal work, the last thread is seldom busy for much longer "
        "than the others",
    ),
}
MUTES = ("serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says why the cores are unused"


def judge(context: RuleContext) -> Findings:
    """Compare the busiest thread of an OpenMP process with the mean of all its threads.

    Only processes that have loaded an OpenMP library have these figures. Threads that wait in a
    busy loop use their core, and look like threads that work. Programs in Python are not judged: a
    library's threads are idle while Python code runs.
    """
    if context.mains:
        return
    for node in context.summary.nodes:
        busiest = _mean(node, "job_busiest_thread_percent")
        mean = _mean(node, "job_mean_thread_percent")
        if not busiest or not mean or busiest < context.limit("busiest_percent"):
            continue
        unequal = 100 * (1 - mean / busiest)
        if unequal < context.limit("unequal_percent"):
            continue
        place = region_words(context.run, node.name)
        yield context.finding(
            Severity.WARNING,
            f"The OpenMP threads on {node.name} had unequal work: the busiest thread used "
            f"{busiest:.0f} % of a core, but the average thread used {mean:.0f} % of a core.",
            evidence=(
                Evidence("CPU use of the busiest thread", busiest, "% of a core"),
                Evidence("mean CPU use of all threads", mean, "% of a core"),
                *(
                    [Evidence("cores used, mean", used, "cores")]
                    if isinstance(used := node.cpu_cores_used, float)
                    else []
                ),
            ),
            action=(
                f"If the iterations of {place or 'a parallel loop'} take different times, give "
                "each thread small pieces of the loop: add `schedule(dynamic)` to the OpenMP "
                "directive of the loop. If a long part of the program is outside parallel loops, "
                "run this part in parallel too."
            ),
            subjects=(node,),
            regain_percent=(0.0, unequal),
        )


def _mean(node: NodeSummary, metric: str) -> float | None:
    found = stats_of(node).get(metric)
    return found.mean if isinstance(found, Stat) else None
