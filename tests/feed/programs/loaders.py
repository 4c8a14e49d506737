"""Threads, processes and the main process load the same batches, and their errors are shown."""

import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import torch
from torch import distributed
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    get_worker_info,
)

from teho.errors import TehoError
from teho.feed import loader, loading, probing
from teho.feed.room import cores
from teho.model.tuned import Tuned
from teho.show.json.noun import render_noun


class Squares(Dataset):
    def __len__(self):
        return 57

    def __getitem__(self, row):
        return {"x": torch.full((3,), float(row)), "y": row * row}


class Fails(Squares):
    def __getitem__(self, row):
        if row == 40:
            raise ValueError("sample 40 cannot be read")
        return row


class Dies(Squares):
    def __getitem__(self, row):
        if row == 40 and get_worker_info():
            os.kill(os.getpid(), signal.SIGKILL)
        return row


class Seeds(Squares):
    def __getitem__(self, row):
        return get_worker_info().seed, random.random()


class Rolls(Squares):
    def __getitem__(self, row):
        return random.random()


class Opens(Squares):
    """Keeps a file open."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 - it stays open

    def __getitem__(self, row):
        self.file.seek(row)
        return row


class Where(Squares):
    def __getitem__(self, row):
        return os.getpid(), threading.get_ident()


class Waits(Squares):
    """Waits without Python's lock, as for a file."""

    thread = False

    def __getitem__(self, row):
        time.sleep(0.005)
        return threading.get_ident() if self.thread else row


class Loops(Squares):
    def __getitem__(self, row):
        return sum(range(row, row + 20_000))


class Together(Squares):
    """Loads whole batches."""

    def __getitems__(self, rows):
        return [len(rows)] * len(rows)


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        workers, own = (info.num_workers, info.id) if info else (1, 0)
        return iter(range(own, 57, workers))


def iter_once():
    yield from range(57)


def values(batches):
    return [{name: part.tolist() for name, part in batch.items()} for batch in batches]


def error_of(call):
    try:
        call()
    except (ValueError, RuntimeError, TehoError):
        return traceback.format_exc()
    raise AssertionError("no error")


# ---- the same batches, however they are loaded ----

wanted = values(DataLoader(Squares(), batch_size=10))
for how in (
    {"num_workers": 0},
    {"num_workers": 2, "threads": True},
    {"num_workers": 2, "threads": False},
):
    feed = loader(Squares(), 10, **how)
    assert len(feed) == 6
    assert values(feed) == wanted, how
    assert values(feed) == wanted, "a second epoch"
    print(feed)
arrays = TensorDataset(torch.arange(57), torch.arange(57.0) ** 2)
for dataset in (arrays, Subset(arrays, range(3, 50, 2)), torch.arange(57.0).numpy()):
    pairs = zip(loader(dataset, 10), DataLoader(dataset, batch_size=10), strict=True)
    for ours, theirs in pairs:
        assert type(ours) is type(theirs)
        assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
feed = loader(arrays, 10)
first, second = itertools.islice(feed, 2)
first[0].zero_()
assert arrays.tensors[0][1] == 1, "a batch is a copy"
assert second[0].tolist() == list(range(10, 20)), "batches share no samples"
ours = [batch.tolist() for batch in loader(Stream(), 10, num_workers=3, divided=True)]
assert ours == [batch.tolist() for batch in DataLoader(Stream(), batch_size=10, num_workers=3)]
sampler = torch.utils.data.WeightedRandomSampler(
    [1.0] * 57, 30, generator=torch.Generator().manual_seed(1)
)
again = torch.utils.data.WeightedRandomSampler(
    [1.0] * 57, 30, generator=torch.Generator().manual_seed(1)
)
assert values(loader(Squares(), 10, sampler=sampler)) == values(
    DataLoader(Squares(), 10, sampler=again)
)

# ---- errors ----

for how in (
    {"num_workers": 0},
    {"num_workers": 2, "threads": True},
    {"num_workers": 2, "threads": False},
):
    text = error_of(lambda how=how: list(loader(Fails(), 8, **how)))
    assert "sample 40 cannot be read" in text
    assert "in __getitem__" in text, text
began_s = time.monotonic()
text = error_of(lambda: list(loader(Dies(), 8, num_workers=2, threads=False)))
assert time.monotonic() - began_s < 10, "at once"
print(text.strip().splitlines()[-1])
# After an error, a new epoch begins as usual.
for dataset, threads in ((Fails(), True), (Fails(), False), (Dies(), False)):
    feed = loader(dataset, 8, num_workers=1, threads=threads)
    error_of(lambda feed=feed: list(feed))
    assert next(iter(feed)).tolist() == list(range(8))

# ---- worker seeds ----

torch.manual_seed(3)
theirs = [batch[0].tolist() for batch in DataLoader(Seeds(), 8, num_workers=2)]
torch.manual_seed(3)
ours = [batch[0].tolist() for batch in loader(Seeds(), 8, num_workers=2, threads=False)]
assert ours == theirs

# ---- what is chosen ----

choices = {}
for dataset in (Rolls(), Opens(), Where()):
    choices[type(dataset).__name__] = loader(dataset, 8, num_workers=2).choice
assert choices["Rolls"].kind == choices["Opens"].kind == "processes"
for name in ("Rolls", "Opens"):
    print(choices[name].why)
# Measured, and not given: waiting does not need Python's lock, and a loop in Python does.
assert loader(Waits(), 8, num_workers=2).choice.kind == "threads"
assert loader(Loops(), 8, num_workers=2).choice.kind == "processes"
pids, threads = set(), set()
for some_pids, some_threads in loader(Where(), 8, num_workers=2, threads=True):
    pids |= set(some_pids.tolist())
    threads |= set(some_threads.tolist())
assert pids == {os.getpid()}
assert threading.get_ident() not in threads
waits = Waits()
waits.thread = True
(batch,) = loader(waits, 57, num_workers=2, threads=True)
assert len(set(batch.tolist())) == 2, "the threads share a batch"
for batch in loader(Together(), 8, num_workers=2, threads=True):
    assert set(batch.tolist()) == {len(batch)}, "a dataset gets the whole batch if it can load one"
for sample_s, speed_up, number, kind in (
    (1e-3, 0.9, None, "threads"),
    (1e-3, 0.5, None, "processes"),
    (1e-6, 0.9, None, "main"),
    (1e-6, 0.5, 2, "processes"),
):
    loading.measured = lambda *_, found=(sample_s, speed_up, "", True): probing.Loading(*found)
    assert loader(Squares(), 8, num_workers=number).choice.kind == kind
loading.measured = lambda *_: None
assert loader(Squares(), 8).choice[::2] == ("processes", "not measured")
# The file that `teho tune` writes. Without a proof, all cores load.
loading.measured = lambda *_: probing.Loading(1e-3, 0.5, "", True)
proof, made = "proved by `teho tune`", []


class Made(DataLoader):
    def __init__(self, dataset, **options):
        made.append(options)
        super().__init__(dataset, **options)


torch.utils.data.DataLoader = Made
for settings, workers, ahead in (
    ({"num_workers": 3, "prefetch_factor": 4, "threads": 1}, 3, 4),
    ({"num_workers": 0}, 0, None),
    ({"prefetch_factor": 4}, None, 4),  # the number of workers did not change
    ({"num_workers": 0, "in_memory": True}, None, None),  # these samples were in memory
    ({}, None, None),
):
    result = Tuned(
        command=("python", "program.py"), outcome="gain" if settings else "no_gain", verdict="",
        settings=settings, unit="step", trials=(), elapsed_s=1.0,
    )  # fmt: skip
    Path(sys.argv[2], "program.py.tuned.json").write_text(render_noun(result))
    this, __file__ = __file__, f"{sys.argv[2]}/program.py"
    feed = loader(Squares(), 8)
    is_proved = workers is not None
    assert feed.choice.workers == (workers if is_proved else cores()), feed
    assert (feed.choice.why == proof) == is_proved, feed
    if feed.choice.workers:
        assert len(list(feed)) == 8
        found = made.pop()
        assert (found["num_workers"], found.get("prefetch_factor")) == (feed.choice.workers, ahead)
    assert not made
    assert loader(Squares(), 8, num_workers=0).choice.kind == "main"
    __file__ = this
torch.utils.data.DataLoader = DataLoader
loading.measured = probing.measured
assert loader(Squares(), 8, num_workers=2, worker_init_fn=print).choice.kind == "processes"

assert loader(Squares(), 8, num_workers=2, timeout=60).choice.kind == "processes"

text = error_of(lambda: loader(Squares(), 8, num_worker=2))
print(text.strip().splitlines()[-1])
# What DataLoader refuses, and what would have no effect.
rows, batches, generator = list(range(57)), [[0, 1], [2]], torch.Generator()
for dataset, wrong, found in (
    (Squares(), {"num_workers": -1}, "num_workers=-1"),
    (Squares(), {"num_workers": 1.5}, "num_workers=1.5"),
    (Squares(), {"sampler": rows, "shuffle": True}, "shuffle with sampler"),
    (Squares(), {"batch_sampler": batches, "batch_size": 8}, "batch_size with batch_sampler"),
    (Squares(), {"batch_sampler": batches, "shuffle": True}, "shuffle with batch_sampler"),
    (Squares(), {"batch_sampler": batches, "sampler": rows}, "sampler with batch_sampler"),
    (Squares(), {"batch_sampler": batches, "drop_last": True}, "drop_last with batch_sampler"),
    (Squares(), {"shuffle": True, "generator": generator}, "generator with shuffle=True"),
    (Squares(), {"threads": True, "worker_init_fn": print}, "worker_init_fn with threads=True"),
    (Squares(), {"threads": True, "timeout": 5}, "timeout with threads=True"),
    (Squares(), {"divided": True}, "divided=True with a dataset that has __getitem__"),
    (Stream(), {"shuffle": True}, "shuffle with a dataset that has only __iter__"),
    (Stream(), {"sampler": rows}, "sampler with a dataset that has only __iter__"),
    (Stream(), {"batch_sampler": batches}, "batch_sampler with a dataset that has only __iter__"),
    (Squares(), {"in_order": False}, "in_order=False"),
    (Squares(), {"num_workers": 0, "prefetch_factor": 4}, "prefetch_factor with num_workers=0"),
    (Squares(), {"num_workers": 0, "persistent_workers": True}, "persistent_workers with num_"),
    (Stream(), {"prefetch_factor": 4}, "prefetch_factor with num_workers=0"),
    (Stream(), {"batch_size": None, "drop_last": True}, "drop_last with batch_size=None"),
    (iter_once(), {}, "a dataset of type generator, whose samples can be read only once"),
    (map(abs, rows), {}, "a dataset of type map"),
    (zip(rows, rows, strict=True), {}, "a dataset of type zip"),
    (Path(__file__).open(), {}, "a dataset of type TextIOWrapper"),  # noqa: SIM115 - not read
):
    last = error_of(lambda: loader(dataset, **wrong)).strip().splitlines()[-1]  # noqa: B023 - called at once
    assert last.startswith(f"teho.errors.InputError: {found}"), last
    assert "; expected " in last, last
given = loader(rows, batch_sampler=batches, num_workers=0)
assert [batch.tolist() for batch in given] == batches
same = {"shuffle": False, "sampler": None, "batch_sampler": None, "generator": generator,
        "in_order": True, "persistent_workers": False, "prefetch_factor": None}  # fmt: skip
assert values(loader(Squares(), 10, num_workers=0, **same)) == wanted


class Again(Stream):
    """An iterator that begins again in each epoch."""

    def __iter__(self):
        self.rows = iter(range(57))
        return self

    def __next__(self):
        return next(self.rows)


feed = loader(Again(), 57)
assert [batch.tolist() for batch in [*feed, *feed]] == [list(range(57))] * 2

# ---- what programs read of a DataLoader ----

x, y = torch.arange(57), torch.arange(57.0) ** 2
for dataset in (Squares(), (x, y), {"x": x, "y": y}, x):
    feed = loader(dataset, 10, drop_last=True)
    assert (len(feed.dataset), feed.batch_size, feed.drop_last) == (57, 10, True)
feed = loader(Squares(), sampler=rows, batch_size=10, drop_last=True)
assert (feed.batch_size, feed.drop_last) == (10, True)
feed = loader(Stream(), 10, drop_last=True)
assert (feed.batch_size, feed.drop_last) == (10, True)
# The samples of a tuple of arrays are tuples.
(batch,) = loader((x, y), 57, num_workers=0, collate_fn=list)
assert batch[3] == (3, 9)

# ---- ranks of torch.distributed ----


def rank_of(rank, port, folder):
    address = f"tcp://127.0.0.1:{port}"
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=3)
    rows = [batch["y"].tolist() for batch in loader(Squares(), 8, shuffle=True, num_workers=0)]
    torch.save(rows, f"{folder}/{rank}")
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(
            rank_of, (sys.argv[1], folder), 3, start_method="fork"
        )
        parts = [torch.load(f"{folder}/{rank}") for rank in range(3)]
    assert [len(part) for part in parts] == [3, 3, 3]
    assert sorted(row for part in parts for batch in part for row in batch) == [
        n * n for n in range(57)
    ]
    print("3 ranks")
