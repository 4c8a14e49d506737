"""Causes of waiting for a pipeline of tf.data, on both sides of their thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import (
    LOOP,
    TRAIN,
    call,
    fed_by,
    fetching,
    loader,
    next_of,
    of_library,
    own,
    pipeline,
    process,
    seen,
    watched,
)
from explain.scenario_parts import NodePart, figures, found, gpu, judged
from teho.explain.judge import judge_by
from teho.explain.policy import load_policy
from teho.explain.rules.input import (
    input_files_one_by_one,
    input_in_own_iterator,
    input_map_serial,
    input_not_cached,
    input_not_prefetched,
    input_not_ready,
    input_slow,
)
from teho.model.finding import Abstention
from teho.model.stack import State
from teho.model.watched import Progress, WatchedProcess
from teho.units import GIB

PARALLEL = call("map", 8, is_random=False, num_parallel_calls="autotune")
SERIAL = call("map", 8, is_random=False)
BATCH = call("batch", 9)
RULES = [input_files_one_by_one, input_map_serial, input_not_cached, input_not_prefetched]


@pytest.mark.parametrize("rule", RULES)
def test_a_loader_of_pytorch_is_judged_by_other_rules(rule):
    assert judged(rule, watched(process(fetching(60.0), loaders=[loader()]))) == []


@pytest.mark.parametrize("rule", RULES)
def test_without_the_stages_no_cause_is_named(rule):
    # An old TensorFlow, or a program that switches autotuning off.
    given = pipeline()
    given.settings["stages"] = {}
    assert judged(rule, fed_by(given)) == []
    assert "stage with the most work" in figures(found(input_slow, fed_by(given)))


@pytest.mark.parametrize(("generator_s", "is_named"), [(49.0, False), (50.0, True)])
def test_a_generator_that_makes_single_samples(generator_s, is_named):
    given = pipeline()
    given.settings["stages"] = {"Generator": generator_s, "BatchV2": 100.0 - generator_s}
    finding = found(input_slow, fed_by(given))
    assert finding.sentence.endswith("makes the samples one by one.") == is_named
    assert ("from_tensor_slices" in finding.action) == is_named


def test_keras_keeps_its_waiting_to_itself():
    steps = Progress(steps=1000, first_s=105.0, last_s=195.0)
    given = msgspec.structs.replace(pipeline(), batches=0)
    made = watched(process(loaders=[given], progress=[steps]))
    verdict = judge_by(input_slow, *made, load_policy())
    assert isinstance(verdict, Abstention)
    assert "Keras fetches its batches inside a graph" in str(verdict)


@pytest.mark.parametrize(
    ("begins_s", "waits_s", "count"),
    [
        (30.0, 0.0, 0), (30.0, 30.0, 0),
        (30.0, 30.1, 1),  # most of the waiting is for other data
        (9.9, 0.0, 0), (0.0, 30.0, 1),
    ],
)  # fmt: skip
def test_loops_that_begin_again_explain_the_waiting(begins_s, waits_s, count):
    file = "tensorflow/python/data/ops/iterator_ops.py"
    begins = (of_library(file, "OwnedIterator._create_iterator"), own("model.predict(x)", 37))
    stacks = [seen(begins, begins_s), next_of(waits_s)]
    given = pipeline({"ParallelMapV2": 5.0})
    one = process(*(seen for seen in stacks if seen.wall_s), loaders=[given], progress=())
    assert len(judged(input_slow, watched(one))) == count


@pytest.mark.parametrize(
    ("stages", "calls", "count"),
    [
        ({"MapAndBatch": 5.0, "TensorSlice": 5.0}, [SERIAL, BATCH], 1),
        ({"MapAndBatch": 4.9, "TensorSlice": 5.1}, [SERIAL, BATCH], 0),
        ({"Map": 5.0, "Shuffle": 5.0}, [SERIAL, call("shuffle", 9), BATCH], 1),
        # TensorFlow runs such a `map` in parallel without being asked.
        ({"ParallelMapV2": 9.0}, [SERIAL, call("shuffle", 9), BATCH], 0),
        ({"MapAndBatch": 9.0}, [PARALLEL, BATCH], 0),
        ({"MapAndBatch": 9.0}, [SERIAL, PARALLEL, BATCH], 0),
    ],
)
def test_a_map_is_serial_only_if_tensorflow_runs_it_serially(stages, calls, count):
    assert len(judged(input_map_serial, fed_by(pipeline(stages, calls)))) == count


def test_the_action_names_the_line_of_each_serial_map():
    calls = [SERIAL, call("map", 9, is_random=True), BATCH]
    action = found(input_map_serial, fed_by(pipeline({"Map": 9.0}, calls))).action
    code = "`.map(…, num_parallel_calls=tf.data.AUTOTUNE)` in train.py"
    assert f"{code}:8 and {code}:9." in action
    assert "`.prefetch(tf.data.AUTOTUNE)`" in action
    with_prefetch = fed_by(pipeline({"Map": 9.0}, [*calls, call("prefetch", 10)]))
    assert "prefetch" not in found(input_map_serial, with_prefetch).action


def test_one_core_has_no_room_for_a_parallel_map():
    made = fed_by(pipeline({"Map": 9.0}), parts=[NodePart(cores=1, cores_used=0.9)])
    assert judged(input_map_serial, made) == []


@pytest.mark.parametrize(("batch_s", "count"), [(1.0, 1), (1.01, 0)])
def test_files_take_the_time_in_which_no_stage_works(batch_s, count):
    calls = [call("interleave", 7), BATCH]
    given = pipeline({"Interleave": 0.2, "BatchV2": batch_s}, calls, waited_s=2.0)
    assert len(judged(input_files_one_by_one, fed_by(given))) == count


def test_parallel_files_are_not_one_by_one():
    calls = [call("interleave", 7, num_parallel_calls="autotune"), BATCH]
    assert judged(input_files_one_by_one, fed_by(pipeline({"Interleave": 0.2}, calls))) == []
    assert (
        judged(input_files_one_by_one, fed_by(pipeline({"ParallelInterleaveV4": 0.2}, calls[1:])))
        == []
    )


@pytest.mark.parametrize("stage", ["Prefetch", "MapAndBatch", "ParallelMapV2"])
def test_a_stage_that_works_ahead_needs_no_prefetch(stage):
    given = {"Generator": 1.5, "BatchV2": 0.1}
    assert len(judged(input_not_prefetched, fed_by(pipeline(given, [BATCH])))) == 1
    assert judged(input_not_prefetched, fed_by(pipeline(given | {stage: 0.1}, [BATCH]))) == []


def test_loading_ahead_saves_no_more_than_the_computing():
    finding = found(input_not_prefetched, fed_by(pipeline({"Generator": 1.5}, [BATCH]), 80.0))
    assert finding.regain_percent == (0.0, pytest.approx(20.0))


@pytest.mark.parametrize(
    ("calls", "epochs", "count"),
    [
        ([PARALLEL, BATCH], 2, 1),
        ([PARALLEL, BATCH], 1, 0),
        ([PARALLEL, call("cache", 9), BATCH], 2, 0),
        ([PARALLEL | {"is_random": True}, BATCH], 2, 0),
        ([{"call": "map", "at": ["train.py", 3]}, BATCH], 2, 0),
        ([call("shuffle", 7), PARALLEL, BATCH], 2, 0),
        ([PARALLEL, call("shuffle", 9), BATCH], 2, 1),
        ([BATCH], 2, 0),
    ],
)
def test_only_the_same_result_is_kept(calls, epochs, count):
    given = pipeline({"ParallelMapV2": 9.0}, calls, epochs=epochs)
    assert len(judged(input_not_cached, fed_by(given))) == count


CACHE = call("cache", 7, filename="")
SHUFFLE = call("shuffle", 9)
EARLY = [CACHE, PARALLEL, SHUFFLE, BATCH]


@pytest.mark.parametrize(
    ("stages", "calls", "count"),
    [
        ({"ParallelMapV2": 9.0}, EARLY, 1),
        # TensorFlow does not report the `map`, and the other stages have little work.
        ({"Shuffle": 0.4}, EARLY, 1),
        ({"Shuffle": 0.9}, EARLY, 1),
        ({"Shuffle": 1.1}, EARLY, 0),
        ({"Shuffle": 0.4}, [PARALLEL, SHUFFLE, BATCH], 0),
        ({"Shuffle": 0.4}, [SHUFFLE, *EARLY], 0),
        ({"Shuffle": 0.4}, [CACHE, SHUFFLE, PARALLEL, BATCH], 0),
        ({"Shuffle": 0.4}, [CACHE, PARALLEL | {"is_random": True}, BATCH], 0),
        ({"Shuffle": 0.4}, [CACHE, call("map", 8, num_parallel_calls=2), BATCH], 0),
        ({"ParallelMapV2": 9.0}, [PARALLEL, CACHE, BATCH], 0),
        ({"ParallelMapV2": 9.0}, [PARALLEL, SHUFFLE, CACHE, BATCH], 0),
    ],
)
def test_a_cache_before_the_map(stages, calls, count):
    findings = judged(input_not_cached, fed_by(pipeline(stages, calls)))
    assert len(findings) == count
    if count:
        assert "`cache` is before `map`" in findings[0].sentence
        assert findings[0].action.startswith(
            "Move `.cache()` in train.py:7 to the place directly after `map`: "
            "`.map(…).cache()` instead of `.cache().map(…)`. The elements need"
        )


@pytest.mark.parametrize(("free", "count"), [(3.3e9, 1), (3.1e9, 0)])
def test_only_what_fits_is_kept(free, count):
    # 3200 samples, 1 MB each.
    part = NodePart(cores=8, cores_used=4.0, memory_peak=4.0 * GIB, memory_limit=4.0 * GIB + free)
    made = fed_by(pipeline({"MapAndBatch": 9.0}, [PARALLEL, BATCH]), parts=[part])
    assert len(judged(input_not_cached, made)) == count


def unpacking(state: State = State.NATIVE, function: str = "batches") -> WatchedProcess:
    """Return a JAX program that is in its own generator for 60 of 100 s."""
    inside = seen((own("zlib.decompress(record)", 20, function), LOOP), 60.0, state)
    iterators = [[TRAIN, "batches", 18]]
    facts = {"version": "0.10", "iterators": iterators}
    return msgspec.structs.replace(process(inside, progress=()), libraries={"jax": facts})


def keras(looks, stages=None, calls=(), **settings):
    """Return a run of Keras: its batches are not seen, only whether one was ready."""
    steps = Progress(steps=1000, first_s=105.0, last_s=195.0)
    given = pipeline(
        stages or {"Prefetch": 0.1, "MapAndBatch": 9.0}, calls, looks=looks, **settings
    )
    given = msgspec.structs.replace(given, batches=0, batch={"bytes": 3_200_000})
    return watched(process(loaders=[given], progress=[steps]))


class TestKeras:
    @pytest.mark.parametrize(
        ("looks", "count"),
        [([100, 50], 1), ([100, 49], 0), ([20, 20], 1), ([19, 19], 0), ([100, 0], 0)],
    )
    def test_an_empty_prefetch_is_no_chance(self, looks, count):
        assert len(judged(input_not_ready, keras(looks))) == count

    def test_batches_that_are_seen_are_judged_by_their_time(self):
        given = pipeline({"MapAndBatch": 9.0}, looks=[100, 100])
        assert judged(input_not_ready, fed_by(given)) == []

    @pytest.mark.parametrize(
        ("stages", "calls", "words"),
        [
            (
                None,
                [SERIAL, BATCH],
                "`.map(…, num_parallel_calls=tf.data.AUTOTUNE)` in train.py:8.",
            ),
            (
                {"Interleave": 0.2, "BatchV2": 0.1},
                [call("interleave", 7), BATCH],
                "`.interleave(…, num_parallel_calls=tf.data.AUTOTUNE)` in train.py:7.",
            ),
            (None, [PARALLEL, BATCH], "add `.cache()` in train.py:8, directly after `map`"),
            (None, EARLY, "Move `.cache()` in train.py:7 to the place directly after `map`"),
            (None, [PARALLEL | {"is_random": True}, BATCH], "Do less work for each element"),
            ({"FlatMap": 0.1, "Generator": 9.0}, [BATCH], "`tf.data.Dataset.from_tensor_slices("),
            ({"FlatMap": 5.1, "Generator": 5.0}, [BATCH], "Do less work for each element"),
        ],
    )
    def test_the_action_is_for_the_slowest_stage(self, stages, calls, words):
        finding = found(input_not_ready, keras([100, 96], stages, calls))
        assert finding.sentence.startswith(
            "At 96 % of the steps, no batch was ready when Keras asked for one."
        )
        assert ("again in each epoch" in finding.sentence) is (".cache()" in finding.action)
        assert ("from_generator" in finding.sentence) is ("from_tensor_slices" in finding.action)
        assert words in finding.action
        assert finding.regain_percent is None

    @pytest.mark.parametrize(
        ("samples", "is_cached"), [(16_000, True), (16_001, False), (3200, True), (None, False)]
    )
    def test_a_cache_needs_two_epochs_and_a_known_size(self, samples, is_cached):
        # 1000 steps of 32 samples
        made = keras([100, 96], calls=[PARALLEL, BATCH], samples=samples)
        assert (".cache()" in found(input_not_ready, made).action) is is_cached


class TestOwnIterator:
    def test_batches_made_between_the_steps(self):
        finding = found(input_in_own_iterator, watched(unpacking()))
        assert finding.sentence == (
            "For 60 % of the time, the program made batches between the steps, instead of in the "
            "background."
        )
        assert figures(finding)["slowest line"] == "train.py:20  zlib.decompress(record)"
        # 4 of 8 cores are used.
        assert finding.regain_percent == (0.0, pytest.approx(50.0))

    @pytest.mark.parametrize("state", [State.LOCK, State.PROCESS, State.THREADS])
    def test_batches_that_another_thread_makes(self, state):
        assert judged(input_in_own_iterator, watched(unpacking(state))) == []

    def test_other_functions_are_not_iterators(self):
        assert judged(input_in_own_iterator, watched(unpacking(function="main"))) == []

    @pytest.mark.parametrize(("used", "count"), [(7.1, 1), (7.3, 0)])
    def test_without_an_idle_core_nothing_can_be_gained(self, used, count):
        made = watched(unpacking(), parts=[NodePart(cores=8, cores_used=used)])
        assert len(judged(input_in_own_iterator, made)) == count

    @pytest.mark.parametrize(("busy", "count"), [(20.0, 1), (95.0, 0)])
    def test_a_busy_gpu_does_not_wait(self, busy, count):
        made = watched(unpacking(), parts=[NodePart(cores=8, cores_used=1.0, gpus=[gpu(busy)])])
        assert len(judged(input_in_own_iterator, made)) == count
