"""Connections that a loop opens again, and requests that it awaits in turn, as findings."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import of_python, own, process, seen
from explain.program_scenarios import in_task, node
from explain.scenario_parts import figures, found, judged, scenario
from explain.scenarios import SCENARIOS
from teho.explain.activities import activity_of
from teho.explain.program import program_of
from teho.explain.rules.cpu import connection_reopened, known_activity, requests_in_turn
from teho.explain.where import main_process
from teho.model.finding import Certainty, Severity
from teho.model.in_source import Block, InTurn
from teho.model.stack import Frame, State

READ = of_python("asyncio/streams.py", "StreamReader.readline")
SLEEP = of_python("asyncio/tasks.py", "sleep")


def changed(name, **changes):
    """Return a scenario whose process differs."""
    run, summary = SCENARIOS[name]()
    main = msgspec.structs.replace(summary.program.mains[0].process, **changes)
    return run, msgspec.structs.replace(summary, program=program_of([main]))


def main_of(name):
    return SCENARIOS[name]()[1].program.mains[0].process


def program(*stacks):
    """Return a run of a program that only waits in coroutines."""
    run, summary = scenario(*node(used=0.1))
    main = process(*stacks, node=summary.nodes[0].name, progress=(), wall_s=100.0)
    return run, msgspec.structs.replace(summary, program=program_of([main]))


def test_a_connection_for_each_measurement():
    finding = found(connection_reopened, SCENARIOS["logs_in_for_each_measurement"]())
    assert finding.sentence == (
        "Each iteration of the loop at train.py:75 opens a new connection to the same server: "
        "`await connect(port)` at train.py:49 took 60 % of the run time."
    )
    assert finding.action.startswith(
        "Open the connection once, directly before the loop at train.py:75"
    )
    assert "the call `await connect(port)` that is now at train.py:49" in finding.action
    assert figures(finding)["connection"] == "train.py:40  asyncio.open_connection(HOST, port)"
    assert finding.regain_percent == (pytest.approx(36.0), pytest.approx(58.8))
    assert finding.certainty is Certainty.LIKELY


def test_if_several_tasks_wait_together_less_can_be_saved():
    first, second, *rest = main_of("logs_in_for_each_measurement").stacks
    together = in_task(*first.frames[1:4], is_only=False)
    stacks = (msgspec.structs.replace(first, frames=together), second, *rest)
    finding = found(connection_reopened, changed("logs_in_for_each_measurement", stacks=stacks))
    assert finding.regain_percent == (pytest.approx(6.0), pytest.approx(54.0))


def test_a_connection_for_each_call_by_a_pool():
    (one,) = main_of("logs_in_for_each_measurement").reopened
    loop = own("def measure(energy)", 70, "measure")
    given = changed(
        "logs_in_for_each_measurement", reopened=(msgspec.structs.replace(one, loop=loop),)
    )
    finding = found(connection_reopened, given)
    assert "Each call of `measure` opens a new connection" in finding.sentence
    assert finding.action.startswith("Open the connection once in each process")


@pytest.mark.parametrize(("periods", "count"), [(3, 1), (2, 0)])
def test_a_connection_that_is_opened_once_is_normal(periods, count):
    (one,) = main_of("logs_in_for_each_measurement").reopened
    again = msgspec.structs.replace(one, periods=periods)
    given = changed("logs_in_for_each_measurement", reopened=(again,))
    assert len(judged(connection_reopened, given)) == count


@pytest.mark.parametrize(("wall_s", "count"), [(10.0, 1), (9.0, 0)])
def test_a_short_time_for_connections_is_normal(wall_s, count):
    first, second, *_ = main_of("logs_in_for_each_measurement").stacks
    stacks = (
        msgspec.structs.replace(first, wall_s=wall_s),
        msgspec.structs.replace(second, wall_s=100.0 - wall_s),
    )
    given = changed("logs_in_for_each_measurement", stacks=stacks)
    assert len(judged(connection_reopened, given)) == count


def test_requests_that_wait_for_each_other():
    finding = found(requests_in_turn, SCENARIOS["fetches_in_turn"]())
    assert finding.sentence == (
        "The loop at train.py:61 spent 50 % of the run time waiting for `fetch(port, scan)`, and "
        "30 % computing, but never both at the same time."
    )
    assert "`tasks = [asyncio.create_task(fetch(port, scan)) for scan in scans]`" in finding.action
    assert "`for scan, task in zip(scans, tasks):`" in finding.action
    assert finding.regain_percent == (pytest.approx(15.0), pytest.approx(45.0))
    assert finding.certainty is Certainty.POSSIBLE
    # The finding says more than the general one.
    assert judged(known_activity, SCENARIOS["fetches_in_turn"]()) == []


@pytest.mark.parametrize("gathered", ["frames.extend(await asyncio.gather(*pending))", ""])
@pytest.mark.parametrize(
    ("periods", "is_many", "count"), [(0, True, 1), (5, False, 1), (2, False, 0)]
)
def test_a_loop_that_only_waits_for_requests(gathered, periods, is_many, count):
    first, *_ = main_of("fetches_in_turn").stacks
    (turn,) = main_of("fetches_in_turn").in_turn
    one = msgspec.structs.replace(turn, periods=periods, is_many=is_many, gathered=gathered)
    given = changed(
        "fetches_in_turn",
        stacks=(msgspec.structs.replace(first, wall_s=80.0),),
        in_turn=(one,),
    )
    findings = judged(requests_in_turn, given)
    assert len(findings) == count
    for finding in findings:
        assert finding.sentence == (
            "The loop at train.py:61 waited for `fetch(port, scan)` for 80 % of the run time: it "
            "sends each request only after the answer to the request before."
        )
        how = f"replace the loop by `{gathered}`" if gathered else "asyncio.create_task(fetch("
        assert how in finding.action
        assert finding.regain_percent == (0.0, pytest.approx(72.0))
        assert finding.certainty is Certainty.POSSIBLE
        assert judged(known_activity, given) == []


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ((78, 79), "move lines 78 to 79 of train.py out of the block, directly after it"),
        ((77, 77), "end the block before line 77, and put the lines after line 77 into a second"),
        (None, "await `reader.readline()` before `async with book.lock`"),
    ],
)
def test_lines_that_can_be_outside_of_the_lock(moved, words):
    call, lock = own("await reader.readline()", 78, "work"), own("async with book.lock", 76, "work")
    turn = InTurn(
        calls=(call,), loop=lock, last=79, call_text="reader.readline()", lock=lock, moved=moved
    )
    mark = Frame("<task>", "only, others wait for a lock", 0, "")
    frames = tuple(mark if one.file == "<task>" else one for one in in_task(READ, call))
    run, summary = program(seen(frames, 60.0, State.PROCESS), seen((own("f(x)", 20),), 40.0))
    main = msgspec.structs.replace(summary.program.mains[0].process, in_turn=(turn,))
    finding = found(
        requests_in_turn, (run, msgspec.structs.replace(summary, program=program_of([main])))
    )
    assert words in finding.action


def test_requests_at_the_same_time_are_not_in_turn():
    first, second, *rest = main_of("fetches_in_turn").stacks
    together = in_task(*first.frames[1:4], is_only=False)
    stacks = (msgspec.structs.replace(first, frames=together), second, *rest)
    assert judged(requests_in_turn, changed("fetches_in_turn", stacks=stacks)) == []


@pytest.mark.parametrize(
    ("mark", "lock_s", "count"),
    [("only, others wait for a lock", 40.0, 1), ("only, others wait for a lock", 5.0, 0),
     ("only", 40.0, 0), ("one of several", 40.0, 0)],
)  # fmt: skip
def test_a_lock_that_is_taken_during_a_request(mark, lock_s, count):
    call, lock = own("await fetch(port, page)", 78, "work"), own("async with book.lock", 77, "work")
    turn = InTurn(calls=(call,), loop=lock, last=79, call_text="fetch(port, page)", lock=lock)
    frames = in_task(READ, own("await reader.read()", 69, "fetch"), call)
    marked = tuple(Frame("<task>", mark, 0, "") if one.file == "<task>" else one for one in frames)
    run, summary = program(
        seen(marked, lock_s, State.PROCESS), seen((own("f(x)", 20),), 100.0 - lock_s)
    )
    main = msgspec.structs.replace(summary.program.mains[0].process, in_turn=(turn,))
    given = run, msgspec.structs.replace(summary, program=program_of([main]))
    findings = judged(requests_in_turn, given)
    assert len(findings) == count
    for finding in findings:
        assert finding.sentence == (
            "For 40 % of the run time, one task waited for `fetch(port, page)` at train.py:78, and "
            "other tasks waited for the lock that this task held: `async with book.lock` at "
            "train.py:77."
        )
        assert finding.certainty is Certainty.POSSIBLE
        assert judged(known_activity, given) == []


def test_all_requests_inside_the_lock_are_one_finding():
    lock = own("async with gate", 76, "work")
    turns, stacks = [], []
    for line, text, wall_s in ((78, "ask(pair, page)", 43.0), (77, "connect(port)", 30.0)):
        call = own(f"await {text}", line, "work")
        turns.append(InTurn(calls=(call,), loop=lock, last=79, call_text=text, lock=lock))
        frames = in_task(READ, own("await reader.read()", 9, "inner"), call)
        mark = Frame("<task>", "only, others wait for a lock", 0, "")
        marked = tuple(mark if one.file == "<task>" else one for one in frames)
        stacks.append(seen(marked, wall_s, State.PROCESS))
    run, summary = program(*stacks, seen((own("f(x)", 20),), 27.0))
    main = msgspec.structs.replace(summary.program.mains[0].process, in_turn=tuple(turns))
    finding = found(
        requests_in_turn, (run, msgspec.structs.replace(summary, program=program_of([main])))
    )
    assert finding.sentence.startswith(
        "For 73 % of the run time, one task waited for `connect(port)` at train.py:77 or "
        "`ask(pair, page)` at train.py:78, and other tasks waited for the lock"
    )
    assert "await `connect(port)` and `ask(pair, page)` before `async with gate`" in finding.action
    assert "If no other line is left inside the lock, remove the lock." in finding.action


@pytest.mark.parametrize(
    ("alone_s", "several_s", "periods", "count"),
    [(40.0, 30.0, 5, 1), (5.0, 60.0, 5, 0), (40.0, 30.0, 2, 0), (12.0, 0.0, 5, 1)],
)
def test_blocks_of_requests_that_wait_for_the_slowest_one(alone_s, several_s, periods, count):
    call = own("await asyncio.gather(*block)", 60, "collect")
    turn = InTurn(
        calls=(call,), loop=own("for i in range(0, COUNT, 8)", 58, "collect"), last=60,
        periods=periods, call_text="asyncio.gather(*block)",
        block=Block(
            size="8", request="fetch(x)", every="for i in range(0, COUNT, 8) for x in a[i:i + 8]"
        ),
    )  # fmt: skip
    line = own("await reader.readline()", 42, "fetch")
    rest_s = 100.0 - alone_s - several_s
    run, summary = program(
        seen(in_task(READ, line, call), alone_s, State.PROCESS),
        seen(in_task(READ, line, call, is_only=False), several_s or 0.1, State.PROCESS),
        seen((own("f(x)", 20),), rest_s),
    )
    main = msgspec.structs.replace(summary.program.mains[0].process, in_turn=(turn,))
    given = run, msgspec.structs.replace(summary, program=program_of([main]))
    findings = judged(requests_in_turn, given)
    assert len(findings) == count
    for finding in findings:
        assert finding.sentence == (
            "The loop at train.py:58 sends requests in blocks of `8`, and each block waits for its "
            f"slowest request: for {alone_s:.0f} % of the run time, only one request was open."
        )
        assert "`limit = asyncio.Semaphore(8)`" in finding.action
        assert (
            "`await asyncio.gather(*(limited(fetch(x)) for i in range(0, COUNT, 8) for x in "
            "a[i:i + 8]))`" in finding.action
        )
        assert judged(known_activity, given) == []


@pytest.mark.parametrize(
    ("mark", "shown"),
    [("only", (True, False)), ("one of several", (False, True)),
     ("only, others wait for a lock", (True, False)), ("", (False, False))],
)  # fmt: skip
def test_what_a_stack_shows_about_blocks(mark, shown):
    call = own("await asyncio.gather(*block)", 60, "collect")
    block = Block(size="8", request="f(x)", every="for x in a")
    turn = InTurn(calls=(call,), loop=call, last=60, call_text="gather", block=block)
    task = (Frame("<task>", mark, 0, ""),) if mark else ()
    assert turn.shows(seen((*task, call), 1.0)) == shown
    assert turn.shows(seen(task, 1.0)) == (False, False)


def test_an_object_that_keeps_its_connection():
    (one,) = main_of("logs_in_for_each_measurement").reopened
    call = own("await self.connect()", 49, "intensity")
    first, *rest = main_of("logs_in_for_each_measurement").stacks
    frames = in_task(*first.frames[1:3], call)
    stacks = (msgspec.structs.replace(first, frames=frames), *rest)
    again = msgspec.structs.replace(one, calls=(call,))
    given = changed("logs_in_for_each_measurement", reopened=(again,), stacks=stacks)
    action = found(connection_reopened, given).action
    assert "remove `await self.connect()` at train.py:49: the object keeps" in action


@pytest.mark.parametrize(("is_only", "severity"), [(True, Severity.REMARK), (False, Severity.HINT)])
def test_several_coroutines_that_wait_together_are_only_a_hint(is_only, severity):
    line = own("await reader.readline()", 12)
    waits = seen(in_task(READ, line, is_only=is_only), 60.0, State.NETWORK)
    (finding,) = judged(known_activity, program(waits, seen((own("f(x)", 20),), 40.0)))
    assert finding.severity is severity
    assert "at train.py:12" in finding.sentence


def test_a_coroutine_that_sleeps():
    frames = in_task(SLEEP, own("await asyncio.sleep(1)", 12))
    assert activity_of(seen(frames, 1.0, State.SLEEPING)).name == "sleeping"


@pytest.mark.parametrize(
    ("is_only", "name"), [(True, "coroutines_connect"), (False, "asyncio_waits")]
)
def test_only_one_connection_at_a_time_is_an_overhead(is_only, name):
    opens = of_python("asyncio/streams.py", "open_connection")
    frames = in_task(opens, own("await asyncio.open_connection(h, p)", 12), is_only=is_only)
    assert activity_of(seen(frames, 1.0, State.NETWORK)).name == name


def test_an_asyncio_server_serves_the_process_that_started_it():
    serves = of_python("asyncio/base_events.py", "Server.serve_forever")
    handler = (own("await asyncio.sleep(0.1)", 20, "reply"), Frame("<task>", "only", 0, ""))
    frames = (SLEEP, *handler, serves, own("await server.serve_forever()", 30, "serve"))
    server = process(seen(frames, 60.0, State.SLEEPING), seen((own("f()", 9),), 2.0), pid=2)
    client = process(seen(in_task(READ, own("await ask()", 40)), 60.0, State.PROCESS), pid=1)
    server = msgspec.structs.replace(server, parent_pid=1)
    assert main_process([server, client]).pid == 1
