"""What the trace of a profiler says about memory: the highest amount, and what it was for.

All amounts are in bytes. A trace has them only if the profiler recorded memory
(`profile_memory=True`).
"""

from __future__ import annotations

from typing import Literal, Union

import msgspec

__all__ = [
    "MemoryBand",
    "MemoryOwner",
    "MemoryPart",
    "MemoryPhase",
    "MemoryPicture",
    "MemoryStep",
    "MemoryUse",
]

MemoryPhase = Literal["before", "input", "forward", "backward", "optimizer"]
"""When memory was allocated. `before`: before the recorded steps, or in a thread that the profiler
does not record. `input`: in PyTorch's data loader, or when a tensor was copied from the node to the
device. `backward`: in the backward pass. `optimizer`: inside `Optimizer.step`, which PyTorch marks,
after the last backward pass in this mark. `forward`: in any other part of the recorded steps; these
are mostly results of the forward pass."""


class MemoryPart(msgspec.Struct, frozen=True, kw_only=True):
    """What one phase has allocated, and not freed before the peak."""

    phase: MemoryPhase
    bytes: int
    count: Union[int, None] = None
    """Number of blocks; null if it is not known."""


class MemoryOwner(msgspec.Struct, frozen=True, kw_only=True):
    """What one operator, or one line of the program, has allocated in one phase."""

    name: str
    """Innermost operator around the allocation that does more than allocate. Or the line of the
    user's program, as `FILE:LINE FUNCTION`; for the backward pass, the line of the forward
    operator. Empty: unknown."""
    phase: MemoryPhase
    bytes: int
    count: int
    """Number of blocks."""


class MemoryStep(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one step."""

    number: Union[int, None] = None
    """N of `ProfilerStep#N`; null if the trace has no steps: then it is the whole trace."""
    peak_bytes: int
    """Highest amount that was allocated at the same time."""
    end_bytes: int
    """What was allocated at the end of the step."""


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one device that PyTorch allocated for tensors, during the recorded steps."""

    device: Union[int, None] = None
    """Number of the GPU; null: the memory of the node, for tensors on the CPU."""
    peak_bytes: int
    """Highest amount that was allocated at the same time. For the CPU, this is only what was
    allocated since the profiler began, because PyTorch does not count what was there before."""
    unseen_bytes: int = 0
    """By how much the sum of `parts` is too high, because a thread that the profiler does not
    record freed memory of these parts."""
    reserved_bytes: Union[int, None] = None
    """What PyTorch had taken from the device at the peak; null for the CPU."""
    device_bytes: Union[int, None] = None
    """Memory of the device; null if the trace does not have it."""
    step: Union[int, None] = None
    """Step of the peak: N of `ProfilerStep#N`; null if the peak is between two steps, or if the
    trace has no steps."""
    after_s: float
    """Time from the start of the first step to the peak."""
    during: Union[MemoryPhase, None] = None
    """Phase that allocated the last block before the peak; null if it was before the steps."""
    parts: tuple[MemoryPart, ...]
    """What was allocated at the peak, by phase; the sum is `peak_bytes`. For the CPU, the phase
    `before` is missing, because its amount is not known."""
    operators: tuple[MemoryOwner, ...]
    """What operators of the recorded steps had allocated at the peak, the largest first."""
    lines: tuple[MemoryOwner, ...] = ()
    """The same by line of the program; empty if the trace has no stacks."""
    steps: tuple[MemoryStep, ...]


class MemoryBand(msgspec.Struct, frozen=True, kw_only=True):
    """The memory that one phase has allocated, over one step."""

    phase: MemoryPhase
    peak_bytes: int
    """Highest amount in the step."""
    shares: list[float]
    """The step is divided into equally long parts: for the moment of each part at which the most
    memory was allocated, the amount of this phase, as a share of the peak of the step, 0 to 1."""


class MemoryPicture(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one GPU over one step."""

    peak_bytes: int
    bands: tuple[MemoryBand, ...]
    """By phase, in the order of `MemoryPhase`."""
