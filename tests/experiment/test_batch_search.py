"""Which batch sizes are tried, in which order, and what is said of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from experiment.simulated import RUN_S, Simulated
from teho.errors import InputError
from teho.experiment.attempt import Attempt
from teho.experiment.batch_search import find_batch_size, next_between
from teho.experiment.pace import Pace
from teho.model.batch_sizes import BatchSizes, MemoryUse
from teho.model.tuned import Settings
from teho.model.watched import GivenBatch, Loader
from teho.units import parse_bytes

GIB = 1024**3
GPU = 40 * GIB


class Batches:
    """A simulated program that needs 24 MiB of GPU memory for each sample.

    Args:
        own: its batch size.
        room: the largest batch that fits.
        failing: sizes with which it fails, but not for memory.
        best: the size from which on samples/s do not rise any more.
        settings: of its loader.
    """

    def __init__(
        self, own: int, room: int, *, failing: tuple[int, ...] = (), best: int = 10**9,
        memory: MemoryUse | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        self.own, self.room, self.failing, self.best = own, room, failing, best
        self.memory = memory
        settings = {"batch_size": own, "samples": None, **settings}
        self.program = Simulated(self.steps_per_s, settings=settings)
        self.tried: list[int] = []
        self.clock = self.program.clock

    def steps_per_s(self, settings: Settings) -> float:
        size = settings.get("batch_size", self.own)
        return 10.0 * min(size, self.best) / size

    def __call__(
        self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None
    ) -> Attempt:
        size = settings.get("batch_size", self.own)
        run = self.program(settings, limit_s, made_at)
        self.tried.append(size)
        if size in self.failing:
            return run._replace(
                pace=None, exit_code=1, raised=("RuntimeError: shapes do not match",)
            )
        if size > self.room:
            return run._replace(
                pace=None, exit_code=1, out_of_memory="torch.OutOfMemoryError: CUDA out of memory"
            )
        used = MemoryUse(
            host_bytes=3 * GIB,
            gpu_bytes=size * 24 * 1024**2,
            gpu_used_bytes=size * 24 * 1024**2 + GIB,
            gpu_total_bytes=GPU,
        )
        return run._replace(memory=self.memory or used)


def found_by(program: Any, for_s: float = 10_000.0) -> BatchSizes:
    return find_batch_size(
        program, ("python", "train.py"), 64 * GIB, for_s, lambda _: None, program.clock
    )


def test_the_size_is_doubled_and_then_the_gap_is_halved() -> None:
    program = Batches(64, 1590, best=512)
    found = found_by(program)
    assert program.tried == [64, 128, 256, 512, 1024, 2048, 1536, 1792, 1664]
    assert (found.largest, found.fastest, found.outcome) == (1536, 512, "found")
    assert found.verdict == (
        "The largest batch that fits is 1,536 (36.0 GiB of 40.0 GiB GPU memory); a batch of 512 "
        "was the fastest in single runs: 5,120 samples/s"
    )
    fastest, largest = found.changes
    assert (fastest.file, fastest.line, fastest.set_to) == (
        "/home/me/train.py", 31, "batch_size=512",
    )  # fmt: skip
    assert (largest.set_to, largest.remark) == ("batch_size=1536", "the largest batch that fits")
    assert "changes the training" in found.notes[0]
    assert [one.ended for one in found.tries if one.batch_size > 1590] == ["out_of_memory"] * 3
    assert all(one.samples_per_s is None for one in found.tries if one.why)


@given(own=st.integers(1, 4096), room=st.integers(1, 100_000))
@example(own=1, room=1)
@example(own=4096, room=1)
def test_the_result_is_near_the_limit_with_few_runs(own: int, room: int) -> None:
    program = Batches(own, room)
    found = found_by(program)
    assert found.ended_by == "memory"
    largest = found.largest
    assert largest is not None
    assert largest <= room
    failed = min(one.batch_size for one in found.tries if one.ended == "out_of_memory")
    step = 1 << max(0, (largest // 8).bit_length() - 1)
    # A middle that is not a multiple of the step is rounded down.
    assert failed - largest < max(2, largest / 8 + 2 * step)
    assert len(program.tried) == len(set(program.tried))
    assert len(program.tried) <= 24
    new = set(program.tried) - {own * 2**power for power in range(20)}
    new -= {own // 2**power for power in range(20)}
    assert all(size % 8 == 0 for size in new if size >= 128)


def test_near_sizes_are_not_tried() -> None:
    assert next_between(1024, 1152) is None
    assert next_between(1024, 1160) is None  # the middle is rounded down to 1024
    assert next_between(4, 8) == 6
    assert next_between(4, 5) is None
    assert next_between(0, 9) == 4
    assert next_between(0, 1) is None


def test_a_program_that_does_not_fit_is_made_smaller() -> None:
    program = Batches(64, 20)
    found = found_by(program)
    assert program.tried[:3] == [64, 32, 16]
    assert found.largest == 20
    assert found.changes[-1].set_to == "batch_size=20"
    assert found.tries[0].ended == "out_of_memory"


def test_nothing_fits() -> None:
    found = found_by(Batches(4, 0))
    assert found.largest is None
    assert found.verdict == "No batch fits: even a batch of 1 runs out of memory"
    assert found.changes == ()


def test_another_failure_is_not_called_memory() -> None:
    program = Batches(16, 10**9, failing=(64,))
    found = found_by(program)
    assert program.tried == [16, 32, 64]
    assert (found.ended_by, found.largest) == ("failed", 32)
    assert "64 failed, but not because of memory" in found.verdict
    assert (
        found.tries[-1].why == "the run ended with exit code 1, "
        "and its last message was “RuntimeError: shapes do not match”"
    )


def test_a_program_that_fails_for_another_reason_is_refused() -> None:
    with pytest.raises(InputError, match="the run ended with exit code 1"):
        found_by(Batches(16, 10**9, failing=(16,)))


def test_a_failure_between_ends_the_search() -> None:
    found = found_by(Batches(16, 40, failing=(48,)))
    assert (found.ended_by, found.largest, found.outcome) == ("failed", 32, "found")
    assert "48 failed, but not because of memory" in found.verdict


def test_the_dataset_ends_the_search() -> None:
    program = Batches(64, 10**9, samples=1000, best=1)
    found = found_by(program)
    assert program.tried == [64, 128, 256, 512, 960]
    assert found.ended_by == "dataset"
    assert found.verdict.startswith("The largest batch that the dataset fills is 960 (22.5 GiB of")
    assert "64 was the fastest in single runs" in found.verdict


class Small(Batches):
    """A program whose loader does not show that its dataset has only 100 samples."""

    def __call__(
        self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None
    ) -> Attempt:
        run = super().__call__(settings, limit_s, made_at)
        return with_loader(run, batch={"samples": min(100, settings.get("batch_size", self.own))})


def with_loader(run: Attempt, **changes: Any) -> Attempt:
    assert run.loader
    assert run.process
    loader: Loader = msgspec.structs.replace(run.loader, **changes)
    process = msgspec.structs.replace(run.process, loaders=(loader,))
    return run._replace(loader=loader, process=process)


def test_a_batch_that_is_not_full_does_not_fit() -> None:
    found = found_by(Small(64, 10**9))
    assert [one.ended for one in found.tries] == ["fits", "dataset"]
    assert found.tries[1].why == "the first batch had only 100 samples"
    assert found.ended_by == "dataset"


def test_the_time_ends_the_search() -> None:
    found = found_by(Batches(64, 700), for_s=4.5 * RUN_S)
    assert (found.outcome, found.ended_by, found.largest) == ("unproved", "time", 512)
    assert "larger batches were not measured, because the time limit was reached" in found.verdict
    assert "Of the measured batch sizes, 512 was the fastest in single runs" in found.verdict
    found = found_by(Batches(64, 200), for_s=3.5 * RUN_S)
    fits = "A batch of 128 (3.00 GiB of 40.0 GiB GPU memory) fits"
    assert found.verdict.startswith(f"{fits}, and a batch of 256 does not fit; ")


def test_a_run_without_two_steps_is_too_slow() -> None:
    class Slow(Batches):
        def __call__(
            self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None
        ) -> Attempt:
            run = super().__call__(settings, limit_s, made_at)
            return run if settings.get("batch_size", 0) < 64 else run._replace(pace=None)

    found = found_by(Slow(16, 10**9))
    assert (found.outcome, found.ended_by, found.largest) == ("unproved", "too_slow", 32)
    assert "larger batches were not measured, because a step takes too long" in found.verdict
    assert found.tries[-1].why == "the program made fewer than 2 steps within 10.0 s"
    # The last run could have been longer, if there had been more time.
    assert found_by(Slow(16, 10**9), for_s=3 * RUN_S).ended_by == "time"


def test_a_size_without_a_steady_pace_fits_but_has_no_speed() -> None:
    class Brief(Batches):
        def __call__(
            self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None
        ) -> Attempt:
            run = super().__call__(settings, limit_s, made_at)
            if run.exit_code or settings.get("batch_size") != 32:
                return run
            return run._replace(pace=Pace(3, 0.0, 3.0, False), exit_code=0)

    found = found_by(Brief(16, 32))
    (one,) = (one for one in found.tries if one.batch_size == 32)
    assert (one.ended, one.samples_per_s, found.largest) == ("fits", None, 32)
    assert one.why == "the speed is not known: there was no steady step rate within 10.0 s"
    assert found.fastest is None


def test_memory_of_runs_that_fail_is_not_known() -> None:
    found = found_by(Batches(16, 20))
    for one in found.tries:
        assert (one.memory.gpu_bytes is None) == (one.ended == "out_of_memory")


def test_an_early_end_keeps_the_result() -> None:
    program = Batches(64, 700)
    program.program.interrupt_at = 3
    found = found_by(program)
    assert (found.outcome, found.ended_by, found.largest) == ("unproved", "interrupt", 256)
    assert "because the search was ended early" in found.verdict


def test_near_rates_count_as_equal() -> None:
    class Noisy(Batches):
        def steps_per_s(self, settings: Settings) -> float:
            size = settings.get("batch_size", self.own)
            return {16: 500, 32: 990, 64: 1000, 128: 1020}.get(size, 10) / size

    found = found_by(Noisy(16, 130))
    assert found.fastest == 32
    assert "differ by less than 5 %" in " ".join(found.notes)


def test_one_rate_is_not_the_fastest() -> None:
    found = found_by(Batches(1, 1))
    assert (found.largest, found.fastest) == (1, None)
    assert "fastest" not in found.verdict
    assert found.changes == ()


def test_a_smaller_last_batch_is_not_counted_as_a_whole_one() -> None:
    class Epochs(Batches):
        def __call__(
            self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None
        ) -> Attempt:
            run = super().__call__(settings, limit_s, made_at)
            given = tuple(GivenBatch(float(n), 0.0, n % 2 == 0) for n in range(1, 21))
            return with_loader(run, given=given)._replace(pace=Pace(20, 0.0, 20.0, True))

    found = found_by(Epochs(600, 10**9, samples=1000))
    assert found.tries[0].samples_per_s == 500.0


def test_ranks_are_counted_together() -> None:
    class Ranks(Batches):
        def __call__(
            self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None
        ) -> Attempt:
            return super().__call__(settings, limit_s, made_at)._replace(ranks=4)

    found = found_by(Ranks(16, 16))
    assert found.tries[0].samples_per_s == 4 * 16 * 10
    assert "for each of the 4 processes" in " ".join(found.notes)


def test_other_programs_on_the_gpu_are_mentioned() -> None:
    crowded = MemoryUse(gpu_bytes=GIB, gpu_used_bytes=13 * GIB, gpu_total_bytes=GPU)
    found = found_by(Batches(16, 16, memory=crowded))
    assert "Other programs used 12.0 GiB of the GPU's memory." in " ".join(found.notes)


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (MemoryUse(), "The largest batch that fits is 16"),
        (MemoryUse(host_bytes=GIB), "fits is 16 (1.00 GiB of 64.0 GiB memory)"),
        (
            MemoryUse(host_bytes=GIB, process_limit_bytes=parse_bytes("2GiB")),
            "fits is 16 (1.00 GiB memory; each process may use 2.00 GiB)",
        ),
        (
            MemoryUse(host_bytes=GIB, gpu_used_bytes=9 * GIB, gpu_total_bytes=GPU),
            "fits is 16 (9.00 GiB of 40.0 GiB GPU memory)",
        ),
    ],
)
def test_the_memory_that_was_measured_is_named(memory: MemoryUse, said: str) -> None:
    assert said in found_by(Batches(16, 16, memory=memory)).verdict


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch_sampler": "Mine"}, "the DataLoader at /home/me/train.py:31 gets its batches from"),
        ({"batch_size": None}, "train.py:31 has batch_size=None"),
    ],
)
def test_other_loaders_are_refused(settings: dict[str, Any], said: str) -> None:
    program = Simulated(lambda _: 10.0, settings=settings)
    with pytest.raises(InputError, match=said) as refused:
        found_by(program)
    assert "expected a PyTorch program with `DataLoader(…, batch_size=…)`" in str(refused.value)


def test_a_size_that_the_program_does_not_take_is_not_called_memory() -> None:
    class Stubborn(Batches):
        def __call__(
            self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None
        ) -> Attempt:
            run = super().__call__(settings, limit_s, made_at)
            return with_loader(run, settings={**self.program.settings, "batch_size": 16})

    found = found_by(Stubborn(16, 10**9))
    assert found.ended_by == "failed"
    assert found.tries[1].why == "the loader did not accept batch_size=32, and still uses 16"
