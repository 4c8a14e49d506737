"""Advice about a GPU with too little work, in the words of the program's library."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import chain

from teho.explain.context import RuleContext
from teho.explain.where import IMPORTS
from teho.explain.wording import FEWER_KERNELS
from teho.model.program import MainProcess
from teho.patterns import lazy_pattern

__all__ = ["fewer_kernels", "kernels_of", "more_work", "trace_command"]

_ON_STACKS: Mapping[str, re.Pattern[str]] = {
    "numba": lazy_pattern(r"/numba(_|/)cuda/"),
    "cupy": lazy_pattern(r"/cupyx?/"),
    "jax": lazy_pattern(r"/(jax|flax|optax|equinox)/"),
    "tensorflow": lazy_pattern(r"/(tensorflow|keras)/"),
    "torch": lazy_pattern(r"/torch/"),
}
"""Files of the libraries that compute on a GPU; a special library comes before a general one."""
_IN_LINES: Mapping[str, re.Pattern[str]] = {
    "cupy": lazy_pattern(r"\b(cupy|cupyx|cp)\.\w"),
    "jax": lazy_pattern(r"\b(jax|jnp|lax)\.\w"),
    "tensorflow": lazy_pattern(r"\b(tf|tensorflow)\.\w"),
    "torch": lazy_pattern(r"\b(torch|nn|F)\.\w"),
}
"""The same, by the lines of the program: the compiled functions of a library have no files."""
_LONGEST = 60
"""Maximum length of a command that the advice repeats."""
_LEAST = 0.02
"""Part of the time that a library must have on the stacks of the main thread."""
_MORE: Mapping[str, str] = {
    "torch": (
        "Give the GPU more work at a time: replace loops over single samples with operations on "
        "whole tensors, and join small operations with `torch.compile`."
    ),
    "jax": (
        "Give the GPU more work at a time: compute several samples, series or runs together with "
        "`jax.vmap`, in one function with `@jax.jit`."
    ),
    "cupy": (
        "Give the GPU more work at a time: work on larger arrays, and join element-wise operations "
        "with `@cupy.fuse()`."
    ),
    "numba": (
        "Give the GPU more work at a time: start each kernel with several blocks of threads for "
        "each multiprocessor, and do more work in one kernel."
    ),
    "tensorflow": (
        "Give the GPU more work at a time, with larger batches. Put the whole step into one "
        "function with `@tf.function(jit_compile=True)`."
    ),
}
_BATCHES = "Give the GPU more work at a time, with a larger `batch_size`."
_COMPILED = " Use fewer, larger kernels: `torch.compile(model)`."


def more_work(context: RuleContext, *, is_compiled: bool = True) -> str:
    """Return what gives a GPU more work at a time.

    Args:
        context: the run.
        is_compiled: whether the advice may name the compiler.
    """
    library = _library(context.mains)
    has_batches = any(main.feed.loader is not None for main in context.mains)
    if not library or (library == "torch" and has_batches):
        return _BATCHES + (_COMPILED if is_compiled else "")
    return _MORE[library]


def fewer_kernels(context: RuleContext) -> str:
    """Return how a program starts fewer, larger kernels."""
    library = _library(context.mains)
    if library in ("", "torch", "jax"):
        return f"Give each kernel more work, with a larger `batch_size`. {FEWER_KERNELS}"
    return _MORE[library]


def kernels_of(context: RuleContext) -> str:
    """Return how to see the kernels of a program; empty if it is not known what it uses."""
    main = next(iter(context.mains), None)
    if main is None or not _library([main]):
        return ""
    return f"To see which kernels these are, use {trace_command(context, main)}. "


def trace_command(context: RuleContext, main: MainProcess) -> str:
    """Return the command that records the kernels of a program."""
    command = shlex.join(context.run.command)
    what = command if len(command) <= _LONGEST else "COMMAND"
    if _library([main]) in ("cupy", "numba"):
        return f"`nsys profile --stats=true {what}` (NVIDIA Nsight Systems)"
    steps = "--steps 20:25" if main.process.progress else "--window 2s"
    return f"`teho profile {steps} --with stack -- {what}`"


def _library(mains: Sequence[MainProcess]) -> str:
    """Return the library that computes on the GPU; empty if it is not known."""
    for main in mains:
        times = dict.fromkeys(_ON_STACKS, 0.0)
        for seen in main.process.stacks:
            files = {frame.file for frame in seen.frames}
            if any(map(IMPORTS.search, files)):
                continue  # libraries import others, which the program may not use
            texts = [frame.text for frame in seen.own_frames]
            for name, pattern in _ON_STACKS.items():
                in_lines = _IN_LINES.get(name, pattern)
                if any(map(pattern.search, files)) or any(map(in_lines.search, texts)):
                    times[name] += seen.wall_s
        least = _LEAST * main.process.wall_s
        noted = (
            name
            for name in ("torch", "jax", "cupy", "tensorflow")
            if main.process.libraries.get(name)
        )
        shown = (name for name, seconds in times.items() if seconds >= least)
        if found := next(chain(shown, noted), ""):
            return found
    return ""
