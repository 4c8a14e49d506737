"""Finds the function of a sample: its name, its file, and from where it was called."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from teho.unwind.atomic import follows_atomic
from teho.unwind.call_sites import called_import, may_jump_away
from teho.unwind.exponents import with_exponent
from teho.unwind.loaded_files import LoadedFiles, Span
from teho.unwind.perf_events import Sample
from teho.unwind.symbols import Symbols

__all__ = ["FunctionPlaces", "Place"]

_MOST_FILES = 64
"""Files whose symbols are kept."""
_MOST_KNOWN = 20_000
"""Addresses whose function or call is remembered."""


class Place(NamedTuple):
    """Where a thread was."""

    function: str
    """In a library: the function that the program called, or the running function if the call was
    not found."""
    file: str
    """Name of the file whose code ran, such as `libc.so.6`."""
    caller: str
    """The function of the program that made the call; empty if it was not found, or if it has no
    name."""
    line: str = ""
    """Line of the program, or of the call, such as `model.c:63`; empty if it is not known."""
    is_atomic: bool = False
    """Whether the program had just executed an atomic update, which may have waited."""


class _Sampled(Protocol):
    """A process as this module reads it."""

    pid: int
    path: str
    files: LoadedFiles

    def reload(self) -> bool:
        """Read the list of files again."""
        ...


class _Function(NamedTuple):
    name: str
    file: str
    line: str
    is_atomic: bool = False


class _Call(NamedTuple):
    """A call of an imported function."""

    called: str
    caller: str
    line: str
    shown: str
    """The called function, perhaps with a constant argument: `pow(x, 3)`."""


_GENERATED = "generated code"


class FunctionPlaces:
    """The functions at addresses of processes.

    Args:
        proc: mount point of the process file system.
    """

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._symbols: dict[tuple[str, int, str], Symbols | None] = {}
        """Of each file, by device, inode and path; None if they cannot be read."""
        self._functions: dict[tuple[int, Span, int], _Function] = {}
        self._calls: dict[tuple[Span, int], _Call | None] = {}
        self._ranges: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
        """Of each function that a program called: where it is; empty if that says nothing."""

    def of(self, process: _Sampled, sample: Sample) -> Place:
        """Return the place of a sample."""
        span = process.files.at(sample.address)
        if span is None and process.reload():
            span = process.files.at(sample.address)
        if span is None:
            return Place("", "", "")
        function = self._function(process, span, sample.address)
        if span.path == process.path or not span.inode:
            return Place(function.name, function.file, "", function.line, function.is_atomic)
        call = self._call_above(process, span, sample)
        if call:
            return Place(call.shown, function.file, call.caller, call.line)
        return Place(function.name, function.file, "")

    def is_unoptimised(self, process: _Sampled) -> bool:
        """Return whether a process's program was compiled without optimisation.

        This is only asked of a program in whose own code a sample was taken.
        """
        for (_, _, path), symbols in self._symbols.items():
            if path == process.path:
                return bool(symbols and symbols.is_unoptimised)
        return False

    def _function(self, process: _Sampled, span: Span, address: int) -> _Function:
        if not span.path:
            return _Function("", _GENERATED, "")
        key = process.pid if not span.inode else 0, span, address
        known = self._functions.get(key)
        if known is None:
            symbols = self._symbols_of(process, span)
            name = line = ""
            is_atomic = False
            if symbols:
                virtual = symbols.virtual_of(address - span.begin + span.offset)
                if virtual is not None:
                    start, name = symbols.function_at(virtual)
                    name = name or (f"{span.name}+{start:#x}" if start else "")
                    if span.path == process.path:
                        is_atomic = follows_atomic(symbols, virtual)
                        # The line of an update that took the time, not that of what follows it.
                        line = symbols.line_at(virtual - is_atomic)
            known = _Function(name, span.name, line, is_atomic)
            if len(self._functions) >= _MOST_KNOWN:
                self._functions.clear()
            self._functions[key] = known
        return known

    def _call_above(self, process: _Sampled, span: Span, sample: Sample) -> _Call | None:
        """Return the call of the program's own code from which a library was entered.

        The words of the stack are searched for return addresses. Words of ended calls may be among
        them. So a word counts only if a call of an imported function is just before it, and if
        this function is still running, as far as this can be seen.
        """
        files = process.files
        low, high = files.range_of(process.path)
        words = sample.words
        for place in [number for number, word in enumerate(words) if low < word <= high]:
            address = words[place]
            found = files.at(address - 1)
            if found is None or found.path != process.path:
                continue
            key = found, address
            if key not in self._calls:
                if len(self._calls) >= _MOST_KNOWN:
                    self._calls.clear()
                self._calls[key] = self._call_at(process, found, address)
            call = self._calls[key]
            if call and self._may_run(process, span, call.called, (sample.address, *words[:place])):
                return call
        return None

    def _may_run(
        self, process: _Sampled, span: Span, function: str, addresses: Sequence[int]
    ) -> bool:
        """Return whether a function of a library may be running.

        Args:
            process: the process.
            span: the part of the library's code that is running.
            function: the function that the program called.
            addresses: the running instruction, and the words of the stack below the call.
        """
        symbols = self._symbols_of(process, span)
        if symbols is None:
            return True
        key = span.device, span.inode, function
        if key not in self._ranges:
            ranges = symbols.ranges_of(function)
            is_open = not ranges or any(
                symbols.is_chosen(begin) or may_jump_away(symbols, begin, end)
                for begin, end in ranges
            )
            # If it may run without a trace on the stack, the stack does not say.
            self._ranges[key] = [] if is_open else ranges
        ranges = self._ranges[key]
        if not ranges:
            return True
        base = symbols.virtual_of(span.offset)
        if base is None:
            return True
        shift = span.begin - base
        return any(
            begin + shift <= address < end + shift for address in addresses for begin, end in ranges
        )

    def _call_at(self, process: _Sampled, span: Span, address: int) -> _Call | None:
        symbols = self._symbols_of(process, span)
        virtual = symbols.virtual_of(address - span.begin + span.offset) if symbols else None
        if symbols is None or virtual is None:
            return None
        called = called_import(symbols, virtual)
        if not called:
            return None
        # The return address of a call at the end of a function is in the next function.
        name = symbols.function_at(virtual - 1)[1]
        shown = with_exponent(called, symbols, virtual)
        return _Call(called, name, symbols.line_at(virtual - 1), shown)

    def _symbols_of(self, process: _Sampled, span: Span) -> Symbols | None:
        if not span.inode:
            return None  # the kernel's own part, such as [vdso]
        key = span.device, span.inode, span.path
        paths = [f"{self._proc}/{process.pid}/root{span.path}", span.path]
        if span.path == process.path:
            paths.insert(0, f"{self._proc}/{process.pid}/exe")  # also if it has been deleted
        if key in self._symbols:
            known = self._symbols[key]
            if known:
                known.read_from(paths)
            return known
        symbols = None
        if len(self._symbols) < _MOST_FILES:
            with contextlib.suppress(OSError, ValueError):
                symbols = Symbols(paths, span.name)
        self._symbols[key] = symbols
        return symbols
