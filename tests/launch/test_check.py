from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from check_step import CHECK, Step, results

from support import TEHO

NO_TORCH = "raise ImportError('No module named torch')"


@pytest.fixture
def step(tmp_path: Path) -> Iterator[Callable[..., Step]]:
    """Make steps whose Python has no torch, whatever is installed."""
    (tmp_path / "torch.py").write_text(NO_TORCH)
    made: list[Step] = []

    def make(size: int, *arguments: str, path: Path = tmp_path, **options: object) -> Step:
        made.append(Step(size, *arguments, path=[path], **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_ranks_reach_each_other(step):
    (code, output, errors), *others = results(step(4).start_all())
    assert (code, errors) == (0, "")
    assert others == [(0, "", "")] * 3
    lines = output.splitlines()
    assert lines[0] == "4 ranks on 2 nodes reach each other."
    assert lines[2].split() == ["node", "ranks", "cores", "link", "round", "trip", "work"]
    assert lines[3].startswith("r01g01  0–1 ")
    assert lines[4].startswith("r01g02  2–3 ")
    assert "all 4 links of the ring in use" in output
    assert "No collective was tested: torch cannot be imported (No module named torch)." in lines
    assert any(line.startswith("The slowest rank is rank ") for line in lines)


def test_json_has_every_figure_in_base_units(step):
    (code, output, _), *_ = results(step(8, "--json", "--seconds", "0.2").start_all())
    found = json.loads(output)
    assert code == 0
    assert found["ok"]
    assert found["world_size"] == 8
    assert [node["ranks"] for node in found["nodes"]] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [node["name"] for node in found["nodes"]] == ["r01g01", "r01g02"]
    assert found["nodes"][0]["clock_ahead_s"] is None
    # The same machine: the clocks agree, as far as a round trip lets one see.
    assert abs(found["nodes"][1]["clock_ahead_s"]) <= found["nodes"][1]["clock_uncertainty_s"]
    for rank, one in enumerate(found["ranks"]):
        assert one["rank"] == rank
        assert one["cores"] == sorted(os.sched_getaffinity(0))
        assert 1e6 < one["link_bytes_per_s"] < 1e12
        assert 1e-6 < one["round_trip_s"] < 1
        assert one["work_s"] > 1e-4
        assert one["device_work_s"] is None
    work = [one["work_s"] for one in found["ranks"]]
    assert found["slowest_rank"] == work.index(max(work))
    assert found["backend"] is None
    assert found["all_reduce"] == []


def test_through_teho_launch(step):
    some = step(2)
    some.command = [*TEHO, "launch", "--check"]
    (code, output, _), (other_code, other_output, _) = results(some.start_all())
    assert (code, other_code, other_output) == (0, 0, "")
    assert "2 ranks on " in output.splitlines()[0]
    assert "all 2 links of the ring in use" in output


def test_options_of_the_check_go_through_teho_launch(step):
    some = step(2)
    words = ["--json", "--timeout", "1min", "--for=200ms"]
    some.command = [*TEHO, "launch", "--check", *words]
    (code, output, _), (other_code, _, _) = results(some.start_all())
    assert (code, other_code) == (0, 0)
    assert json.loads(output)["world_size"] == 2


def test_a_rank_that_never_comes_is_not_waited_for_beyond_the_timeout(step):
    some = step(2)
    some.command = [*TEHO, "launch", "--check", "--timeout=2s"]
    ((code, output, _),) = results([some.start(0)])
    assert code == 1
    assert "within 2 s" in output


def test_a_single_rank(step):
    alone = step(2)
    size = {"WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    ((code, output, _),) = results([alone.start(0, size)])
    assert code == 0
    assert output.startswith("The step has only one rank, so it has no other rank to reach.\n")


def test_it_needs_nothing_but_its_own_files(step, tmp_path: Path):
    shutil.copytree(CHECK.parent, tmp_path / "elsewhere" / "launch")
    shutil.copytree(CHECK.parents[1] / "process", tmp_path / "elsewhere" / "process")
    alone = step(2)
    check = tmp_path / "elsewhere" / "launch" / "check.py"
    alone.command = [sys.executable, "-I", "-S", str(check)]
    (code, output, errors), *_ = results(alone.start_all())
    assert (code, errors) == (0, "")
    assert output.startswith("2 ranks on 2 nodes reach each other.")


def test_a_rank_that_never_comes(step):
    some = step(4, "--timeout", "2")
    (code, output, _), *others = results([some.start(rank) for rank in (0, 1, 3)])
    assert code == 1
    assert output.startswith(f"rank 2 on r01g02 did not reach 127.0.0.1:{some.port} within 2 s.\n")
    assert "  Next: " in output
    assert others == [(0, "", "")] * 2


def test_a_node_that_never_comes(step):
    some = step(4, "--timeout", "2")
    (code, output, _), *_ = results([some.start(rank) for rank in (0, 1)])
    assert code == 1
    assert output.startswith("ranks 2–3 on r01g02 did not reach ")


def test_two_tasks_claim_one_rank(step):
    some = step(4)
    ranks = [some.start(rank) for rank in (0, 1, 2, 2)]
    (code, output, _), *others = results(ranks)
    assert code == 1
    first, second = sorted((ranks[2].pid, ranks[3].pid), key=lambda pid: output.index(str(pid)))
    expected = f"process {first} on r01g02 and process {second} on r01g02"
    assert output.startswith(f"two tasks claim rank 2: {expected}.\n")
    assert "no task has RANK 3." in output
    assert others == [(0, "", "")] * 3


def test_two_tasks_claim_rank_0(step):
    some = step(2, "--timeout", "20")
    first = some.start(0)
    some.wait_until_listening()
    second = some.start(0, {"NODE_RANK": "1"})
    (code, output, _), other = results([first, second])
    assert code == 1
    assert output.startswith(f"two tasks claim rank 0: process {first.pid} on r01g01 and ")
    assert other == (0, "", "")


def test_world_sizes_that_differ(step):
    some = step(4)
    ranks = [some.start(rank, {"WORLD_SIZE": "8"} if rank == 3 else {}) for rank in range(4)]
    (code, output, _), *_ = results(ranks)
    assert code == 1
    assert output.startswith(
        "the ranks disagree about WORLD_SIZE: 4 on ranks 0–2 (r01g01, r01g02), "
        "8 on rank 3 (r01g02).\n"
    )


def test_local_ranks_that_disagree_do_not_end_the_check(step):
    some = step(4, "--seconds", "0.2")
    same = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "3"}
    ranks = [some.start(rank, same if rank > 1 else {}) for rank in range(4)]
    (code, output, _), *_ = results(ranks)
    assert code == 1
    assert output.startswith("ranks 2–3 on r01g02 all have LOCAL_RANK 0.\n")
    assert "2 ranks run on r01g02, but LOCAL_WORLD_SIZE is 3.\n" in output
    assert "all 4 links of the ring in use" in output


def test_a_port_in_use(step):
    some = step(2, "--timeout", "2")
    place = f"127.0.0.1:{some.port}"
    with socket.create_server(("", some.port)):
        ranks = list(results(some.start_all()))
    for (code, output, errors), expected in (
        (ranks[0], f"rank 0 on r01g01: port {some.port} is in use by another program."),
        (ranks[1], f"rank 1 on r01g02: the program at {place} is not rank 0 of this step"),
    ):
        assert (code, output) == (1, "")
        assert errors.startswith(expected)
        assert "Next: set MASTER_PORT to a free port" in errors


def test_a_refused_port(step):
    some = step(2, "--timeout", "1")
    with socket.socket() as taken:  # bound, so that no program beside this one listens there
        taken.bind(("127.0.0.1", some.port))
        ((code, output, errors),) = results([some.start(1)])
    assert (code, output) == (1, "")
    assert errors.startswith(
        f"rank 1 on r01g02 cannot reach 127.0.0.1:{some.port}: Connection refused. Next: "
    )


@pytest.mark.parametrize(
    ("name", "why"),
    # Neither is a name that anybody would be asked for.
    [("r01g01..x", "not a host name"), ("a." * 130 + "x", "Name or service not known")],
)
def test_an_address_that_does_not_resolve(step, name: str, why: str):
    some = step(2)
    ranks = [some.start(rank, {"MASTER_ADDR": name}) for rank in range(2)]
    (code, _, errors), (other_code, _, other_errors) = results(ranks)
    assert (code, other_code) == (1, 1)
    assert errors.startswith(f"rank 0 on r01g01: MASTER_ADDR {name} does not resolve ({why}). ")
    assert other_errors.startswith(
        f"rank 1 on r01g02 cannot reach {name}:{some.port}: "
        f"the name {name} does not resolve ({why}). Next: "
    )


@pytest.mark.parametrize("junk", [b"GET / HTTP/1.0\r\n\r\n", b'{"about": "hello"}\n', b"[1]\n"])
def test_a_foreign_program_connects(step, junk: bytes):
    some = step(2, "--seconds", "0.2")
    leader = some.start(0)
    some.wait_until_listening()
    with socket.create_connection(("127.0.0.1", some.port)) as foreigner:
        foreigner.sendall(junk)
        (code, output, _), _ = results([leader, some.start(1)])
    assert code == 0
    assert output.startswith("2 ranks on 2 nodes reach each other.")
    assert "Note: another program, which is not a rank of this step, connected from 127" in output


def test_a_foreign_program_that_says_nothing(step):
    some = step(2, "--seconds", "0.2")
    leader = some.start(0)
    some.wait_until_listening()
    with socket.create_connection(("127.0.0.1", some.port)):
        (code, _, _), _ = results([leader, some.start(1)])
    assert code == 0


def test_the_check_of_another_step(step):
    some = step(2, "--timeout", "3")
    leader = some.start(0)
    some.wait_until_listening()
    stranger = some.start(1, {"TEHO_STEP": "slurm-test-2.0"})
    (code, output, _), (other_code, _, errors) = results([leader, stranger])
    assert (code, other_code) == (1, 1)
    assert output.startswith("rank 1 on r01g02 did not reach ")
    steps = "('slurm-test-1.0', but this step is 'slurm-test-2.0')"
    assert f"is rank 0 of another step {steps}" in errors


def test_a_rank_that_ends_in_the_meeting(step):
    some = step(4, "--timeout", "30")
    ranks = [some.start(rank) for rank in (0, 1, 2)]
    wait_until_connected(ranks[2].pid, some.port)
    ranks[2].kill()
    (code, output, _), other, _ = results(ranks)
    assert code == 1
    assert output.startswith("rank 2 on r01g02 ended while it waited for the other ranks.\n")
    assert other == (0, "", "")


def test_a_rank_that_ends_in_the_middle(step, tmp_path: Path):
    ranks, others = slow_torch(step, tmp_path, "--timeout", "30")
    ranks[2].kill()
    (code, output, _), *rest = results(ranks)
    assert code == 1
    assert output.startswith("rank 2 on r01g02 ended during importing torch.\n")
    assert [rest[0], rest[2]] == [(0, "", "")] * 2
    wait_until_gone(others)


def test_rank_0_ends_in_the_middle(step, tmp_path: Path):
    ranks, others = slow_torch(step, tmp_path)
    ranks[0].kill()
    for rank, (code, output, errors) in enumerate(results(ranks[1:]), start=1):
        assert (code, output) == (1, "")
        assert errors.startswith(
            f"rank {rank} on r01g0{1 + rank // 2} lost the connection to rank 0 at "
        )
    wait_until_gone(others)


def test_ctrl_c(step, tmp_path: Path):
    ranks, others = slow_torch(step, tmp_path)
    for process in ranks:
        process.send_signal(signal.SIGINT)
    (code, output, errors), *rest = results(ranks)
    assert (code, output) == (130, "")
    assert errors == "rank 0 on r01g01: the check was interrupted during importing torch\n"
    # Rank 0's last word may come first.
    assert all((out, err) == ("", "") and code in {0, 130, -2} for code, out, err in rest)
    wait_until_gone(others)


def test_a_rank_that_hangs(step):
    some = step(4, "--timeout", "3")
    ranks = [some.start(rank) for rank in (0, 1, 3)]
    wait_until_connected(ranks[2].pid, some.port)
    ranks[2].send_signal(signal.SIGSTOP)
    ranks.append(some.start(2))
    code, output, _ = next(results(ranks[:1]))
    assert code == 1
    assert output.startswith(
        "rank 2 on r01g02 failed in connecting to the next rank: cannot reach rank 3 on r01g02 "
        "at 127.0.0.1:"
    )
    assert ": the other rank does not answer.\n" in output


def test_a_torch_that_is_killed(step, tmp_path: Path):
    killer = tmp_path / "killer"
    killer.mkdir()
    (killer / "torch.py").write_text(
        "import os, time\n"
        "if os.environ['RANK'] == '3': os.kill(os.getpid(), 9)\n"
        "time.sleep(0.5)\n" + NO_TORCH
    )
    (code, output, _), *others = results(step(4, path=killer).start_all())
    assert code == 1
    assert output.startswith(
        "rank 3 on r01g02 failed in importing torch: its torch process was killed by SIGKILL.\n"
    )
    assert others == [(0, "", "")] * 3


def test_clocks_that_differ_are_shown(step, tmp_path: Path):
    ahead = tmp_path / "ahead"
    ahead.mkdir()
    (ahead / "sitecustomize.py").write_text(
        "import os, time\ntrue = time.time\n"
        "if os.environ.get('NODE_RANK') == '1': time.time = lambda: true() - 7.0\n"
    )
    (ahead / "torch.py").write_text(NO_TORCH)
    (code, output, _), *_ = results(step(4, "--seconds", "0.2", path=ahead).start_all())
    assert code == 0
    assert "The clock of r01g02 is 7.00 s behind the clock of r01g01 (uncertainty: " in output


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("RANK", "", "RANK is not set. Next: "),
        ("MASTER_ADDR", "", "MASTER_ADDR is not set. Next: "),
        ("LOCAL_RANK", "-1", "LOCAL_RANK is '-1'; expected a whole number"),
        ("WORLD_SIZE", "0", "RANK is 0, but WORLD_SIZE is 0"),
        ("MASTER_PORT", "70000", "MASTER_PORT is 70000; expected 1 to 65535"),
    ],
)
def test_an_environment_that_is_no_ranks(step, name: str, value: str, expected: str):
    ((code, output, errors),) = results([step(2).start(0, {name: value})])
    assert (code, output) == (2, "")
    assert errors.startswith(f"teho launch --check: {expected}")


def slow_torch(step, tmp_path: Path, *arguments: str):
    """Start a step, wait until all ranks import a torch that takes for ever; give those too."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "torch.py").write_text(
        "import os, time\n"
        "open(os.path.join(os.path.dirname(__file__), str(os.getpid())), 'w').close()\n"
        "time.sleep(600)\n"
    )
    ranks = step(4, "--seconds", "0.2", *arguments, path=slow).start_all()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        others = [int(entry.name) for entry in slow.iterdir() if entry.name.isdigit()]
        if len(others) == 4:
            return ranks, others
        time.sleep(0.05)
    raise AssertionError("torch was not imported")


def wait_until_gone(pids: list[int]) -> None:
    end = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < end, f"still there: {pids}"
        time.sleep(0.05)


def wait_until_connected(pid: int, port: int) -> None:
    """Wait until a process has an established connection to a port of this machine."""
    wanted = f":{port:04X} 01 "
    end = time.monotonic() + 30
    while True:
        rows = [
            row.split()
            for name in ("tcp", "tcp6")
            for row in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        ]
        sockets = {f"socket:[{row[9]}]" for row in rows if f"{row[2][-5:]} {row[3]} " == wanted}
        with contextlib.suppress(FileNotFoundError):  # one that was closed meanwhile
            if sockets & {str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()}:
                time.sleep(0.3)  # and has said who it is
                return
        assert time.monotonic() < end
        time.sleep(0.05)
