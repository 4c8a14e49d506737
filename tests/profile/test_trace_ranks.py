"""Ranks together: which rank the others wait for. Times are in µs, one step is 0 to 200 µs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from profile_traces import call, kernel, mark, path_of, step, write
from support import WITHOUT_COMPILER
from teho.errors import InputError
from teho.model.trace import Profiled
from teho.profile.summary import read_traces, trace_files
from teho.show.build.profile import profile_document
from teho.show.text.document import render_text

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
BASE_NS = 1_790_857_026_000_000_000


def read(folder: Path, *ranks, **values) -> Profiled:
    """Read traces with these events, one for each rank."""
    paths = []
    for rank, events in enumerate(ranks):
        place = folder / str(rank)
        place.mkdir()
        about = {"rank": rank, "world_size": len(ranks)}
        paths.append(write(place, events, distributedInfo=about, **values))
    return read_traces(paths)


def collective(number: int, start, end, name: str = NCCL, group: str = "", launched=None):
    """Return a collective on stream 20, and its launch."""
    made = kernel(number, start, end, name, stream=20)
    if group:
        made["args"]["Process Group Name"] = group
    begin = start - 5 if launched is None else launched
    return [call(number, begin, begin + 1), made]


def us(time_s: float) -> float:
    return round(time_s * 1e6, 3)


def test_the_rank_with_the_shortest_collective_came_last(tmp_path: Path) -> None:
    first = [step(3, 0, 200), *collective(1, 100, 180)]
    last = [step(3, 0, 200), call(2, 20, 21), kernel(2, 30, 140), *collective(1, 150, 180)]
    found = read(tmp_path, first, last)
    waits = [trace.waits for trace in found.traces]
    assert [one.collectives for one in waits] == [1, 1]
    assert [us(one.waited_s) for one in waits] == [50, 0]
    assert [us(one.awaited_s) for one in waits] == [0, 50]
    assert found.verdict.startswith("For 25 % of a step, the other ranks waited for rank 1. ")
    assert found.advice[0].startswith("Find out why rank 1 is slower than the other ranks")
    (table,) = (one for one in profile_document(found).tables if one.key == "ranks")
    assert [row["waiting"] for row in table.rows] == [25, 0]


def test_computing_while_waiting_does_not_count(tmp_path: Path) -> None:
    first = [step(3, 0, 200), call(2, 10, 11), kernel(2, 90, 130), *collective(1, 100, 180)]
    last = [step(3, 0, 200), *collective(1, 150, 180)]
    found = read(tmp_path, first, last)
    assert us(found.traces[0].waits.waited_s) == 20


def test_clocks_may_differ(tmp_path: Path) -> None:
    """The figures are the same; the difference is told in a note."""
    ahead = 4000
    first = [step(3, 0, 200), *collective(1, 100, 180)]
    last = [step(3, ahead, ahead + 200), *collective(1, ahead + 150, ahead + 180)]
    found = read(tmp_path, first, last, baseTimeNanoseconds=BASE_NS)
    assert us(found.traces[0].waits.waited_s) == 50
    assert [one.waits.clock_s for one in found.traces] == pytest.approx([0, 4e-3])
    assert "The clock of rank 1 is 4.00 ms ahead of the clock of rank 0" in found.notes[-1]


def test_the_start_of_the_times_may_differ(tmp_path: Path) -> None:
    paths = []
    for rank, base_ns in enumerate((BASE_NS, BASE_NS + 7_000)):
        place = tmp_path / str(rank)
        place.mkdir()
        shift = rank * 7  # the same moments, counted from another start
        events = [step(3, 0, 200), *collective(1, 100 - shift, 180 - shift)]
        paths.append(write(place, events, distributedInfo={"rank": rank, "world_size": 2},
                           baseTimeNanoseconds=base_ns))  # fmt: skip
    assert [one.waits.clock_s for one in read_traces(paths).traces] == [0, 0]


def test_process_groups_are_compared_on_their_own(tmp_path: Path) -> None:
    """Ranks 0 and 1 are one group, ranks 2 and 3 another one."""
    found = read(
        tmp_path,
        *(
            [step(3, 0, 200), *collective(1, 180 - length, 180, group=group)]
            for group, length in (("1", 80), ("1", 30), ("2", 60), ("2", 100))
        ),
    )
    assert [us(one.waits.waited_s) for one in found.traces] == [50, 0, 0, 40]
    assert [us(one.waits.awaited_s) for one in found.traces] == [0, 50, 40, 0]
    assert [one.waits.clock_s for one in found.traces] == [0, 0, None, None]


def test_only_the_steps_that_all_ranks_have_are_compared(tmp_path: Path) -> None:
    short = [step(4, 200, 400), *collective(2, 370, 390)]
    long = [
        step(3, 0, 200), *collective(1, 100, 180), step(4, 200, 400), *collective(2, 330, 390),
    ]  # fmt: skip
    found = read(tmp_path, long, short)
    assert [one.waits.collectives for one in found.traces] == [1, 1]
    assert us(found.traces[0].waits.waited_s) == 40 / 2  # mean of the two steps of its trace


@pytest.mark.parametrize(
    "other",
    [
        [*collective(1, 150, 160), *collective(2, 170, 180)],  # another number of them
        collective(1, 150, 180, name="ncclDevKernel_AllGather_RING_LL"),
    ],
)
def test_different_collectives_are_not_compared(tmp_path: Path, other) -> None:
    found = read(tmp_path, [step(3, 0, 200), *collective(1, 100, 180)], [step(3, 0, 200), *other])
    assert [one.waits for one in found.traces] == [None, None]
    assert "it is not known which rank the other ranks waited for" in found.notes[-1]


@pytest.mark.parametrize(
    ("marked", "collectives"), [("nccl:all_to_all", 1), ("nccl:send", 0), ("other", 0)]
)
def test_an_all_to_all_is_known_by_its_mark(tmp_path: Path, marked: str, collectives: int) -> None:
    name = "ncclDevKernel_SendRecv"
    found = read(
        tmp_path,
        *(
            [step(3, 0, 200), mark(marked, 90, 96), *collective(1, 100, end, name)]
            for end in (180, 120)
        ),
    )
    assert [one.waits.collectives if one.waits else 0 for one in found.traces] == [collectives] * 2


def test_exchanges_of_two_ranks_are_not_compared(tmp_path: Path) -> None:
    name = "ncclDevKernel_SendRecv"
    found = read(
        tmp_path, *([step(3, 0, 200), *collective(1, 100, end, name)] for end in (180, 120))
    )
    assert [one.waits for one in found.traces] == [None, None]


@pytest.mark.parametrize(("count", "share"), [(3, 20), (2, 15)])
def test_ranks_that_come_last_in_turn(tmp_path: Path, count: int, share: int) -> None:
    """Each rank is last once in as many steps as there are ranks."""
    ranks = []
    for rank in range(count):
        events = []
        for number in range(count):
            begin = 200 * number
            length = 30 if rank == number else 90
            events += [
                step(number, begin, begin + 200),
                *collective(number + 1, begin + 180 - length, begin + 180),
            ]
        ranks.append(events)
    found = read(tmp_path, *ranks)
    assert found.verdict.startswith(f"For {share} % of a step, the ranks waited for each other. ")
    assert found.advice[0].startswith("Give all ranks equally much work")


def test_collectives_on_the_cpu_of_a_real_program() -> None:
    """Two ranks of one machine: their clock is the same, and the collectives end together."""
    found = read_traces([path_of("ddp-gloo-0of2"), path_of("ddp-gloo-1of2")])
    waits = [one.waits for one in found.traces]
    assert [one.collectives for one in waits] == [2, 2]
    assert abs(waits[1].clock_s) < 100e-6
    assert waits[0].waited_s == waits[1].awaited_s > 10e-3
    assert not any("clock" in note for note in found.notes)


def test_ranks_without_a_gpu(tmp_path: Path) -> None:
    found = read(
        tmp_path, [step(1, 0, 200), mark("gloo:all_reduce", 100, 180)],
        [step(1, 0, 200), mark("gloo:all_reduce", 160, 180)],
    )  # fmt: skip
    assert found.verdict.startswith("For 30 % of a step, the other ranks waited for rank 1. The")
    (table,) = (one for one in profile_document(found).tables if one.key == "ranks")
    assert [row["waiting"] for row in table.rows] == [30, 0]


def test_a_folder_of_traces(teho, tmp_path: Path) -> None:
    for rank in (0, 1):
        shutil.copy(path_of(f"ddp-gloo-{rank}of2"), tmp_path / f"rank{rank}.pt.trace.json.gz")
    (tmp_path / "config.json").write_text("{}")
    result = teho("profile", tmp_path)
    assert result.stdout.startswith("! For 37 % of a step, the other ranks waited for rank 1.")
    assert (result.stderr, result.returncode) == ("", 0)


def test_the_newest_trace_of_each_worker(tmp_path: Path) -> None:
    for name in ("a_1.1795342020000.pt.trace.json", "a_1.1795342029000.pt.trace.json",
                 "a_2.1795342021000.pt.trace.json", "notes.txt"):  # fmt: skip
        (tmp_path / name).touch()
    assert [path.name for path in trace_files(tmp_path)] == [
        "a_1.1795342029000.pt.trace.json", "a_2.1795342021000.pt.trace.json",
    ]  # fmt: skip
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="has no traces"):
        trace_files(empty)


RANK = (
    WITHOUT_COMPILER
    + """
import sys, time, torch, torch.distributed as dist
rank, folder, slow_s = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
P = torch.profiler
with P.profile(
    activities=[P.ProfilerActivity.CPU],
    schedule=P.schedule(wait=1, warmup=1, active=3, repeat=1),
    on_trace_ready=P.tensorboard_trace_handler(f"{folder}/traces", f"rank{rank}"),
) as profiler:
    for _ in range(6):
        if rank == 1: time.sleep(slow_s)
        model(torch.rand(8, 64)).sum().backward()
        profiler.step()
dist.destroy_process_group()
"""
)


def test_a_real_program_with_a_slow_rank(torch_python: Path, tmp_path: Path) -> None:
    slow_s = 0.15
    ranks = [
        subprocess.Popen(
            [torch_python, "-W", "ignore", "-c", RANK, str(rank), tmp_path, str(slow_s)]
        )
        for rank in (0, 1)
    ]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    found = read_traces(trace_files(tmp_path / "traces"))
    fast, slow = (trace.waits for trace in found.traces)
    # The sleep lasts at least this long, and the backward pass that follows it is short.
    assert fast.waited_s > 0.8 * slow_s
    assert slow.waited_s < 0.2 * slow_s
    assert slow.awaited_s == pytest.approx(fast.waited_s)
    assert fast.collectives == 3
    assert "% of a step, the other ranks waited for rank 1. " in found.verdict
    assert profile_document(found).verdict_severity == "warning"


def test_of_many_ranks_the_text_has_those_that_waited_least_and_most(tmp_path: Path) -> None:
    ranks = [
        [step(3, 0, 200), *collective(1, 180 - length, 180)] for length in (*range(50, 95, 5), 20)
    ]
    document = profile_document(read(tmp_path, *ranks))
    (table,) = (one for one in document.tables if one.key == "ranks")
    assert len(table.rows) == 10
    assert [table.rows[place]["rank"] for place in table.shown] == [
        f"rank {rank}" for rank in (0, 1, 2, 5, 6, 7, 8, 9)
    ]
    assert table.rest == "and 2 more ranks; the table has the ranks that waited least and most"
    assert {one.key for one in document.tables if one.key.startswith("steps")} == {"steps_0"}
    text = render_text(document, width=80, color=False)
    assert "rank 9" in text
    assert len(text.splitlines()) <= 41
