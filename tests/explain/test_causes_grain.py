"""Causes of waiting for a pipeline of Grain: without workers, in threads, with too few workers."""

from __future__ import annotations

import pytest

from explain.program_parts import (
    LOOP,
    fetching,
    loader,
    of_library,
    of_python,
    own,
    process,
    seen,
    watched,
    worker,
)
from explain.program_scenarios import node
from explain.scenario_parts import NodePart, figures, found, judged, kinds_of
from explain.test_causes_all import found_alone
from explain.test_program import parts_of
from teho.explain.loader_words import loader_call
from teho.explain.program import program_of
from teho.explain.rules.input import input_in_main_process, input_in_threads
from teho.model.program import Part
from teho.model.stack import State

DATASET = "grain/_src/python/dataset"
NEXT = (
    of_library(f"{DATASET}/transformations/map.py", "_MapDatasetIterator.__next__"),
    of_library("grain/_src/python/data_loader.py", "DataLoaderIterator.__next__"),
    LOOP,
)
WORKING = own("zlib.decompress(packed)", 20, "Unpack.map")
READY = (
    of_python("threading.py", "Condition.wait"),
    of_python("concurrent/futures/_base.py", "Future.result"),
    of_library(f"{DATASET}/transformations/prefetch.py", "PrefetchDatasetIterator.__next__"),
    LOOP,
)
LOOP_OF_WORKER = (
    of_library(f"{DATASET}/transformations/process_prefetch.py", "_put_dataset_elements_in_buffer"),
    of_python("multiprocessing/process.py", "BaseProcess.run"),
)


def grain(api="DataLoader", workers=0, **settings):
    return loader(dataset="grain", api=api, num_workers=workers, num_threads=16, **settings)


def run_of(*processes, used=1.0, cores=2):
    return watched(*processes, parts=node(cores, used))


def test_without_workers_the_main_process_unpacks():
    main = process(seen((WORKING, *NEXT), 62.0), loaders=[grain()])
    made = run_of(main)
    assert parts_of(seen((WORKING, *NEXT), 62.0)) == {Part.FETCHING: 62.0}
    assert kinds_of(made) == ["input_in_main_process", "known_activity"]
    finding = found(input_in_main_process, made)
    assert finding.action == (
        "Add workers: `grain.DataLoader(…, worker_count=2)` in train.py:8. Also make the loading "
        "faster. If the same data are read more than once, decompress them once, before the loop."
    )
    assert "Most of this time was spent on decompressing data" in finding.sentence


def test_threads_share_one_process():
    waits = seen(READY, 60.0, State.THREADS)
    assert parts_of(waits) == {Part.AWAITING: 60.0}
    made = run_of(process(waits, loaders=[grain("Dataset")]), cores=4)
    assert kinds_of(made) == ["input_in_threads"]
    finding = found(input_in_threads, made)
    call = "`.mp_prefetch(grain.MultiprocessingOptions(num_workers=4))` as the last stage"
    assert finding.action == f"Add workers, which are processes: {call} in train.py:8."
    assert figures(finding)["threads of the loader"] == 16
    assert "input_in_main_process" in found_alone(made)
    crowded = watched(
        process(waits, loaders=[grain("Dataset")]),
        parts=[NodePart(cores=4, cores_used=3.9, signals={"job_runnable_threads": 9.0})],
    )
    assert kinds_of(crowded) == ["input_in_threads"]


@pytest.mark.parametrize(("waits_s", "count"), [(30.0, 1), (29.9, 0)])
def test_the_threads_must_do_most_of_the_loading(waits_s, count):
    own_work = seen((WORKING, *NEXT), 30.0)
    main = process(seen(READY, waits_s, State.THREADS), own_work, loaders=[grain("Dataset")])
    assert len(judged(input_in_threads, run_of(main, cores=4))) == count


@pytest.mark.parametrize(("cores", "count"), [(2, 0), (3, 1)])
def test_with_two_cores_workers_compete_with_the_program(cores, count):
    main = process(seen(READY, 60.0, State.THREADS), loaders=[grain("Dataset")])
    assert len(judged(input_in_threads, run_of(main, cores=cores))) == count


def test_options_that_only_pytorch_has_are_not_advised():
    batching = of_library(f"{DATASET}/transformations/batch.py", "_BatchDatasetIterator.__next__")
    slow = seen((batching, *NEXT), 60.0)
    alone = run_of(process(slow, loaders=[grain(batch_size=16)]))
    assert "input_collated_one_by_one" not in found_alone(alone)
    crew = worker(seen((batching, *LOOP_OF_WORKER), 60.0))
    waits = seen(READY, 60.0)
    given = grain(workers=1, batch_size=16, epochs=50, first_s=58.0)
    kinds = found_alone(run_of(process(waits, loaders=[given]), crew))
    assert kinds.isdisjoint({"input_workers_needless", "input_workers_restarted"})


@pytest.mark.parametrize(
    "given",
    [
        loader(num_workers=0),
        grain("Dataset", workers=2),
    ],
)
def test_other_loaders_are_not_judged_by_the_threads(given):
    made = run_of(process(seen(READY, 60.0, State.THREADS), loaders=[given]), cores=4)
    assert "input_in_threads" not in found_alone(made)


def test_a_worker_is_known_by_its_loop():
    busy = worker(seen((WORKING, *NEXT[:1], *LOOP_OF_WORKER), 95.0))
    waits = seen(READY, 60.0)
    (main,) = program_of([process(waits, loaders=[grain(workers=1)]), busy]).mains
    assert (main.feed.workers, main.feed.workers_s) == (1, {Part.FETCHING: 95.0})
    idle = worker(seen((of_python("queue.py", "Queue.put"), *LOOP_OF_WORKER), 9.0))
    (main,) = program_of([process(waits, loaders=[grain(workers=1)]), idle]).mains
    assert main.feed.workers_s == {Part.IDLE: 9.0}


def test_a_pytorch_stack_is_none_of_grain():
    assert parts_of(fetching(3.0)) == {Part.FETCHING: 3.0}


def test_a_setting_that_the_library_lacks_is_left_out():
    assert loader_call(grain(), num_workers=2, persistent_workers=True) == (
        "`grain.DataLoader(…, worker_count=2)` in train.py:8"
    )
    assert loader_call(grain("Dataset"), num_workers=2, prefetch_factor=8) == (
        "`.mp_prefetch(grain.MultiprocessingOptions(num_workers=2, per_worker_buffer_size=8))` "
        "as the last stage in train.py:8"
    )
    assert loader_call(loader(), num_workers=2, persistent_workers=True) == (
        "`DataLoader(…, num_workers=2, persistent_workers=True)` in train.py:8"
    )
