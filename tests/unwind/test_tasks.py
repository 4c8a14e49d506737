"""The coroutines for which an event loop waits are those that the programs wait in."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable

import pytest

from teho.model.stack import is_library
from teho.unwind.memory import UnwindError
from teho.unwind.stack import Unwinder
from teho.unwind.tasks import Awaited, Tasks, is_in_loop
from unwind.programs import Program, closing, each_python, wait_for

PRELUDE = """\
import asyncio, json, sys
async def ready():
    # The other tasks go on until they wait.
    for _ in range(20): await asyncio.sleep(0)
    print(json.dumps("ready"), flush=True)
async def never():
    await asyncio.get_running_loop().create_future()
"""

WAITING = {
    "nested coroutines": (
        """
        async def inner(): await never()
        async def outer():
            await ready()
            await inner()  # here
        asyncio.run(outer())
        """,
        [["<module>", "outer", "inner", "never"]],
        "only",
    ),
    "a task that is awaited": (
        """
        async def work():
            await ready()
            await asyncio.sleep(600)
        async def main():
            task = asyncio.ensure_future(work())
            await task
        asyncio.run(main())
        """,
        [["<module>", "main", "work"]],
        "only",
    ),
    "a time limit": (
        """
        async def work():
            await ready()
            await never()
        async def main(): await asyncio.wait_for(work(), 600)
        asyncio.run(main())
        """,
        [["<module>", "main", "work", "never"]],
        "only",
    ),
    "gather": (
        """
        async def one(): await never()
        async def other():
            await ready()
            await asyncio.sleep(600)
        async def main(): await asyncio.gather(one(), other())
        asyncio.run(main())
        """,
        [["<module>", "main", "one", "never"], ["<module>", "main", "other"]],
        "",
    ),
    "wait": (
        """
        async def one():
            await ready()
            await never()
        async def main(): await asyncio.wait([asyncio.ensure_future(one())])
        asyncio.run(main())
        """,
        [["<module>", "main", "one", "never"]],
        "only",
    ),
    "as_completed": (
        """
        async def one():
            await ready()
            await never()
        async def main():
            for done in asyncio.as_completed([one(), one()]): await done
        asyncio.run(main())
        """,
        [["<module>", "main", "one", "never"]],
        "one of several",
    ),
    "a lock": (
        """
        async def one(lock):
            async with lock:
                await never()
        async def main():
            lock = asyncio.Lock()
            tasks = [asyncio.ensure_future(one(lock)) for _ in range(30)]
            await ready()
            await asyncio.gather(*tasks)
        asyncio.run(main())
        """,
        [["<module>", "main", "one", "never"]],
        "only, others wait for a lock",
    ),
    "a queue": (
        """
        async def take(queue):
            while True: await queue.get()
        async def main():
            queue = asyncio.Queue()
            tasks = [asyncio.ensure_future(take(queue)) for _ in range(3)]
            await queue.put(1)
            await ready()
            await asyncio.gather(*tasks)
        asyncio.run(main())
        """,
        [["<module>", "main", "take"]],
        "one of several",
    ),
    "the program waits while other tasks wait too": (
        """
        async def heartbeat():
            while True: await asyncio.sleep(600)
        async def main():
            task = asyncio.ensure_future(heartbeat())
            await ready()
            await never()
        asyncio.run(main())
        """,
        [["<module>", "main", "never"]],
        "only",
    ),
    "asynchronous generators and context managers": (
        """
        class Manager:
            async def __aenter__(self): return self
            async def __aexit__(self, *_): await never()
        async def numbers():
            yield 1
            async with Manager(): pass
            yield 2
        async def main():
            await ready()
            async for _ in numbers(): pass
        asyncio.run(main())
        """,
        [["<module>", "main", "numbers", "Manager.__aexit__", "never"]],
        "only",
    ),
    "an object with __await__": (
        """
        class Later:
            def __await__(self): return (yield from never().__await__())
        async def main():
            await ready()
            await Later()
        asyncio.run(main())
        """,
        [["<module>", "main", "Later.__await__", "never"]],
        "only",
    ),
    "streams": (
        """
        async def serve(reader, writer): await reader.readline()
        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await ready()
            await reader.readexactly(1)
        asyncio.run(main())
        """,
        [["<module>", "main"]],
        "one of several",
    ),
    "a server": (
        """
        async def serve(reader, writer):
            await ready()
            await reader.readline()
        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            global kept
            kept = await asyncio.open_connection("127.0.0.1", port)
            async with server: await server.serve_forever()
        asyncio.run(main())
        """,
        [["<module>", "main", "serve"]],
        "only",
    ),
    "a thread": (
        """
        import time
        async def main():
            await ready()
            await asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)
        asyncio.run(main())
        """,
        [["<module>", "main"]],
        "only",
    ),
    "a loop that runs until it is stopped": (
        """
        async def work():
            await ready()
            await never()
        loop = asyncio.new_event_loop()
        task = loop.create_task(work())
        loop.run_forever()
        """,
        [["<module>", "work", "never"]],
        "only",
    ),
    "tasks of another loop": (
        """
        import threading
        async def other():
            while True: await asyncio.sleep(0.5)
        thread = threading.Thread(target=asyncio.run, args=(other(),), daemon=True)
        thread.start()
        async def one(): await never()
        async def main():
            tasks = [asyncio.ensure_future(one())]
            await ready()
            await asyncio.gather(*tasks)
        asyncio.run(main())
        """,
        [["<module>", "main", "one", "never"]],
        "only",
    ),
    "many tasks": (
        """
        async def one(gate):
            async with gate: await never()
        async def main():
            gate = asyncio.Semaphore(20)
            tasks = [asyncio.ensure_future(one(gate)) for _ in range(200)]
            await ready()
            await asyncio.gather(*tasks)
        asyncio.run(main())
        """,
        [["<module>", "main", "one", "never"]],
        "one of several",
    ),
}  # fmt: skip


def own(awaited: Awaited) -> list[str]:
    """Return the functions of the program on a stack, the outermost first."""
    return [code.function for code, _ in reversed(awaited.key) if not is_library(code.file)]


def marks(awaited: Awaited) -> list[str]:
    return [code.function for code, _ in awaited.key if code.file == "<task>"]


def awaited_in(unwinder: Unwinder, tasks: Tasks) -> Awaited | None:
    with contextlib.suppress(UnwindError):
        key = unwinder.sample()
        return tasks.awaited(key) if is_in_loop(key) else None
    return None


@each_python
@pytest.mark.parametrize("name", WAITING)
def test_the_coroutines_are_those_of_the_program(
    program: Callable[..., Program], python: str, version: tuple[int, int], name: str
) -> None:
    code, wanted, mark = WAITING[name]
    if version < (3, 11):  # no qualified names
        wanted = [[one.rpartition(".")[2] for one in names] for names in wanted]
    running = program(textwrap.dedent(code), python=python, prelude=PRELUDE)
    assert running.line() == "ready"
    with closing(Unwinder(running.pid, version)) as unwinder:
        tasks = Tasks(unwinder, version)
        for names in wanted:

            def is_wanted(one: Awaited | None, names: list[str] = names) -> bool:
                return one is not None and own(one) == names and (marks(one) == [mark] or not mark)

            found = wait_for(lambda: awaited_in(unwinder, tasks), is_wanted)
            assert found is not None
            assert own(found) == names
            assert not mark or marks(found) == [mark]
            assert found.key[0][0].file.endswith("/selectors.py")
