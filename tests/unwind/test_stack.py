"""Stacks read from outside are those that the programs print themselves."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from teho.unwind.layout import layout_of
from teho.unwind.memory import Memory
from teho.unwind.stack import Unwinder
from unwind.programs import (
    PRELUDE,
    STOP,
    Program,
    await_stack,
    closing,
    each_python,
    sample,
    wait_for,
)

KNOWN = {
    "nested functions": f"""
        def outer():
            def inner():
                def innermost(): {STOP}
                return innermost()
            return (lambda: inner())()
        outer()
    """,
    "a generator": f"""
        def numbers(count):
            for number in range(count):
                yield number
                if number == 3:
                    {STOP}
        def through(): yield from numbers(10)
        def use(): return [one for one in (2 * one for one in through())]
        use()
    """,
    "classes": f"""
        class Meta(type):
            def __new__(meta, name, bases, space):
                Base().one
                return type.__new__(meta, name, bases, space)
        class Base:
            @property
            def one(self): return self.two()
            @classmethod
            def two(cls): return cls.three()
            @staticmethod
            def three():
                with Base(): pass
            def __enter__(self): {STOP}
            def __exit__(self, *_): pass
        class Some:
            class Other(metaclass=Meta): pass
    """,
    "a recursion": f"""
        def down(n):
            if n:
                down(
                    n - 1
                )
            else:
                {STOP}
        down(300)
    """,
    "other letters": f"""
        class Größe:
            def naïve(self): return λόγος(self)
        def λόγος(it): return 𐌰𐌱(it)
        def 𐌰𐌱(it): {STOP}
        Größe().naïve()
    """,
    "functions called by C": f"""
        import functools
        def by(one):
            if one == 2: {STOP}
            return -one
        def add(one, other): return len(sorted([one, other], key=by))
        def all_of(): return functools.reduce(add, [5, 2, 1])
        class Gone:
            def __del__(self): list(map(lambda one: all_of(), [1]))
        def drop():
            gone = Gone()
            del gone
        drop()
    """,
    "coroutines": f"""
        import asyncio
        class Later:
            def __await__(self):
                yield from asyncio.sleep(0).__await__()
                {STOP}
        async def several():
            for one in range(3): yield one
            await Later()
        async def use():
            async for one in several(): pass
        async def main(): await asyncio.gather(use())
        asyncio.run(main())
    """,
    "exceptions": f"""
        def fail(): raise ValueError
        def handle():
            try:
                try: fail()
                finally: last()
            except ValueError:
                pass
        def last():
            try: 1 / 0
            except ZeroDivisionError as error: {STOP}
        handle()
    """,
    "code without a file": """
        space = dict(globals())
        exec("def made():\\n\\n  tell(); time.sleep(600)\\n\\nclass A: eval('made()')", space)
    """,
    "a signal handler": f"""
        import signal
        def handle(number, frame): {STOP}
        def work():
            while True: os.kill(os.getpid(), signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, handle)
        work()
    """,
    "a trace function": f"""
        def trace(frame, event, argument):
            if frame.f_code.co_name == "work":
                sys.settrace(None)
                {STOP}
        def work(): return 1
        sys.settrace(trace)
        work()
    """,
    "a profile function": f"""
        def profile(frame, event, argument):
            if event == "c_call" and argument is len:
                sys.setprofile(None)
                {STOP}
        def work(): return len([])
        sys.setprofile(profile)
        work()
    """,
    "very many variables": f"""
        names = ["a%d" % number for number in range(6000)]
        body = "def wide(go):\\n  " + " = ".join(names) + " = 0\\n  go()\\n  return a0"
        exec(compile(body, "wide.py", "exec"))
        def stop(): {STOP}
        def down(n): wide(stop if n == 0 else lambda: down(n - 1))
        down(3)
    """,
    "functions that are called often": f"""
        class Some:
            def __init__(self, stop):
                if stop: self.value
            @property
            def value(self): return self[True]
            def __getitem__(self, stop):
                for one in generate(stop): pass
            def __getattribute__(self, name): return object.__getattribute__(self, name)
        class Other(Some):
            def __init__(self, stop): super().__init__(stop)
        def generate(stop):
            yield 1
            yield from below(stop)
        def below(stop):
            yield 2
            if stop: last(1, *(2, 3), four=4)
        def last(*args, **kwargs): {STOP}
        def make(stop): return Some(stop), Other(stop)
        def warm():
            for _ in range(3000):
                one = make(False)[0]
                one[False]
                for two in generate(False): pass
        warm()
        make(True)
    """,
    "an object that is being made": f"""
        class Some:
            def __init__(self, stop):
                if stop: {STOP}
        def make(stop): return Some(stop)
        for _ in range(3000): make(False)
        make(True)
    """,
    "other threads": f"""
        import threading
        def beside(): threading.Event().wait()
        def short(): pass
        for function in (short, beside, beside, short, beside):
            thread = threading.Thread(target=function, daemon=True)
            thread.start()
            if function is short: thread.join()
        def work(): {STOP}
        work()
    """,
    "another interpreter": f"""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        def work(): {STOP}
        ids = [interpreters.create(), interpreters.create()]
        work()
    """,
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
@each_python
def test_the_stack_is_the_one_that_the_program_prints(
    program: Callable[..., Program], python: str, version: tuple[int, int], name: str
) -> None:
    running = program(textwrap.dedent(KNOWN[name]), python=python)
    wanted = running.stack()
    assert wanted
    with closing(Unwinder(running.pid, version)) as unwinder:
        await_stack(unwinder, wanted)
        # Nothing of it changes while the program sleeps.
        stacks = {unwinder.sample() for _ in range(20)}
        assert len(stacks) == 1
        innermost = unwinder.innermost()
        assert innermost == unwinder.innermost()
        (stack,) = stacks
        assert unwinder.place_in(innermost) == stack[0]


@each_python
def test_only_the_innermost_functions_of_a_very_deep_stack_are_read(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    code = f"""
    def down(n):
        if n: down(n - 1)
        {STOP}
    sys.setrecursionlimit(5000)
    down(2000)
    """
    running = program(textwrap.dedent(code), python=python)
    wanted = running.stack()
    assert len(wanted) > 2000
    with closing(Unwinder(running.pid, version)) as unwinder:
        await_stack(unwinder, wanted[:512])


@each_python
def test_a_module_that_is_being_imported_is_on_the_stack(
    program: Callable[..., Program], tmp_path: Path, python: str, version: tuple[int, int]
) -> None:
    folder = tmp_path / "söme folder 𐌰"
    folder.mkdir()
    (folder / "imported.py").write_text("from __main__ import go\n\ngo()\n")
    code = f"def go(): {STOP}\ndef load(): import imported\nload()\n"
    running = program(code, python=python, folder=folder, name="prögram λ𐌰.py")
    wanted = running.stack()
    assert [name for _, name, _ in wanted[:2]] == ["go", "<module>"]
    with closing(Unwinder(running.pid, version)) as unwinder:
        await_stack(unwinder, wanted)


@each_python
def test_columns_are_those_of_the_call(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    source = (
        'def stop(): tell("ä€𐌰"); time.sleep(600)\n'
        'def outer(): return [0, "ä€𐌰"], stop() , stop\n'
        "outer()\n"
    )
    running = program(source, python=python)
    wanted = running.stack()
    lines = (PRELUDE + source).encode().splitlines()
    with closing(Unwinder(running.pid, version)) as unwinder:
        await_stack(unwinder, wanted)
        found = [code.place(offset) for code, offset in unwinder.sample()]
    texts = [lines[line - 1][begin:end] for line, begin, end in found if begin is not None]
    assert texts == ([b"time.sleep(600)", b"stop()", b"outer()"] if version >= (3, 11) else [])


@pytest.mark.parametrize("looks", ["looked at between", "not looked at between"])
@each_python
def test_functions_that_come_and_go_are_distinguished(
    program: Callable[..., Program], python: str, version: tuple[int, int], looks: str
) -> None:
    """A function gets the memory of one that is gone, for all of its parts."""
    code = """
    def stop(): tell(); sys.stdin.readline()
    def make(number):
        space = {"stop": stop}
        name = "made%03d" % number
        exec(compile("def %s():\\n  a = %d\\n  stop()\\n" % (name, number), name, "exec"), space)
        return space.pop(name)
    def parts(code):
        return [id(code), id(code.co_name), id(code.co_filename)]
    first = parts(make(0).__code__)
    for number in range(20):
        # Until a Python gives out the same memory again; most before 3.12 do.
        for _ in range(50):
            function = make(number)
            if parts(function.__code__) == first: break
        function()
        del function
        stop()
    """
    running = program(textwrap.dedent(code), python=python)
    wanted = running.stack()
    with closing(Unwinder(running.pid, version)) as unwinder:
        for number in range(20):
            assert wanted[1] == (f"made{number:03}", f"made{number:03}", 3)
            await_stack(unwinder, wanted)
            running.send()
            wanted = running.stack()
            assert len(wanted) == 2
            if looks == "looked at between":
                await_stack(unwinder, wanted)
            if number < 19:
                running.send()
                wanted = running.stack()


@each_python
def test_the_stack_grows_and_shrinks(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    code = """
    def down(n):
        if n: down(n - 1)
        else: stop()
    def stop(): tell(); sys.stdin.readline()
    for line in sys.stdin:
        down(int(line))
    """
    running = program(textwrap.dedent(code), python=python)
    unwinder = None
    try:
        for depth in (0, 400, 3, 150, 1, 500, 0):
            running.send(f"{depth}\n")
            wanted = running.stack()
            assert len(wanted) == depth + 3
            unwinder = unwinder or Unwinder(running.pid, version)
            await_stack(unwinder, wanted)
            running.send()
    finally:
        if unwinder is not None:
            unwinder.close()


# ---- threads and processes ----


@each_python
def test_only_the_main_thread_is_read(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    code = """
    import threading
    def beside():
        while True: other()
    def other(): return sum(range(50))
    def work():
        while True: inner(3)
    def inner(n):
        if n: inner(n - 1)
    for number in range(4):
        threading.Thread(target=beside, daemon=True).start()
    say("ready")
    work()
    """
    running = program(textwrap.dedent(code), python=python)
    running.line()
    good = whole = wrong = 0
    with closing(Unwinder(running.pid, version)) as unwinder:

        def is_inside() -> bool:
            found = sample(unwinder)
            return not isinstance(found, str) and "work" in {name for _, name, _ in found}

        assert wait_for(is_inside, bool)
        for _ in range(500):
            found = sample(unwinder)
            if not isinstance(found, str):
                good += 1
                wrong += not {name for _, name, _ in found} <= {"<module>", "work", "inner"}
                whole += bool(found) and found[-1][1] == "<module>"
    assert good > 250
    # A stack may end early if one of its functions returns while it is read. That is rare.
    assert whole > 0.8 * good
    # Before 3.11, another thread may use the memory of a frame that just returned. That is rare.
    assert wrong <= (0.02 * good if version < (3, 11) else 0)


def test_a_thread_that_has_just_been_made_is_not_the_main_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is the first one in the list, and has the number of the main thread until it runs."""
    nothing = cast("Memory", None)  # before Python 3.13, the process does not tell its layout
    layout = layout_of((3, 11), nothing, 0)
    assert layout.thread_native_id is not None
    interpreter, new, main, number = 0x1000, 0x5000, 0x6000, os.getpid()
    pointers = {
        layout.interpreters: interpreter, interpreter + layout.interpreter_next: 0,
        interpreter + layout.threads: new,
        new + layout.thread_next: main, new + layout.thread_native_id: number,
        main + layout.thread_next: 0, main + layout.thread_native_id: number,
    }  # fmt: skip
    unwinder = Unwinder.__new__(Unwinder)
    monkeypatch.setattr(unwinder, "_memory", SimpleNamespace(pointer=pointers.get), raising=False)
    assert unwinder._main_thread(number, layout, runtime=0) == main
