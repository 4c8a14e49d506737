"""Hands traces to other tools: copies for viewers, and the commands of the vendors' profilers."""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path

from teho.errors import InputError
from teho.model.profiling import ProfilerUse
from teho.model.run import Run
from teho.model.trace import Profiled
from teho.model.watched import WatchedProcess
from teho.process.listen import user_at_host
from teho.store.traces import base_name, plan_of_trace

__all__ = [
    "copy_traces",
    "is_of_pytorch",
    "nsys_options",
    "rocprof_options",
    "tensorboard_commands",
    "tool_commands",
]

_PERFETTO = "ui.perfetto.dev"
_PORT = 6006
"""Port on which TensorBoard answers."""
_CHUNK_BYTES = 1 << 20
_NSYS_TRACE = "--trace=cuda,nvtx,osrt"
_NAMES = {"nvidia": ("NVIDIA", "Tesla"), "amd": ("AMD", "Instinct")}
"""Words in the names of GPUs, by vendor."""


def copy_traces(traces: Sequence[Path], to: Path) -> Iterator[str]:
    """Copy traces for a viewer, and yield how to open them.

    Args:
        traces: compressed or not.
        to: a file that ends with `.json` or `.json.gz`; or a folder for TensorBoard and XProf.

    Raises:
        InputError: a file is given for several traces, or it cannot be written.
    """
    try:
        if not to.name.endswith((".json", ".json.gz")):
            yield from _to_folder(traces, to)
        elif len(traces) > 1:
            raise InputError(
                f"--trace-to {to}: there are {len(traces)} traces, and this is one file",
                "a folder, such as `--trace-to traces`",
            )
        elif not is_of_pytorch(traces[0]):
            raise InputError(
                f"--trace-to {to}: {traces[0].name} is a trace for XProf, not JSON",
                "a folder, such as `--trace-to traces`",
            )
        else:
            _copy(traces[0], to)
            yield f"Open {to} on {_PERFETTO}, or in Chrome on `chrome://tracing`"
    except OSError as error:
        raise InputError(
            f"--trace-to {to}: {error.strerror}", "a place that can be written"
        ) from error


def is_of_pytorch(trace: Path) -> bool:
    """Return whether PyTorch's profiler wrote a trace; JAX and TensorFlow write an XSpace."""
    return trace.name.endswith((".json", ".json.gz"))


def _copy(trace: Path, to: Path) -> None:
    """Copy a trace; compress it or not, as the endings say."""
    opened = [
        gzip.open(path, mode) if path.name.endswith(".gz") else path.open(mode)  # noqa: SIM115
        for path, mode in ((trace, "rb"), (to, "wb"))
    ]
    source, target = opened
    with source, target:
        shutil.copyfileobj(source, target, _CHUNK_BYTES)


def _to_folder(traces: Sequence[Path], to: Path) -> Iterator[str]:
    """Write the files for XProf, and next to them the traces for other viewers."""
    from teho.profile.xplane import write_xspace

    for trace in traces:
        name = base_name(trace)
        session = to / "plugins" / "profile" / plan_of_trace(trace)
        session.mkdir(parents=True, exist_ok=True)
        if is_of_pytorch(trace):
            write_xspace(trace, session / f"{name}.xplane.pb", name)
            _copy(trace, to / f"{name}.pt.trace.json.gz")
        else:
            _copy(trace, session / f"{name}.xplane.pb")
    folder = shlex.quote(str(to))
    yield f"`{_tensorboard(folder)}` shows the traces, if its plugin `xprof` is installed"
    if "SSH_CONNECTION" in os.environ:
        yield (
            f"On your own computer, run `{_forwarding()}`, and open `localhost:{_PORT}` in your "
            "browser"
        )
    if any(map(is_of_pytorch, traces)):
        yield f"On {_PERFETTO}, open the files `{folder}/*.pt.trace.json.gz`"


def _tensorboard(folder: str) -> str:
    return f"tensorboard --logdir {folder}"


def _forwarding() -> str:
    """Return the command of ssh that connects TensorBoard with the user's own computer."""
    return f"ssh -N -L {_PORT}:localhost:{_PORT} {user_at_host()}"


def tensorboard_commands(run_id: str) -> tuple[str, str, str]:
    """Return the commands that show the traces of a run in TensorBoard.

    The first two are for this machine, and the third one is for the user's own computer, whose
    browser then opens `localhost:6006`.
    """
    return f"teho profile {run_id} --trace-to logs", _tensorboard("logs"), _forwarding()


def tool_commands(
    run: Run, profiled: Profiled, uses: Sequence[tuple[WatchedProcess, ProfilerUse]]
) -> Iterator[str]:
    """Yield the commands with which the vendors' profilers record the same steps.

    Teho can mark steps only for PyTorch. For JAX and TensorFlow, and if a length of time was
    recorded, the commands record the same time after the start of the program.

    Args:
        run: the run of the traces.
        profiled: the traces, with the names of the GPUs.
        uses: the processes that have traces.
    """
    if not uses or not profiled.devices:
        return
    vendor = _vendor_of(run, profiled, [process for process, _ in uses])
    program = shlex.join(run.command)
    steps = next((use.steps for _, use in uses if use.steps and use.framework == "torch"), None)
    if steps is None:
        yield from _timed_commands(vendor, program, _recorded_time(run, *uses[0]))
        return
    first, last = steps
    marked = f"teho profile --steps {first}:{last + 1} --with range -- {program}"
    if vendor == "nvidia":
        one = f"teho profile --steps {first}:{first + 1} --with range -- {program}"
        yield f"Nsight Systems: `nsys {shlex.join(nsys_options('steps'))} {marked}`"
        yield (
            "Nsight Compute, for one step: `ncu --profile-from-start off --target-processes all "
            f"-o step {one}`"
        )
    elif vendor == "amd":
        yield f"rocprofv3: `rocprofv3 {shlex.join(rocprof_options('steps'))} -- {marked}`"


def _timed_commands(vendor: str, program: str, time: tuple[int, int] | None) -> Iterator[str]:
    """Yield the commands that record a time, as s after the start and a duration in s."""
    if time is None:
        return
    delay_s, duration_s = time
    if vendor == "nvidia":
        # Without `--kill`, nsys ends the program at the end of the time.
        yield (
            f"Nsight Systems: `nsys profile {_NSYS_TRACE} --delay={delay_s} "
            f"--duration={duration_s} --kill=none -o steps {program}`"
        )
    elif vendor == "amd":
        yield (
            f"rocprofv3: `rocprofv3 --runtime-trace --collection-period {delay_s}:{duration_s}:1 "
            f"{shlex.join(_rocprof_output('steps'))} -- {program}`"
        )


def _recorded_time(run: Run, process: WatchedProcess, use: ProfilerUse) -> tuple[int, int] | None:
    """Return when a trace was recorded, in s after the start of the program, and for how long.

    None: the clocks of the process and of the run cannot be compared.
    """
    node = next((one for one in run.nodes if one.name == process.node), None)
    if node is None or node.started_s is None:
        return None
    after_s = use.began_s - node.started_s + (node.started_at - run.started_at).total_seconds()
    delay_s = max(0, int(after_s))
    return delay_s, max(1, ceil(after_s + use.ended_s - use.began_s) - delay_s)


def _vendor_of(run: Run, profiled: Profiled, processes: Sequence[WatchedProcess]) -> str:
    """Return `nvidia` or `amd`; empty if neither the framework nor the recorder knows it."""
    for process in processes:
        torch = process.libraries.get("torch", {})
        if torch.get("hip"):
            return "amd"
        if torch.get("cuda"):
            return "nvidia"
    vendors = {device.vendor for node in run.nodes for device in node.devices}
    if len(vendors) == 1:
        return vendors.pop()
    names = " ".join(device.name for device in profiled.devices)
    found = (vendor for vendor, words in _NAMES.items() if any(word in names for word in words))
    return next(found, "")


def nsys_options(name: str) -> list[str]:
    """Return the options with which Nsight Systems records the marked steps.

    Args:
        name: of the file, without its ending.
    """
    return [
        "profile", _NSYS_TRACE, "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop", "-o", name,
    ]  # fmt: skip


def rocprof_options(name: str) -> list[str]:
    """Return the options with which rocprofv3 records the marked steps, for ui.perfetto.dev.

    `--runtime-trace` has the marks, and without them, `--selected-regions` has no effect.

    Args:
        name: of the folder.
    """
    return [
        "--runtime-trace", "--selected-regions", *_rocprof_output(name),
    ]  # fmt: skip


def _rocprof_output(name: str) -> list[str]:
    return ["--output-format", "pftrace", "--output-directory", name]
