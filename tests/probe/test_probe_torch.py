"""What the probe notes of real PyTorch programs, and that they do not notice."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import msgspec
import pytest

import teho
from probe.probed import WITH_FRAMEWORKS, Probed, loaders_of
from support import lacks_framework
from teho.explain.program import program_of
from teho.model.watched import Loader, WatchedProcess

pytestmark = pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))

DATA = """
import copy, pickle, sys, time, torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, TensorDataset
class Slow(Dataset):
    def __init__(self, samples=10): self.samples = samples
    def __len__(self): return self.samples
    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.zeros(3), index
"""
LOADERS = (
    DATA
    + """
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
def by_hand(): go(DataLoader(TINY, batch_size=None))
def by_a_sampler(): go(DataLoader(TINY, batch_sampler=BatchSampler(range(10), 5, False)))
class Kinds:
    def __len__(self): return 2
    def __iter__(self): return iter([[0, 2, 4, 6], [1, 3, 5, 7]])
def by_a_sampler_of_its_own(): go(DataLoader(TINY, batch_sampler=Kinds()))
in_process(); with_workers(); with_lasting_workers(); of_a_stream(); left_early(); at_once()
of_a_subclass(); without_hash(); in_a_loop(); of_batches_of_a_kind_of_its_own()
by_hand(); by_a_sampler(); by_a_sampler_of_its_own()
go(pickle.loads(pickle.dumps(copied()))); go(copy.deepcopy(copied()))
print("done")
"""
)


def later(loader: Loader) -> int:
    return sum(wait.count for wait in loader.waits.values())


@pytest.fixture(scope="module")
def loaders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Loader]:
    probed = Probed(tmp_path_factory.mktemp("loaders"))
    done = probed.run(LOADERS, "-W", "error", python=WITH_FRAMEWORKS)
    assert (done.stdout, done.stderr, done.returncode) == (b"done\n", b"", 0)
    process = next(one for one in probed.watched() if len(one.loaders) > 1)
    return loaders_of(process)


def test_a_loader_is_told_with_its_settings_and_its_line(loaders: dict[str, Loader]) -> None:
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
    }
    assert loader.batch == {
        "bytes": 2 * 3 * 4 + 2 * 8,
        "dtypes": ["float32", "int64"],
        "samples": 2,
    }
    assert loaders["training"].settings["dataset_bytes"] == 10 * (3 * 4 + 8)


def test_who_loads_in_the_process_waits_for_all_of_it(loaders: dict[str, Loader]) -> None:
    loader = loaders["in_process"]
    assert (loader.made, loader.epochs, loader.batches, later(loader)) == (1, 2, 10, 8)
    assert loader.first_s >= 2 * 2 * 0.02
    assert loader.wait_s >= 10 * 2 * 0.02


@pytest.mark.parametrize("name", ["with_workers", "with_lasting_workers"])
def test_waiting_for_workers_is_told_apart_from_their_start(
    loaders: dict[str, Loader], name: str
) -> None:
    loader = loaders[name]
    assert (loader.made, loader.epochs, loader.batches, later(loader)) == (1, 2, 10, 8)
    assert loader.settings["num_workers"] == 2
    assert loader.settings["persistent_workers"] is (name == "with_lasting_workers")
    assert loader.first_s >= 2 * 2 * 0.02


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_are_known_however_they_were_started(probed: Probed, method: str) -> None:
    done = probed.run(
        DATA
        + f"""
if __name__ == "__main__":
    for _ in DataLoader(Slow(40), num_workers=2, multiprocessing_context={method!r}): pass
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


def test_the_size_of_a_batch_is_told_whoever_sets_it(loaders: dict[str, Loader]) -> None:
    assert loaders["by_a_sampler"].settings["batch_size"] == 5
    assert loaders["by_a_sampler_of_its_own"].settings["batch_size"] == 4
    assert loaders["by_a_sampler_of_its_own"].settings["batch_sampler"] == "Kinds"
    assert loaders["by_hand"].settings["batch_size"] is None


def test_copies_of_a_loader_are_seen_where_they_are_gone_through(
    loaders: dict[str, Loader],
) -> None:
    assert loaders["copied"].batches == 0
    assert loaders["go"].batches == 4


TRAINING = """
import sys, torch
from torch import nn
def steps():
    return sys.modules["_teho_probe"].NOTES.steps
def optimizer(kind=torch.optim.SGD):
    return kind(nn.Linear(2, 2).parameters(), lr=0.1)
def train(*turns):
    before = steps()
    for one in turns: one.step()
    print(steps() - before)
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def only(probed: Probed) -> WatchedProcess:
    (process,) = probed.watched()
    return process


def test_steps_of_optimizers_that_take_turns_are_one(probed: Probed) -> None:
    done = probed.run(
        TRAINING
        + """
one, other, third = optimizer(), optimizer(torch.optim.Adam), optimizer()
train(*[one] * 10)
train(*[one, other] * 10)                # a GAN
train(*[one, one, one, other] * 10)      # one whose critic learns more
train(*[one, other, third] * 10)         # an optimizer for each layer
folds = [optimizer() for _ in range(3)]  # all at once: none is in the place of another
for one in folds: train(*[one] * 10)
""",
        python=WITH_FRAMEWORKS,
    )
    # Who comes new might be the next in a turn: its first step does not count yet.
    assert done.stdout.split() == [b"10", b"10", b"30", b"10", b"9", b"9", b"9"]
    progress = only(probed).progress[-1]
    assert progress.steps == 87
    assert progress.last_s > progress.first_s


def test_how_it_computes_is_told(probed: Probed) -> None:
    probed.environment = {"OMP_NUM_THREADS": "1"}
    done = probed.run(
        """
        import torch
        from torch import nn
        torch.set_num_threads(2)
        torch.set_float32_matmul_precision("high")
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4, 1).double())
        model = model.to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters())
        with torch.autocast("cpu", enabled=False): pass
        with torch.autocast("cpu", torch.bfloat16):
            print((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
        optimizer.step()
        """,
        python=WITH_FRAMEWORKS,
    )
    assert (done.stdout, done.stderr) == (b"torch.bfloat16\n", b"")
    process = only(probed)
    facts = process.libraries["torch"]
    assert facts.pop("version").startswith("2.")
    assert facts == {
        "cuda": None,
        "hip": None,
        "xpu": None,
        "optimizer": "SGD",
        "threads": 2,
        "parameter_dtypes": {"float32": 4 * 3 * 9 + 4, "float64": 5},
        "parameter_bytes": (4 * 3 * 9 + 4) * 4 + 5 * 8,
        "devices": ["cpu"],
        "channels_last": True,
        "is_sharded": False,
        "float32_matmul_precision": "high",
        "cudnn_benchmark": False,
        "autocast": "bfloat16",
        "compiled_graphs": 0,
        "graph_breaks": 0,
    }
    assert process.variables == {"OMP_NUM_THREADS": "1"}


RANKS = """
import torch
from torch import distributed, multiprocessing, nn
def work(rank, shard):
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(5):
        model(torch.ones(2)).sum().backward()
        optimizer.step()
    distributed.destroy_process_group()
if __name__ == "__main__":
    multiprocessing.start_processes(work, (0,), nprocs=2, start_method="fork")
"""


def test_a_newer_way_to_say_how_exactly_costs_no_other_fact(probed: Probed) -> None:
    done = probed.run(
        """
        import torch
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters())
        optimizer.step()
        """,
        python=WITH_FRAMEWORKS,
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    facts = only(probed).libraries["torch"]
    assert (facts["devices"], facts["float32_matmul_precision"]) == (["cpu"], "tf32")


def test_each_rank_is_told(probed: Probed) -> None:
    probed.environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    done = probed.run(RANKS, python=WITH_FRAMEWORKS)
    assert done.returncode == 0, done.stderr
    ranks = [one.libraries["torch"] for one in probed.watched() if one.progress]
    assert sorted(facts["rank"] for facts in ranks) == [0, 1]
    for facts in ranks:
        assert (facts["world_size"], facts["backend"], facts["ddp"]) == (2, "gloo", True)
        assert facts["version"].startswith("2.")
    assert [one.progress[-1].steps for one in probed.watched() if one.progress] == [5, 5]


COMPILED = """
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.utils.data import DataLoader
model = nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters())
def step(x):
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(x).sum()
    loss.backward()
    optimizer.step()
    return loss.detach()
compiled = torch.compile(step, backend="eager")
for (x,) in DataLoader([(torch.ones(2),)] * 3): compiled(x)
print({name: dict(counters[name]) for name in ("stats", "graph_break")})
@torch.jit.script
def scripted(x):
    with torch.autocast("cpu", torch.bfloat16):
        return x @ x
print(scripted(torch.ones(2, 2)).dtype)
"""


def test_compilers_pass_over_it(probed: Probed) -> None:
    """They make the same graphs, and say no more than without it."""
    said = [
        (done.stdout, re.sub(rb"\w+ [\d:.]+ \d+ \S*torch", b"torch", done.stderr), done.returncode)
        for done in (probed.run(COMPILED, python=WITH_FRAMEWORKS, probe=p) for p in (False, True))
    ]
    assert said[0] == said[1]
    process = only(probed)
    assert process.progress[-1].steps == 3
    assert process.loaders[0].batches == 3


def test_what_it_wraps_looks_as_ever(probed: Probed) -> None:
    """Lightning reads the signature of a loader to make another of the same."""
    probed.both(
        """
        import inspect, pickle, torch
        from torch.utils.data import DataLoader, dataloader
        from torch.nn.parallel import DistributedDataParallel
        for wrapped in (
            DataLoader.__init__, DataLoader.__iter__, dataloader._BaseDataLoaderIter.__next__,
            torch.autocast.__enter__, DistributedDataParallel.__init__,
        ):
            print(inspect.signature(wrapped), wrapped.__name__, wrapped.__qualname__)
            print(wrapped.__module__, inspect.getsource(wrapped)[:60], pickle.dumps(wrapped))
        loader = DataLoader([1, 2, 3], batch_size=2)
        print(sorted(vars(loader)), dir(loader))
        names = set(inspect.signature(DataLoader).parameters) - {"batch_sampler", "sampler"}
        again = type(loader)(**{n: v for n, v in vars(loader).items() if n in names})
        print([batch.tolist() for batch in again], DataLoader.__doc__[:20])
        try: DataLoader([1], batch_size=-1)
        except ValueError as error: print(error)
        """,
        python=WITH_FRAMEWORKS,
    )


def test_a_program_that_does_all_there_is_says_the_same(probed: Probed) -> None:
    probed.both(
        DATA
        + """
torch.manual_seed(1)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cpu")
loader = DataLoader(Slow(12), batch_size=2, shuffle=True, num_workers=1)
for epoch in range(2):
    for number, (x, index) in enumerate(loader):
        with torch.autocast("cpu", torch.bfloat16): loss = (model(x + index[:, None]) ** 2).mean()
        scaler.scale(loss).backward()
        if number % 3 == 2:
            scaler.step(optimizer); scaler.update(); optimizer.zero_grad()
        print(epoch, index.tolist(), loss.item())
print(torch.get_num_threads(), torch.initial_seed(), torch.cuda.is_initialized())
raise SystemExit("at last")
""",
        "-W",
        "always",
        python=WITH_FRAMEWORKS,
    )
    process = next(one for one in probed.watched() if one.progress)
    # Gradients of three batches make one step.
    assert (process.progress[-1].steps, process.loaders[0].batches) == (4, 12)


def test_a_program_that_tells_its_steps_knows_better(probed: Probed) -> None:
    probed.path = str(Path(teho.__file__).parents[1])  # the package alone, and nothing it needs
    done = probed.run(
        """
        import teho, torch
        optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters())
        for number in range(12):
            optimizer.step()
            if number % 4 == 3: teho.step()
        """,
        python=WITH_FRAMEWORKS,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    process = only(probed)
    assert process.progress[-1].steps == 3
    assert sum(wait.count for wait in process.progress[-1].between.values()) == 2
    assert process.libraries["torch"]["optimizer"] == "SGD"


def test_a_dataset_is_asked_for_nothing_before_its_sampler_asks(probed: Probed) -> None:
    """Files are opened in the workers, as HDF5 and LMDB want it; an open one is not pickled."""
    probed.both(
        DATA
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
""",
        python=WITH_FRAMEWORKS,
    )
    told = [loader for one in probed.watched() for loader in one.loaders]
    assert [loader.settings["samples"] for loader in told] == [4]


def test_what_a_batch_holds_is_told_of_a_tokenizers_too_and_never_as_nothing(
    probed: Probed,
) -> None:
    code = """
from collections import UserDict
def tokens(samples): return UserDict(ids=torch.zeros(len(samples), 4, dtype=torch.int64))
def of_tokens(): return DataLoader(Slow(4), batch_size=2, collate_fn=tokens)
def of_words(): return DataLoader(Slow(4), batch_size=2, collate_fn=lambda samples: ["a", "b"])
for loader in (of_tokens(), of_words()):
    for batch in loader: pass
"""
    assert probed.run(DATA + code, python=WITH_FRAMEWORKS).returncode == 0
    (process,) = probed.watched()
    loaders = loaders_of(process)
    assert loaders["of_tokens"].batch == {"bytes": 64, "dtypes": ["int64"], "samples": 2}
    assert loaders["of_words"].batch == {"bytes": None, "dtypes": [], "samples": None}
