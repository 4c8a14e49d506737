"""Connections that a loop opens again, and requests that it awaits in turn, from the source."""

from __future__ import annotations

import textwrap

import pytest

from teho.model.stack import Frame
from teho.source.connections import find_reopened
from teho.source.in_turn import find_in_turn
from teho.source.parsed import parsed
from teho.source.program import Program
from teho.source.purity import Purity

HEAD = """
import asyncio, ftplib, socket, time
import aiohttp, asyncpg, paramiko, psycopg2, serial
from asyncio import open_connection
"""
HOST = "/home/ada/scan.py"
AIOHTTP = Frame("/lib/python3.11/site-packages/aiohttp/client.py", "ClientSession._request", 0, "")


def stack_of(source, *texts):
    """Return the stack of a program, innermost first, and the program.

    Args:
        source: the program, without its imports.
        texts: the active expression of each function, outermost first; `<task>` is a mark.
    """
    text = HEAD + textwrap.dedent(source)
    lines = text.split("\n")
    file = parsed(text.encode())
    frames = []
    for one in texts:
        if one == "<task>":
            frames.append(Frame("<task>", "only", 0, ""))
            continue
        if one == "aiohttp":
            frames.append(AIOHTTP)
            continue
        (line,) = [number for number, each in enumerate(lines, 1) if one in each]
        name = file.function_at(line).name or "<module>"
        frames.append(Frame(HOST, name, line, one))
    return frames[::-1], Purity(Program({HOST: file}.get))


def reopened(source, *texts):
    """Return the call that opens a connection again, and the text of the loop; None if none."""
    found = find_reopened(*stack_of(source, *texts))
    return (found.call.text, found.loop.text) if found else None


def in_turn(source, *texts):
    found = find_in_turn(*stack_of(source, *texts))
    return (found.call_text, found.loop.text) if found else None


LOGIN = """
async def connect(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"LOGIN\\n")
    if await reader.readline() != b"OK\\n":
        raise RuntimeError("refused")
    return reader, writer

async def measure(port, energy):
    reader, writer = await connect(port)
    writer.write(f"MEASURE {energy}\\n".encode())
    value = float(await reader.readexactly(8))
    writer.close()
    return value

async def run(port, energies):
    found = []
    for energy in energies:
        found.append(await measure(port, energy))
    return found
"""


def test_a_log_in_for_each_measurement():
    call = "await connect(port)", "for energy in energies"
    below = "<task>", "await measure(port, energy)", "await connect(port)"
    assert reopened(LOGIN, *below, 'await asyncio.open_connection("127.0.0.1", port)') == call
    assert reopened(LOGIN, *below, "await reader.readline()") == call


def test_the_measurement_itself_needs_no_new_connection():
    assert reopened(LOGIN, "<task>", "await measure(port, energy)",
                    "await reader.readexactly(8)") is None  # fmt: skip


def test_one_connection_before_the_loop():
    source = """
    async def run(port, energies):
        reader, writer = await open_connection("127.0.0.1", port)
        for energy in energies:
            writer.write(f"{energy}\\n".encode())
            print(await reader.readline())
    """
    assert reopened(source, "<task>", 'await open_connection("127.0.0.1", port)') is None


def test_a_connection_to_each_of_several_servers():
    source = """
    async def ask(host):
        reader, writer = await asyncio.open_connection(host, 7000)
        return await reader.readline()
    async def run(hosts):
        return [await ask(host) for host in hosts]
    """
    stack = "<task>", "await ask(host)", "await asyncio.open_connection(host, 7000)"
    assert reopened(source, *stack) is None


def test_a_new_host_from_a_queue():
    source = """
    async def worker(queue):
        while True:
            host = await queue.get()
            reader, writer = await asyncio.open_connection(host, 7000)
            print(await reader.readline())
    """
    assert reopened(source, "<task>", "await asyncio.open_connection(host, 7000)") is None


def test_an_object_of_the_program_keeps_its_connection():
    source = """
    class Stage:
        def __init__(self, port):
            self.port = port
        async def connect(self):
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            await self.reader.readline()
        async def move(self, x):
            await self.connect()
            self.writer.write(b"MOVE")
            return await self.reader.readline()
    async def run():
        stage = Stage(7000)
        for x in range(100):
            await stage.move(x)
    """
    stack = "<task>", "await stage.move(x)", "await self.connect()"
    inner = 'await asyncio.open_connection("127.0.0.1", self.port)'
    assert reopened(source, *stack, inner) == ("await self.connect()", "for x in range(100)")


def test_the_program_connects_only_again_after_a_failure():
    source = """
    async def connect(port):
        while True:
            try:
                return await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(1)
    async def other(port):
        for attempt in range(10):
            try:
                pair = await open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(2)
            else:
                break
        return pair
    """
    first, second = (
        'await asyncio.open_connection("127.0.0.1", port)',
        'await open_connection("127.0.0.1", port)',
    )
    assert reopened(source, "<task>", first) is None
    assert reopened(source, "<task>", second) is None


def test_the_server_ends_the_connection_after_each_answer():
    source = """
    async def fetch(port, page):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"%d" % page)
        return await reader.read()
    async def run(port):
        for page in range(100):
            await fetch(port, page)
    """
    stack = "<task>", "await fetch(port, page)"
    inner = 'await asyncio.open_connection("127.0.0.1", port)'
    assert reopened(source, *stack, inner) is None
    closed = source.replace("reader.read()", "reader.readline()").replace(
        'b"%d" % page', 'b"GET /%d HTTP/1.0" % page'
    )
    assert reopened(closed, *stack, inner) is None
    kept = source.replace("reader.read()", "reader.readline()")
    assert reopened(kept, *stack, inner) == (inner, "for page in range(100)")


@pytest.mark.parametrize(
    ("opens", "is_reopened"),
    [
        ("psycopg2.connect(DSN)", True),
        ("psycopg2.connect(host=HOST, user=USER, connect_timeout=3)", True),
        ("serial.Serial('/dev/ttyUSB0', 9600)", True),
        ("ftplib.FTP(HOST)", True),
        ("socket.create_connection((HOST, 22), timeout=5)", True),
        ("psycopg2.connect(dsn_of(row))", False),
        ("psycopg2.connect(row.dsn)", False),
        ("socket.create_connection(row)", False),
    ],
)
def test_a_connection_without_coroutines(opens, is_reopened):
    source = f"""
    HOST, USER, DSN = "db", "ada", "dbname=birds"
    def look_up(row):
        db = {opens}
        value = db.cursor().fetchone()
        db.close()
        return value
    for item in load():
        print(look_up(item))
    """
    found = reopened(source, "look_up(item)", opens)
    assert (found is not None) is is_reopened


def test_a_client_object_that_connects():
    source = """
    def run(commands):
        for command in commands:
            client = paramiko.SSHClient()
            client.connect("cluster", username="ada")
            client.exec_command(command)
    """
    call = 'client.connect("cluster", username="ada")'
    assert reopened(source, call) == (call, "for command in commands")
    other = source.replace('"cluster"', "command.host")
    assert reopened(other, call.replace('"cluster"', "command.host")) is None


def test_the_time_of_connections_is_measured():
    source = """
    async def run(port):
        for _ in range(100):
            begin = time.perf_counter()
            await open_connection("127.0.0.1", port)
            print(time.perf_counter() - begin)
    """
    assert reopened(source, "<task>", 'await open_connection("127.0.0.1", port)') is None


# ---- requests in turn ----

FETCH = """
async def fetch(port, scan):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"%d" % scan)
    return await reader.read()
async def run(port):
    for scan in range(360):
        name = f"scan{{scan}}"
        frame = await {call}
        print(frame.sum())
        {more}
"""
READ = "await reader.read()"


@pytest.mark.parametrize(
    ("call", "more", "is_in_turn"),
    [
        ("fetch(port, scan)", "", True),
        ("fetch(port, 2 * scan + 1)", "", True),
        ("fetch(port, len(name))", "", True),
        ("fetch(port, frame[0])", "", False),  # needs the last answer
        ("fetch(port, step)", "step = frame.max()", False),
        ("fetch(port, scan)", "if frame.max() < 3: break", False),
        ("fetch(port, scan)", "await asyncio.sleep(1)", False),
        ("fetch(port, scan)", "time.sleep(1)", False),
        ("fetch(port, next(order))", "", False),
    ],
)
def test_requests_of_a_loop(call, more, is_in_turn):
    source = FETCH.format(call=call, more=more)
    found = in_turn(source, "<task>", f"await {call}", READ)
    assert found == ((call, "for scan in range(360)") if is_in_turn else None)


def test_requests_over_one_connection_wait_for_each_other():
    source = """
    async def ask(reader, writer, scan):
        writer.write(b"%d" % scan)
        return await reader.readline()
    async def run(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for scan in range(360):
            print(await ask(reader, writer, scan))
    """
    stack = "<task>", "await ask(reader, writer, scan)", "await reader.readline()"
    assert in_turn(source, *stack) is None


def test_a_client_with_several_connections():
    source = """
    async def download(session, url):
        async with session.get(url) as answer:
            return await answer.json()
    async def run(urls):
        async with aiohttp.ClientSession() as session:
            for url in urls:
                page = await download(session, url)
                print(sum(page))
    """
    stack = "<task>", "await download(session, url)", "await answer.json()", "aiohttp"
    assert in_turn(source, *stack) == ("download(session, url)", "for url in urls")


LOCKED = """
class Book:
    def __init__(self): self.lock = {made}
async def fetch(port, page):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    return await reader.read()
async def ask(reader, page):
    return await reader.readline()
async def work(port, todo, book, reader):
    while todo:
        async with book.lock:
            page = await {call}
            book.add(page)
"""


@pytest.mark.parametrize(
    ("made", "call", "inner", "is_held"),
    [
        ("asyncio.Lock()", "fetch(port, todo.pop())", READ, True),
        ("asyncio.Semaphore(1)", "fetch(port, todo.pop())", READ, True),
        ("asyncio.Semaphore(4)", "fetch(port, todo.pop())", READ, False),
        # The lock is for the one connection that all tasks use.
        ("asyncio.Lock()", "ask(reader, todo.pop())", "await reader.readline()", False),
    ],
)
def test_a_lock_is_taken_during_a_request(made, call, inner, is_held):
    stack = stack_of(LOCKED.format(made=made, call=call), "<task>", f"await {call}", inner)
    found = find_in_turn(*stack)
    assert (found is not None) is is_held
    if found:
        assert (found.call_text, found.lock.text) == (call, "async with book.lock")


OWN = """
class Collector:
    def __init__(self):
        self.lock = asyncio.Lock()
        self.todo = []
    async def work(self, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while self.todo:
            async with self.lock:
                page = self.todo.pop()
                writer.write(page)
                text = await reader.readline()
            self.add(text)
"""
ASKED = "text = await reader.readline()"


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ("self.add", "self.add", (15, 16)),
        # Lines after the request go into a second block.
        ("            self.add", "                self.add", (15, 16)),
        # The lock may protect the one connection of all tasks.
        ("reader, writer = await asyncio.open_connection", "reader, writer = await shared", None),
        ("reader, writer = await", "self.reader, self.writer = await", None),
        # It may protect the decision, or what the request changes.
        (ASKED, "if page: text = await reader.readline()", None),
        (ASKED, "self.text = await reader.readline()", None),
        (ASKED, "self.texts[page] = await reader.readline()", None),
        # Each task has its own lock, or several tasks may hold it.
        ("            async with self.lock",
         "            gate = asyncio.Lock()\n            async with gate", None),
        ("asyncio.Lock()", "asyncio.Semaphore(6)", None),
    ],
)  # fmt: skip
def test_a_request_on_the_own_connection_of_a_task(old, new, moved):
    assert old in OWN
    source = OWN.replace(old, new)
    found = find_in_turn(*stack_of(source, "<task>", "await reader.readline()"))
    assert (found.moved if found else None) == moved


@pytest.mark.parametrize(
    ("line", "gathered"),
    [
        ("frames.append(await fetch(port, scan))",
         "frames.extend(await asyncio.gather(*(fetch(port, scan) for scan in range(360))))"),
        ("await fetch(port, scan)",
         "await asyncio.gather(*(fetch(port, scan) for scan in range(360)))"),
        ("frames[scan] = await fetch(port, scan)", ""),
        ("frames.append((scan, await fetch(port, scan)))", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("many", "is_many"), [("range(360)", True), ("range(2)", False),
                                               ("scans", False)])  # fmt: skip
def test_a_loop_that_only_collects_answers(line, gathered, many, is_many):
    source = f"""
    async def fetch(port, scan):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        return await reader.read()
    async def run(port, scans):
        frames = []
        for scan in {many}:
            {line}
    """
    one = find_in_turn(*stack_of(source, "<task>", "await fetch(port, scan)", READ))
    assert one.gathered == gathered.replace("range(360)", many)
    assert one.is_many is is_many


OPENED = """
async def connect(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.readline()
    return reader, writer
async def same(port):
    return SHARED
async def ask(pair, page):
    return await pair[0].read()
async def work(port, pages, other):
    gate = asyncio.Lock()
    {before}
    for page in pages:
        async with gate:
            pair = await {opens}
            body = await ask({pair}, page)
        table.add(body)
"""


@pytest.mark.parametrize(
    ("opens", "pair", "before", "is_held"),
    [
        ("connect(port)", "pair", "", True),
        # One connection for all pages: the requests cannot wait at the same time.
        ("same(port)", "pair", "", False),
        ("connect(port)", "other", "", False),
        ("same(port)", "other", "other = await connect(port)", False),
    ],
)
def test_a_request_on_a_connection_that_the_lock_holder_opened(opens, pair, before, is_held):
    source = OPENED.format(opens=opens, pair=pair, before=before or "pass")
    found = find_in_turn(
        *stack_of(source, "<task>", f"await ask({pair}, page)", "await pair[0].read()")
    )
    assert (found is not None and found.lock is not None) is is_held


def test_tasks_that_were_begun_before_are_not_in_turn():
    source = """
    async def fetch(port, scan):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        return await reader.read()
    async def run(port):
        pending = asyncio.create_task(fetch(port, 0))
        for scan in range(360):
            frame = await pending
            pending = asyncio.create_task(fetch(port, scan + 1))
    """
    assert in_turn(source, "<task>", "await pending", READ) is None
