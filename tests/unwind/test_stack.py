"""Stacks read from outside are those that the programs print themselves."""

from __future__ import annotations

import ast
import itertools
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from teho.unwind.memory import Memory, UnwindError
from teho.unwind.stack import Key, Unwinder, innermost_pid
from unwind.programs import EACH, LIMIT_S, NAMES, PRELUDE, Program, closing, wait_for

Places = list[tuple[str, str, int]]

each_python = pytest.mark.parametrize(("python", "version"), EACH, ids=NAMES)
THIS = (sys.version_info[0], sys.version_info[1])

# Each program prints its stack, and goes to sleep in the same line.
STOP = "tell(); time.sleep(600)"
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


def places_of(stack: Key) -> Places:
    return [(code.file, code.function, code.place(offset)[0]) for code, offset in stack]


def look(unwinder: Unwinder) -> Places | str:
    try:
        return places_of(unwinder.look())
    except UnwindError as error:
        return str(error)


def await_stack(unwinder: Unwinder, wanted: Places) -> None:
    """Look until the program is where it said that it was about to be."""
    assert wait_for(lambda: look(unwinder), lambda found: found == wanted) == wanted


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
        stacks = {unwinder.look() for _ in range(20)}
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
        found = [code.place(offset) for code, offset in unwinder.look()]
    texts = [lines[line - 1][begin:end] for line, begin, end in found if begin is not None]
    assert texts == ([b"time.sleep(600)", b"stop()", b"outer()"] if version >= (3, 11) else [])


@pytest.mark.parametrize("looks", ["looked at between", "not looked at between"])
@each_python
def test_functions_that_come_and_go_are_told_from_each_other(
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
    functions: set[str] = set()
    good = whole = 0
    with closing(Unwinder(running.pid, version)) as unwinder:

        def is_inside() -> bool:
            found = look(unwinder)
            return not isinstance(found, str) and "work" in {name for _, name, _ in found}

        assert wait_for(is_inside, bool)
        for _ in range(500):
            found = look(unwinder)
            if not isinstance(found, str):
                good += 1
                functions |= {name for _, name, _ in found}
                whole += bool(found) and found[-1][1] == "<module>"
    assert good > 250
    # A stack may end early if one of its functions returns while it is read. That is rare.
    assert whole > 0.8 * good
    assert functions <= {"<module>", "work", "inner"}


@pytest.mark.parametrize("thread", ["main", "other"])
@each_python
def test_a_forked_child_is_read_by_itself(
    program: Callable[..., Program], python: str, version: tuple[int, int], thread: str
) -> None:
    code = f"""
    import threading
    def stays(): {STOP}
    def goes_on(): tell(os.getpid()); time.sleep(600)
    def fork():
        if os.fork(): return
        goes_on()
    if {thread == "main"}: fork()
    else:
        threading.Thread(target=lambda: time.sleep(600), daemon=True).start()
        forking = threading.Thread(target=fork)
        forking.start()
        forking.join()
    time.sleep(0.3)
    stays()
    """
    running = program(textwrap.dedent(code), python=python)
    printed = [running.line(), running.line()]
    printed.sort(key=len)
    (parent,), (child, pid) = printed
    assert (parent[0][1], child[0][1]) == ("stays", "goes_on")
    for number, wanted in ((running.pid, parent), (pid, child)):
        with closing(Unwinder(number, version)) as unwinder:
            await_stack(unwinder, [tuple(one) for one in wanted])


def is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@each_python
def test_a_process_that_has_ended_is_refused(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    running = program(STOP, python=python)
    running.line()
    with closing(Unwinder(running.pid, version)) as unwinder:
        unwinder.look()
        running.process.kill()
        # Its parent has not asked for its exit status yet; then it has.
        assert wait_for(lambda: is_zombie(running.pid), bool)
        for _ in range(2):
            for function in (unwinder.look, unwinder.innermost):
                with pytest.raises(UnwindError):
                    function()
            with pytest.raises(UnwindError):
                Unwinder(running.pid, version)
            running.process.wait()


@pytest.mark.parametrize("other", ["this Python", "sleep"])
@each_python
def test_a_process_that_became_another_program_is_refused(
    program: Callable[..., Program], python: str, version: tuple[int, int], other: str
) -> None:
    code = f"""
    def before(): tell(); sys.stdin.readline()
    def after(): {STOP}
    if len(sys.argv) > 1: after()
    before()
    if {other == "sleep"}:
        os.execv("/bin/sleep", ["sleep", "600"])
    os.execv(sys.executable, [sys.executable, __file__, "again"])
    """
    running = program(textwrap.dedent(code), python=python)
    wanted = running.stack()
    with closing(Unwinder(running.pid, version)) as unwinder:
        await_stack(unwinder, wanted)
        running.send()
        if other == "sleep":
            name = Path(f"/proc/{running.pid}/comm")
            assert wait_for(name.read_text, lambda text: text == "sleep\n") == "sleep\n"
            with pytest.raises(UnwindError, match="_PyRuntime"):
                Unwinder(running.pid, version)
        else:
            wanted = running.stack()
            assert wanted[0][1] == "after"
            with closing(Unwinder(running.pid, version)) as again:
                await_stack(again, wanted)
        with pytest.raises(UnwindError):
            unwinder.look()


@each_python
def test_a_process_that_does_not_exist_is_refused(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    running = program("", python=python)
    running.process.wait()
    with pytest.raises(UnwindError, match="cannot be read: No such file"):
        Unwinder(running.pid, version)


@each_python
def test_a_python_of_an_unknown_version_is_refused(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    running = program(STOP, python=python)
    running.line()
    with pytest.raises(UnwindError, match=r"3\.7"):
        Unwinder(running.pid, (3, 7))


@each_python
def test_a_python_that_is_of_another_version_raises_no_other_error(
    program: Callable[..., Program], python: str, version: tuple[int, int]
) -> None:
    """The version comes from the program: it may be wrong."""
    running = program(STOP, python=python)
    running.line()
    for minor in range(8, 15):
        if minor == version[1]:
            continue
        try:
            unwinder = Unwinder(running.pid, (3, minor))
        except UnwindError:
            continue
        with closing(unwinder):
            look(unwinder)


# Reads another process as a user without rights.
READ = """
import os, sys
from teho.unwind.memory import Memory, UnwindError
from teho.unwind.stack import Unwinder
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
pid = int(sys.argv[1])
try:
    Memory(pid).close()
    print("allowed")
except UnwindError as error:
    print(error)
try:
    Unwinder(pid, sys.version_info[:2])
except UnwindError as error:
    print(error)
"""


@pytest.mark.parametrize("readable", [False, True], ids=["unreadable", "readable"])
def test_a_process_that_may_not_be_read_is_refused(
    program: Callable[..., Program], readable: bool
) -> None:
    code = f"""
    import ctypes
    try:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
    except OSError:
        say("this machine does not let root become another user")
    else:
        PR_SET_DUMPABLE = 4
        failed = ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, {int(readable)}, 0, 0, 0)
        say("prctl failed" if failed else "")
    time.sleep(600)
    """
    running = program(textwrap.dedent(code))
    if reason := running.line()[0]:
        pytest.skip(reason)
    if os.geteuid() != 0:
        if readable:
            pytest.skip("the other tests read processes of this user")
        with pytest.raises(UnwindError, match="its memory cannot be read: Permission denied"):
            Unwinder(running.pid, THIS)
        return
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if readable and scope.exists() and scope.read_text().strip() != "0":
        pytest.skip("this machine lets a user read only processes that the reader started")
    printed = subprocess.check_output([sys.executable, "-c", READ, str(running.pid)], text=True)
    refused = "its memory cannot be read: Permission denied"
    assert printed.splitlines()[0] == ("allowed" if readable else refused)
    assert readable or printed.splitlines()[1] == refused


# ---- a busy program ----

BUSY = """
class Tree:
    def __init__(self, depth):
        self.below = [Tree(depth - 1), Tree(depth - 1)] if depth else []
    def walk(self):
        yield self
        for one in self.below:
            yield from one.walk()
    @property
    def size(self):
        return 1 + sum(one.size for one in self.below)
    def apply(self, function):
        return function(self, *map(lambda one: one.apply(function), self.below))
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
def count(*many): return len(many)
def leaf(): pass
def leaves():
    for _ in range(200): leaf()
def make():
    def made(n): return made(n - 1) if n else None
    return made
def fail(n):
    if n == 0: raise KeyError
    try: fail(n - 1)
    finally: leaf()
def main():
    while True:
        fibonacci(9)
        even(300)
        leaves()
        tree = Tree(5)
        for one in tree.walk(): leaf()
        tree.size
        tree.apply(count)
        make()(120)
        try: fail(60)
        except KeyError: leaf()
say("ready")
main()
"""


def functions_of(source: str, *, is_qualified: bool) -> dict[str, list[range]]:
    """Return the lines of each function of a program."""
    tree = ast.parse(source)
    found: dict[str, list[range]] = {"<module>": [range(1, len(source.splitlines()) + 2)]}

    def add(node: ast.AST, outside: str) -> None:
        for one in ast.iter_child_nodes(node):
            name, inside = "", outside
            if isinstance(one, ast.FunctionDef):
                name, inside = one.name, f"{outside}{one.name}.<locals>."
            elif isinstance(one, ast.ClassDef):
                name, inside = one.name, f"{outside}{one.name}."
            elif isinstance(one, ast.Lambda):
                name, inside = "<lambda>", f"{outside}<lambda>.<locals>."
            elif isinstance(one, ast.GeneratorExp):
                name, inside = "<genexpr>", f"{outside}<genexpr>.<locals>."
            if name:
                decorators = getattr(one, "decorator_list", [])
                begin = min([one.lineno, *(each.lineno for each in decorators)])  # type: ignore[attr-defined]
                lines = range(begin, one.end_lineno + 1)  # type: ignore[attr-defined]
                found.setdefault(outside + name if is_qualified else name, []).append(lines)
            add(one, inside)

    add(tree, "")
    return found


@each_python
def test_a_program_that_calls_fast_and_deep_is_read(
    program: Callable[..., Program], tmp_path: Path, python: str, version: tuple[int, int]
) -> None:
    running = program(BUSY, python=python)
    running.line()
    known = functions_of(PRELUDE + BUSY, is_qualified=version >= (3, 11))
    good, seen, failed = 0, set(), {}
    until = time.monotonic() + 1
    wanted = {"main", "<module>", "fibonacci", "even", "odd"}
    with closing(Unwinder(running.pid, version)) as unwinder:
        for number in itertools.count():
            is_enough = number >= 2000 and time.monotonic() > until and wanted <= seen
            if is_enough or time.monotonic() > until + LIMIT_S:
                break
            try:
                stack = unwinder.look()
            except UnwindError as error:
                failed[str(error)] = failed.get(str(error), 0) + 1
                continue
            good += 1
            for file, name, line in places_of(stack):
                assert file == str(tmp_path / "program.py")
                assert name in known
                seen.add(name)
                # From 3.11 on, an instruction without a line has line 0.
                has_none = line == 0 and version >= (3, 11)
                assert has_none or any(line in lines for lines in known[name]), (name, line)
    assert good > sum(failed.values()), failed
    assert wanted <= seen


@each_python
def test_the_innermost_place_of_a_busy_program_is_one_of_its_functions(
    program: Callable[..., Program], tmp_path: Path, python: str, version: tuple[int, int]
) -> None:
    running = program(BUSY, python=python)
    running.line()
    known = functions_of(PRELUDE + BUSY, is_qualified=version >= (3, 11))
    good = 0
    with closing(Unwinder(running.pid, version)) as unwinder:
        for _ in range(2000):
            try:
                place = unwinder.place_in(unwinder.innermost())
            except UnwindError:
                continue
            if place is not None:
                good += 1
                assert place[0].file == str(tmp_path / "program.py")
                assert place[0].function in known
    # Some frames are gone before they are read.
    assert good > 100


# ---- memory ----


def test_memory_is_read_as_it_is(program: Callable[..., Program]) -> None:
    code = """
    import ctypes
    buffer = ctypes.create_string_buffer(bytes(range(256)))
    say(ctypes.addressof(buffer))
    time.sleep(600)
    """
    running = program(textwrap.dedent(code))
    (address,) = running.line()
    with closing(Memory(running.pid)) as memory:
        assert memory.read(address, 256) == bytes(range(256))
        assert memory.some(address, 16) == bytes(range(16))
        assert memory.pointer(address) == 0x0706050403020100
        for nowhere in (0, 1, 2**47 - 8, 2**63 - 8, 2**63, 2**64 - 1, -1):
            assert memory.some(nowhere, 16) == b""
            with pytest.raises(UnwindError, match="no such place"):
                memory.read(nowhere, 16)
            with pytest.raises(UnwindError, match="no such place"):
                memory.pointer(nowhere)


def test_a_process_has_its_own_number_in_its_namespace() -> None:
    status = Path("/proc/self/status").read_text()
    (numbers,) = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")]
    assert innermost_pid(os.getpid()) == int(numbers[-1])
    assert innermost_pid(2**22 + 5) == 2**22 + 5
