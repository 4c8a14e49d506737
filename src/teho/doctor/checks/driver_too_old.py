"""The driver is new enough for the CUDA that a framework was built with."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, spared, symptom, unknown
from teho.doctor.snapshot import FrameworkReport, Python, Snapshot
from teho.explain.wording import joined
from teho.model.doctor import Symptom
from teho.model.finding import Severity
from teho.model.missing import Missing
from teho.model.software import Build, Driver
from teho.software.choose import driver_runs
from teho.software.drivers import lowest_driver

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "driver-too-old"
ABOUT = "NVIDIA's driver, against the CUDA that frameworks were built with"
DECISIVE = True


def check(snapshot: Snapshot) -> Outcome:
    """Compare the driver's version with the lowest that each toolkit takes."""
    python = snapshot.python
    if isinstance(python, Missing):
        return unknown(f"no Python could be asked: {python.detail}")
    driver = snapshot.nvidia_driver
    toolkits = {
        one.framework: toolkit for one in python.frameworks if (toolkit := _toolkit(python, one))
    }
    if driver is None:
        if (
            toolkits
            and snapshot.cluster
            and any(gpu.vendor == "nvidia" for gpu in snapshot.site_gpus)
        ):
            nodes = f"{snapshot.cluster.title}'s compute nodes"
            return unknown(f"the driver of {nodes} is not documented; nvidia-smi in a job shows it")
        return moot("no NVIDIA driver is here")
    if not toolkits:
        if any(python.kind_of(one) == "cuda" for one in python.frameworks):
            return unknown("no framework says which CUDA it was built with")
        return moot(f"no framework for CUDA in {python.path}")
    runs = {name: driver_runs(driver, toolkit) for name, toolkit in toolkits.items()}
    found = [
        _found(snapshot, driver, name, toolkits[name]) for name, can in runs.items() if can is False
    ]
    if found:
        return spared(found, sum(python.kind_of(one) != "cpu" for one in python.frameworks))
    if unsure := [toolkits[name] for name, can in runs.items() if can is None]:
        return unknown(f"which driver CUDA {joined(unsure)} needs is not known")
    said = joined([f"CUDA {toolkit} of {name}" for name, toolkit in toolkits.items()])
    return fine(f"{_name(driver)} {driver.where} is new enough for {said}")


def _toolkit(python: Python, build: Build) -> str:
    report = python.framework_reports.get(build.framework)
    if isinstance(report, FrameworkReport) and report.kind == "cuda" and report.toolkit:
        return report.toolkit
    return build.toolkit if build.kind == "cuda" else ""


def _found(snapshot: Snapshot, driver: Driver, name: str, toolkit: str) -> Symptom:
    least = ".".join(map(str, lowest_driver(toolkit) or ()))
    return symptom(
        ID,
        Severity.CRITICAL,
        f"The driver {driver.where} is too old for {name}: CUDA {toolkit} needs {least}, and it is "
        f"{_name(driver)}.",
        f"Install a build for an older CUDA: `teho env plan --framework {name}` proposes the "
        "newest that this driver takes.",
        ("driver", _name(driver), ""),
        ("lowest for it", least, ""),
        ("CUDA of the build", toolkit, ""),
        dooms=snapshot.expects_gpus,
    )


def _name(driver: Driver) -> str:
    return driver.version or f"one for CUDA {driver.cuda}"
