"""What the probe notes of PyTorch's data loaders, however they are made and used."""

from __future__ import annotations

import msgspec
import pytest

from probe.probed import SLOW_DATA, WITH_FRAMEWORKS, Probed, Ran, loaders_of
from support import lacks_framework
from teho.explain.program import program_of
from teho.model.watched import Loader

pytestmark = pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))

LOADERS = (
    SLOW_DATA
    + """
from collections import UserDict
class Stream(IterableDataset):
    def __iter__(self): return iter(torch.arange(7.0))
class Own(DataLoader):
    def __init__(self, dataset, size): super().__init__(dataset, size, shuffle=True)
class Equal(DataLoader):
    def __eq__(self, other): return True  # and so it has no hash
class Batch:
    def __getattr__(self, name): raise RuntimeError(name)
TINY = TensorDataset(torch.zeros(10, 3), torch.zeros(10, dtype=torch.int64))
def go(loader, times=1):
    for _ in range(times):
        for batch in loader: pass
def in_process(): go(DataLoader(Slow(), batch_size=2, drop_last=True), 2)
def with_workers(): go(DataLoader(Slow(), batch_size=2, num_workers=2), 2)
def with_lasting_workers():
    go(DataLoader(Slow(), batch_size=2, num_workers=2, persistent_workers=True), 2)
def of_a_stream(): go(DataLoader(Stream(), batch_size=2))
def left_early():
    loader = DataLoader(TINY, batch_size=2)
    for _ in range(3):
        for number, batch in enumerate(loader):
            if number == 1: break
def training():
    return DataLoader(TINY, batch_size=2)
def validation():
    return DataLoader(TINY, batch_size=5)
def at_once():
    train, valid = training(), validation()
    for batch in train: go(valid)
def of_a_subclass(): go(Own(TINY, 5))
def without_hash(): go(Equal(TINY, 5))
def copied(): return DataLoader(TINY, batch_size=5)
def in_a_loop():
    for _ in range(3): go(DataLoader(TINY, batch_size=5))
def of_batches_of_a_kind_of_its_own():
    go(DataLoader(TINY, batch_size=5, collate_fn=lambda samples: Batch()))
def tokens(samples): return UserDict(ids=torch.zeros(len(samples), 4, dtype=torch.int64))
def of_tokens(): go(DataLoader(Slow(4), batch_size=2, collate_fn=tokens))
def of_words(): go(DataLoader(Slow(4), batch_size=2, collate_fn=lambda samples: ["a", "b"]))
def by_hand(): go(DataLoader(TINY, batch_size=None))
def by_a_sampler(): go(DataLoader(TINY, batch_sampler=BatchSampler(range(10), 5, False)))
class Kinds:
    def __len__(self): return 2
    def __iter__(self): return iter([[0, 2, 4, 6], [1, 3, 5, 7]])
def by_a_sampler_of_its_own(): go(DataLoader(TINY, batch_sampler=Kinds()))
in_process(); with_workers(); with_lasting_workers(); of_a_stream(); left_early(); at_once()
of_a_subclass(); without_hash(); in_a_loop(); of_batches_of_a_kind_of_its_own()
by_hand(); by_a_sampler(); by_a_sampler_of_its_own(); of_tokens(); of_words()
go(pickle.loads(pickle.dumps(copied()))); go(copy.deepcopy(copied()))
print("done")
"""
)


LAZY = (
    SLOW_DATA
    + """
class Lazy(Slow):
    file = None
    def __len__(self):
        if self.file is None: self.file = open(__file__)
        return 4
    def __getitem__(self, index): return index
if __name__ == "__main__":
    loader = DataLoader(Lazy(), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    print(loader.dataset.file)
    for batch in loader: print(batch.tolist())
    loader.dataset.file.close()
"""
)
SAMPLERS = (
    SLOW_DATA
    + """
from torch import distributed
from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler
from torch.utils.data import SubsetRandomSampler, WeightedRandomSampler
class Own(RandomSampler): pass
TINY = TensorDataset(torch.zeros(10, 3))
loaders = [
    DataLoader(TINY, 2),
    DataLoader(TINY, 2, shuffle=True),
    DataLoader(TINY, 2, shuffle=True, generator=torch.Generator()),
    DataLoader(TINY, 2, sampler=RandomSampler(TINY)),
    DataLoader(TINY, 2, sampler=RandomSampler(TINY, replacement=True)),
    DataLoader(TINY, 2, sampler=RandomSampler(TINY, num_samples=4)),
    DataLoader(TINY, 2, sampler=Own(TINY)),
    DataLoader(TINY, 2, sampler=SequentialSampler(range(4))),
    DataLoader(TINY, 2, sampler=SubsetRandomSampler(range(10))),
    DataLoader(TINY, 2, sampler=WeightedRandomSampler([1.0] * 10, 10)),
    DataLoader(TINY, 2, sampler=[3, 1, 2]),
    DataLoader(TINY, batch_sampler=BatchSampler(RandomSampler(TINY), 2, False)),
    DataLoader(TINY, batch_size=None),
    DataLoader(TINY, 2, sampler=DistributedSampler(TINY, 1, 0)),
    DataLoader(TINY, 2, sampler=DistributedSampler(TINY, 1, 0, shuffle=False)),
    DataLoader(TINY, 2, sampler=DistributedSampler(TINY, 2, 1)),
]
distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
loaders.append(DataLoader(TINY, 2, sampler=DistributedSampler(TINY)))
loaders.append(DataLoader(TINY, 2, sampler=DistributedSampler(TINY, 2, 0)))
distributed.destroy_process_group()
"""
)
SHUFFLES = [
    False, True, True, True, None, None, None, None, None, None, None, None, None, True, False,
    None, True, None,
]  # fmt: skip
"""For each loader: whether all samples come shuffled or in order, or None."""
PADDED = """
import torch
from torch.utils.data import DataLoader
torch.manual_seed(1)
class Texts(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, number):
        ids = torch.randint(5, 900, (40,))
        if {padded}: ids[10:] = 1
        mask = torch.zeros(40, dtype=torch.int64)
        mask[:30] = 1
        return {item}
for batch in DataLoader(Texts(), batch_size=8): pass
"""
TEXTS = {
    "ids": (True, "ids", 75.0),
    "a pair": (True, "(ids, number)", 75.0),
    "a mask": (True, "{'input_ids': ids, 'attention_mask': mask}", 25.0),  # the mask is right
    "all used": (False, "ids", 0.0),
    "a table of counts": (False, "torch.randint(0, 2, (40,))", 0.0),
    "too short": (False, "ids[:10]", None),
    "not whole numbers": (False, "ids.float()", None),
}
"""Whether texts are padded, what a sample is, and the percentage of padding that is found."""
SERIES = """
import torch
from torch.utils.data import DataLoader
torch.manual_seed(1)
def collate(numbers):
    lengths = torch.tensor([10 + number % 8 for number in numbers])
    series = torch.zeros(len(numbers), 40, 3)
    for row, length in enumerate(lengths): series[row, :length] = torch.rand(length, 3) + 1
    mask = torch.arange(40)[None] < lengths[:, None]
    {change}
    return {batch}
for batch in DataLoader(range(64), batch_size=8, collate_fn=collate): pass
"""
SERIES_BATCHES = {
    "lengths": ("pass", "series, lengths, lengths.float()", 57.5, 66.25),
    "a mask": ("pass", "dict(x=series, mask=mask)", 57.5, 66.25),
    "a mask of the padding": ("pass", "series, ~mask", 57.5, 66.25),
    "the time is last": ("pass", "series.transpose(1, 2).contiguous(), lengths", 57.5, 66.25),
    "one of them is long": ("series[0] = 1; lengths[0] = 40", "series, lengths", 0.0, 56.88),
    "no lengths": ("pass", "series, torch.arange(8)", None, None),
    "other lengths": ("lengths = lengths - 3", "series, lengths", None, None),
    "values after the end": ("series[:, 30] = 2", "series, lengths", None, None),
    "images": ("series = torch.zeros(8, 1, 40, 40)", "series, lengths", None, None),
    "whole numbers": ("series = series.long()", "series, lengths", None, None),
    "short": ("series = series[:, :20]", "series, lengths", None, None),
}
"""What changes a batch, what the batch has, and the percentages of padding that are found: after
the longest series, and in all."""


def later(loader: Loader) -> int:
    return sum(wait.count for wait in loader.waits.values())


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    probed = Probed(tmp_path_factory.mktemp("loaders"))
    texts = {
        name: PADDED.format(padded=padded, item=item) for name, (padded, item, _) in TEXTS.items()
    }
    series = {
        f"series: {name}": SERIES.format(change=change, batch=batch)
        for name, (change, batch, _, _) in SERIES_BATCHES.items()
    }
    programs = {"loaders": LOADERS, "lazy": LAZY, "samplers": SAMPLERS, **texts, **series}
    return Ran(
        probed.forked("import torch.utils.data", programs, "-W", "error"),
        {"lazy": probed.run(LAZY, "-W", "error", python=WITH_FRAMEWORKS, probe=False)},
        probed.watched(),
    )


@pytest.fixture(scope="module")
def loaders(ran: Ran) -> dict[str, Loader]:
    done = ran.probed["loaders"]
    assert (done.stdout, done.stderr, done.returncode) == (b"done\n", b"", 0)
    return loaders_of(ran.only("loaders"))


def test_a_loader_is_recorded_with_its_settings_and_its_line(loaders: dict[str, Loader]) -> None:
    loader = loaders["in_process"]
    assert loader.made_at
    assert loader.made_at.text == "DataLoader(Slow(), batch_size=2, drop_last=True)"
    assert loader.settings == {
        "batch_size": 2,
        "num_workers": 0,
        "pin_memory": False,
        "prefetch_factor": None,
        "persistent_workers": False,
        "drop_last": True,
        "dataset": "__main__.Slow",
        "is_iterable": False,
        "samples": 10,
        "collate": "default_collate",
        "sampler": "SequentialSampler",
        "shuffle": False,
    }
    assert loader.batch == {
        "bytes": 2 * 3 * 4 + 2 * 8,
        "dtypes": ["float32", "int64"],
        "samples": 2,
        "sizes": 1,
    }
    assert loaders["training"].settings["dataset_bytes"] == 10 * (3 * 4 + 8)


def test_who_loads_in_the_process_waits_for_all_of_it(loaders: dict[str, Loader]) -> None:
    loader = loaders["in_process"]
    assert (loader.made, loader.epochs, loader.batches, later(loader)) == (1, 2, 10, 8)
    assert loader.first_s >= 2 * 2 * 0.02
    assert loader.wait_s >= 10 * 2 * 0.02


@pytest.mark.parametrize("name", ["with_workers", "with_lasting_workers"])
def test_waiting_for_workers_is_separate_from_their_start(
    loaders: dict[str, Loader], name: str
) -> None:
    loader = loaders[name]
    assert (loader.made, loader.epochs, loader.batches, later(loader)) == (1, 2, 10, 8)
    assert loader.settings["num_workers"] == 2
    assert loader.settings["persistent_workers"] is (name == "with_lasting_workers")
    assert loader.first_s >= 2 * 2 * 0.02


@pytest.mark.drawn(1)
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_are_known_however_they_were_started(probed: Probed, method: str) -> None:
    # On a busy machine a worker may get few samples: the program goes on until both have one.
    done = probed.run(
        SLOW_DATA
        + f"""
import os, pathlib
class Endless(IterableDataset):
    def __iter__(self):
        while True:
            time.sleep(0.02)
            yield torch.zeros(3)
def sampled_workers():
    files = pathlib.Path(os.environ["TEHO_PROBE"]).glob("*.jsonl")
    return sum('"_worker_loop"' in one.read_text() for one in files)
if __name__ == "__main__":
    began_s = next_s = time.monotonic()
    for _ in DataLoader(Endless(), num_workers=2, multiprocessing_context={method!r}):
        if time.monotonic() > next_s:
            if sampled_workers() == 2 or next_s > began_s + 120: break
            next_s = time.monotonic() + 1
""",
        python=WITH_FRAMEWORKS,
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    # Their files get the node's name when they are collected.
    program = program_of([msgspec.structs.replace(one, node="n1") for one in probed.watched()])
    assert program is not None
    assert [main.feed.workers for main in program.mains] == [2]


@pytest.mark.parametrize(
    ("name", "made", "epochs", "batches"),
    [
        ("of_a_stream", 1, 1, 4),
        ("left_early", 1, 3, 6),
        ("training", 1, 1, 5),
        ("validation", 1, 5, 10),
        ("Own.__init__", 1, 1, 2),
        ("without_hash", 1, 1, 2),
        ("in_a_loop", 3, 3, 6),
        ("of_batches_of_a_kind_of_its_own", 1, 1, 2),
        ("by_hand", 1, 1, 10),
        ("by_a_sampler", 1, 1, 2),
    ],
)
def test_batches_are_counted_however_a_loader_is_used(
    loaders: dict[str, Loader], name: str, made: int, epochs: int, batches: int
) -> None:
    loader = loaders[name]
    assert (loader.made, loader.epochs, loader.batches) == (made, epochs, batches)
    assert later(loader) == batches - epochs


def test_a_stream_has_no_number_of_samples(loaders: dict[str, Loader]) -> None:
    assert loaders["of_a_stream"].settings["is_iterable"] is True
    assert "samples" not in loaders["of_a_stream"].settings


def test_the_size_of_a_batch_is_recorded_from_any_source(loaders: dict[str, Loader]) -> None:
    assert loaders["by_a_sampler"].settings["batch_size"] == 5
    assert loaders["by_a_sampler_of_its_own"].settings["batch_size"] == 4
    assert loaders["by_a_sampler_of_its_own"].settings["batch_sampler"] == "Kinds"
    assert loaders["by_hand"].settings["batch_size"] is None


def test_copies_of_a_loader_are_seen_where_they_are_iterated(
    loaders: dict[str, Loader],
) -> None:
    assert loaders["copied"].batches == 0
    assert loaders["go"].batches == 4


def test_the_content_of_a_batch_is_recorded_for_tokenizers_too_and_never_empty(
    loaders: dict[str, Loader],
) -> None:
    assert loaders["of_tokens"].batch == {"bytes": 64, "dtypes": ["int64"], "samples": 2}
    assert loaders["of_words"].batch == {"bytes": None, "dtypes": [], "samples": None}


def test_a_dataset_is_asked_for_nothing_before_its_sampler_asks(ran: Ran) -> None:
    """Files are opened in the workers, as HDF5 and LMDB want it; an open one is not pickled."""
    ran.check_same("lazy")
    assert [loader.settings["samples"] for loader in ran.only("lazy").loaders] == [4]


def test_only_a_sampler_of_all_samples_is_a_shuffle(ran: Ran) -> None:
    done = ran.probed["samplers"]
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)
    loaders = ran.only("samplers").loaders
    assert [loader.settings["shuffle"] for loader in loaders] == SHUFFLES


@pytest.mark.parametrize("name", TEXTS)
def test_padding_is_counted(ran: Ran, name: str) -> None:
    assert (ran.probed[name].stderr, ran.probed[name].returncode) == (b"", 0)
    (loader,) = ran.only(name).loaders
    assert loader.batch.get("padding_percent") == TEXTS[name][2]
    assert loader.batch["samples"] == 8


@pytest.mark.parametrize("name", SERIES_BATCHES)
def test_padding_of_series_is_counted(ran: Ran, name: str) -> None:
    done = ran.probed[f"series: {name}"]
    assert (done.stderr, done.returncode) == (b"", 0)
    (loader,) = ran.only(f"series: {name}").loaders
    found = [loader.batch.get(f"series_{part}_percent") for part in ("after_longest", "padding")]
    assert found == list(SERIES_BATCHES[name][2:])
