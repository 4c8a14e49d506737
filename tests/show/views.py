"""Realistic reports, shared by the tests of all formats."""

from __future__ import annotations

import math

from explain.scenarios import one_node_died
from teho.explain.analysis import Analysis
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.model.document import (
    Column,
    Fact,
    Plot,
    PlotSeries,
    Report,
    Roof,
    RooflinePlot,
    RooflinePoint,
    Table,
)
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import RunState
from teho.show.build.report.document import build_report
from teho.units import GIB, J_PER_WH

CSC = (
    "CSC, GPU-accelerated machine learning: the use of a GPU is too low if it is always low, "
    "for example under 50 %"
)
NO_COUNTER = Missing(Reason.UNSUPPORTED, "Tesla V100 of this driver has no energy counter")
LOST = Missing(Reason.FAILED, "GPU was lost after 12 min 3 s")

GPU_COLUMNS = (
    Column(key="node", label="node"),
    Column(key="gpu", label="GPU"),
    Column(key="model", label="model"),
    *(
        Column(key=f"load_{key}", label=label, band="GPU busy", unit="%", decimals=1)
        for key, label in (("mean", "mean"), ("std", "std"), ("max", "max"))
    ),
    *(
        Column(
            key=f"memory_{key}",
            label=label,
            band="GPU memory",
            unit="bytes",
            shown_in="GiB",
            decimals=2,
        )
        for key, label in (("mean", "mean"), ("std", "std"), ("max", "max"))
    ),
    Column(key="energy", label="energy", unit="J", shown_in="Wh", decimals=2),
    Column(key="power_mean", label="power", unit="W", decimals=0),
)
CPU_COLUMNS = (
    Column(key="node", label="node"),
    Column(key="cores", label="cores"),
    Column(key="used", label="cores used", unit="cores", decimals=1),
    Column(key="busy_mean", label="mean", band="CPU busy", unit="%", decimals=1),
    Column(key="busy_std", label="std", band="CPU busy", unit="%", decimals=1),
    Column(key="busy_max", label="max", band="CPU busy", unit="%", decimals=1),
)
MEMORY_COLUMNS = (
    Column(key="node", label="node"),
    Column(key="peak", label="peak", unit="bytes", shown_in="GiB", decimals=2),
    Column(key="limit", label="limit", unit="bytes", shown_in="GiB", decimals=2),
    Column(key="share", label="share", unit="%", decimals=1),
)
IO_COLUMNS = (
    Column(key="node", label="node"),
    *(
        Column(key=key, label=label, band=band, unit="bytes")
        for key, label, band in (
            ("read", "read", "storage"),
            ("written", "written", "storage"),
            ("netfs_read", "read", "network file system"),
            ("netfs_written", "written", "network file system"),
        )
    ),
)


def gpu_row(node="r01g07", gpu=0, model="Tesla V100-SXM2-32GB", **cells):
    return {
        "node": node,
        "gpu": gpu,
        "model": model,
        "load_mean": 92.18,
        "load_std": 19.48,
        "load_max": 100.0,
        "memory_mean": 16.72 * GIB,
        "memory_std": 1.74 * GIB,
        "memory_max": 16.91 * GIB,
        "energy": 58.3 * J_PER_WH,
        "power_mean": 231.4,
        **cells,
    }


def facts(**changed):
    values = {
        "job_id": ("job", "17273947", ""),
        "cluster": ("cluster", "puhti", ""),
        "state_words": ("state", "COMPLETED (exit code 0)", ""),
        "elapsed_s": ("elapsed", 907.0, "s"),
        "node_count": ("nodes", 1, ""),
        "cores_per_node": ("cores a node", 10, ""),
        "cpu_used_s": ("CPU time used", 4081.5, "s"),
        "core_walltime_s": ("core time allocated", 9070.0, "s"),
        "memory_peak_bytes": ("memory peak", 21.5 * GIB, "bytes"),
        "memory_limit_bytes": ("memory limit", 64 * GIB, "bytes"),
        **changed,
    }
    return tuple(Fact(key, *value) for key, value in values.items())


def wave(count, middle, swing, phase=0.0, gap=None):
    return [
        None
        if gap and gap[0] <= i < gap[1]
        else middle + swing * math.sin(i / 9 + phase) * math.cos(i / 31 - phase)
        for i in range(count)
    ]


def plot(key, title, unit, group, series, meaning="what the device reports", step_s=3.0):
    count = len(series[0].values) if series else 0
    return Plot(
        key=key,
        title=title,
        unit=unit,
        meaning=meaning,
        group=group,
        elapsed_s=[(i + 0.5) * step_s for i in range(count)],
        series=tuple(series),
    )


def plots(devices, nodes=("r01g07",), count=300):
    def per_gpu(middle, swing, gap=None):
        return [
            PlotSeries(name, wave(count, middle, swing, i / 2, gap if i == 0 else None))
            for i, name in enumerate(devices)
        ]

    def per_node(middle, swing):
        return [PlotSeries(name, wave(count, middle, swing, i)) for i, name in enumerate(nodes)]

    gpu = (
        plot(
            "gpu_busy_percent", "GPU busy", "%", "GPU", per_gpu(70, 29, (120, 160)),
            "share of time in which at least one kernel ran; it says nothing of how much of "
            "the GPU that kernel used",
        ),
        plot("gpu_memory_used_bytes", "GPU memory used", "bytes", "GPU",
             per_gpu(16.4 * GIB, 1.1 * GIB), "device memory in use by all programs"),
        plot("gpu_power_w", "GPU power", "W", "GPU", per_gpu(231, 60),
             "power drawn by the board"),
        plot("gpu_temperature_c", "GPU temperature", "°C", "GPU", per_gpu(58, 6),
             "temperature of the chip"),
    ) if devices else ()  # fmt: skip
    return (
        *gpu,
        plot("cpu_busy_percent", "CPU busy", "%", "CPU", per_node(45, 20),
             "share of the job's own cores that did any work"),
        plot("runnable_tasks", "run queue", "tasks", "CPU", per_node(7, 5),
             "tasks of the whole node that run or wait for a core"),
        plot("job_memory_bytes", "memory used", "bytes", "Memory", per_node(20 * GIB, GIB),
             "memory that the job holds, page cache left out"),
        plot("netfs_read_bytes", "network file system read", "bytes/s", "I/O and network",
             per_node(180e6, 120e6), "read from NFS and Lustre by this node"),
        plot("net_receive_bytes", "network in", "bytes/s", "I/O and network",
             per_node(2e6, 2e6), "received on all network interfaces but loopback"),
    )  # fmt: skip


def base(**changed):
    values = {
        "run_id": "20250314-1012-train-k7f2",
        "name": "",
        "command": "python3 train.py --epochs 90 --data /scratch/project_2001659/imagenet",
        "state": "finished",
        "verdict": "The GPU was busy 92 % of the time. No problems found.",
        "verdict_severity": "good",
        "facts": facts(),
        "tables": (),
        "findings": (),
        "abstentions": (),
        "notes": (),
        "plots": (),
        "teho_version": "0.1.0",
        **changed,
    }
    return Report(**values)


def node_tables(node="r01g07"):
    return (
        Table(
            key="cpus",
            title="CPU cores",
            columns=CPU_COLUMNS,
            rows=(
                {
                    "node": node,
                    "cores": 10,
                    "used": 4.5,
                    "busy_mean": 45.2,
                    "busy_std": 11.03,
                    "busy_max": 98.0,
                },
            ),
        ),
        Table(
            key="memory",
            title="Memory",
            columns=MEMORY_COLUMNS,
            rows=(
                {"node": node, "peak": 21.5 * GIB, "limit": 64.0 * GIB, "share": 33.6},
            ),
            note="The limit is the memory limit of the job.",
        ),
        Table(
            key="io",
            title="Input and output",
            columns=IO_COLUMNS,
            rows=(
                {
                    "node": node,
                    "read": 1.5 * GIB,
                    "written": 0,
                    "netfs_read": 142.8 * GIB,
                    "netfs_written": 3_211_264,
                },
            ),
        ),
    )  # fmt: skip


def one_gpu():
    """The example of CSC's guide: one V100, well used."""
    gpus = Table(key="gpus", title="GPUs", columns=GPU_COLUMNS, rows=(gpu_row(),))
    return base(
        tables=(gpus, *node_tables()),
        abstentions=(
            Abstention(
                kind="gpu_throttled", lacked="this GPU does not report why its clock is slow"
            ),
        ),
        plots=plots(["r01g07 GPU 0"]),
    )


def eight_gpus():
    """Eight GPUs of one node: one never used, one lost, energy not offered, four findings."""
    rows = [
        gpu_row("g1102", i, "NVIDIA A100-SXM4-80GB", load_mean=31.4 + i, energy=NO_COUNTER)
        for i in range(6)
    ]
    idle = {"load_mean": 0.0, "load_std": 0.0, "load_max": 0.0, "memory_mean": 0.44 * GIB}
    rows.append(gpu_row("g1102", 6, "NVIDIA A100-SXM4-80GB", **idle, energy=NO_COUNTER))
    lost = dict.fromkeys([c.key for c in GPU_COLUMNS[3:]], LOST)
    rows.append(gpu_row("g1102", 7, "NVIDIA A100-SXM4-80GB", **lost))
    half = Threshold(50.0, "%", CSC)
    findings = (
        Finding(
            kind="gpu_idle",
            severity=Severity.CRITICAL,
            sentence="GPU 6 was never used (the job has 8 GPUs).",
            evidence=(
                Evidence("GPU 6 busy, highest", 0.0, "%"),
                Evidence("GPU 6 memory used", 0.44 * GIB, "bytes"),
                Evidence("job's processes on it", 0.0),
            ),
            thresholds=(Threshold(0.0, "%", "at 0 %, no program used the GPU"),),
            action="Request only the GPUs that the program uses: `#SBATCH --gres=gpu:a100:7`.",
        ),
        Finding(
            kind="cpu_starves_gpu",
            severity=Severity.WARNING,
            sentence="The GPUs waited for the CPU: they were idle for 41 min 12 s while the "
            "cores were busy.",
            evidence=(
                Evidence("CPU busy", 97.3, "%"),
                Evidence("GPU busy, mean", 32.9, "%"),
                Evidence("I/O wait", 1.2, "%"),
                Evidence("energy lost", NO_COUNTER, "J"),
            ),
            thresholds=(
                half,
                Threshold(90.0, "%", "SageMaker's profiler rules: a CPU is busy above 90 %"),
            ),
            action="Try 10 loader workers: `DataLoader(..., num_workers=10)`. Or let Teho find "
            "the number with `teho tune -- python3 train.py --epochs 1 "
            "--data /scratch/project_2001659/imagenet --workers 16 --prefetch 4`.",
        ),
        Finding(
            kind="memory_asked",
            severity=Severity.REMARK,
            sentence="Only a third of the requested memory was used.",
            evidence=(
                Evidence("memory peak", 21.5 * GIB, "bytes"),
                Evidence("memory requested", "64G"),
            ),
            thresholds=(
                Threshold(
                    70.0,
                    "%",
                    "Jobstats reports a job that used less than this share of the requested memory",
                ),
            ),
            action="Request less memory: `#SBATCH --mem=27G`.",
        ),
        Finding(
            kind="gpu_lost",
            severity=Severity.WARNING,
            sentence="GPU 7 was lost during the run.",
            evidence=(Evidence("GPU 7 last seen after", 723.0, "s"),),
            thresholds=(),
            action="Report the node g1102 to the cluster's support.",
        ),
    )
    gpus = Table(key="gpus", title="GPUs", columns=GPU_COLUMNS, rows=tuple(rows))
    return base(
        run_id="20250401-0915-eval-x2m9",
        name="imagenet, first try",
        command="torchrun --nproc-per-node 8 train.py",
        state="interrupted",
        verdict="Seven of eight GPUs were busy only a third of the time. One GPU was never used.",
        verdict_severity="critical",
        facts=facts(
            cluster=("cluster", "g1102.gpu.example.org", ""),
            elapsed_s=("elapsed", 7080.0, "s", "up to the last sample"),
            gpus=("GPUs", 8, "", "1 lost"),
            memory_limit_bytes=("memory limit", Missing(Reason.FORBIDDEN, "cgroup"), "bytes"),
            energy_j=("GPU energy", NO_COUNTER, "J"),
            cost=("cost", None, "BU"),
        ),
        tables=(gpus, *node_tables("g1102")),
        findings=findings,
        abstentions=(
            Abstention(
                kind="gpu_throttled", lacked="the GPUs do not report why their clocks are slow"
            ),
            Abstention(kind="io_wait", lacked="the run has no second node to compare with"),
        ),
        notes=(
            "The recording stops at 1 h 58 min: the recorder was killed, or the node failed.",
            "After 12 min 3 s, GPU 7 did not answer any more (NVML: GPU is lost).",
        ),
        plots=plots([f"GPU {i}" for i in range(8)], ("g1102",)),
    )


def laptop():
    """No GPU, no job, nothing but a short run."""
    absent = Missing(Reason.ABSENT)
    short = Missing(Reason.UNRECORDED, "the run was shorter than one period")
    memory = Table(
        key="memory",
        title="Memory",
        columns=MEMORY_COLUMNS,
        rows=({"node": "thinkpad", "peak": short, "limit": absent, "share": None},),
    )
    return base(
        run_id="20250502-2201-true-a1b2",
        command="true",
        verdict="The run was too short to judge.",
        verdict_severity="unknown",
        facts=(
            Fact("elapsed_s", "elapsed", 0.004, "s"),
            Fact("cpu_used_s", "CPU time", 0.0, "s"),
            Fact("gpus", "GPUs", 0),
        ),
        tables=(memory,),
        plots=(
            plot("cpu_busy_percent", "CPU busy", "%", "CPU", [PlotSeries("thinkpad", [12.5])]),
            plot(
                "job_memory_bytes",
                "memory used",
                "bytes",
                "Memory",
                [PlotSeries("thinkpad", [None])],
            ),
        ),
    )


def four_nodes():
    """Four nodes of eight GPUs and a task for each: one GPU does less, one node died."""
    run, summary = one_node_died()
    findings, abstentions = judge_all(run, summary, load_policy())
    return build_report(
        Analysis(run, RunState.INTERRUPTED, summary, findings=findings, abstentions=abstentions)
    )


def bare():
    """As little as a view can hold."""
    return base(facts=(), name="bare", verdict="Nothing was recorded.", verdict_severity="remark")


HOSTILE = (
    "</script><script>document.title='owned'</script>"
    "<img src=x onerror=\"document.title='owned'\"><!-- ]]> ' \" & &lt; "
    "\x1b]0;owned\x07\x1b[31m\x00\r\n\u202eedoc\u2028 \udcff`id`"
)


def roofline_point(label, least_flop_per_s=1e12, most_flop_per_s=2e12, bytes_per_s=1e11):
    return RooflinePoint(
        label=label,
        bytes_per_s=bytes_per_s,
        least_flop_per_s=least_flop_per_s,
        most_flop_per_s=most_flop_per_s,
        least_flop_per_byte=least_flop_per_s / bytes_per_s,
        most_flop_per_byte=most_flop_per_s / bytes_per_s,
    )


def hostile():
    """Every text that comes from outside is an attack."""
    return base(
        run_id="20250601-" + "".join(c for c in HOSTILE if c != "`"),
        name=HOSTILE,
        command=HOSTILE,
        verdict=HOSTILE,
        verdict_severity="warning",
        facts=(Fact("job_id", HOSTILE, HOSTILE, "", HOSTILE), Fact("x", "x", 1.5, HOSTILE)),
        tables=(
            Table(
                key="gpus",
                title=HOSTILE,
                note=HOSTILE,
                columns=(
                    Column(key="node", label=HOSTILE),
                    Column(key="gpu", label=HOSTILE, band=HOSTILE),
                    Column(key="power_mean", label=HOSTILE, unit="W", decimals=1),
                ),
                rows=(
                    {
                        "node": HOSTILE,
                        "gpu": Missing(Reason.FAILED, HOSTILE),
                        "power_mean": 1.0,
                    },
                    {"node": "a" * 200, "gpu": 0, "power_mean": math.nan},
                ),
            ),
        ),
        findings=(
            Finding(
                kind=HOSTILE,
                severity=Severity.WARNING,
                sentence=HOSTILE,
                evidence=(Evidence(HOSTILE, HOSTILE, HOSTILE), Evidence("inf", math.inf, "s")),
                thresholds=(Threshold(1.0, HOSTILE, HOSTILE),),
                action=f"run `{HOSTILE}` or {HOSTILE}",
            ),
        ),
        abstentions=(Abstention(kind=HOSTILE, lacked=HOSTILE),),
        notes=(HOSTILE,),
        rooflines=(
            RooflinePlot(
                model=HOSTILE,
                sentence=HOSTILE,
                notes=(HOSTILE,),
                memory_bytes_per_s=1e12,
                roofs=(Roof(label=HOSTILE, flop_per_s=1e13, active=True),),
                points=(roofline_point(HOSTILE),) * 2,
                mean=roofline_point(HOSTILE),
            ),
        ),
        plots=(
            plot(
                HOSTILE, HOSTILE, HOSTILE, "GPU", [PlotSeries(HOSTILE, [1.0, None, 3.0])], HOSTILE
            ),
        ),
    )


def fleet(nodes=64, gpus=8, count=200):
    """Many GPUs, to see that plots and tables stay usable."""
    names = [f"nid{n:06d}" for n in range(nodes)]
    rows = tuple(
        gpu_row(name, g, "AMD Instinct MI250X", load_mean=(n * 7 + g * 13) % 101 + 0.5)
        for n, name in enumerate(names)
        for g in range(gpus)
    )
    return base(
        run_id="20250701-0101-llm-zz99",
        name="llm, 512 GCDs",
        tables=(Table(key="gpus", title="GPUs", columns=GPU_COLUMNS, rows=rows),),
        plots=plots([f"{n} GPU {g}" for n in names for g in range(gpus)], names, count),
    )


SOUND = {
    "one_gpu": one_gpu,
    "eight_gpus": eight_gpus,
    "laptop": laptop,
    "four_nodes": four_nodes,
    "bare": bare,
}
"""Views as they should be; `hostile` and `fleet` are for single tests."""
