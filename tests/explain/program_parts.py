"""Building blocks of watched programs: stacks as PyTorch leaves them, and processes of such stacks.

Functions bear their class from Python 3.11 on, list comprehensions have a frame before 3.12, and
the text of a line is the call alone from 3.11 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from explain.scenario_parts import NodePart, scenario
from teho.explain.program import program_of
from teho.model.run import Run
from teho.model.stack import Frame, Seen, State
from teho.model.summary import Summary
from teho.model.watched import Loader, Progress, Wait, WatchedProcess

NODE = "r01g01"
TRAIN = "/home/ann/train.py"
LOADERS = "torch/utils/data"
TENSORS = "torch.utils.data.dataset.TensorDataset"
PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")

Frames = tuple[Frame, ...]


def own(text: str, line: int = 12, function: str = "step") -> Frame:
    """Return a line of the program's own."""
    return Frame(TRAIN, function, line, text)


MAIN = own("main()", 40, "<module>")
LOOP = own("for x, y in loader:", 30, "main")


def of_library(file: str, function: str, text: str = "", python: str = "3.11") -> Frame:
    """Return a function of a library, as this Python names it."""
    if tuple(map(int, python.split("."))) < (3, 11):
        function = function.rpartition(".")[2]
    return Frame(f"/opt/env/lib/python{python}/site-packages/{file}", function, 7, text)


def of_python(file: str, function: str, python: str = "3.11") -> Frame:
    """Return a function of Python's own library."""
    frame = of_library(file, function, "", python)
    return Frame(f"/usr/lib/python{python}/{file}", frame.function, 7, "")


def asked(python: str = "3.11") -> Frames:
    """Return what is below all that a loader does in the process that asks for a batch."""
    file = f"{LOADERS}/dataloader.py"
    return (of_library(file, "_BaseDataLoaderIter.__next__", "self._next_data()", python), LOOP)


def in_process(python: str = "3.11") -> Frames:
    """Return what is below a batch that is loaded by the process that asks for it."""
    file = f"{LOADERS}/dataloader.py"
    text = "self._dataset_fetcher.fetch(index)"
    return (
        of_library(file, "_SingleProcessDataLoaderIter._next_data", text, python),
        *asked(python),
    )


def begun(python: str = "3.11") -> Frames:
    """Return what is below the start of workers."""
    file = f"{LOADERS}/dataloader.py"
    return (
        of_python("multiprocessing/popen_fork.py", "Popen._launch", python),
        of_python("multiprocessing/popen_fork.py", "Popen.__init__", python),
        of_python("multiprocessing/process.py", "BaseProcess.start", python),
        of_library(file, "_MultiProcessingDataLoaderIter.__init__", "w.start()", python),
        of_library(file, "DataLoader._get_iterator", "", python),
        of_library(file, "DataLoader.__iter__", "self._get_iterator()", python),
        LOOP,
    )


def in_worker(python: str = "3.11", *, forked: bool = True) -> Frames:
    """Return what is below all that a worker does; a forked one has its parent's stack too."""
    text = "fetcher.fetch(index)"
    below = begun(python) if forked else (of_python("multiprocessing/spawn.py", "_main", python),)
    return (
        of_library(f"{LOADERS}/_utils/worker.py", "_worker_loop", text, python),
        of_python("multiprocessing/process.py", "BaseProcess.run", python),
        of_python("multiprocessing/process.py", "BaseProcess._bootstrap", python),
        *below,
    )


def fetch(python: str = "3.11", text: str = "self.dataset[idx]") -> Frames:
    """Return the loader's functions that ask the data set for its samples."""
    name = "_MapDatasetFetcher.fetch"
    frames = (of_library(f"{LOADERS}/_utils/fetch.py", name, text, python),)
    if python in PYTHONS[:4]:
        comprehension = f"{name}.<locals>.<listcomp>"
        frames = (
            of_library(f"{LOADERS}/_utils/fetch.py", comprehension, text, python),
            *frames,
        )
    return frames


def seen(frames: Sequence[Frame], wall_s: float, state: State = State.NATIVE) -> Seen:
    """Return a stack that was looked at 20 times a second."""
    samples = max(1, round(20 * wall_s))
    return Seen(frames=(*frames, MAIN), state=state, samples=samples, wall_s=wall_s)


def fetching(wall_s: float, below: Frames | None = None, text: str = "decode(self.raw[i])") -> Seen:
    """Return a sample that the program's own data set makes."""
    below = in_process() if below is None else below
    return seen((own(text, 20, "__getitem__"), *fetch(), *below), wall_s)


def opening(wall_s: float, below: Frames | None = None, text: str = "open(path, 'rb')") -> Seen:
    """Return a sample whose file is opened."""
    return fetching(wall_s, below, text)


def collating(wall_s: float, below: Frames | None = None, python: str = "3.11") -> Seen:
    """Return a batch that is put together."""
    file = f"{LOADERS}/_utils/collate.py"
    frames = (
        of_library(file, "collate_tensor_fn", "torch.stack(batch, 0, out=out)", python),
        of_library(file, "collate", "", python),
        of_library(file, "default_collate", "", python),
        of_library(f"{LOADERS}/_utils/fetch.py", "_MapDatasetFetcher.fetch", "", python),
    )
    return seen((*frames, *(in_process(python) if below is None else below)), wall_s)


def awaiting(wall_s: float, python: str = "3.11") -> Seen:
    """Return a process that waits for a worker's batch."""
    file = f"{LOADERS}/dataloader.py"
    names = ("_try_get_data", "_get_data", "_next_data")
    return seen(
        (
            of_python("multiprocessing/queues.py", "Queue.get", python),
            *(of_library(file, f"_MultiProcessingDataLoaderIter.{n}", "", python) for n in names),
            *asked(python),
        ),
        wall_s,
        State.WAITING,
    )


def starting(wall_s: float, python: str = "3.11") -> Seen:
    """Return a process that starts its workers."""
    return seen(begun(python), wall_s)


def stopping(wall_s: float, python: str = "3.11") -> Seen:
    """Return a process that waits for the end of its workers, after an epoch."""
    file = f"{LOADERS}/dataloader.py"
    names = ("_shutdown_workers", "_next_data")
    frames = (of_library(file, f"_MultiProcessingDataLoaderIter.{n}", "", python) for n in names)
    return seen((*frames, *asked(python)), wall_s, State.WAITING)


def idle(wall_s: float, python: str = "3.11", *, forked: bool = True) -> Seen:
    """Return a worker that waits to be asked."""
    get = of_python("multiprocessing/queues.py", "Queue.get", python)
    return seen((get, *in_worker(python, forked=forked)), wall_s, State.WAITING)


def computing(wall_s: float) -> Seen:
    """Return a step of the training."""
    return seen((own("loss.backward()"), LOOP), wall_s)


def loader(
    *,
    batches: int = 100,
    epochs: int = 2,
    made: int = 1,
    first_s: float = 0.1,
    waits: dict[int, tuple[int, float]] | None = None,
    batch_bytes: int | None = None,
    **settings: Any,
) -> Loader:
    """Return a loader of PyTorch: no workers, batches of 32, and what is given."""
    usual = {
        "batch_size": 32, "num_workers": 0, "pin_memory": False, "persistent_workers": False,
        "dataset": "__main__.Images", "is_iterable": False,
    }  # fmt: skip
    return Loader(
        settings=usual | settings,
        made_at=own("DataLoader(images, batch_size=32)", 8, "main"),
        made=made,
        epochs=epochs,
        batches=batches,
        first_s=first_s,
        waits={n: Wait(*wait) for n, wait in (waits or {}).items()},
        batch={"bytes": batch_bytes} if batch_bytes else {},
    )


def pipeline(
    stages: dict[str, float] | None = None,
    calls: Sequence[dict[str, Any]] = (),
    *,
    waited_s: float = 2.0,
    epochs: int = 4,
    **settings: Any,
) -> Loader:
    """Return a pipeline of tf.data: a `map` and a `batch`, and what is given."""
    return Loader(
        settings={
            "dataset": "tf.data", "batch_size": 32, "samples": 3200,
            "pipeline": calls or (call("map", 8, is_random=False), call("batch", 9)),
            "stages": {"Root": 0.1, **(stages or {})}, "stages_waited_s": waited_s, **settings,
        },
        made_at=own("dataset.batch(32)", 9, "main"),
        made=1,
        epochs=epochs,
        batches=1000,
        first_s=0.1,
        waits={},
        batch={"bytes": 32_000_000},
    )  # fmt: skip


def call(name: str, line: int, **arguments: Any) -> dict[str, Any]:
    """Return a call that made a pipeline."""
    return {"call": name, "num_parallel_calls": None, "at": [TRAIN, line], **arguments}


def next_of(wall_s: float) -> Seen:
    """Return a process that waits for the next element of a pipeline."""
    file = "tensorflow/python/data/ops/iterator_ops.py"
    return seen((of_library(file, "OwnedIterator.__next__", "self._next_internal()"), LOOP), wall_s)


def fed_by(
    given: Loader, waits_s: float = 60.0, parts: Sequence[NodePart] = ()
) -> tuple[Run, Summary]:
    """Make a run of one process that waits for a pipeline."""
    return watched(process(next_of(waits_s), loaders=[given], progress=()), parts=parts)


STEPS = Progress(steps=1000, first_s=105.0, last_s=195.0)


def process(
    *stacks: Seen,
    wall_s: float = 100.0,
    pid: int = 10,
    parent_pid: int = 1,
    node: str = NODE,
    began_s: float = 100.0,
    loaders: Sequence[Loader] = (),
    progress: Sequence[Progress] = (STEPS,),
    torch: dict[str, Any] | None = None,
    **facts: Any,
) -> WatchedProcess:
    """Return a process that computes for as long as it does not stand in these stacks."""
    rest_s = wall_s - sum(one.wall_s for one in stacks)
    return WatchedProcess(
        node=node,
        pid=pid,
        parent_pid=parent_pid,
        python="3.11.7",
        began_s=began_s,
        until_s=began_s + wall_s,
        stacks=(*stacks, computing(rest_s)) if rest_s > 0 else stacks,
        loaders=tuple(loaders),
        progress=tuple(progress),
        libraries={"torch": {"version": "2.13.0", **torch}} if torch is not None else {},
        **facts,
    )


def worker(*stacks: Seen, pid: int = 11, parent_pid: int = 10, **facts: Any) -> WatchedProcess:
    """Return a worker with these stacks and no others."""
    wall_s = sum(one.wall_s for one in stacks)
    facts = {"began_s": 101.0, "progress": (), "wall_s": wall_s} | facts
    return process(*stacks, pid=pid, parent_pid=parent_pid, **facts)


def watched(*processes: WatchedProcess, parts: Sequence[NodePart] = ()) -> tuple[Run, Summary]:
    """Make a run of these processes, on one node of eight cores where nothing else is given."""
    run, summary = scenario(*(parts or [NodePart(NODE, cores=8, cores_used=4.0)]))
    return run, msgspec.structs.replace(summary, program=program_of(processes))


def alone(
    *stacks: Seen, wall_s: float = 100.0, parts: Sequence[NodePart] = (), **settings: Any
) -> tuple[Run, Summary]:
    """Make a run of one process that loads its data itself."""
    return watched(process(*stacks, wall_s=wall_s, loaders=[loader(**settings)]), parts=parts)


def with_workers(
    *stacks: Seen, waits_s: float = 40.0, parts: Sequence[NodePart] = (), **settings: Any
) -> tuple[Run, Summary]:
    """Make a run of one process that waits for workers with these stacks each."""
    given = loader(**{"num_workers": 2} | settings)
    workers = [worker(*stacks, pid=11 + n) for n in range(given.settings["num_workers"])]
    return watched(process(awaiting(waits_s), loaders=[given]), *workers, parts=parts)
