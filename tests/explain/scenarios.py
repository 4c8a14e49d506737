"""Named runs for the tests of rules, text and HTML: what a recording boils down to.

Every scenario is a function without arguments that returns `(Run, Summary)`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from explain.program_scenarios import WATCHED
from explain.scenario_parts import (
    BINS,
    FORBIDDEN,
    UNSUPPORTED,
    Given,
    NodePart,
    gpu,
    repeated,
    scenario,
    step,
    task,
    untouched_gpu,
)
from teho.model.allocation import Allocation
from teho.model.missing import Missing, Reason
from teho.model.run import Clock, ProgramUse, Run
from teho.model.summary import Summary
from teho.model.watched import Raised
from teho.units import GIB


def well_used_8_gpus() -> tuple[Run, Summary]:
    """Eight GPUs on two nodes, all at work: nothing to find."""
    # A short wait for the first batch, checkpoints now and then.
    busy = repeated((20.0, 2), *[(95.0, 13), (60.0, 1)] * 4, (95.0, 2))
    names = ("r01g01", "r01g02")
    return scenario(*(NodePart(name, gpus=[gpu(busy) for _ in range(4)]) for name in names))


def one_idle_gpu() -> tuple[Run, Summary]:
    """Four GPUs; the program holds memory on all of them and computes on three."""
    return scenario(NodePart(gpus=[gpu(), gpu(0.0), gpu(88.0), gpu(90.0)]))


def never_used_gpu() -> tuple[Run, Summary]:
    """Two GPUs asked for, one used: `GPU 1 on r01g01 was never used.`."""
    return scenario(NodePart(gpus=[gpu(), untouched_gpu()]))


def never_used_16_gpus() -> tuple[Run, Summary]:
    """Four nodes of four GPUs, and the program runs on CPU cores."""
    names = [f"r01g{number:02d}" for number in range(1, 5)]
    return scenario(*(NodePart(name, gpus=[untouched_gpu()] * 4) for name in names))


def used_at_first() -> tuple[Run, Summary]:
    """One GPU, busy for 36 of 60 minutes and held to the end."""
    return scenario(NodePart(gpus=[gpu(repeated((94.0, 36), (0.0, 24)))]))


def low_use() -> tuple[Run, Summary]:
    """Four GPUs in steps and stops, 20 % busy each."""
    return scenario(NodePart(gpus=[gpu(20.0) for _ in range(4)]))


def starved_by_io() -> tuple[Run, Summary]:
    """One GPU waits for a single thread that reads small files, on ten cores."""
    signals: dict[str, Given] = {
        "cpu_busy_percent": 5.0,
        "cpu_iowait_percent": 9.0,
        "job_runnable_threads": 0.3,
    }
    return scenario(NodePart(cores=10, cores_used=0.4, signals=signals, gpus=[gpu(6.0)]))


def starved_by_cpu() -> tuple[Run, Summary]:
    """One GPU waits for the main thread, which does everything itself, on ten cores."""
    signals: dict[str, Given] = {"cpu_busy_percent": 11.0, "job_runnable_threads": 1.0}
    return scenario(NodePart(cores=10, cores_used=1.0, signals=signals, gpus=[gpu(7.0)]))


def starved_by_all_cores() -> tuple[Run, Summary]:
    """One GPU waits for four cores, all of them busy preparing data."""
    signals: dict[str, Given] = {"cpu_busy_percent": 98.0, "job_runnable_threads": 4.0}
    return scenario(NodePart(cores=4, cores_used=3.9, signals=signals, gpus=[gpu(8.0)]))


def serial_on_40_cores() -> tuple[Run, Summary]:
    """A CPU job of 40 cores and one thread."""
    signals: dict[str, Given] = {"cpu_busy_percent": 2.6, "job_runnable_threads": 1.0}
    return scenario(NodePart("r01c01", cores_used=0.97, signals=signals))


def a_process_for_each_line() -> tuple[Run, Summary]:
    """A shell script that starts `cut` and `awk` for each line of a file."""
    signals: dict[str, Given] = {"cpu_busy_percent": 2.5, "job_runnable_threads": 1.0}
    rates: dict[str, Given] = {"job_ended_cpu_s": 0.8, "tasks_started": 300.0}
    return scenario(NodePart("r01c01", cores_used=0.95, signals=signals, rates=rates))


def unpacks_for_each_line() -> tuple[Run, Summary]:
    """A shell script that unpacks the same file again for each sample."""
    signals: dict[str, Given] = {"cpu_busy_percent": 2.5, "job_runnable_threads": 1.0}
    run, summary = scenario(NodePart("r01c01", cores_used=0.95, signals=signals))
    program = ProgramUse(
        name="gzip", samples=800, processes=60, command="gzip -dc reads.tsv.gz",
        command_samples=800, command_processes=60,
    )  # fmt: skip
    node = msgspec.structs.replace(run.nodes[0], programs=(program,), program_samples=1000)
    return msgspec.structs.replace(run, nodes=(node,)), summary


def triangular_loop() -> tuple[Run, Summary]:
    """An OpenMP loop whose later iterations take longer, with a static schedule."""
    signals: dict[str, Given] = {
        "job_busiest_thread_percent": 99.0,
        "job_mean_thread_percent": 52.0,
        "job_runnable_threads": 4.0,
    }
    return scenario(NodePart("r01c01", cores=8, cores_used=4.2, signals=signals))


def oversubscribed() -> tuple[Run, Summary]:
    """Eight processes, each with a thread for every one of eight cores."""
    signals: dict[str, Given] = {
        "cpu_busy_percent": 100.0,
        "job_runnable_threads": 64.0,
        "job_processes": 8.0,
    }
    return scenario(NodePart("r01c01", cores=8, cores_used=7.9, signals=signals))


def memory_near_limit() -> tuple[Run, Summary]:
    """A CPU job at 95 % of its memory."""
    return scenario(NodePart("r01c01", memory_peak=60.8 * GIB, memory_limit=64.0 * GIB))


def memory_overasked() -> tuple[Run, Summary]:
    """A CPU job that used 12 of 64 GiB."""
    return scenario(NodePart("r01c01", memory_peak=12.0 * GIB, memory_limit=64.0 * GIB))


def time_overasked() -> tuple[Run, Summary]:
    """A CPU job that took one of eight hours."""
    return scenario(NodePart("r01c01", time_limit_s=8 * 3600.0))


def out_of_memory() -> tuple[Run, Summary]:
    """A CPU job in which the kernel killed two processes."""
    return scenario(
        NodePart("r01c01", memory_peak=64.0 * GIB, memory_limit=64.0 * GIB, oom_kills=2.0)
    )


def hot_gpu() -> tuple[Run, Summary]:
    """One GPU with a broken fan, one at its power limit."""
    hot = gpu(gpu_thermal_throttle_percent=31.0, gpu_temperature_c=91.0)
    capped = gpu(gpu_power_throttle_percent=80.0)
    return scenario(NodePart(gpus=[hot, capped], power_limit_w=400.0, power_default_w=700.0))


def hidden_gpu() -> tuple[Run, Summary]:
    """The job holds four GPUs, CUDA_VISIBLE_DEVICES shows one."""
    held = Allocation(
        scheduler="slurm", job_id="4711", cores_asked=40, gpus_held=4, time_limit_s=4200.0
    )
    return scenario(
        NodePart(gpus=[gpu()], allocation=held), environment={"CUDA_VISIBLE_DEVICES": "0"}
    )


def short_job() -> tuple[Run, Summary]:
    """Nineteen seconds, most of them spent importing."""
    busy = repeated((0.0, 45), (80.0, 15))
    return scenario(NodePart(gpus=[gpu(busy)], cores_used=1.0), elapsed_s=19.0)


def no_gpu_clean() -> tuple[Run, Summary]:
    """A CPU job that uses what it asked for: nothing to find."""
    return scenario(
        NodePart("r01c01", cores_used=38.5, memory_peak=150.0 * GIB, memory_limit=186.0 * GIB)
    )


def laptop() -> tuple[Run, Summary]:
    """One's own machine, no scheduler, no GPU, half of its cores at work."""
    part = NodePart(
        "laptop",
        cores=8,
        cores_used=4.0,
        signals={"job_runnable_threads": 4.0},
        memory_peak=3.0 * GIB,
        memory_limit=32.0 * GIB,
        memory_source="node",
        scheduler=None,
    )
    return scenario(part)


def missing_signals() -> tuple[Run, Summary]:
    """One MIG instance without a busy share; the kernel told next to nothing."""
    signals: dict[str, Given] = dict.fromkeys(gpu(), UNSUPPORTED)
    absent = Missing(Reason.ABSENT, "no cgroup of the job's own")
    part = NodePart(
        gpus=[signals],
        cores_used=FORBIDDEN,
        signals=dict.fromkeys(("cpu_iowait_percent", "job_runnable_threads"), FORBIDDEN),
        memory_peak=FORBIDDEN,
        memory_limit=absent,
        oom_kills=absent,
        allocation=Allocation(scheduler="slurm", job_id="4711"),
        gpu_memory_bytes=None,
    )
    return scenario(part)


def lost_gpu() -> tuple[Run, Summary]:
    """Two GPUs, both at work; one falls off the bus after a third of the run."""
    seen = repeated((93.0, 20), (None, 40))
    return scenario(NodePart(gpus=[gpu(), dict.fromkeys(gpu(), seen)]))


HOSTS = tuple(f"r01g{number:02d}" for number in range(1, 5))


def one_gpu_differs(seen_of_last: int = BINS) -> tuple[Run, Summary]:
    """Four nodes of eight GPUs and a task for each; one of them does less than the others."""
    busy = repeated((10.0, 1), *[(97.0, 12), (80.0, 1)] * 4, (97.0, 7))
    parts = []
    for number, host in enumerate(HOSTS):
        seen = BINS if number < 3 else seen_of_last
        gpus = []
        for place in range(8):
            odd = number == 1 and place == 5
            share = [99.0] * BINS if odd else [value - (place + number) % 3 for value in busy]
            watt = 211.0 if odd else 560.0 + 5 * place
            signals = gpu(gpu_power_w=watt, gpu_memory_used_bytes=27.5 * GIB)
            signals = {name: repeated((value, seen), (None, BINS - seen))
                       for name, value in signals.items()}  # fmt: skip
            signals["gpu_busy_percent"] = [*share[:seen], *[None] * (BINS - seen)]
            gpus.append(signals)
        ranks = range(8 * number, 8 * number + 8)
        clock = Clock(ahead_s=0.02 * number, uncertainty_s=0.001) if number else None
        last_s = None if seen == BINS else 60.0 * seen
        parts.append(
            NodePart(host, gpus=gpus, power_limit_w=700.0, ranks=ranks, clock=clock, last_s=last_s)
        )
    told = 32 if seen_of_last == BINS else 24
    tasks = [task(rank, HOSTS[rank // 8], cpu_s=13_000.0 + 20 * rank) for rank in range(told)]
    return scenario(*parts, step=step(32, *HOSTS), tasks=tasks)


def one_node_died() -> tuple[Run, Summary]:
    """The same, and the last node died after 40 minutes of an hour."""
    return one_gpu_differs(40)


def waiting_for_the_network() -> tuple[Run, Summary]:
    """Two nodes of four GPUs that exchange gradients over a slow network, step by step."""
    rates: dict[str, Given] = {
        "net_receive_bytes": 1.1e9,
        "net_send_bytes": 1.05e9,
        "netfs_read_bytes": 2e7,
        "netfs_write_bytes": 0.0,
    }
    gpus = [gpu(99.0, gpu_power_w=215.0)] * 4
    parts = [NodePart(name, gpus=gpus, rates=rates, power_limit_w=700.0) for name in HOSTS[:2]]
    return scenario(*parts)


def one_task_killed() -> tuple[Run, Summary]:
    """Two nodes of four tasks without GPUs; one task is killed, another could not tell."""
    parts = [
        NodePart(
            host,
            cores=8,
            cores_used=7.5,
            signals={"job_runnable_threads": 8.0},
            ranks=ranks,
            clock=clock,
        )
        for host, ranks, clock in (
            (HOSTS[0], range(4), None),
            (HOSTS[1], range(4, 8), Clock(ahead_s=-3.2, uncertainty_s=0.004)),
        )
    ]
    ends = [1499.0, 1499.0, 1498.0, 1500.0, 1496.0, 1440.0, None, 1495.0]
    tasks = [
        task(
            rank,
            HOSTS[rank // 4],
            after_s=after_s - (3.2 if rank >= 4 else 0.0),
            exit_code=1,
            signal=9 if rank == 5 else None,
        )
        for rank, after_s in enumerate(ends)
        if after_s is not None
    ]
    return scenario(*parts, elapsed_s=1500.0, step=step(8, *HOSTS[:2]), tasks=tasks)


def failed_by_itself() -> tuple[Run, Summary]:
    """One program that ended with exit code 1; the GPU was used well until then."""
    run, summary = scenario(NodePart(gpus=[gpu()]), elapsed_s=620.0)
    run = msgspec.structs.replace(run, end=msgspec.structs.replace(run.end, exit_code=1))
    raised = Raised(text="MemoryError", at=None, at_s=620.0)
    return run, msgspec.structs.replace(summary, exceptions={None: raised})


def leaks_memory() -> tuple[Run, Summary]:
    """One program keeps its outputs: 0.5 to 18 of the node's 23.5 GiB in 71 s."""
    curve = [GIB * (0.5 + 17.5 * place / (BINS - 1)) for place in range(BINS)]
    part = NodePart(
        "laptop",
        cores=2,
        cores_used=1.9,
        signals={"job_memory_bytes": curve, "job_runnable_threads": 2.0},
        memory_peak=18.0 * GIB,
        memory_limit=23.5 * GIB,
        memory_source="node",
        scheduler=None,
    )
    return scenario(part, elapsed_s=71.0)


def busy_login_node() -> tuple[Run, Summary]:
    """A program that gets 0.14 of two cores; other people's processes have the rest."""
    part = NodePart(
        "login1",
        cores=2,
        cores_used=0.14,
        signals={"cpu_busy_percent": 100.0, "load_1min": 7.0, "job_runnable_threads": 1.0},
        memory_peak=3.0 * GIB,
        memory_limit=32.0 * GIB,
        memory_source="node",
        scheduler=None,
    )
    return scenario(part)


def nothing_recorded() -> tuple[Run, Summary]:
    """The recorder never took a sample."""
    return scenario(elapsed_s=0.4)


SCENARIOS: dict[str, Callable[[], tuple[Run, Summary]]] = {
    function.__name__: function
    for function in (
        well_used_8_gpus,
        one_idle_gpu,
        never_used_gpu,
        never_used_16_gpus,
        used_at_first,
        low_use,
        starved_by_io,
        starved_by_cpu,
        starved_by_all_cores,
        serial_on_40_cores,
        a_process_for_each_line,
        unpacks_for_each_line,
        triangular_loop,
        oversubscribed,
        memory_near_limit,
        memory_overasked,
        time_overasked,
        out_of_memory,
        hot_gpu,
        hidden_gpu,
        short_job,
        no_gpu_clean,
        laptop,
        missing_signals,
        lost_gpu,
        one_gpu_differs,
        one_node_died,
        waiting_for_the_network,
        one_task_killed,
        failed_by_itself,
        leaks_memory,
        busy_login_node,
        nothing_recorded,
    )
} | WATCHED
