"""The program is bound to a part of the job's cores, and keeps these cores busy."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.cores import cores_of_job, may_be_threads
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold, chosen
from teho.explain.wording import numbered
from teho.model.program import Doing, MainProcess
from teho.model.summary import NodeSummary

RANK = 100
SEVERITY = "critical, warning"
THRESHOLDS = {
    "used_percent": chosen(
        80.0, "%", "if a program leaves a fifth of its cores idle, the program has enough cores"
    ),
    "threads_per_core": Threshold(
        1.25,
        "threads",
        "as in the rule too_many_threads: with more threads for each core, the threads compete for "
        "the cores",
    ),
}
MUTES = (
    "input_too_many_workers", "input_too_few_workers", "input_in_main_process", "input_slow",
    "too_many_threads", "serial_program", "cores_unused", "python_bound",
)  # fmt: skip
MUTES_BECAUSE = "if the program can use all cores of the job, other findings may disappear"


class _Binding(NamedTuple):
    """A node on which the program may run on a part of the job's cores."""

    node: NodeSummary
    cores: frozenset[int]
    job_cores: int
    mains: tuple[MainProcess, ...]
    """Main processes that are known to be bound; empty without a probe."""
    used: float

    @property
    def lost_percent(self) -> float:
        return 100 * (1 - len(self.cores) / self.job_cores)


def judge(context: ProgramContext) -> Findings:
    """Compare the cores on which the processes may run with the job's cores."""
    for node in context.summary.nodes:
        binding = _binding(context, node)
        if not binding or not _needs_more(context, binding) or not _is_loss(context, binding):
            continue
        doings = (Doing.NATIVE, Doing.THREADS, Doing.LOADING, Doing.PYTHON)
        yield context.lost(
            f"On {node.name} the program can use only {len(binding.cores)} of the job's "
            f"{binding.job_cores} cores, and needs more cores.",
            share_percent=binding.lost_percent,
            evidence=(
                Evidence(
                    "numbers of the cores that the program can use", numbered(sorted(binding.cores))
                ),
                Evidence("cores used, mean", binding.used, "cores"),
                Evidence("cores of the job", float(binding.job_cores), "cores"),
            ),
            judged_by=["used_percent"],
            action=(
                "Find what limits the program to these cores. Look in the script for "
                "`os.sched_setaffinity`, `taskset` and `numactl`, and for the variables "
                "`OMP_PROC_BIND`, `GOMP_CPU_AFFINITY` and `KMP_AFFINITY`. The launcher can also "
                "limit the cores: with Slurm, try `srun --cpu-bind=none`. `taskset -cp $$` shows "
                "which cores the script can use."
            ),
            regain_percent=(0.0, binding.lost_percent),
            lines=binding.mains[0].lines(*doings) if binding.mains else (),
        )
        return


def _binding(context: ProgramContext, node: NodeSummary) -> _Binding | None:
    mains = tuple(main for main in context.mains if main.process.node == node.name)
    if any(main.process.cores is None for main in mains):
        return None
    by_process = {core for main in mains for core in main.process.cores or ()}
    cores = frozenset(by_process if mains else _recorded_cores(context, node))
    job_cores, used = cores_of_job(context.run, node), node.cpu_cores_used
    if not 0 < len(cores) < job_cores or not isinstance(used, float):
        return None
    return _Binding(node, cores, job_cores, mains, used)


def _recorded_cores(context: ProgramContext, node: NodeSummary) -> tuple[int, ...]:
    """Return the cores on which the program could run when the recording began."""
    recorded = context.run.node(node.name)
    return recorded.cores if recorded else ()


def _needs_more(context: ProgramContext, binding: _Binding) -> bool:
    """Return whether the program could use more cores than it may run on."""
    count = len(binding.cores)
    if count == len(_recorded_cores(context, binding.node)) and may_be_threads(
        count, binding.job_cores
    ):
        # The program may have one hardware thread of each of its cores, as some sites want it.
        # That is enough, unless more threads want to run.
        threads = context.mean(binding.node, "job_runnable_threads")
        return threads is not None and threads > context.limit("threads_per_core") * count
    # If other processes run there too, the program waits for the cores instead of using them.
    waits = (main for main in binding.mains if main.process.wait_for_core_s)
    is_waiting = any(context.is_loss(main.process.wait_for_core_s or 0.0, main) for main in waits)
    return is_waiting or binding.used >= context.limit("used_percent") / 100 * count


def _is_loss(context: ProgramContext, binding: _Binding) -> bool:
    share = binding.lost_percent / 100
    if binding.mains:
        return context.is_loss(share * context.work_s(binding.mains[0]), binding.mains[0])
    enough = binding.lost_percent >= context.limit("lost_percent")
    return enough and share * context.summary.elapsed_s >= context.limit("lost_min_s")
