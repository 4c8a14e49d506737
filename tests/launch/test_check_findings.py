"""What is found and how it is written, without any process."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from check_step import CHECK

from teho.launch.checking.findings import expected_nodes, rendezvous_findings
from teho.launch.checking.peers import RendezvousError, open_rendezvous
from teho.launch.checking.report import LinkTiming, NodeClock, Result, as_text
from teho.launch.checking.task import CheckTask, spans

PROCESS = CHECK.parents[1] / "process"
FILES = [
    CHECK,
    *(CHECK.parent / "checking").glob("*.py"),
    PROCESS / "__init__.py",
    PROCESS / "json_lines.py",
]


def leader(size: int, per_node: int, *hosts: str) -> CheckTask:
    return CheckTask(0, size, 0, per_node, 0, "n0", 14242, hosts, host="n0")


def hello(rank: int, node: int, per_node: int, **changes: object) -> dict[str, object]:
    return {
        "rank": rank,
        "world_size": 4,
        "local_rank": 0,
        "local_world_size": per_node,
        "node_rank": node,
        "node": f"n{node}",
        "host": f"n{node}",
        "pid": 100 + rank,
        "cores": [rank],
        **changes,
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_python_3_8_and_the_standard_library_are_enough(path: Path):
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            own = name.startswith(("teho.launch.checking.", "teho.process.json_lines"))
            assert own or name.partition(".")[0] in sys.stdlib_module_names, name


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([0, 1, 2], "0–2"), ([5, 0, 1, 7, 8], "0–1, 5, 7–8")],
)
def test_spans(numbers: list[int], text: str):
    assert spans(numbers) == text


def test_ranks_in_blocks_and_in_turn():
    task = leader(4, 2, "n0", "n1")
    blocks = expected_nodes(task, [hello(0, 0, 2), hello(1, 0, 2)])
    assert blocks == {0: "n0", 1: "n0", 2: "n1", 3: "n1"}
    turns = expected_nodes(task, [hello(0, 0, 2), hello(2, 0, 2)])
    assert turns == {0: "n0", 1: "n1", 2: "n0", 3: "n1"}


def test_nodes_of_different_sizes():
    found = expected_nodes(leader(4, 3, "n0", "n1"), [hello(0, 0, 3), hello(3, 1, 1)])
    assert found == {0: "n0", 1: "n0", 2: "n0", 3: "n1"}


def test_where_a_rank_belongs_is_not_guessed():
    task = leader(4, 2, "n0", "n1")
    odd = [hello(0, 0, 2), hello(3, 0, 2)]
    assert expected_nodes(task, odd) == {}
    assert expected_nodes(task, []) == {}
    (finding,) = rendezvous_findings(task, odd, 60.0)
    assert finding.sentence == "ranks 1–2 did not reach n0:14242 within 60 s"


def test_another_machines_address():
    with pytest.raises(
        RendezvousError,
        match=r"MASTER_ADDR 192\.0\.2\.1 is not an address of rank 0's machine\. Next: ",
    ):
        open_rendezvous(CheckTask(0, 2, 0, 1, 0, "192.0.2.1", 14242))


def many(nodes: int) -> Result:
    result = Result(leader(2 * nodes, 2))
    result.hellos = {rank: hello(rank, rank // 2, 2) for rank in range(2 * nodes)}
    result.link_bytes_per_s = {rank: 1e9 + rank for rank in range(2 * nodes)}
    result.link_bytes_per_s[81] = 2e6
    return result


def test_a_long_table_keeps_the_slowest():
    text = as_text(many(50))
    assert text.startswith("100 ranks on 50 nodes reach each other.")
    rows = [line for line in text.splitlines() if line.startswith("n") and line[1].isdigit()]
    assert len(rows) == 32
    assert rows[-1].startswith("n40   80–81  1 each  501 MB/s")
    assert "The slowest link, from rank 81 on n40 to rank 82 on n41, reaches 2.00 MB/s." in text
    shown = "The table shows only the 32 nodes with the slowest links, of 50 nodes in total."
    assert f"{shown} --json prints all nodes." in text


def test_a_whole_report():
    result = Result(leader(2, 1, "n0", "n1"))
    result.hellos = {
        0: hello(0, 0, 1, cores=[1, 2, 3]),
        1: hello(1, 1, 1, cores=[4, 5, 6]),
    }
    result.met_s, result.last = 0.25, 1
    result.clocks = {1: NodeClock(2.5, 0.0001)}
    result.work_s = {0: 0.004, 1: 0.005}
    result.round_trip_s = {0: 20e-6, 1: 22e-6}
    result.link_bytes_per_s = {0: 2.31e9, 1: 90e6}
    gpu = {"version": "2.9.1", "device": "A GPU", "library": "NCCL"}
    result.torch = {0: gpu, 1: gpu}
    result.backend = "nccl"
    result.timings = [
        LinkTiming(1 << 20, 0.0004, 2.6e9, 2.6e9),
        LinkTiming(1 << 24, 0.0053, 3.2e9, 3.2e9),
    ]
    result.device_work_s = {0: 0.010, 1: 0.015}
    result.waited_s = {0: 0.0052, 1: 0.0002}
    assert (
        as_text(result)
        == """\
2 ranks on 2 nodes reach each other.

node  ranks  cores  device  link       round trip  work
n0    0      3      A GPU   2.31 GB/s  20.0 us     10.0 ms
n1    1      3      A GPU   90.0 MB/s  22.0 us     15.0 ms

All ranks arrived in 250 ms; rank 1 on n1 was the last.
The clock of n1 is 2.50 s ahead of the clock of n0 (uncertainty: 100 us).
TCP: the median rate per link is 1.20 GB/s with all 2 links of the ring in use. The slowest link, \
from rank 1 on n1 to rank 0 on n0, reaches 90.0 MB/s.
all_reduce through torch 2.9.1, NCCL:
  size    time     algorithm  bus
  1 MiB   400 us   2.60 GB/s  2.60 GB/s
  16 MiB  5.30 ms  3.20 GB/s  3.20 GB/s
The slowest rank is rank 1 on n1: it took 15.0 ms for a matrix product \
(median of all ranks: 12.5 ms); the other ranks waited 5.00 ms longer than this rank."""
    )


@pytest.mark.parametrize(
    ("ahead_s", "uncertainty_s", "differs"),
    [(0.05, 0.0001, False), (-0.2, 0.0001, True), (0.2, 0.1, False), (0.4, 0.1, True)],
)
def test_clocks_differ_if_they_do_so_by_more_than_can_be_seen(
    ahead_s: float, uncertainty_s: float, *, differs: bool
):
    assert NodeClock(ahead_s, uncertainty_s).differs is differs
