"""A `Measured` as a machine with a GPU would give it: made up, for the faces that show it."""

from __future__ import annotations

import msgspec

from teho.bench.example import BenchExample, grouped
from teho.bench.examples import EXAMPLES
from teho.bench.judge import Samples, amortisation_of, crossover_of, key_of, timing_of
from teho.bench.verdict import notes_of, verdict_of
from teho.bench.watch import Seen
from teho.model.bench import Agreement, Bench, Left, Measured, Participant, Timing

SIDES = (("cpu:1", "numpy"), ("cpu:8", "numpy"), ("cpu:8", "torch"), ("gpu:1", "cupy"))
_START_S = {"cpu:1": 8e-6, "cpu:8": 12e-6, "gpu:1": 200e-6}
_RATE = {"cpu:1": 2e9, "cpu:8": 12e9, "gpu:1": 4e11}


def _timing(example: BenchExample, point, phase: str, placement: str, library: str) -> Timing:
    work = {
        "solve": lambda: point["systems"] * point["rows"] ** 3,
        "matmul": lambda: 2 * point["size"] ** 3,
    }
    flop = work[example.name]()
    seconds = _START_S[placement] + flop / _RATE[placement] * (1.1 if library == "torch" else 1)
    if phase == "end to end":
        seconds = 3 * seconds + (20e-6 + flop / 1e10 if placement == "gpu:1" else 0)
    if phase.startswith("copy"):
        seconds = 30e-6 + flop / 1e11
    near = [seconds * (1 + 0.002 * number) for number in range(-6, 6)]
    samples = Samples(
        point, library, placement, phase, 0.3 if placement == "gpu:1" else seconds, tuple(near), 1,
        flop=flop if phase in {"kernel", "end to end"} else None,
    )  # fmt: skip
    peak = 67e12 if placement == "gpu:1" and phase == "kernel" else None
    return timing_of(samples, peak, Seen(0.0, 40.0) if placement == "gpu:1" else Seen())


def made_up(name: str = "solve") -> Bench:
    example = EXAMPLES[name]
    points = [point for point in example.full if point.get("precision") not in {"TF32", "BF16"}]
    if name == "matmul":
        points = [point for point in points if point["size"] <= 8192]
    groups = grouped(example, tuple(points))
    phases = ("kernel", "copy in", "copy out", "end to end")
    timings = [
        _timing(example, point, phase, placement, library)
        for point in points
        for placement, library in SIDES
        for phase in (phases if placement == "gpu:1" else ("kernel", "end to end"))
    ]
    crossovers, amortisations = [], []
    for group, own in groups.items():
        keys = {key_of(point) for point in own}
        of = [one for one in timings if key_of(one.point) in keys]
        for slow, fast in (("cpu:1", "cpu:8"), ("cpu:1", "gpu:1"), ("cpu:8", "gpu:1")):
            crossovers += [
                crossover_of(of, phase, slow, fast, example.axis, group)
                for phase in ("kernel", "end to end")
            ]
        amortisations += amortisation_of(of, ("kernel",), "gpu:1", "cpu:8", group)
    measured = Measured(
        name=name,
        title=example.title,
        verdict="",
        axis=example.axis,
        figure=example.figure,
        phases=example.phases,
        groups=groups,
        participants=(
            *(
                Participant(
                    library=library, placement=placement, version="1.0", python="3.11.7",
                    device="NVIDIA H100 80GB HBM3" if placement == "gpu:1" else "Some CPU",
                    threads=8,
                )
                for placement, library in SIDES
            ),
            Participant(
                library="torch", placement="gpu:1", why="cpu_only_build",
                text="PyTorch 2.13.0+cpu is a build for CPUs only",
            ),
        ),
        agreements=(Agreement(
            point=points[0], library="cupy", placement="gpu:1", reference="numpy on cpu:1",
            error=2e-13, tolerance=1e-10, agrees=True,
        ),),
        timings=tuple(timings),
        left=(Left(
            point=points[-1], library="cupy", placement="gpu:1", why="memory",
            text="OutOfMemoryError: out of memory allocating 800,000,000 bytes",
        ),),
        crossovers=tuple(one for one in crossovers if one is not None),
        amortisations=tuple(amortisations),
        notes=(),
        elapsed_s=312.0,
    )  # fmt: skip
    measured = msgspec.structs.replace(
        measured, verdict=verdict_of(measured), notes=tuple(notes_of(measured))
    )
    return Bench(
        teho_version="0", at="2026-01-01T00:00:00+00:00", cpu="Some CPU",
        gpus=("NVIDIA H100 80GB HBM3",), python="/usr/bin/python", is_quick=False,
        results=(measured,),
    )  # fmt: skip
