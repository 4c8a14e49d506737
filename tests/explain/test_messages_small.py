"""Many small messages to worker processes, as a finding."""

from __future__ import annotations

import pytest

from explain.program_parts import of_python, own, process, seen, watched
from explain.program_scenarios import WATCHED
from explain.program_scenarios import node as quiet_node
from explain.scenario_parts import figures, found, judged
from teho.explain.rules.cpu import known_activity, messages_small
from teho.model.stack import State

SENT = (
    of_python("multiprocessing/connection.py", "Connection._send"),
    own("pipe.send(action)", 57, "step"),
)
FORKED = (
    of_python("multiprocessing/process.py", "BaseProcess.run"),
    of_python("multiprocessing/process.py", "BaseProcess._bootstrap"),
)
SERVED = (own("river.step(action)", 41, "serve"), *FORKED)
ASKED = (
    of_python("multiprocessing/connection.py", "Connection._recv"),
    own("pipe.recv()", 41, "serve"),
    *FORKED,
)


def made(*, sent_s=60.0, worked_s=2.0, mb_per_s=2.0, switches=40_000.0, children=8):
    main = process(seen(SENT, sent_s, State.PYTHON))
    each_s = worked_s / children
    crew = [
        process(
            seen(SERVED, each_s, State.PYTHON), seen(ASKED, 100.0 - each_s, State.PROCESS),
            pid=50 + n, parent_pid=main.pid, progress=(),
        )
        for n in range(children)
    ]  # fmt: skip
    # The rates of the node are per second of the run, which is longer than this process.
    written = mb_per_s * 1e6 * sent_s / 3600
    rates = {
        "job_read_bytes": 1e6, "job_read_calls_bytes": written, "job_write_calls_bytes": written,
        "context_switches": switches,
    }  # fmt: skip
    return watched(main, *crew, parts=quiet_node(rates=rates))


def test_the_work_and_the_line_are_named():
    finding = found(messages_small, made())
    assert finding.sentence == (
        "Passing many small messages between processes at train.py:57 took 60 % of the time. The "
        "8 child processes had little work."
    )
    assert finding.action.startswith("Do the work of `serve` (train.py:41) in the main process")
    assert figures(finding)["context switches of the node"] == pytest.approx(40_000.0)
    assert figures(finding)["data read or written while passing messages"] == pytest.approx(2e6)
    assert finding.regain_percent == (pytest.approx(29.0), pytest.approx(58.0))
    assert judged(known_activity, made()) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"mb_per_s": 20.1},  # large objects
        {"switches": 4_999.0},  # few messages
        {"worked_s": 31.0},  # the worker processes have work
    ],
)
def test_other_messages_get_the_general_advice(changes):
    assert judged(messages_small, made(**changes)) == []
    assert "Passing objects" in found(known_activity, made(**changes)).sentence


@pytest.mark.parametrize(("sent_s", "count"), [(9.9, 0), (10.0, 1)])
def test_threshold_of_time(sent_s, count):
    assert len(judged(messages_small, made(sent_s=sent_s))) == count


def test_without_the_signals_messages_may_be_large():
    run = watched(process(seen(SENT, 60.0, State.PYTHON)), parts=quiet_node())
    assert judged(messages_small, run) == []


def test_the_scenario_is_one_of_them():
    assert len(judged(messages_small, WATCHED["sends_each_action"]())) == 1
