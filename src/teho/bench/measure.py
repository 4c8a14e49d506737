"""Measures an example: compares the results of all libraries on all placements, then times them.

Each library on each placement is a separate process. The processes take turns point by point, so
that changes of the machine affect all of them in the same way.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import msgspec

from teho.bench.example import BenchExample, OutputCheck, grouped
from teho.bench.judge import Samples, agreement_of, key_of, timing_of
from teho.bench.placements import crossings_of
from teho.bench.verdict import notes_of, verdict_of
from teho.bench.watch import Watch
from teho.bench.worker import Worker
from teho.experiment.placement import Placement
from teho.explain.peaks import Peaks, peaks_of
from teho.model.bench import Agreement, Left, Measured, Participant, Point, Timing
from teho.model.device import DeviceSource

__all__ = ["Effort", "measure"]

_PEAKS = {
    "FP64": ("fp64_tflops", "tensor_fp64_tflops"),
    "FP32": ("fp32_tflops",),
    "TF32": ("tensor_tf32_tflops",),
    "BF16": ("tensor_16bit_tflops",),
}
"""Precision -> rates in `peaks.toml`. The highest of them counts."""


class Effort(NamedTuple):
    """How long each phase is measured."""

    is_quick: bool
    seconds: float
    """Least time of all samples of a phase at a point."""
    most_s: float
    """Time after which a phase ends even with fewer samples."""
    samples: int = 10
    """Least number of samples, as in nvbench."""

    @classmethod
    def of(cls, *, is_quick: bool) -> Effort:
        """Return nvbench's defaults, 10 samples and 0.5 s; if quick, a twentieth of the time."""
        return cls(is_quick, 0.025, 0.5) if is_quick else cls(is_quick, 0.5, 5.0)


def measure(
    example: BenchExample,
    libraries: Sequence[str],
    placements: Sequence[Placement],
    python: str,
    environment: Mapping[str, str],
    effort: Effort,
    for_s: float,
    *,
    sources: Sequence[DeviceSource] = (),
    memory_bytes: int | None = None,
    notes: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Measured:
    """Measure an example and judge it. After an interrupt, return the result so far.

    Args:
        example: of the catalogue.
        libraries: that may take part.
        placements: cores and GPUs to compare, the smallest first.
        python: path of the Python that runs the programs.
        environment: of the programs.
        effort: how long to measure each phase.
        for_s: time limit. After it, no more points are begun.
        sources: of the GPUs, read while they work.
        memory_bytes: that a process on the CPU may use; None: without a limit.
        notes: about what was left out before.
        progress: called with a line about the progress.

    Raises:
        InputError: this Python does not start.
    """
    notes = (*notes, *example.left_out)
    if example.sizes and not environment.get("CIFAR10_PATH"):
        made = (
            "The images are random noise in CIFAR-10's format. To use the real images of CIFAR-10, "
            "set `CIFAR10_PATH`."
        )
        notes = (*notes, made)
    with ExitStack() as stack:
        bench = _Bench(example, effort, time.monotonic() + for_s, sources, progress)
        try:
            for placement in placements:
                offered = example.gpu if placement.gpus else example.cpu
                for library in (name for name in offered if name in libraries):
                    limit = None if placement.gpus else memory_bytes
                    worker = Worker(example.name, library, placement, python, environment, limit)
                    stack.callback(worker.end)
                    bench.workers.append(worker)
            bench.start()
            bench.check()
            bench.time()
        except KeyboardInterrupt:
            notes = (*notes, "The measurement was ended early, so some sizes are missing.")
        return bench.judged(placements, notes, for_s)


class _Bench:
    def __init__(
        self,
        example: BenchExample,
        effort: Effort,
        until_s: float,
        sources: Sequence[DeviceSource],
        progress: Callable[[str], None],
    ) -> None:
        self.workers: list[Worker] = []
        self._example = example
        self._effort = effort
        self._until_s = until_s
        self._watch = Watch(sources)
        self._progress = progress
        self._participants: dict[str, Participant] = {}
        self._agreements: list[Agreement] = []
        self._timings: list[Timing] = []
        self._left: list[Left] = []
        self._notes: dict[str, None] = {}
        """Notes of the processes, each once."""
        self._sweeps: set[tuple[str, str]] = set()
        """Worker and group of each sweep that continues."""
        self._slow: set[tuple[str, str]] = set()
        """Sweeps whose larger points would take too long."""
        self._used_s: dict[str, float] = defaultdict(float)

    @property
    def _left_s(self) -> float:
        return max(self._until_s - time.monotonic(), 0.0)

    def start(self) -> None:
        """Wait for the first answer of every process, and remove those that cannot take part."""
        for worker in list(self.workers):
            (answer,) = worker.ask(None, self._left_s)
            own = Participant(library=worker.library, placement=worker.placement.name)
            if answer["at"] == "ready":
                facts = ("version", "python", "device", "threads")
                own = msgspec.structs.replace(own, **{name: answer[name] for name in facts})
                if note := answer.get("note"):
                    self._notes[note] = None
            else:
                own = msgspec.structs.replace(own, why=answer["why"], text=answer["text"])
                self.workers.remove(worker)
            self._participants[worker.name] = own

    def check(self) -> None:
        """Compare all results with the first library's, and remove processes with wrong ones."""
        self._progress(f"{self._example.name}: comparing the results of all libraries")
        for check in self._example.checks:
            by, reference = "", None
            for worker in list(self.workers):
                if reference is None:
                    by = worker.name
                    reference = self._figures(worker, check.reference or check.point)
                    if reference is None or check.reference is None:
                        continue
                figures = self._figures(worker, check.point)
                if figures is not None:
                    self._compare(worker, check, figures, reference, by)

    def _figures(self, worker: Worker, point: Point) -> list[float | None] | None:
        for answer in worker.ask({"do": "check", "point": point}, self._left_s):
            if answer["at"] == "result":
                found: list[float | None] = answer["figures"]
                return found
            if answer["why"] != "unsupported":
                self._remove(worker, answer)
        return None

    def _compare(
        self,
        worker: Worker,
        check: OutputCheck,
        figures: list[float | None],
        reference: list[float | None],
        by: str,
    ) -> None:
        own = (check.point, worker.library, worker.placement.name)
        agreement = agreement_of(own, figures, reference, check.tolerance, by)
        self._agreements.append(agreement)
        if not agreement.agrees:
            text = "the results are not numbers, or there are too few or too many results"
            if agreement.error is not None:
                text = (
                    f"the results differ by {agreement.error:.1g} of the largest value, but only "
                    f"{check.tolerance:.1g} is allowed"
                )
            self._remove(worker, {"why": "disagrees", "text": text})

    def _remove(self, worker: Worker, answer: Mapping[str, Any]) -> None:
        if worker in self.workers:
            self.workers.remove(worker)
        worker.end()
        self._participants[worker.name] = msgspec.structs.replace(
            self._participants[worker.name], why=answer["why"], text=answer["text"]
        )

    def _groups(self, *, on_gpu: bool) -> dict[str, list[Point]]:
        is_quick = self._effort.is_quick
        return grouped(self._example, self._example.points(is_quick=is_quick, on_gpu=on_gpu))

    def time(self) -> None:
        """Time all points in turns, one point of each group in a round.

        All groups end in the last round, because groups with few points have the largest problems.
        """
        kinds = {on_gpu: self._groups(on_gpu=on_gpu) for on_gpu in (True, False)}
        groups = {worker: kinds[bool(worker.placement.gpus)] for worker in self.workers}
        self._sweeps = {(worker.name, group) for worker in self.workers for group in groups[worker]}
        rounds = max(len(points) for own in kinds.values() for points in own.values())
        for number in range(rounds):
            for group in dict.fromkeys(group for own in kinds.values() for group in own):
                for worker in list(self.workers):
                    points = groups[worker].get(group, [])
                    place = number - rounds + len(points)
                    if place < 0 or (worker.name, group) not in self._sweeps:
                        continue
                    began_s = time.monotonic()
                    if not self._time_point(worker, points[place], group):
                        self._sweeps.discard((worker.name, group))
                    self._used_s[worker.name] += time.monotonic() - began_s

    @property
    def _share_s(self) -> float:
        """Return the time of each process whose sweeps continue, with the time that it has used.

        All have the same share, and share what the others do not need.
        """
        going = {name for name, _ in self._sweeps} & {worker.name for worker in self.workers}
        return (self._left_s + sum(self._used_s[name] for name in going)) / len(going)

    def _time_point(self, worker: Worker, point: Point, group: str) -> bool:
        """Time one point; return whether to continue with the next one of its group."""
        if not self._left_s:
            self._leave(worker, point, "time", "the time limit was reached")
            return False
        if self._used_s[worker.name] > self._share_s:
            self._leave(worker, point, "time", "this library had used its share of the time")
            return False
        if (worker.name, group) in self._slow:
            self._leave(worker, point, "slow", "earlier and smaller sizes took too long")
            return False
        self._progress(
            f"{self._example.name}: {worker.name}, {group} {self._example.axis} "
            f"{point[self._example.axis]}"
        )
        effort = self._effort
        command = {
            "do": "time",
            "point": point,
            "seconds": effort.seconds,
            "samples": effort.samples,
            "most_s": effort.most_s,
        }
        gpus = worker.placement.gpus
        sample = partial(self._watch.sample, gpus) if gpus else _no_sample
        # A point that takes too long leaves time for the other processes.
        own_s = self._share_s - self._used_s[worker.name]
        limit_s = min(self._left_s, max(own_s, self._left_s / 2))
        for answer in worker.ask(command, limit_s, sample):
            if answer["at"] == "times":
                sample()  # a phase may be shorter than the time between two readings
                timing = self._timing(worker, point, answer)
                self._timings.append(timing)
                is_long = timing.low_s * effort.samples > effort.most_s
                # A GPU's sweep continues until its memory is full.
                if is_long and self._example.grows and not gpus:
                    self._slow.add((worker.name, group))
            elif answer["at"] == "out":
                self._leave(worker, point, answer["why"], answer["text"])
                return False
            elif answer["at"] == "gone":
                self._leave(worker, point, answer["why"], answer["text"])
                self._remove(worker, answer)
                return False
        return True

    def _leave(self, worker: Worker, point: Point, why: str, text: str) -> None:
        self._left.append(
            Left(
                point=point,
                library=worker.library,
                placement=worker.placement.name,
                why=why,
                text=text,
            )
        )

    def _timing(self, worker: Worker, point: Point, answer: Mapping[str, Any]) -> Timing:
        names = ("phase", "first_s", "calls", "flop", "bytes", "items", "memory_bytes")
        samples = Samples(
            point=point,
            library=worker.library,
            placement=worker.placement.name,
            samples_s=tuple(answer["samples_s"]),
            **{name: answer[name] for name in names},
        )
        return timing_of(samples, self._peak(worker, samples), self._watch.seen())

    def _peak(self, worker: Worker, samples: Samples) -> float | None:
        """Return the peak of a GPU for this phase; None if it is not known, as for CPUs."""
        if len(worker.placement.gpus) != 1:
            return None
        peaks: Peaks | None = peaks_of(worker.placement.gpus[0])
        if peaks is None:
            return None
        if self._example.figure == "bytes":
            return peaks.pcie_bytes_per_s
        if samples.phase not in self._example.kernels or samples.flop is None:
            return None
        precision = samples.point.get(self._example.precision, self._example.precision)
        rates = (peaks.flop_per_s(rate) for rate in _PEAKS.get(precision.upper(), ()))
        return max((rate for rate in rates if rate is not None), default=None)

    def judged(
        self, placements: Sequence[Placement], notes: Sequence[str], for_s: float
    ) -> Measured:
        """Return all timings, with the crossovers and the verdict."""
        groups = self._groups(on_gpu=any(place.gpus for place in placements))
        for group, points in self._groups(on_gpu=False).items():
            own = groups.setdefault(group, [])
            own += [point for point in points if key_of(point) not in map(key_of, own)]
            own.sort(key=lambda point: float(point[self._example.axis]))
        crossovers, amortisations = crossings_of(self._example, groups, self._timings, placements)
        found = Measured(
            name=self._example.name,
            title=self._example.title,
            verdict="",
            axis=self._example.axis,
            figure=self._example.figure,
            phases=self._example.phases,
            groups=groups,
            participants=tuple(self._participants.values()),
            agreements=tuple(self._agreements),
            timings=tuple(self._timings),
            left=tuple(self._left),
            crossovers=tuple(crossovers),
            amortisations=tuple(amortisations),
            notes=(),
            elapsed_s=for_s - (self._until_s - time.monotonic()),
        )
        return msgspec.structs.replace(
            found, verdict=verdict_of(found), notes=(*notes, *self._notes, *notes_of(found))
        )


def _no_sample() -> None:
    pass
