"""Functions of programs that are not Python, as a recording has them."""

from __future__ import annotations

import msgspec

__all__ = ["FunctionUse", "NativeProgram"]


class FunctionUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The samples of a program in one function."""

    function: str
    """Name of the function. In a library, it is the function that the program called, such as
    `fprintf`, with all functions that it called; or, if the call was not found, the function that
    ran. Of a function without a symbol: its file and place (`libc.so.6+0x55780`). Empty: not
    known."""
    file: str
    """Name of the program or library whose code ran."""
    caller: str = ""
    """Function of the program that called `function` of a library. Empty: the call was not found,
    or the function has no name."""
    lines: dict[str, int] = {}
    """Lines of the program with the most samples, such as `model.c:63` -> samples; of a function
    in a library, the lines that called it. Empty without debug information."""
    samples: int
    main_samples: int = 0
    """Samples of the main threads of the processes."""
    atomic_samples: int = 0
    """Samples just after an atomic update of memory, such as `lock add`. In a library and on other
    processors than x86-64, they are not counted."""
    threads: int
    """Number of different threads that were in this function."""


class NativeProgram(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A program that is not Python, and the functions in which it used its CPU time.

    The samples are of user space: the time in the kernel is not among them.
    """

    name: str
    """Name of the program in its command line."""
    file: str
    """Name of its file, as in `functions`."""
    is_installed: bool = False
    """Whether the file is in a folder of installed programs, such as `/usr/bin`. The user has
    probably not written such a program."""
    processes: int
    """Number of its processes that were sampled."""
    threads: int
    """Largest number of threads of one process that were sampled."""
    rate_hz: int
    """Samples per second of CPU time of each thread."""
    cpu_s: float
    """CPU time that the sampled processes used while they were sampled."""
    samples: int
    main_samples: int
    """Samples of the main threads of the processes."""
    is_unoptimised: bool = False
    """Whether the compiler noted that it did not optimise the program (`-O0`). If it is not known,
    this is false."""
    functions: tuple[FunctionUse, ...]
    """The functions with the most samples."""
