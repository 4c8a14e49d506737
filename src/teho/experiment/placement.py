"""Placements: the part of the job's cores and GPUs that a program may use, such as `gpu:1`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.devices.sources import VENDORS, open_gpus, visible_variables
from teho.errors import InputError
from teho.explain.wording import joined
from teho.launch.binding import physical_cores
from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.patterns import lazy_pattern
from teho.schedulers.allocation import read_allocation
from teho.units import counted

__all__ = ["Machine", "Placement", "needed_placements", "read_placements", "this_machine"]

_FORM = lazy_pattern(r"(cpu|gpu):(all|[1-9][0-9]{0,5})")
_EXPECTED = "cpu:N, cpu:all, gpu:N or gpu:all, such as cpu:1,cpu:all,gpu:1"
_THREADS = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "BLIS_NUM_THREADS",
)  # fmt: skip
_CORE_VARIABLES = ("SLURM_CPUS_PER_TASK", "NSLOTS")
"""Many programs set their number of threads from these, as sites recommend."""
_NAMES_CORES = frozenset(("GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES"))
# Without a GPU, JAX uses the CPU by itself, but prints a page of warnings.
_JAX_WITHOUT_GPU = {"JAX_PLATFORMS": "cpu"}


class Machine(NamedTuple):
    """The cores and GPUs of this job."""

    cores: tuple[tuple[int, ...], ...]
    """Logical CPUs of each physical core."""
    gpus: tuple[Device, ...]
    """In the order in which a program would see them."""
    why_no_gpu: str = ""

    @property
    def logical_cores(self) -> tuple[int, ...]:
        """All logical CPUs."""
        return tuple(sorted(core for threads in self.cores for core in threads))


class Placement(NamedTuple):
    """Cores and GPUs that one variant of a program may use."""

    name: str
    """`cpu:2`, `gpu:1`; `all` is replaced by the number."""
    cores: tuple[int, ...]
    gpus: tuple[Device, ...] = ()

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the environment in which a program sees only these cores and GPUs.

        Without GPUs, the variables for threads and the scheduler's cores of a task are set to the
        number of cores. Variables for another number of cores would distort the comparison. With
        GPUs, all cores are used, and the user's variables for threads are kept. The caller sets
        the cores with `os.sched_setaffinity`.
        """
        found = {name: text for name, text in own.items() if name not in _NAMES_CORES}
        if not self.gpus:
            numbered = (*_THREADS, *(name for name in _CORE_VARIABLES if name in own))
            hidden = {**dict.fromkeys(visible_variables(), "-1"), **_JAX_WITHOUT_GPU}
            return {**found, **hidden, **dict.fromkeys(numbered, str(len(self.cores)))}
        named: dict[str, str] = {}
        for vendor in VENDORS.values():
            if vendor.visible_variables and (names := _ids(self.gpus, vendor.name)):
                # With several variables, a runtime may apply one after the other.
                for variable in vendor.visible_variables:
                    found.pop(variable, None)
                named[vendor.visible_variables[0]] = names
        return found | named


def this_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """Return the cores and GPUs that a program of this job would have.

    If the job's cores come with its GPUs and it may run on more, the others belong to other jobs.
    """
    sources, refusals = open_gpus(environment)
    gpus = tuple(device for source in sources for device in source.devices)
    for source in sources:
        source.close()
    why = "; ".join(refusal.found for refusal in refusals) if not gpus else ""
    if not gpus and sources:
        why = "the environment variables of the job hide all GPUs"
    allowed = frozenset(os.sched_getaffinity(0))
    given = read_allocation(environment, allowed, None, None)
    return Machine(_own_cores(physical_cores(allowed), gpus, given), gpus, why)


def _own_cores(
    cores: Sequence[tuple[int, ...]], gpus: Sequence[Device], given: Allocation
) -> tuple[tuple[int, ...], ...]:
    """Return the number of cores that came with the GPUs, or all cores if none came.

    Which cores these are is not known. The first GPU decides, so that jobs with different GPUs use
    different cores.
    """
    requested = given.cores_asked
    if (
        "cores" not in given.with_gpus
        or not requested
        or not given.gpus_held
        or requested >= len(cores)
    ):
        return tuple(cores)
    place = min((gpu.index for gpu in gpus), default=0) * requested // given.gpus_held
    first = min(place, len(cores) - requested)
    return tuple(cores[first : first + requested])


def read_placements(text: str, machine: Machine, option: str) -> tuple[list[Placement], list[str]]:
    """Return the placements that this machine has, and a sentence about the others.

    `cpu:N` takes one hardware thread of each core before it takes a second one.

    Args:
        text: such as `cpu:1,cpu:all,gpu:1`.
        machine: cores and GPUs of the job.
        option: name of the option, for the message.

    Raises:
        InputError: the text has another form, or the job has fewer cores.
    """
    found: dict[str, Placement] = {}
    absent: list[str] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        form = _FORM.fullmatch(word)
        if form is None:
            raise InputError(f"{option} {word}", _EXPECTED)
        kind, count = form[1], form[2]
        if kind == "cpu":
            cores = _in_turn(machine.cores)
            number = len(cores) if count == "all" else int(count)
            if number > len(cores):
                found_cores = counted(len(cores), "core")
                raise InputError(
                    f"{option} {word}: this job has {found_cores}", "at most this number"
                )
            own = Placement(f"cpu:{number}", tuple(sorted(cores[:number])))
        else:
            gpus = machine.gpus
            number = len(gpus) if count == "all" else int(count)
            if number > len(gpus) or not gpus:
                absent.append(word)
                continue
            own = Placement(f"gpu:{number}", machine.logical_cores, gpus[:number])
        found.setdefault(own.name, own)
    if not found and not absent:
        raise InputError(f"{option} {text!r}", _EXPECTED)
    return list(found.values()), [_left_out(absent, machine)] if absent else []


def needed_placements(
    text: str, machine: Machine, option: str
) -> tuple[list[Placement], list[str]]:
    """Do the same as `read_placements`, but require at least one placement.

    Raises:
        InputError: also if this machine has none of them.
    """
    found, notes = read_placements(text, machine, option)
    if not found:
        raise InputError(
            f"{option} {text}: {_gpus_here(machine)}", "cores or GPUs that the job has"
        )
    return found, notes


def _ids(gpus: Sequence[Device], vendor: str) -> str:
    """Return the GPUs as the runtime expects them: names, or numbers if a GPU has no name."""
    own = [device for device in gpus if device.vendor == vendor]
    named = all(device.id.startswith(("GPU-", "MIG-")) for device in own)
    return ",".join(device.id if named else str(device.index) for device in own)


def _in_turn(cores: Sequence[tuple[int, ...]]) -> list[int]:
    """Return all hardware threads: first one of every core, then the second ones."""
    deepest = max(map(len, cores))
    return [core[turn] for turn in range(deepest) for core in cores if turn < len(core)]


def _left_out(words: Sequence[str], machine: Machine) -> str:
    were = "were" if len(words) > 1 else "was"
    return f"{joined(words)} {were} left out: {_gpus_here(machine)}."


def _gpus_here(machine: Machine) -> str:
    if machine.gpus:
        return f"this job has only {counted(len(machine.gpus), 'GPU')}"
    return f"this job has no GPU{f' ({machine.why_no_gpu})' if machine.why_no_gpu else ''}"
