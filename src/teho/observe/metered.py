"""Runs a program and measures its energy: `teho energy -- COMMAND`.

The meter is a separate process, for the same reasons as the recorder of `teho run`. It reads the
counters before the program begins and after its end. If a GPU has no counter, it adds up the power
of this GPU.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from teho.devices.meter import Meter, counted_with, drawn, without_counter
from teho.devices.sources import VENDORS
from teho.errors import DeviceError
from teho.model.device import Device, DeviceSource
from teho.model.missing import Missing, Reason
from teho.model.summary import Figure
from teho.observe.program import Outcome, die_like
from teho.observe.supervisor import Supervisor
from teho.process.json_lines import LineReader, send

__all__ = ["MeteredGpu", "MeteredRun", "run_metered"]

_OPEN_WAIT_S = 10.0
"""A driver may take seconds to start. If it hangs, the program runs nevertheless."""
_NO_ANSWER = f"the GPUs' driver did not answer within {_OPEN_WAIT_S:g} s"
_LATE = f"{_NO_ANSWER}: the energy used before the driver answered is not counted"
_PAUSE_S = 0.05
_POWER_EVERY_S = 0.1
"""Power sensors have a new value every 20 to 100 ms ("Part-time Power Measurements")."""
_DEADLY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class MeteredGpu(msgspec.Struct, frozen=True):
    """The energy of one GPU."""

    position: int
    energy_j: Figure
    is_integrated: bool = False
    """Whether it was added up from power, because the GPU has no counter."""


class MeteredRun(msgspec.Struct, frozen=True):
    """The energy that was measured while a program ran."""

    gpus: tuple[MeteredGpu, ...] = ()
    """Without GPUs whose energy is in another GPU's counter."""
    elapsed_s: float = 0.0
    """Time between the two readings."""
    notes: tuple[str, ...] = ()
    refusal: str = ""
    """Why no energy could be measured."""


def run_metered(argv: Sequence[str]) -> tuple[Outcome, MeteredRun]:
    """Run a program unchanged, and return its end and the energy of the GPUs.

    Raises:
        CannotStart: the program does not exist.
    """
    supervisor = Supervisor()
    reading, writing = os.pipe()
    supervisor.start_recorder(partial(_measure, answers=writing), keep=(writing,))
    os.close(writing)
    meter = LineReader(reading)
    is_late, pending = _wait_for_meter(meter)
    if pending:
        supervisor.kill_recorder()
        die_like(Outcome(0.0, None, pending, 0.0, 0))
    supervisor.start(argv, os.environ)
    outcome = supervisor.wait()
    supervisor.finish_recording(lambda: None)
    for message in meter.messages():
        if "measured" in message:
            measured = msgspec.convert(message["measured"], MeteredRun)
            if is_late:
                measured = msgspec.structs.replace(measured, notes=(*measured.notes, _LATE))
            return outcome, measured
    troubles = "; ".join(what for _, what in outcome.troubles)
    return outcome, MeteredRun(refusal=_NO_ANSWER if is_late else troubles)


def _wait_for_meter(meter: LineReader) -> tuple[bool, int]:
    """Wait for the meter's first reading: `(whether it is late, deadly signal or 0)`.

    If the meter has failed, it is not late: the outcome then has its trouble.
    """
    deadline_s = time.monotonic() + _OPEN_WAIT_S
    while not meter.closed and time.monotonic() < deadline_s:
        if meter.wait(_PAUSE_S) and any("begun" in message for message in meter.messages()):
            return False, 0
        for number in _DEADLY:
            if number in signal.sigpending():
                return False, number
    return not meter.closed, 0


def _measure(control: int, back: int, program: int, answers: int) -> None:  # noqa: ARG001
    """In the meter's process: read, wait for the program's end, read again, send the energy."""
    reader = LineReader(control)
    try:
        meter = Meter()
    except DeviceError as error:
        send(answers, begun=True)
        _wait(reader, None)
        send(answers, measured=msgspec.to_builtins(MeteredRun(refusal=error.found)))
        return
    before = meter.read()
    began_s = time.monotonic()
    lacking = [meter.devices[place] for place in without_counter(meter.devices, before)]
    power = _Power(lacking, os.environ) if lacking else None
    send(answers, begun=True)
    _wait(reader, power)
    after = meter.read()
    elapsed_s = time.monotonic() - began_s
    by_power = power.energies_j if power else {}
    figures = [
        by_power.get(device.id, figure)
        for device, figure in zip(
            meter.devices, drawn(meter.devices, before, after, elapsed_s), strict=True
        )
    ]
    elsewhere = counted_with(meter.devices, figures)
    gpus = [
        MeteredGpu(place, figure, meter.devices[place].id in by_power)
        for place, figure in enumerate(figures)
        if place not in elsewhere
    ]
    measured = MeteredRun(tuple(gpus), elapsed_s, meter.notes)
    send(answers, measured=msgspec.to_builtins(measured))


def _wait(reader: LineReader, power: _Power | None) -> None:
    """Wait until the program or the supervisor has ended."""
    while not reader.closed:
        if power:
            power.sample()
        reader.wait(_POWER_EVERY_S if power else None)
        if any("end" in message for message in reader.messages()):
            break
    if power:
        power.sample()


class _Power:
    """Energy of GPUs without a counter, added up from their power.

    Args:
        devices: those GPUs.
        environment: has `CUDA_VISIBLE_DEVICES` and similar variables.
        root: a folder with `sys` and `proc`.

    Attributes:
        energies_j: the energy of each GPU from the first sample to the last.
    """

    def __init__(
        self, devices: Sequence[Device], environment: Mapping[str, str], root: Path = Path("/")
    ) -> None:
        self._sources: list[DeviceSource] = []
        for vendor in sorted({device.vendor for device in devices}):
            try:
                self._sources.append(VENDORS[vendor].open_source(environment, root))
            except DeviceError:
                continue
        unknown = Missing(Reason.UNSUPPORTED, "the GPU reports neither an energy counter nor power")
        self.energies_j: dict[str, Figure] = {device.id: unknown for device in devices}
        self._before: dict[str, tuple[float, float]] = {}
        self._lost: set[str] = set()

    def sample(self) -> None:
        """Read the power once more."""
        now_s = time.monotonic()
        for source in self._sources:
            for device, values in source.read(frozenset()).items():
                if device in self.energies_j and device not in self._lost:
                    self._add(device, now_s, values.get("gpu_power_w"))

    def _add(self, device: str, now_s: float, power_w: object) -> None:
        if isinstance(power_w, Missing):
            # The energy since the last sample is not known, so the total is not known either.
            self.energies_j[device] = power_w
            self._lost.add(device)
        elif isinstance(power_w, (int, float)):
            before_s, before_w = self._before.get(device, (now_s, power_w))
            self._before[device] = (now_s, power_w)
            known = self.energies_j[device]
            so_far_j = 0.0 if isinstance(known, Missing) else known
            self.energies_j[device] = so_far_j + (now_s - before_s) * (before_w + power_w) / 2
