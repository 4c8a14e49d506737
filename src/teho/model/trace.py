"""What the trace of a framework's profiler says: where the time of a step went, and by what.

All times are in seconds. A device is a GPU as the trace numbers it. Each rank has its own file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, Union

import msgspec

from teho.model.finding import Certainty
from teho.model.trace_memory import MemoryPicture, MemoryUse

__all__ = [
    "SCHEMA",
    "Band",
    "Category",
    "Cause",
    "DeviceUse",
    "Efficiency",
    "Idle",
    "Kernel",
    "Lane",
    "Operator",
    "Parts",
    "Pause",
    "Profiled",
    "RankWait",
    "Share",
    "Step",
    "StepPicture",
    "Trace",
    "mean_parts",
]

SCHEMA = "teho.profile/1"
"""Name and version of the JSON form; an incompatible change raises the number."""

Category = Literal[
    "matmul",
    "convolution",
    "attention",
    "normalisation",
    "reduction",
    "elementwise",
    "copy",
    "collective",
    "optimizer",
    "other",
]
"""What a kernel computes: `profile/kernels.toml` has the patterns. `optimizer`: the kernel was
launched inside `Optimizer.step`, which PyTorch marks. `copy`: copies and fills of memory."""


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """The time in which a device did nothing, split by reason.

    A gap is a time without any work on the device. The reason depends on the work that ended the
    gap, and on what the CPU did during the gap. The first reason that applies counts, in this
    order: unknown, queued, data, collective, compile, sync, launch.
    """

    data_s: float = 0.0
    """The program waited for its data loader: the part of the gap inside
    `enumerate(DataLoader)#…__next__`, which PyTorch marks."""
    collective_s: float = 0.0
    """The CPU was in a collective that does not run on the GPU: the part of the gap inside a mark
    such as `gloo:all_reduce`."""
    compile_s: float = 0.0
    """XLA or `torch.compile` compiled functions: the part of the gap inside their events."""
    sync_s: float = 0.0
    """The CPU had waited for the GPU: when the gap began, the thread that launches was inside a
    call such as `cudaStreamSynchronize`, so no other work was queued."""
    launch_s: float = 0.0
    """The CPU had not launched the next work yet, without any of the reasons above."""
    queued_s: float = 0.0
    """The next work was launched before the gap began. It waited for other reasons, such as an
    event of another stream, or the short pause between two kernels."""
    unknown_s: float = 0.0
    """The trace does not have the launch of the work that ended the gap."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What a device did in the time of one step, or in the mean of several steps.

    Work of several streams at the same time counts once: each figure is the length of a union of
    intervals. Each is clipped to the step, as the CPU marked it. So work that was launched in one
    step and ran in the next step belongs to the next step.
    """

    elapsed_s: float
    """Duration of the step: of the mark `ProfilerStep#N`."""
    compute_s: float
    """Time with at least one kernel that is not a collective."""
    collective_s: float
    """Time with at least one kernel of a collective, such as `ncclDevKernel_AllReduce`."""
    copy_s: float
    """Time with at least one copy or fill of memory."""
    hidden_collective_s: float
    """Time with a collective and a computing kernel: intersection of the two."""
    hidden_copy_s: float
    """Time with a copy, and a computing kernel or a collective."""
    busy_s: float
    """Time with any work: union of computing, collectives and copies."""
    idle: Idle

    @property
    def idle_s(self) -> float:
        """Time without any work: the duration minus the busy time."""
        return self.elapsed_s - self.busy_s

    @property
    def exposed_collective_s(self) -> float:
        """Time with a collective, but without a computing kernel."""
        return self.collective_s - self.hidden_collective_s

    @property
    def exposed_copy_s(self) -> float:
        """Time with only copies."""
        return self.copy_s - self.hidden_copy_s


def mean_parts(parts: Sequence[Parts]) -> Parts:
    """Return the mean of each figure of at least one step or device."""

    def mean_of(name: str, structs: Iterable[msgspec.Struct]) -> float:
        return math.fsum(getattr(one, name) for one in structs) / len(parts)

    idle = {name: mean_of(name, [one.idle for one in parts]) for name in Idle.__struct_fields__}
    rest = {name: mean_of(name, parts) for name in Parts.__struct_fields__ if name != "idle"}
    return Parts(**rest, idle=Idle(**idle))


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step on one device."""

    number: Union[int, None] = None
    """N of `ProfilerStep#N`; null if the trace has no steps: then it is the whole trace."""
    start_s: float
    """Time from the start of the first step."""
    parts: Parts


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one device did."""

    device: int
    name: str = ""
    """Model of the GPU; empty if the trace does not name it."""
    steps: tuple[Step, ...]
    mean: Parts
    """Mean of all steps: the sum of each figure, divided by the number of steps."""
    launches: int
    """Number of kernels, copies and fills with a known launch."""
    launch_bound: int
    """Number of these that the device was waiting for: the device was idle when their launch could
    have reached it. This is the start of the launch call plus the shortest delay between launch
    and start in this trace (at most 10 µs). The others were queued behind other work."""
    after_s: float
    """Time of work on the device after the end of the last step. It is not part of any step."""


class Share(msgspec.Struct, frozen=True):
    """The part of a kernel's time that belongs to one operator or one line."""

    name: str
    total_s: float


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """All executions of one kernel, or one kind of copy, in the whole trace."""

    name: str
    """As in the trace."""
    category: Category
    count: int
    total_s: float
    """Sum of the durations; kernels that ran at the same time both count."""
    tensor_cores: Union[bool, None] = None
    """Whether the name of the kernel shows that it uses tensor cores (AMD: matrix cores); null if
    the name does not show this."""
    launch_bound: int = 0
    """Number of executions for which the device was waiting, as in `DeviceUse`."""
    operators: tuple[Share, ...] = ()
    """Operators that launched it, by time. An operator is the innermost `cpu_op` around the launch
    call with the same correlation number."""
    lines: tuple[Share, ...] = ()
    """Lines of the user's program, as `FILE:LINE FUNCTION`, by time; empty if the trace has no
    stacks. For a kernel of the backward pass, it is the line of the forward operator."""

    @property
    def mean_s(self) -> float:
        """Mean duration of one execution."""
        return self.total_s / self.count


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """How fast the device computed an operator on matrices, for inputs of one size."""

    operator: str
    sizes: str
    """Sizes of the inputs, such as `512×768 · 768×3072`."""
    number_type: str
    """Type of the numbers, as PyTorch prints it, such as `c10::BFloat16`."""
    count: int
    """Number of calls in the whole trace."""
    time_s: float
    """Total time of the kernels that these calls launched."""
    flop: float
    """Total number of arithmetic operations: a multiplication with an addition counts as two."""
    peak: str = ""
    """Name of the rate in `peaks.toml` that is the limit; empty: the device is not known."""
    peak_flop_per_s: Union[float, None] = None
    """This rate, in operations per second."""

    @property
    def flop_per_s(self) -> float:
        """Operations per second."""
        return self.flop / self.time_s

    @property
    def share(self) -> Union[float, None]:
        """Part of the highest rate, 0 to 1."""
        return self.flop_per_s / self.peak_flop_per_s if self.peak_flop_per_s else None


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one operator on the CPU, in the whole trace."""

    name: str
    count: int
    total_s: float
    """Sum of the durations, with the operators that it calls."""
    self_s: float
    """The same without the operators that it calls."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A cause of lost time that names of kernels, operators or calls show."""

    kind: str
    """As in `profile/causes.toml`."""
    sentence: str
    advice: str
    """What to change, with the line of the program if it is known."""
    share: float
    """Part of a step that it took, 0 to 1."""
    time_s: float
    """Time of a step."""
    count: float
    """Number of kernels, calls or operators in a step."""
    operator: str = ""
    """Operator with the most of this time; empty: unknown."""
    line: str = ""
    """Line of the user's program with the most of this time; empty if the trace has no stacks."""
    certainty: Certainty
    source: str
    """Why it is slow, and who says so."""


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of work in a lane, such as copies."""

    label: str
    time_s: float
    """Time that this work took in the step."""
    shares: list[float]
    """The step is divided into equally long parts: for each part, the share of its time that this
    work took, 0 to 1."""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """What the CPU or the device did during a step. The bands of a lane do not overlap."""

    label: str
    bands: tuple[Band, ...]


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which the device did nothing, and the work that came after this time."""

    after_s: float
    """Time from the start of the step to the start of the pause."""
    time_s: float
    reason: str
    """Why the device did nothing: `data`, `collective`, `sync`, `launch`, `queued` or `unknown`."""
    kernel: str = ""
    """The next kernel or copy; empty: there is none."""
    operator: str = ""
    """Operator that launched this kernel or copy; empty: unknown."""
    line: str = ""
    """Line of the user's program that launched this kernel or copy; empty: unknown."""


class StepPicture(msgspec.Struct, frozen=True, kw_only=True):
    """One step over time: the step of median length, on the first device."""

    step: Union[int, None] = None
    """N of `ProfilerStep#N`; null if the trace has no steps, so that the picture shows the whole
    trace."""
    device: int
    elapsed_s: float
    lanes: tuple[Lane, ...]
    pauses: tuple[Pause, ...]
    """The longest times in which the device did nothing, in the order of time."""
    memory: Union[MemoryPicture, None] = None
    """Null if the profiler did not record memory."""


class RankWait(msgspec.Struct, frozen=True, kw_only=True):
    """How long a rank waited for other ranks in collectives, and other ranks for this rank.

    A collective ends on all ranks at about the same time. The rank on which it is the shortest
    came last. Each other rank waited for the difference; time in which it computed does not count.
    """

    collectives: int
    """Number of collectives that other ranks have too, so that they could be compared."""
    waited_s: float
    """Mean time of a step that this rank waited."""
    awaited_s: float
    """Mean time of a step that another rank waited for this rank: mean of the ranks that it was
    compared with."""
    clock_s: Union[float, None] = None
    """How far the clock of this rank is ahead of the clock of the first rank: the median
    difference between the ends of the same collective; null if the two have none in common."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One file: the trace of one rank."""

    path: str
    rank: Union[int, None] = None
    """From the trace (`distributedInfo`); null if the program was not distributed."""
    ranks: Union[int, None] = None
    """Number of ranks of the program."""
    step_count: int
    """Number of steps; 0 if the trace has no marks `ProfilerStep#N`. Then the whole trace counts
    as one step."""
    step_s: float
    """Mean duration of a step, or the duration of the whole trace."""
    data_s: float
    """Mean time of a step that the program waited for its data loader, also while the GPU was
    busy."""
    compile_s: float = 0.0
    """Mean time of a step in which XLA or `torch.compile` compiled functions, also while the GPU
    was busy: XLA tries kernels on the GPU."""
    compile_steps: int = 0
    """Number of steps in which functions were compiled."""
    compiled: tuple[Share, ...] = ()
    """Compiled functions whose names are known, by time."""
    devices: tuple[DeviceUse, ...]
    """Empty if the trace has no work of a GPU."""
    kernels: tuple[Kernel, ...]
    """By total time."""
    operators: tuple[Operator, ...]
    """By time without the operators that they call."""
    graph_launches: int = 0
    """Number of launches of CUDA or HIP graphs; each launches many kernels at once."""
    has_stacks: bool = False
    """Whether the profiler recorded Python stacks (`with_stack=True`)."""
    unread: int = 0
    """Number of events that could not be read."""
    waits: Union[RankWait, None] = None
    """Null if no collective of this rank could be compared with the same one of another rank."""
    memory: tuple[MemoryUse, ...] = ()
    """Memory of each device; empty if the profiler did not record memory."""
    efficiencies: tuple[Efficiency, ...] = ()
    """Of operators on matrices, by time; empty if the profiler did not record shapes."""
    causes: tuple[Cause, ...] = ()
    """Causes of lost time, the largest first."""
    picture: Union[StepPicture, None] = None
    """Only of the rank with the longest step; null if the trace has no work of a GPU."""

    @property
    def kernel_s(self) -> float:
        """Sum of the durations of all kernels and copies."""
        return sum(kernel.total_s for kernel in self.kernels)


class Profiled(msgspec.Struct, frozen=True, kw_only=True):
    """What the traces of one program say: one trace for each rank."""

    schema: str = SCHEMA
    verdict: str
    """The most important sentence."""
    advice: tuple[str, ...] = ()
    """What to change, one sentence each, the most important first."""
    notes: tuple[str, ...] = ()
    """What limits the figures, one sentence each."""
    traces: tuple[Trace, ...]
    """By rank."""

    @property
    def devices(self) -> tuple[DeviceUse, ...]:
        """All devices of all ranks."""
        return tuple(device for trace in self.traces for device in trace.devices)
