"""Finds calls that are slow on a GPU in all files of a program.

A GPU works while the program continues: the stacks show where the program waits for the result, and
not the call that started the slow work. So the searches read whole files. The rule `gpu_call_slow`
reports a call only if the values of the GPU show what such a call does to a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame, is_library
from teho.source.gpu_calls.call import GpuCall, InFile
from teho.source.gpu_calls.indices import find_indexed_parameters
from teho.source.gpu_calls.launches import find_host_arrays
from teho.source.gpu_calls.lengths import find_slow_lengths
from teho.source.gpu_calls.matrices import find_batched_qr
from teho.source.gpu_calls.scans import find_small_steps
from teho.source.gpu_calls.steps import find_dependent_steps
from teho.source.options.files import OwnFiles
from teho.source.options.table import costly_options
from teho.source.program import Program
from teho.source.purity import Purity

__all__ = ["find_gpu_calls"]

_LIBRARIES = frozenset(("torch", "jax", "cupy", "cupyx", "numba", "fft"))
_TRAINS = frozenset(("backward", "Trainer", "autograd", "training_step"))
_LONGEST = 80
"""Maximum number of characters of a call."""
_SEARCHES: tuple[tuple[Callable[[InFile], Iterator[GpuCall]], frozenset[str]], ...] = (
    (find_batched_qr, frozenset(("qr",))),
    (
        find_indexed_parameters,
        frozenset(("Parameter", "Embedding", "requires_grad", "requires_grad_")),
    ),
    (find_small_steps, frozenset(("lax",))),
    (find_slow_lengths, frozenset(("irfft", "ifft", "irfft2", "ifft2", "irfftn", "ifftn"))),
    (find_host_arrays, frozenset(("numba",))),
    (find_dependent_steps, frozenset(("torch",))),
)
"""The searches, each with words of which a file must have one."""


def find_gpu_calls(
    own: OwnFiles, program: Program, stacks: Sequence[Sequence[Frame]], paths: Sequence[str]
) -> Iterator[CostlyOption]:
    """Yield the slow calls in the files of a process.

    Args:
        own: the files.
        program: the same files.
        stacks: the stacks of the process, innermost frame first.
        paths: its files.
    """
    frames = {frame for stack in stacks for frame in stack if not is_library(frame.file)}
    purity = Purity(program)
    on_stacks = {one.name for one in costly_options() if not one.gpu}

    def is_training() -> bool:
        return any(not _TRAINS.isdisjoint(own.vocabulary[path]) for path in paths)

    for path in paths:
        file = own.parsed(path) if not _LIBRARIES.isdisjoint(own.vocabulary[path]) else None
        if file is None:
            continue
        source, words = InFile(path, file, purity, is_training), own.vocabulary[path]
        searches = (search for search, needed in _SEARCHES if not needed.isdisjoint(words))
        for found in chain.from_iterable(search(source) for search in searches):
            node = found.node
            last = found.last or node.end_lineno or node.lineno
            using = [one for one in frames if one.file == path and node.lineno <= one.line <= last]
            if using or found.name not in on_stacks:
                yield _option(found, path, source, using)


def _option(found: GpuCall, path: str, source: InFile, using: Sequence[Frame]) -> CostlyOption:
    function = source.file.function_at(found.node.lineno).name or "<module>"
    text = source.file.text_of(found.node)
    if found.last:  # a loop: `for t in range(n)`
        text = source.file.line_text(found.node.lineno).rstrip(":")
    return CostlyOption(
        name=found.name,
        at=Frame(path, function, found.node.lineno, text[:_LONGEST]),
        lines=tuple(sorted(using, key=lambda one: (one.line, one.function, one.text))),
        words=found.words,
    )
