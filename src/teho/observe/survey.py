"""Reads once all metrics of this machine that a recorder would read.

Each vendor's driver is asked in a separate process, all at the same time. If one driver hangs, the
survey says so and has the answers of the others.
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from teho.config.privacy import masked_text, readable
from teho.devices.host.cgroup import MemoryCgroup
from teho.devices.host.container import container_of
from teho.devices.host.source import HostSource, describe_host
from teho.devices.procfile import read_text
from teho.devices.sources import VENDORS, other_devices, versions_of, visible_variables
from teho.errors import DeviceError
from teho.model.device import DeviceSource, Readings
from teho.model.metric import Scope, metrics_of
from teho.model.missing import Missing, Reason
from teho.model.survey import Answers, Signal, Survey
from teho.process.isolated_call import IsolatedCall, answering
from teho.schedulers.allocation import read_allocation
from teho.version import __version__

__all__ = ["read_survey"]

_DEADLINE_S = 30.0
"""Without persistence mode, a driver first wakes all GPUs. This takes seconds for each GPU."""
_PAUSE_S = 0.25
"""Time between two samples: GPM needs 0.1 s for a figure."""
_SAMPLES = 13
"""Metrics that are slow to read come with every tenth sample; 3 s in all."""
_NO_FIGURE = Missing(Reason.UNRECORDED, f"no value came within {_PAUSE_S * (_SAMPLES - 1):.0f} s")

_VARIABLES = ("CUDA_DEVICE_ORDER", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "GPU_DEVICE_ORDINAL")


def read_survey(
    environment: Mapping[str, str] = os.environ,
    root: Path = Path("/"),
    deadline_s: float = _DEADLINE_S,
    *,
    signals: bool = True,
) -> Survey:
    """Read the host and the GPUs of all vendors, and return the answers.

    Args:
        environment: the environment of a program.
        root: a folder with `sys` and `proc`; `/` except in tests.
        deadline_s: time after which a driver counts as hung.
        signals: whether figures are read too, which takes up to 3 s.
    """
    environment = {name: readable(value) for name, value in environment.items()}
    cores = tuple(sorted(os.sched_getaffinity(0)))
    asked: dict[str, Callable[[], Answers]] = {
        vendor: partial(_ask_gpus, vendor, environment, root, signals=signals) for vendor in VENDORS
    }
    if signals:
        asked["node"] = partial(_ask_node, environment, root, cores)
    calls = {
        name: IsolatedCall(_driver(name), answering(ask), deadline_s) for name, ask in asked.items()
    }
    answers = {name: _answers(name, call) for name, call in calls.items()}
    facts = describe_host(root)
    allocation = read_allocation(environment, frozenset(cores), None, facts.memory_bytes)
    names = (*visible_variables(), *_VARIABLES)
    visible = {name: masked_text(environment[name]) for name in names if name in environment}
    return Survey(
        at=datetime.now(timezone.utc),
        host=os.uname().nodename,
        scheduler=allocation.scheduler,
        job_id=allocation.job_id,
        cores=cores,
        core_count_node=facts.core_count,
        memory_node_bytes=facts.memory_bytes,
        cpu_model=facts.cpu_model,
        visible=visible,
        system=_system(environment, root),
        node=answers.get("node", Answers(source="node")),
        gpus=tuple(answers[vendor] for vendor in VENDORS),
    )


def _answers(name: str, call: IsolatedCall) -> Answers:
    found = call.answer(Answers)
    if isinstance(found, Answers):
        return found
    return Answers(
        source=name,
        state="failed",
        why=found.why,
        next_step="report this to the administrator; `dmesg` may show the driver's error",
    )


def _driver(name: str) -> str:
    return "the kernel" if name == "node" else f"the {name.upper()} driver"


def _ask_node(environment: Mapping[str, str], root: Path, cores: tuple[int, ...]) -> Answers:
    source = HostSource(None, cores, environment, root)
    try:
        return Answers(source="node", signals=_signals(source, "node"), notes=source.notes)
    finally:
        source.close()


def _ask_gpus(vendor: str, environment: Mapping[str, str], root: Path, *, signals: bool) -> Answers:
    try:
        source = VENDORS[vendor].open_source(environment, root)
    except DeviceError as error:
        return Answers(
            source=vendor,
            state="absent",
            why=error.found,
            next_step=error.next_step,
            others=other_devices(vendor, root, ()),
            versions=versions_of(vendor, root),
        )
    try:
        return Answers(
            source=vendor,
            devices=source.devices,
            others=other_devices(vendor, root, source.devices),
            signals=_signals(source, "gpu") if signals else {},
            versions=versions_of(vendor, root),
            notes=source.notes,
        )
    finally:
        source.close()


def _signals(source: DeviceSource, scope: Scope) -> dict[str, dict[str, Signal]]:
    """Read until every metric has a value; the newest one counts.

    Metrics of a program's processes are left out, because no program runs.
    """
    requested = [
        metric.name
        for metric in metrics_of(scope)
        if not metric.per_core and not metric.name.startswith("job_")
    ]
    ids = [device.id for device in source.devices] or ["node"]
    newest: Readings = {id_: {} for id_ in ids}
    for sample in range(_SAMPLES):
        if sample:
            time.sleep(_PAUSE_S)
        for id_, values in source.read(frozenset(), ends=True).items():
            newest[id_].update(values)
        if sample and all(name in newest[id_] for id_ in ids for name in requested):
            break
    return {
        id_: {name: _signal(newest[id_].get(name, _NO_FIGURE)) for name in requested} for id_ in ids
    }


def _signal(reading: object) -> Signal:
    if isinstance(reading, Missing) or (
        isinstance(reading, (int, float)) and math.isfinite(reading)
    ):
        return reading
    return Missing(Reason.FAILED, "not a number")


def _system(environment: Mapping[str, str], root: Path) -> dict[str, str]:
    cgroup = MemoryCgroup(root, None, None)
    cgroup.close()
    system = {
        "kernel": os.uname().release,
        "system": _distribution(root),
        "cgroup": f"version {cgroup.version}" if cgroup.version else "not visible",
        "container": container_of(environment, root),
        "Python": platform.python_version(),
        "Teho": __version__,
    }
    return {name: text for name, text in system.items() if text}


def _distribution(root: Path) -> str:
    for line in read_text(root / "etc/os-release").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip('"')
    return ""
