"""Hands traces to other tools: copies for viewers, and the commands of the vendors' profilers."""

from __future__ import annotations

import gzip
import math
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from teho.errors import InputError
from teho.model.run import Run
from teho.model.trace import Profiled
from teho.store.traces import base_name, plan_of_trace

__all__ = ["copy_traces", "is_of_pytorch", "tool_commands"]

_PERFETTO = "ui.perfetto.dev"
_CHUNK_BYTES = 1 << 20
_LEAST_S = 1
"""Shortest time for a tool that counts whole seconds."""


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
    """Write the files for XProf, and beside them the traces for other viewers."""
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
    yield f"`tensorboard --logdir {folder}` shows the traces, if its plugin `xprof` is installed"
    if any(map(is_of_pytorch, traces)):
        yield f"On {_PERFETTO}, open the files `{folder}/*.pt.trace.json.gz`"


def tool_commands(
    run: Run, profiled: Profiled, steps: tuple[int, int], began_s: float, ended_s: float
) -> Iterator[str]:
    """Yield the commands with which the vendors' profilers record the same steps.

    Args:
        run: the run of the traces.
        profiled: the traces, with the names of the GPUs.
        steps: first and last step.
        began_s: when the first step began, in s after the start of the program.
        ended_s: when the last step ended.
    """
    names = " ".join(device.name for device in profiled.devices)
    program = shlex.join(run.command)
    first, last = steps
    if "NVIDIA" in names or "Tesla" in names:
        marked = f"teho profile --steps {first}:{last + 1} --with range -- {program}"
        one = f"teho profile --steps {first}:{first + 1} --with range -- {program}"
        yield (
            "Nsight Systems: `nsys profile --trace=cuda,nvtx,osrt --capture-range=cudaProfilerApi "
            f"--capture-range-end=stop -o steps {marked}`"
        )
        yield (
            "Nsight Compute, for one step: `ncu --profile-from-start off --target-processes all "
            f"-o step {one}`"
        )
    elif "AMD" in names or "Instinct" in names:
        # rocprofv3 knows no steps, only times after the start of the program.
        delay_s = math.floor(began_s)
        time_s = max(_LEAST_S, math.ceil(ended_s) - delay_s)
        yield (
            f"rocprofv3, for about these steps: `rocprofv3 --sys-trace -P {delay_s}:{time_s}:1 "
            f"-d steps -- {program}`"
        )
