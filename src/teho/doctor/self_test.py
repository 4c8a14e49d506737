"""Multiplies matrices in the user's Python: is the result right, and what is the rate in FLOP/s?

Many tutorials have such a `test_GPU.py`. This one checks the result, warms up, waits until each
product is finished, and compares the rate with the peak of the device.
"""

from __future__ import annotations

from collections.abc import Mapping

from teho.bench.examples import MATMUL
from teho.bench.measure import Effort, measure
from teho.doctor.snapshot import Snapshot
from teho.experiment.placement import Machine, Placement
from teho.launch.binding import physical_cores
from teho.model.bench import Measured
from teho.model.doctor import Product, SelfTest
from teho.model.missing import Missing

__all__ = ["self_test"]

_FOR_S = 90.0
_EFFORT = Effort(is_quick=True, seconds=0.3, most_s=5.0)
_ON_GPU = (
    {"size": 4096, "precision": "FP32"},
    {"size": 4096, "precision": "TF32"},
    {"size": 8192, "precision": "BF16"},
)
"""Large enough for a GPU of today, so that its start takes a small part of the time."""
_ON_CPU = ({"size": 1024, "precision": "FP32"},)
_UNFIT = {"no_gpu", "cpu_only_build", "broken"}
_LIBRARIES = ("numpy", "torch", "cupy", "jax")


def self_test(snapshot: Snapshot, environment: Mapping[str, str]) -> SelfTest:
    """Multiply matrices on the first GPU, or on the CPU if there is none, for up to 90 s.

    The results of every library are compared with NumPy in double precision. Then it is timed.
    """
    if isinstance(snapshot.python, Missing):
        why = f"Teho cannot read the Python installation: {snapshot.python.detail}"
        return SelfTest(state="not_run", why=why)
    if snapshot.failed_drivers:
        return SelfTest(state="not_run", why=snapshot.failed_drivers[0].why)
    if not any(one.name == "numpy" for one in snapshot.python.packages):
        return SelfTest(state="not_run", why=f"{snapshot.python.path} has no NumPy")
    frameworks = {one.framework for one in snapshot.python.frameworks}
    if snapshot.gpus and frameworks == {"tensorflow"}:
        return SelfTest(state="not_run", why="TensorFlow has no self-test")
    machine = Machine(tuple(physical_cores(snapshot.cores)), snapshot.gpus)
    placements = [Placement("cpu:all", machine.logical_cores)]
    if snapshot.gpus:
        placements.append(Placement("gpu:1", machine.logical_cores, snapshot.gpus[:1]))
    example = MATMUL._replace(
        cpu=("numpy",) if snapshot.gpus else ("numpy", "torch"),
        quick=_ON_GPU if snapshot.gpus else _ON_CPU,
    )
    measured = measure(
        example, _LIBRARIES, placements, snapshot.python.path, environment, _EFFORT, _FOR_S
    )
    return _judged(measured, placements[-1].name)


def _judged(measured: Measured, placement: str) -> SelfTest:
    """Return the result on one placement."""
    took_part = {one.library: one for one in measured.participants if one.placement == placement}
    wrong = [one for one in took_part.values() if one.why in {"disagrees", "died"}]
    errors = {
        (one.library, one.point["precision"]): one.error
        for one in reversed(measured.agreements)
        if one.placement == placement
    }
    products = tuple(
        Product(
            library=f"{timing.library} {took_part[timing.library].version}",
            device=took_part[timing.library].device,
            precision=timing.point["precision"],
            size=timing.point["size"],
            flop_per_s=timing.flop_per_s or 0.0,
            peak_percent=timing.peak_percent,
            error=errors.get((timing.library, timing.point["precision"])),
        )
        for timing in measured.timings
        if timing.placement == placement and timing.phase == "kernel"
    )
    if wrong:
        why = "; ".join(f"{one.library}: {one.text}" for one in wrong)
        return SelfTest(state="failed", products=products, why=why)
    if products:
        return SelfTest(state="passed", products=products)
    unseen = [one for one in took_part.values() if one.why in _UNFIT and one.library != "numpy"]
    texts = [one.text for one in unseen or took_part.values() if one.text]
    return SelfTest(state="failed" if unseen else "not_run", why="; ".join(texts))
