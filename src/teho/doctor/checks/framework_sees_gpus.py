"""Every framework sees as many GPUs as the driver shows."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, spared, symptom, unknown
from teho.doctor.scene import Scene, Sight
from teho.explain.wording import joined
from teho.model.doctor import Symptom
from teho.model.finding import Severity
from teho.model.missing import Missing
from teho.model.software import Build

__all__ = ["ABOUT", "DECISIVE", "ID", "look"]

ID = "framework-sees-gpus"
ABOUT = "GPUs that the frameworks see, each asked in a process of its own"
DECISIVE = True


def look(scene: Scene) -> Outcome:
    """Compare what each framework counts with what the driver shows."""
    python = scene.python
    if isinstance(python, Missing):
        return unknown(f"no Python could be asked: {python.detail}")
    if not python.frameworks:
        return moot(f"no GPU framework in {python.path}")
    if not scene.expects_gpus:
        return moot("no GPU is here for a framework to see")
    if scene.failed_drivers:
        return unknown("a driver that does not answer would hang the frameworks too")
    builds = [one for one in python.frameworks if python.kind_of(one) != "cpu"]
    if not builds:
        return moot(f"no framework for GPUs in {python.path}")
    gone: list[str] = []
    found: list[Symptom] = []
    for build in builds:
        sight = python.sights.get(build.framework)
        if not isinstance(sight, Sight):
            gone.append(sight.detail if sight else f"{build.package} was not asked")
        elif sight.gpus is None and not sight.broken:
            gone.append(f"{build.package} does not say how many it sees")
        else:
            found += _judged(scene, build, sight)
    if found:
        return spared(found, len(builds))
    if gone:
        return unknown("; ".join(gone))
    return fine(f"{joined([one.framework for one in builds])}: {len(scene.gpus)} each")


def _judged(scene: Scene, build: Build, sight: Sight) -> list[Symptom]:
    if sight.broken:
        return [
            symptom(
                ID,
                Severity.CRITICAL,
                f"{build.package} cannot be imported: {sight.broken}.",
                "Make the environment anew: `teho env plan` writes the commands; or load the "
                "modules that it was made with.",
                ("version", sight.version or build.version, ""),
                dooms=True,
            )
        ]
    wanted = 1 if any(gpu.parent_id for gpu in scene.gpus) else len(scene.gpus)
    if sight.gpus is None or sight.gpus >= wanted:
        return []
    said = f": {sight.why}" if sight.why else ""
    return [
        symptom(
            ID,
            Severity.WARNING if sight.gpus else Severity.CRITICAL,
            f"{build.package} sees {sight.gpus} GPUs, and the driver shows {wanted}{said}.",
            "Compare it with what `teho doctor` says of driver, build and container; if nothing "
            "is wrong there, tell the administrator of the node.",
            ("version", sight.version or build.version, ""),
            ("seen by the framework", sight.gpus, "GPUs"),
            ("seen by the driver", wanted, "GPUs"),
            dooms=sight.gpus == 0,
        )
    ]
