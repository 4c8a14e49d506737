"""What the probe notes of real PyTorch programs, and that they do not notice."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

import teho
from probe.probed import SLOW_DATA, WITH_FRAMEWORKS, Probed
from support import lacks_framework
from teho.model.watched import WatchedProcess

pytestmark = pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))

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
        "anomaly": False,
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


@pytest.mark.parametrize(("context", "exchanges"), [("nullcontext", 4), ("model.no_sync", 1)])
def test_exchanges_of_gradients_are_counted(probed: Probed, context: str, exchanges: float) -> None:
    """Four backward passes for each step, of which three need no exchange."""
    done = probed.run(
        f"""
        import os, torch
        from contextlib import nullcontext
        from torch import distributed, nn
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
        distributed.init_process_group("gloo", rank=0, world_size=1)
        model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
        optimizer = torch.optim.SGD(model.parameters())
        for _ in range(10):
            with {context}():
                for _ in range(3):
                    model(torch.ones(2)).sum().backward()
            model(torch.ones(2)).sum().backward()
            optimizer.step()
        distributed.destroy_process_group()
        """,
        python=WITH_FRAMEWORKS,
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    assert only(probed).libraries["torch"]["exchanges_per_step"] == exchanges


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
            DistributedDataParallel.no_sync,
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
        SLOW_DATA
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


GRADIENTS = """
import torch
from torch import nn
torch.manual_seed(1)
table = nn.Embedding(50_000, 24, sparse={sparse})
head = nn.Linear(24, 1)
optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
for step in range(12):
    optimizer.zero_grad()
    ids = torch.randint(0, {used}, (5000,))
    head(table(ids)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("sparse", "used", "percent"), [(False, 500, 1.0), (False, 50_000, 9.5), (True, 500, None)]
)
def test_rows_of_a_table_without_a_gradient_are_counted(
    probed: Probed, sparse: bool, used: int, percent: float | None
) -> None:
    done = probed.run(GRADIENTS.format(sparse=sparse, used=used), python=WITH_FRAMEWORKS)
    assert (done.stderr, done.returncode) == (b"", 0)
    facts = only(probed).libraries["torch"]
    assert "unused_gradients" not in facts
    if percent is None:
        assert "table_gradient" not in facts
        return
    table = facts["table_gradient"]
    assert (table["rows"], table["bytes"]) == (50_000, 50_000 * 24 * 4)
    # Every second row is looked at, and the ids are drawn with replacement.
    assert table["used_percent"] == pytest.approx(percent, rel=0.1)


def test_gradients_that_no_optimizer_uses_are_counted(probed: Probed) -> None:
    done = probed.run(
        """
        import torch
        from torch import nn
        encoder, head, critic = nn.Linear(8, 100), nn.Linear(100, 2), nn.Linear(2, 1)
        frozen = nn.Linear(2, 2).requires_grad_(False)
        first = torch.optim.SGD(head.parameters(), lr=0.1)
        second = torch.optim.Adam(critic.parameters())
        for step in range(12):
            critic(frozen(head(encoder(torch.ones(4, 8))))).sum().backward()
            first.step()
            second.step()
        """,
        python=WITH_FRAMEWORKS,
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    facts = only(probed).libraries["torch"]
    assert facts["unused_gradients"] == {"unused": 900, "used": 202 + 3}


def test_an_optimizer_that_begins_late_uses_its_gradients(probed: Probed) -> None:
    done = probed.run(
        """
        import torch
        from torch import nn
        encoder, head = nn.Linear(8, 100), nn.Linear(100, 2)
        first = torch.optim.SGD(head.parameters(), lr=0.1)
        second = torch.optim.SGD(encoder.parameters(), lr=0.1)
        for step in range(120):
            head(encoder(torch.ones(4, 8))).sum().backward()
            first.step()
            if step >= 50: second.step()
        """,
        python=WITH_FRAMEWORKS,
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    assert only(probed).libraries["torch"]["unused_gradients"] is None
