"""What `teho profile` must know of a process: its framework, rank, tools, memory and disk."""

from __future__ import annotations

import os
import sys

from _teho_probe.lines import TYPE_CHECKING
from _teho_probe.permit import read_file

if TYPE_CHECKING:
    from typing import Any, Callable

    from _teho_probe.notes import Notes

__all__ = [
    "call_in_main_thread",
    "compile_s",
    "framework_of",
    "free_bytes",
    "is_compiling",
    "is_helper",
    "is_importing",
    "other_tool",
    "rank_of",
    "used_bytes",
]

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_LAUNCHERS = (
    "torch.distributed.elastic.agent.server",
    "accelerate.commands.launch",
    "deepspeed.launcher.runner",
)
"""Modules of processes that only start the ranks."""
_JAX_COMPILER = ("/jax/_src/compiler.py", "/jax/_src/interpreters/mlir.py")
_JAX_TRACER = "/jax/_src/interpreters/partial_eval.py"
_OTHER_TOOLS = (
    ("NSYS_PROFILING_SESSION_ID", "Nsight Systems"),
    ("NV_COMPUTE_PROFILER_PERFWORKS_DIR", "Nsight Compute"),
    ("CUDA_INJECTION64_PATH", "the tool in CUDA_INJECTION64_PATH"),
    ("ROCP_TOOL_LIBRARIES", "rocprofv3"),
)
"""Variables of tools that use the same interface of the driver. Only one tool can use it."""


def other_tool() -> str:
    """Return the tool that uses the driver's interface for profilers; empty: none is known."""
    return next((name for variable, name in _OTHER_TOOLS if variable in os.environ), "")


def compile_s(notes: Notes) -> float:
    """Return how long JAX has compiled, with tracing and lowering."""
    return float(notes.libraries.get("jax", {}).get("compile_s", 0.0))


def is_compiling() -> bool:
    """Return whether JAX traces or compiles a function in the calling thread."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(_JAX_COMPILER):
            return True
        if code.co_name.startswith("trace_to_jaxpr") and code.co_filename.endswith(_JAX_TRACER):
            return True
        frame = frame.f_back
    return False


def framework_of(notes: Notes, *, is_range: bool = False) -> Callable[..., Any] | None:
    """Return the class for the framework that the program uses; None: no known one is imported.

    A program may import several. The one that computes has an optimizer or a compilation.

    Args:
        notes: of this process.
        is_range: whether another tool records, and needs only marks.
    """
    if is_range:
        from _teho_probe.profile_range import RangeTracer

        return RangeTracer
    libraries = notes.libraries
    has_torch = "torch.autograd.profiler" in sys.modules and _is_imported("torch")
    if has_torch and "optimizer" in libraries.get("torch", ()):
        from _teho_probe.profile_torch import TorchTracer

        return TorchTracer
    # `platform`: its devices are initialised, which the profiler would do otherwise.
    if "platform" in libraries.get("jax", ()) and "jax._src.profiler" in sys.modules:
        from _teho_probe.profile_xla import JaxTracer

        return JaxTracer
    if has_torch:
        from _teho_probe.profile_torch import TorchTracer

        return TorchTracer
    has_profiler = "tensorflow.python.profiler.profiler_v2" in sys.modules
    if has_profiler and "tensorflow" in libraries and _is_imported("tensorflow"):
        from _teho_probe.profile_xla import TensorFlowTracer

        return TensorFlowTracer
    return None


def is_importing() -> bool:
    """Return whether this thread imports a module: a profiler would meet half of a module."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _is_imported(name: str) -> bool:
    """Return whether a module is imported to its end: before, it lacks some of its parts."""
    module = sys.modules.get(name)
    return module is not None and not getattr(
        getattr(module, "__spec__", None), "_initializing", False
    )


def rank_of() -> int | None:
    """Return the rank of this process; None if the program has no ranks."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
    except Exception:
        pass
    for name in _RANKS:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def is_helper() -> bool:
    """Return whether this process works for others: it loads data, or it launched the ranks."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return False
    if any(name in sys.modules for name in _LAUNCHERS):
        return True
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    return parent is not None and parent() is not None


def used_bytes() -> int:
    """Return the memory of this process; 0 if it cannot be read."""
    pages = read_file("/proc/self/statm").split()[1:2]
    return int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def free_bytes(folder: str) -> int:
    """Return the free space on the disk of a folder."""
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize


_CALLBACKS: list[Any] = []
"""They must exist until Python has called them."""


def call_in_main_thread(action: Callable[[], None]) -> None:
    """Let Python call a function in the main thread, between two of its instructions."""
    import ctypes

    def call(_: Any) -> int:
        action()
        return 0

    callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(call)
    _CALLBACKS.append(callback)
    ctypes.pythonapi.Py_AddPendingCall(callback, None)
