"""What the first line of `teho top` says about the present moment, and when it says nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

import msgspec
import pytest

from teho.explain.now import NewestValues
from teho.explain.policy import load_policy
from teho.explain.present import IdleGpus, InputWait, input_wait
from teho.model.device import Device
from teho.model.live import LiveSample, NodeNow
from teho.model.program import Feed, MainProcess, Program
from teho.model.run import FORMAT_VERSION, End, Node, Run, Step, Task
from teho.model.stack import Frame, Seen, State
from teho.model.summary import GpuSummary, NodeSummary, Summary
from teho.model.watched import Progress, WatchedProcess
from teho.observe.viewer import Received

AT = datetime(2026, 11, 27, tzinfo=timezone.utc)
POLICY = load_policy()
Shares = Mapping[str, Sequence[float | None]]
WORK, IDLE = 95.0, 0.0


def device(name: str, position: int) -> Device:
    return Device(id=f"{name}-{position}", index=position, name="H100", vendor="nvidia")


def moment(at_s: float, shares: Shares, *, age_s: float = 1.0, **others: Mapping[str, list[float]]
           ) -> Sequence[NodeNow]:  # fmt: skip
    """Return the nodes at a moment.

    Args:
        at_s: seconds after the start of the run.
        shares: node -> busy share of each GPU.
        age_s: of the samples.
        others: metric -> node -> value of each GPU.
    """
    described, newest = [], {}
    for name, busy in shares.items():
        devices = tuple(device(name, position) for position in range(len(busy)))
        rows = [
            {
                "kind": "gpu", "device": one.id,
                **({} if share is None else {"gpu_busy_percent": share}),
                **{metric: of_nodes[name][one.index] for metric, of_nodes in others.items()},
            }
            for one, share in zip(devices, busy, strict=True)
        ]  # fmt: skip
        described.append(Node(name=name, started_at=AT, period_s=1.0, devices=devices))
        sample = LiveSample(node=name, elapsed_s=at_s, rows=rows)
        newest[name] = Received(sample, 1000.0 - age_s, None, "connection")
    run = Run(format=FORMAT_VERSION, id="r", command=("x",), started_at=AT, host="g1",
              nodes=tuple(described))  # fmt: skip
    return NewestValues().nodes(run, newest, 1000.0)


def run_of(nodes: Sequence[NodeNow], **others: object) -> Run:
    return Run(format=FORMAT_VERSION, id="r", command=("x",), started_at=AT, host="g1",
               nodes=tuple(node.node for node in nodes), **others)  # fmt: skip


def said(*spans: tuple[int, Shares], idle: IdleGpus | None = None, begin_s: float = 0.0) -> str:
    """Return the sentence after spans of seconds with the same shares."""
    idle, at_s = idle or IdleGpus(POLICY), begin_s
    nodes: Sequence[NodeNow] = []
    for seconds, shares in spans:
        for _ in range(seconds):
            at_s += 1.0
            nodes = moment(at_s, shares)
            idle.add(nodes)
    return idle.sentence(run_of(nodes))


def test_an_idle_gpu_among_working_gpus_is_named_with_its_time() -> None:
    stopped = {"g1": [WORK] * 4, "g2": [WORK, WORK, WORK, IDLE]}
    assert said((60, {"g1": [WORK] * 4, "g2": [WORK] * 4}), (245, stopped)) == (
        "GPU 3 on g2 has been idle for 4 min."
    )


def test_all_gpus_of_a_node() -> None:
    assert said((200, {"g1": [WORK] * 4, "g2": [IDLE] * 4})) == (
        "All GPUs on g2 have been idle for 3 min."
    )
    assert said((200, {"g1": [WORK] * 3 + [IDLE], "g2": [WORK, IDLE]})) == (
        "GPU 3 on g1 and GPU 1 on g2 have been idle for 3 min."
    )
    assert said((200, {"g1": [WORK, IDLE]})) == "GPU 1 on g1 has been idle for 3 min."


@pytest.mark.parametrize(
    "spans",
    [
        # The start of the program: all GPUs are idle, and then one begins a little later.
        ((600, {"g1": [IDLE] * 4}),),
        ((600, {"g1": [IDLE] * 4}), (30, {"g1": [WORK] * 3 + [IDLE]})),
        # An evaluation on the cores, or by one rank while the others wait for it.
        ((100, {"g1": [WORK] * 4}), (600, {"g1": [IDLE] * 4}), (5, {"g1": [WORK] * 3 + [IDLE]})),
        ((100, {"g1": [WORK] * 4}), (600, {"g1": [WORK, IDLE, IDLE, IDLE]})),
        # A GPU that works a little, or again and again.
        ((600, {"g1": [WORK] * 3 + [12.0]}),),
        tuple(
            span
            for _ in range(6)
            for span in ((100, {"g1": [WORK, IDLE]}), (10, {"g1": [WORK, WORK]}))
        ),
        # Less than three minutes.
        ((100, {"g1": [WORK] * 2}), (170, {"g1": [WORK, IDLE]})),
        # It works again.
        ((300, {"g1": [WORK, IDLE]}), (1, {"g1": [WORK, WORK]})),
        # The others have stopped too: the job is at its end.
        ((300, {"g1": [WORK, IDLE]}), (1, {"g1": [IDLE, IDLE]})),
        # MIG slices have no busy share.
        ((600, {"g1": [WORK, None]}),),
        # Only cores.
        ((600, {"g1": []}),),
    ],
)  # fmt: skip
def test_look_alikes_are_clean(spans: Sequence[tuple[int, Shares]]) -> None:
    assert said(*spans) == ""


def test_the_gpu_of_a_rank_that_has_ended_is_clean() -> None:
    shares = {"g1": [WORK, IDLE]}
    nodes = moment(300.0, shares)
    step = Step(key="s", started_by="Slurm", began_on="g1", task_count=2)
    described = msgspec.structs.replace(nodes[0].node, ranks=(0, 1))
    nodes = [msgspec.structs.replace(nodes[0], node=described)]
    ended = Task(rank=1, local_rank=1, node="g1", pid=2, started_at=AT,
                 end=End(at=AT, elapsed_s=10.0, exit_code=0))  # fmt: skip
    idle = IdleGpus(POLICY)
    assert said((300, shares), idle=idle)
    assert idle.sentence(run_of(nodes, step=step, tasks=(ended,))) == ""
    other = msgspec.structs.replace(ended, rank=0)
    assert idle.sentence(run_of(nodes, step=step, tasks=(other,))) != ""


@pytest.mark.parametrize(
    ("before", "after", "is_named"),
    [
        (2e9, 0.0, False),  # the process on this GPU has ended
        (2e9, 2e9, True),  # it waits
        (0.0, 0.0, True),  # it was never used
    ],
)
def test_the_process_of_a_gpu_has_ended(before: float, after: float, is_named: bool) -> None:
    idle, nodes = IdleGpus(POLICY), []
    for second in range(1, 400):
        busy, memory = (WORK, before) if second < 100 and before else (IDLE, after)
        nodes = moment(second, {"g1": [WORK, busy]}, gpu_job_memory_bytes={"g1": [2e9, memory]})
        idle.add(nodes)
    assert bool(idle.sentence(run_of(nodes))) is is_named


def test_time_without_samples_does_not_count() -> None:
    idle = IdleGpus(POLICY)
    shares = {"g1": [WORK, IDLE]}
    assert said((100, shares), idle=idle) == ""
    assert said((100, shares), idle=idle, begin_s=1000.0) == ""
    idle.add(moment(2000.0, shares, age_s=100.0))  # silent
    assert said((100, shares), idle=idle, begin_s=2000.0) == ""
    assert said((200, shares), idle=idle, begin_s=2100.0) != ""


def summary(bin_s: float, busy: Mapping[int, list[float | None]]) -> Summary:
    gpus = tuple(
        GpuSummary(device=device("g1", position), position=position, stats={}, energy_j=0.0,
                   series={"gpu_busy_percent": series})
        for position, series in busy.items()
    )  # fmt: skip
    count = max(map(len, busy.values()))
    node = NodeSummary(
        name="g1", covered_s=bin_s * count, cores=8, stats={}, totals={}, cpu_cores_used=1.0,
        memory_peak_bytes=1.0, memory_limit_bytes=1.0, gpus=gpus, series={},
    )  # fmt: skip
    return Summary(elapsed_s=bin_s * count, cpu_s=1.0, bin_s=bin_s, bin_count=count, nodes=(node,))


def test_the_report_knows_what_was_before_the_first_sample() -> None:
    idle = IdleGpus(POLICY)
    idle.before(summary(10.0, {0: [WORK] * 60, 1: [WORK] * 30 + [IDLE] * 29 + [None]}))
    assert said((2, {"g1": [WORK, IDLE]}), idle=idle, begin_s=605.0) == (
        "GPU 1 on g1 has been idle for 5 min."
    )


@pytest.mark.parametrize(
    ("last", "begin_s"),
    [([IDLE] * 29 + [WORK], 605.0), ([IDLE] * 30, 2000.0), ([IDLE] * 10 + [None] * 20, 605.0)],
)
def test_what_was_long_before_the_first_sample_does_not_count(
    last: list[float | None], begin_s: float
) -> None:
    idle = IdleGpus(POLICY)
    idle.before(summary(10.0, {0: [WORK] * 60, 1: [WORK] * 30 + last}))
    assert said((2, {"g1": [WORK, IDLE]}), idle=idle, begin_s=begin_s) == ""


LOADER = Frame("/x/site-packages/torch/utils/data/dataloader.py", "__next__", 700, "next()")
OWN = Frame("/home/ann/train.py", "main", 12, "for batch in loader:")
EVALUATE = Frame("/home/ann/train.py", "evaluate", 40, "for batch in loader:")


def waiting(loading_s: float, other: Frame = OWN, **others: object) -> Program:
    """Return a program that waited for input for a part of its last minute."""
    at_end = (
        Seen(frames=(LOADER, other), state=State.LOCK, samples=60, wall_s=loading_s),
        Seen(frames=(OWN,), state=State.NATIVE, samples=60, wall_s=60.0 - loading_s),
    )
    progress = tuple(
        Progress(steps=10 * (1 + count), first_s=1.0, last_s=10.0 * (1 + count))
        for count in range(30)
    )
    about = {
        "progress": progress, "until_s": 305.0, "at_end": at_end, "at_end_s": 60.0,
        "at_end_until_s": 300.0, **others,
    }  # fmt: skip
    process = WatchedProcess(node="g1", pid=1, python="3.11", began_s=0.0, stacks=at_end,
                             **about)  # fmt: skip
    main = MainProcess(process=process, spent=(), feed=Feed(loader=None, main_s={}, workers_s={},
                       workers=0, workers_without_core_percent=None, lines=()))  # fmt: skip
    return Program(mains=(main,))


@pytest.mark.parametrize("newest", [{"at_end_s": 600.0}, {"at_end_until_s": 200.0}])
def test_the_newest_stacks_of_a_long_run_are_not_of_the_last_minute(
    newest: dict[str, float],
) -> None:
    assert input_wait(waiting(46.2, **newest)) is None


def test_waiting_for_input_in_the_last_minute() -> None:
    wait = input_wait(waiting(46.2))
    assert wait is not None
    assert wait.sentence(POLICY) == "Waiting for input 77 % of the last minute."
    # Each rank has the same weight.
    both = Program(mains=(*waiting(46.2).mains, *waiting(22.2).mains))
    wait = input_wait(both)
    assert wait is not None
    assert wait.share_percent == pytest.approx(57.0)
    assert InputWait(80.0, 45.0).sentence(POLICY) == "Waiting for input 80 % of the last 45 s."


@pytest.mark.parametrize(
    "program",
    [
        None,
        waiting(20.0),  # less than half of the minute
        waiting(55.0, EVALUATE),  # an evaluation
        waiting(55.0, progress=()),  # the first batch
        waiting(55.0, progress=(Progress(steps=2, first_s=290.0, last_s=300.0),)),  # the start
        waiting(55.0, until_s=500.0),  # no step in the last minute: it does something else
        waiting(55.0, at_end=()),
    ],
)
def test_waiting_for_input_that_says_nothing_yet(program: Program | None) -> None:
    wait = input_wait(program)
    assert wait is None or wait.sentence(POLICY) == ""
