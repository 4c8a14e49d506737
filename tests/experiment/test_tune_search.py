"""What is tried, in which order, and what is claimed of it."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.simulated import RUN_S, Simulated
from teho.errors import InputError
from teho.experiment.attempt import Attempt
from teho.experiment.confidence import LONG_SECOND_CHECKS, first_check, second_check
from teho.experiment.pace import Pace
from teho.experiment.search_space import Room
from teho.experiment.tune import tune
from teho.experiment.unmeasurable import no_baseline, no_pace
from teho.model.stack import Frame
from teho.model.tuned import Settings, Tuned
from teho.model.watched import WatchedProcess

ROOM = Room(cores=8, memory_bytes=64 * 10**9)


def starved(chosen: Settings) -> float:
    """Decoding takes 8 parts of the time and work 2: workers share the former."""
    decode_s, work_s = 0.08, 0.02
    if chosen.get("in_memory"):
        return 1 / (work_s + 0.001)
    workers = chosen.get("num_workers", 0)
    return 1 / (max(work_s, decode_s / workers) if workers else decode_s + work_s)


def tuned_by(
    program: Simulated, allowed: tuple[str, ...] = (), for_s: float = 600, room: Room = ROOM
) -> Tuned:
    return tune(
        program,
        ("python", "train.py"),
        room,
        frozenset(allowed),
        for_s,
        progress=lambda _: None,
        clock=program.clock,
    )


def test_workers_are_found_and_proved() -> None:
    program = Simulated(starved, noise=0.02, settings={"is_iterable": False, "dataset_bytes": 1})
    tuned = tuned_by(program)
    assert tuned.outcome == "gain"
    assert tuned.settings == {"num_workers": 4}
    assert tuned.gain.low < 5 < tuned.gain.high
    assert tuned.verdict.startswith("`num_workers=4` makes the program ")
    (change,) = tuned.changes
    assert (change.file, change.line, change.set_to) == ("/home/me/train.py", 31, "num_workers=4")


def fed(chosen: Settings) -> float:
    """Arrays in memory are far faster than workers."""
    return 400.0 if chosen.get("feed") else starved(chosen)


def test_feed_is_tried_if_it_is_allowed() -> None:
    arrays = {
        "dataset_bytes": 1, "batch_size": 64, "sampler": "RandomSampler", "shuffle": True,
        "drop_last": True,
    }  # fmt: skip
    plain = tuned_by(Simulated(fed, settings=arrays))
    assert "feed" not in plain.settings
    tuned = tuned_by(Simulated(fed, settings=arrays), ("feed",))
    assert tuned.settings == {"feed": True}
    assert tuned.verdict.startswith("`teho.feed.resident` makes the program ")
    (change,) = tuned.changes
    assert change.set_to == "resident(dataset, batch_size=64, shuffle=True, drop_last=True)"
    assert "not on `torch.manual_seed`" in change.remark
    assert "DistributedSampler" not in change.remark


@pytest.mark.parametrize(
    ("seen", "torch", "why"),
    [
        ({"is_iterable": True, "num_workers": 2}, {}, "with numbered samples"),
        ({"collate": "own"}, {}, "its own function `own`"),
        ({"dataset_bytes": None, "samples": 0}, {}, "the size of the dataset is not known"),
        ({"sampler": "WeightedRandomSampler", "shuffle": None}, {}, "`WeightedRandomSampler`"),
        ({"sampler": "RandomSampler", "shuffle": None}, {}, "the sampler `RandomSampler`"),
        ({"batch_sampler": "Kinds"}, {}, "whole batches from its dataset or from its `batch_sam"),
        ({"batch_size": None}, {}, "the loader gets whole batches from its dataset"),
        ({}, {"world_size": 2}, "each of the 2 ranks gets all samples"),
    ],
)
def test_feed_is_not_tried_if_it_would_give_other_samples(
    seen: dict[str, object], torch: dict[str, object], why: str
) -> None:
    usual = {"dataset_bytes": 1, "sampler": "SequentialSampler", "shuffle": False}
    shown = {**usual, **seen}
    if shown["dataset_bytes"] is None:
        del shown["dataset_bytes"]
    program = Simulated(lambda _: 10.0, settings=shown, torch=torch)
    tuned = tuned_by(program, ("feed",))
    assert not any("feed" in one for one in program.tried)
    (note,) = [note for note in tuned.notes if note.startswith("`teho.feed` was not tried: ")]
    assert why in note


def test_feed_divides_the_samples_as_a_distributed_sampler_does() -> None:
    settings = {"dataset_bytes": 1, "sampler": "DistributedSampler", "shuffle": True}
    program = Simulated(fed, settings=settings, torch={"world_size": 4})
    (change,) = tuned_by(program, ("feed",)).changes
    assert change.set_to == "resident(dataset, batch_size=16, shuffle=True)"
    assert change.remark.endswith("remove the `DistributedSampler` and its `set_epoch`.")


@pytest.mark.parametrize(
    ("text", "dataset"),
    [
        ("loader = DataLoader(Images(path), batch_size=16)", "Images(path)"),
        ("loader = torch.utils.data.DataLoader(\n    train['x'],\n    16,\n)", 'train["x"]'),
        ("for batch in DataLoader(batch_size=16, dataset=data): pass", "data"),
        ("train, valid = DataLoader(a, 16), DataLoader(b, 16)", "dataset"),
        ("loader = DataLoader(*given)", "dataset"),
        ("loader = made(data)", "dataset"),
        ("loader = DataLoader(data", "dataset"),
    ],
)
def test_the_advice_has_the_dataset_of_the_program(tmp_path: Path, text: str, dataset: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"import torch\n\n{text}\n")
    settings = {"dataset_bytes": 1, "sampler": "SequentialSampler", "shuffle": False}
    made_at = Frame(str(path), "<module>", 3, text.partition("\n")[0])
    program = Simulated(fed, settings=settings, made_at=made_at)
    (change,) = tuned_by(program, ("feed",)).changes
    assert change.set_to.replace("'", '"') == f"resident({dataset}, batch_size=16)"


def test_feed_with_larger_batches_is_one_change() -> None:
    settings = {"dataset_bytes": 1, "sampler": "SequentialSampler", "shuffle": False}
    program = Simulated(
        lambda chosen: fed(chosen) / (chosen.get("batch_size", 16) / 16) ** 0.5, settings=settings
    )
    tuned = tuned_by(program, ("batch-size", "feed"))
    assert tuned.settings == {"batch_size": 128, "feed": True}
    (change,) = tuned.changes
    assert change.set_to == "resident(dataset, batch_size=128)"
    assert change.remark.endswith("the learning rate may need an adjustment.")


def test_a_walk_stops_when_it_no_longer_helps() -> None:
    program = Simulated(starved, settings={"dataset_bytes": 1})
    tuned_by(program)
    assert [one for one in program.tried if "num_workers" in one][:4] == [
        {"num_workers": 1}, {"num_workers": 2}, {"num_workers": 4}, {"num_workers": 7},
    ]  # fmt: skip


def test_the_proof_takes_turns_with_the_program_as_it_is() -> None:
    program = Simulated(starved, settings={"dataset_bytes": 1})
    tuned = tuned_by(program)
    best = tuned.settings
    assert program.tried[-6:] == [{}, best, best, {}, {}, best]
    # The runs of the search are not part of the proof.
    assert tuned.gain.pairs == 3
    (row,) = (trial for trial in tuned.trials if trial.settings == best)
    assert row.runs == 4


def test_without_input_wait_no_loader_is_changed() -> None:
    program = Simulated(lambda _: 10.0, waited=0.01)
    tuned = tuned_by(program)
    assert program.tried == [{}]
    assert tuned.outcome == "no_gain"
    assert "waits for batches only 1.0 % of the time" in tuned.notes[0]


PLACES = {name: f"/home/me/train.py:{line}:{name}" for line, name in ((8, "map"), (9, "batch"))}
CALLS = [
    {"call": "map", "num_parallel_calls": None, "at": ["/home/me/train.py", 8]},
    {"call": "batch", "batch_size": 16, "at": ["/home/me/train.py", 9]},
]


def piped(chosen: Settings) -> float:
    """A parallel `map` is twice as fast, and kept elements again; a prefetch does not help."""
    return 10.0 * (2 if "num_parallel_calls" in chosen else 1) * (2 if "cache" in chosen else 1)


@pytest.mark.parametrize("waited", [0.8, None])
def test_a_pipeline_of_tf_data_is_changed_in_its_own_words(waited: float | None) -> None:
    program = Simulated(piped, waited=waited, settings={"dataset": "tf.data", "pipeline": CALLS})
    tuned = tuned_by(program, allowed=("batch-size",))
    assert tuned.outcome == "gain"
    assert tuned.settings == {"num_parallel_calls": "autotune", "cache": PLACES["map"]}
    assert tuned.verdict.startswith(
        "`num_parallel_calls=tf.data.AUTOTUNE` and `.cache()` make the program 4.00 times as fast"
    )
    assert {"num_parallel_calls": "autotune", "prefetch": PLACES["batch"]} in program.tried
    parallel, cache = tuned.changes
    assert (parallel.line, parallel.text) == (8, ".map(…)")
    assert (cache.line, cache.set_to) == (8, ".cache()  # add it after this call")
    assert "augmentation" in cache.remark
    assert any("batch size was not changed" in note for note in tuned.notes)


@pytest.mark.parametrize(
    ("settings", "memory_bytes", "noted"),
    [
        ({"samples": None}, 10**9, "The size of the dataset is not known"),
        ({"samples": 10**9}, 10**9, "`cache` was not tried: the samples need about"),
        (
            {"pipeline": [{"call": "shuffle"}, *CALLS]},
            10**9,
            "would give all epochs the same order",
        ),
    ],
)
def test_what_cannot_be_kept_is_not_tried(
    settings: dict[str, object], memory_bytes: int, noted: str
) -> None:
    usual = {"dataset": "tf.data", "pipeline": CALLS}
    program = Simulated(piped, settings=usual | settings, memory_bytes=memory_bytes)
    tuned = tuned_by(program)
    assert tuned.settings == {"num_parallel_calls": "autotune"}
    assert any(noted in note for note in tuned.notes)


def test_a_pipeline_with_all_of_it_is_not_changed() -> None:
    calls = [
        {**CALLS[0], "num_parallel_calls": "autotune"},
        {"call": "cache", "at": ["/home/me/train.py", 8]},
        CALLS[1],
        {"call": "prefetch", "at": ["/home/me/train.py", 10]},
    ]
    program = Simulated(piped, settings={"dataset": "tf.data", "pipeline": calls})
    assert tuned_by(program).outcome == "no_gain"
    assert program.tried == [{}]
    quick = Simulated(piped, waited=0.01, settings={"dataset": "tf.data", "pipeline": CALLS})
    assert "waits for batches only 1.0 %" in tuned_by(quick).notes[0]


def test_too_many_workers_are_taken_away() -> None:
    program = Simulated(
        lambda chosen: 20.0 if chosen.get("num_workers", 32) <= 8 else 10.0,
        waited=0.01,
        settings={"num_workers": 32},
    )
    tuned = tuned_by(program)
    assert tuned.settings == {"num_workers": 8}


def test_batches_are_counted_as_batches() -> None:
    pace = Pace(steps=7, from_s=0.0, until_s=1.0, is_whole=False)
    process = WatchedProcess(node="n", pid=1, python="", began_s=0.0, until_s=5.0, stacks=())
    run = Attempt({}, 5.0, pace, "batch", process=process)
    assert "no steady step rate within 5.0 s: 7 batches" in no_pace({}, run)
    assert "7 steady batches were seen within 5.0 s" in str(no_baseline(run, 300.0))


def test_settings_that_fail_are_dropped_and_reported() -> None:
    program = Simulated(
        starved, settings={"dataset_bytes": 1},
        failing=lambda chosen: "x\nTypeError: no pickle" if chosen.get("num_workers") else "",
    )  # fmt: skip
    tuned = tuned_by(program)
    assert tuned.outcome == "unproved"
    assert tuned.verdict == "Not enough evidence: no setting could be measured in 1 try"
    (out,) = (trial for trial in tuned.trials if trial.why)
    assert out.settings == {"num_workers": 1}
    assert (
        out.why == "the run ended with exit code 1, and its last message was “TypeError: no pickle”"
    )
    assert out.steps_per_s is None
    assert out.speed is None


def test_if_more_runs_fail_less_is_proved() -> None:
    program = Simulated(
        starved, settings={"dataset_bytes": 1},
        failing=lambda chosen: "Killed" if chosen.get("num_workers", 0) > 2 else "",
    )  # fmt: skip
    tuned = tuned_by(program)
    assert tuned.settings == {"num_workers": 2}
    assert program.tried.count({"num_workers": 4}) == 1


def test_memory_is_estimated_before_workers_are_tried() -> None:
    program = Simulated(starved, memory_bytes=10**9, settings={"dataset_bytes": 1})
    tuned = tuned_by(program, room=Room(cores=8, memory_bytes=4 * 10**9))
    assert max(one.get("num_workers", 0) for one in program.tried) == 2
    assert tuned.settings == {"num_workers": 2}
    narrow = Simulated(starved, memory_bytes=10**9, settings={"dataset_bytes": 1})
    tuned = tuned_by(narrow, room=Room(cores=8, memory_bytes=2 * 10**9))
    assert narrow.tried == [{}]
    assert "more than the job can use" in tuned.notes[0]


def test_samples_are_kept_only_if_they_fit() -> None:
    program = Simulated(starved, settings={"samples": 10**9})
    tuned = tuned_by(program)
    assert not any("in_memory" in one for one in program.tried)
    assert (
        "Keeping the samples in memory was not tried: the samples would need about 931 GiB of "
        "memory, more than the job can use."
    ) in tuned.notes
    fits = Simulated(lambda chosen: 90.0 if chosen.get("in_memory") else starved(chosen) / 3)
    tuned = tuned_by(fits)
    assert tuned.settings == {"in_memory": True, "num_workers": 0}
    assert "keeps its first random augmentation" in tuned.changes[0].remark


@pytest.mark.parametrize(
    ("api", "code"),
    [
        ("DataLoader", "grain.DataLoader(…, worker_count=4)"),
        ("Dataset", ".mp_prefetch(grain.MultiprocessingOptions(num_workers=4))"),
    ],
)
def test_workers_of_grain_are_tried_and_shown_as_its_code(api: str, code: str) -> None:
    program = Simulated(starved, settings={"dataset": "grain", "api": api})
    tuned = tuned_by(program, ("batch-size",))
    assert tuned.settings == {"num_workers": 4}
    assert {"num_workers": 4, "prefetch_factor": 2} in program.tried
    (change,) = tuned.changes
    assert change.set_to == code
    assert "change the code that makes the pipeline" in change.remark
    settings_tried = {name for one in program.tried for name in one}
    assert settings_tried == {"num_workers", "prefetch_factor"}
    assert any("only in a DataLoader of PyTorch" in note for note in tuned.notes)


def test_an_iterable_dataset_keeps_its_number_of_workers() -> None:
    program = Simulated(starved, settings={"is_iterable": True})
    tuned = tuned_by(program)
    assert not any("num_workers" in one for one in program.tried)
    assert "iterable" in tuned.notes[0]


def test_persistence_is_left_if_no_epoch_ended() -> None:
    program = Simulated(starved, epochs=1, settings={"dataset_bytes": 1})
    tuned = tuned_by(program)
    assert not any("persistent_workers" in one for one in program.tried)
    assert any("No epoch ended" in note for note in tuned.notes)


def test_results_change_only_if_that_is_allowed() -> None:
    torch = {"devices": ["cpu"], "threads": 8, "channels_last": False}

    def run(allowed: tuple[str, ...]) -> tuple[set[str], Tuned]:
        program = Simulated(
            lambda chosen: 10.0 / (chosen.get("batch_size", 16) / 16) ** 0.5,
            waited=0.0,
            torch=torch,
        )
        tuned = tuned_by(program, allowed)
        return {name for one in program.tried for name in one}, tuned

    assert run(())[0] == {"threads"}
    names, tuned = run(("batch-size", "autocast", "channels-last", "tf32"))
    assert names == {"threads", "batch_size", "autocast", "channels_last"}
    # Fewer steps a second, more samples: eight times the batch at a third of the pace.
    assert tuned.settings == {"batch_size": 128}
    assert tuned.gain.times == pytest.approx(8**0.5, rel=0.01)
    assert any("TF32 was not tried: TF32 needs a GPU" in note for note in tuned.notes)


@pytest.mark.parametrize(
    ("precision", "is_tried"), [("highest", True), ("high", False), ("tf32", False)]
)
def test_tf32_is_tried_if_the_program_does_not_allow_it(precision: str, is_tried: bool) -> None:
    torch = {"devices": ["cuda:0"], "float32_matmul_precision": precision}
    program = Simulated(lambda _: 10.0, waited=0.0, torch=torch)
    notes = tuned_by(program, ("tf32",)).notes
    assert any("tf32" in one for one in program.tried) == is_tried
    assert ("The program already allows TF32." in notes) != is_tried


def test_steps_of_fewer_batches_are_compared_by_batches() -> None:
    """A step is an epoch of 960 samples, at the same pace whatever the batch."""
    program = Simulated(
        lambda _: 10.0,
        waited=0.0,
        torch={"devices": ["cpu"], "threads": 8, "channels_last": False},
        batches_per_step=lambda chosen: 960 // chosen.get("batch_size", 16),
    )
    tuned = tuned_by(program, ("batch-size",))
    assert any("batch_size" in one for one in program.tried)
    assert tuned.outcome == "no_gain", tuned.verdict


def test_threads_that_the_program_sets_itself_are_out() -> None:
    program = Simulated(lambda _: 10.0, waited=0.0, torch={"devices": ["cpu"], "threads": 2})
    tuned = tuned_by(program)
    assert all("itself sets the number of threads to 2" in trial.why for trial in tuned.trials[1:])


def test_with_too_little_time_the_needed_time_is_shown() -> None:
    program = Simulated(starved)
    tuned = tuned_by(program, for_s=5 * RUN_S)
    assert tuned.outcome == "unproved"
    assert "`--for` must be 1 min 30 s or more" in tuned.verdict
    assert program.tried == [{}]


def test_it_ends_in_time() -> None:
    program = Simulated(starved)
    tuned = tuned_by(program, for_s=100)
    assert tuned.outcome == "gain"
    assert program.now_s <= 100


@pytest.mark.parametrize("at", range(1, 12))
def test_an_early_end_gives_the_result_so_far(at: int) -> None:
    program = Simulated(starved, settings={"dataset_bytes": 1})
    program.interrupt_at = at
    tuned = tuned_by(program)
    assert len(program.tried) == at
    assert tuned.outcome == "unproved"
    assert "ended early" in tuned.verdict
    assert sum(trial.runs for trial in tuned.trials) == at


@pytest.mark.parametrize(
    ("base", "found"),
    [
        (Attempt({}, 1.0, exit_code=3, tail="a\nValueError: b"), "ended with exit code 3"),
        (Attempt({}, 1.0, exit_code=-9), "SIGKILL"),
        (Attempt({}, 9.0), "no Python process loaded Teho's probe within 9.0 s"),
    ],
)
def test_a_program_without_a_pace_is_refused(base: Attempt, found: str) -> None:
    with pytest.raises(InputError, match=found):
        tune(lambda *_: base, ("x",), ROOM, frozenset(), 60, progress=lambda _: None)


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.floats(0.0, 0.1),
    st.dictionaries(st.integers(0, 8), st.floats(0.3, 3), min_size=9, max_size=9),
)
def test_what_is_claimed_is_never_worse(seed: int, noise: float, speeds: dict[int, float]) -> None:
    def speed(chosen: Settings) -> float:
        return 10 * speeds[chosen.get("num_workers", 0)] / speeds[0]

    program = Simulated(speed, noise=noise, seed=seed, settings={"dataset_bytes": 1})
    tuned = tuned_by(program)
    if tuned.outcome == "gain":
        assert tuned.gain.low >= 1.01
        # Five times the deviation of a mean of three: beyond what chance gives here.
        assert speed(tuned.settings) >= 10 * math.exp(-5 * noise * math.sqrt(2 / 3))
    else:
        assert tuned.settings == {}
        assert tuned.changes == ()


@pytest.mark.parametrize("noise", [0.03, 0.15])
def test_noise_is_not_called_a_gain(noise: float) -> None:
    claims = 0
    for seed in range(200):
        program = Simulated(lambda _: 10.0, noise=noise, seed=seed, settings={"dataset_bytes": 1})
        claims += tuned_by(program, for_s=6000).outcome == "gain"
    # One side of a 95 % interval, and fewer still since not all are followed.
    assert claims <= 200 * 0.05


@pytest.mark.parametrize(
    ("look", "count"),
    [(first_check, 3), (first_check, 4), *((second_check, n) for n in LONG_SECOND_CHECKS)],
)
def test_the_interval_contains_the_truth_with_its_confidence(look, count: int) -> None:
    chance, missed = random.Random(1), 0
    for _ in range(4000):
        pairs = [
            (chance.lognormvariate(0, 0.1), chance.lognormvariate(0.5, 0.1)) for _ in range(count)
        ]
        gain = look(pairs)
        missed += not gain.low <= math.exp(0.5) <= gain.high
    assert missed / 4000 <= 0.032
    assert gain.pairs == count


def test_one_disturbed_pair_of_ten_hides_no_gain() -> None:
    gain = second_check([(1.0, 1.5 + number / 100) for number in range(9)] + [(1.0, 0.3)])
    assert 1.5 <= gain.low <= gain.times <= gain.high <= 1.6


def test_on_a_disturbed_machine_more_pairs_are_measured() -> None:
    program = Simulated(starved, noise=0.4, seed=3, settings={"dataset_bytes": 1})
    tuned = tuned_by(program, for_s=6000)
    assert tuned.gain.pairs in LONG_SECOND_CHECKS
    assert tuned.outcome == "gain"


def test_settings_that_only_seemed_to_help_are_left_out() -> None:
    stayed = found = 0
    for seed in range(100):
        program = Simulated(starved, noise=0.04, seed=seed, settings={"dataset_bytes": 1})
        tuned = tuned_by(program, for_s=6000)
        found += "num_workers" in tuned.settings
        stayed += bool({"persistent_workers", "prefetch_factor"} & tuned.settings.keys())
    assert found == 100
    assert stayed <= 10


def test_a_lucky_first_run_hides_no_gain() -> None:
    program = Simulated(
        lambda chosen: 14.0 if len(program.tried) == 1 else 10.0 + chosen.get("num_workers", 0),
        settings={"dataset_bytes": 1},
    )
    tuned = tuned_by(program, room=Room(cores=2, memory_bytes=None))
    assert tuned.settings == {"num_workers": 2}
    assert tuned.gain.times == pytest.approx(1.2, rel=0.01)


def test_too_few_pairs_give_no_verdict() -> None:
    verdicts = set()
    for seed in range(20):
        program = Simulated(starved, noise=0.6, seed=seed, settings={"dataset_bytes": 1})
        tuned = tuned_by(program, for_s=15 * RUN_S, room=Room(cores=2, memory_bytes=None))
        if tuned.outcome != "gain" and tuned.gain and tuned.gain.times >= 1.05:
            assert tuned.outcome == "unproved"
            assert tuned.gain.low < 1.01
            verdicts.add(tuned.verdict.partition(":")[0])
    assert verdicts == {"Not enough evidence, increase `--for`"}
