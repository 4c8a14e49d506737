"""What the probe notes of real PyTorch programs, and that they do not notice."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest

import teho
from probe.probed import SLOW_DATA, Probed, Ran
from support import lacks_framework

pytestmark = pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))

IMPORTS = "import torch, torch._dynamo"
"""An optimizer imports the second one at its first step. Together they take seconds."""
TURNS = """
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
one, other, third = optimizer(), optimizer(torch.optim.Adam), optimizer()
train(*[one] * 10)
train(*[one, other] * 10)                # a GAN
train(*[one, one, one, other] * 10)      # one whose critic learns more
train(*[one, other, third] * 10)         # an optimizer for each layer
folds = [optimizer() for _ in range(3)]  # all at once: none is in the place of another
for one in folds: train(*[one] * 10)
"""
HOW = """
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
"""
EXCHANGES = """
import os, torch
from contextlib import nullcontext
from torch import distributed, nn
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
distributed.init_process_group("gloo", rank=0, world_size=1)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
optimizer = torch.optim.SGD(model.parameters())
for _ in range(10):
    with CONTEXT():
        for _ in range(3):
            model(torch.ones(2)).sum().backward()
    model(torch.ones(2)).sum().backward()
    optimizer.step()
distributed.destroy_process_group()
"""
NEWER_NAME = """
import torch
torch.backends.cuda.matmul.fp32_precision = "tf32"
optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters())
optimizer.step()
"""
RANKS = """
import os, time, torch
from torch import distributed, multiprocessing, nn
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="FREE")
def work(rank, shard):
    began = time.monotonic()
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(5):
        model(torch.ones(2)).sum().backward()
        optimizer.step()
    while time.monotonic() < began + 0.5: time.sleep(0.1)  # a shorter worker would leave no file
    distributed.destroy_process_group()
if __name__ == "__main__":
    multiprocessing.start_processes(work, (0,), nprocs=2, start_method="fork")
"""
TOLD = """
import teho, torch
optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters())
for number in range(12):
    optimizer.step()
    if number % 4 == 3: teho.step()
"""
GRADIENTS = """
import torch
from torch import nn
torch.manual_seed(1)
table = nn.Embedding(50_000, 24, sparse=SPARSE)
head = nn.Linear(24, 1)
optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
for step in range(12):
    optimizer.zero_grad()
    ids = torch.randint(0, USED, (5000,))
    head(table(ids)).sum().backward()
    optimizer.step()
"""
UNUSED = """
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
"""
LATE = """
import torch
from torch import nn
encoder, head = nn.Linear(8, 100), nn.Linear(100, 2)
first = torch.optim.SGD(head.parameters(), lr=0.1)
second = torch.optim.SGD(encoder.parameters(), lr=0.1)
for step in range(120):
    head(encoder(torch.ones(4, 8))).sum().backward()
    first.step()
    if step >= 50: second.step()
"""
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
LOOKS = """
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
"""
ALL_THERE_IS = (
    SLOW_DATA
    + """
import warnings
warnings.simplefilter("always")
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
"""
)
COMPARED = {"compiled": COMPILED, "looks": LOOKS, "all there is": ALL_THERE_IS}
"""Programs that also run without the probe."""
ALONE = {
    "turns": TURNS,
    "how": HOW,
    "exchanges": EXCHANGES.replace("CONTEXT", "nullcontext"),
    "no exchanges": EXCHANGES.replace("CONTEXT", "model.no_sync"),
    "newer name": NEWER_NAME,
    "ranks": RANKS,
    "told": TOLD,
    "few rows": GRADIENTS.replace("SPARSE", "False").replace("USED", "500"),
    "many rows": GRADIENTS.replace("SPARSE", "False").replace("USED", "50_000"),
    "sparse": GRADIENTS.replace("SPARSE", "True").replace("USED", "500"),
    "unused": UNUSED,
    "late": LATE,
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    probed = Probed(tmp_path_factory.mktemp("torch"))
    probed.path = str(Path(teho.__file__).parents[1])  # only the package, without what it needs
    probed.environment = {"OMP_NUM_THREADS": "1"}
    programs = {name: code.replace("FREE", str(free_port())) for name, code in ALONE.items()}
    return Ran(
        probed.forked(IMPORTS, {**COMPARED, **programs}),
        probed.forked(IMPORTS, COMPARED, probe=False),
        probed.watched(),
    )


def facts_of(ran: Ran, name: str) -> dict[str, Any]:
    """Return the facts about PyTorch of a program that printed no error."""
    assert (ran.probed[name].stderr, ran.probed[name].returncode) == (b"", 0)
    return ran.only(name).libraries["torch"]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_steps_of_optimizers_that_take_turns_are_one(ran: Ran) -> None:
    # Who comes new might be the next in a turn: its first step does not count yet.
    assert ran.probed["turns"].stdout.split() == [b"10", b"10", b"30", b"10", b"9", b"9", b"9"]
    progress = ran.only("turns").progress[-1]
    assert progress.steps == 87
    assert progress.last_s > progress.first_s


def test_optimizer_and_precision_are_recorded(ran: Ran) -> None:
    assert ran.probed["how"].stdout == b"torch.bfloat16\n"
    facts = facts_of(ran, "how")
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
    assert ran.only("how").variables == {"OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize(("name", "exchanges"), [("exchanges", 4), ("no exchanges", 1)])
def test_exchanges_of_gradients_are_counted(ran: Ran, name: str, exchanges: float) -> None:
    """Four backward passes for each step, of which three need no exchange."""
    assert facts_of(ran, name)["exchanges_per_step"] == exchanges


def test_a_newer_way_to_say_how_exactly_costs_no_other_fact(ran: Ran) -> None:
    facts = facts_of(ran, "newer name")
    assert (facts["devices"], facts["float32_matmul_precision"]) == (["cpu"], "tf32")


def test_each_rank_is_recorded(ran: Ran) -> None:
    launcher = ran.probed["ranks"]
    assert launcher.returncode == 0, launcher.stderr
    found = [one for one in ran.processes if one.parent_pid == launcher.pid and one.progress]
    ranks = [one.libraries["torch"] for one in found]
    assert sorted(facts["rank"] for facts in ranks) == [0, 1]
    for facts in ranks:
        assert (facts["world_size"], facts["backend"], facts["ddp"]) == (2, "gloo", True)
        assert facts["version"].startswith("2.")
    assert [one.progress[-1].steps for one in found] == [5, 5]


def test_compilers_pass_over_it(ran: Ran) -> None:
    """They make the same graphs, and say no more than without it."""
    said = [
        (done.stdout, re.sub(rb"\w+ [\d:.]+ \d+ \S*torch", b"torch", done.stderr), done.returncode)
        for done in (ran.plain["compiled"], ran.probed["compiled"])
    ]
    assert said[0] == said[1]
    process = ran.only("compiled")
    assert process.progress[-1].steps == 3
    assert process.loaders[0].batches == 3


def test_wrapped_functions_seem_unchanged(ran: Ran) -> None:
    """Lightning reads the signature of a loader to make another of the same."""
    ran.check_same("looks")
    assert ran.probed["looks"].returncode == 0


def test_a_program_that_does_all_there_is_says_the_same(ran: Ran) -> None:
    ran.check_same("all there is")
    assert ran.probed["all there is"].stderr.endswith(b"at last\n")
    process = ran.only("all there is")
    # Gradients of three batches make one step.
    assert (process.progress[-1].steps, process.loaders[0].batches) == (4, 12)


def test_steps_that_the_program_reports_are_preferred(ran: Ran) -> None:
    assert facts_of(ran, "told")["optimizer"] == "SGD"
    progress = ran.only("told").progress[-1]
    assert progress.steps == 3
    assert sum(wait.count for wait in progress.between.values()) == 2


@pytest.mark.parametrize(("name", "percent"), [("few rows", 1.0), ("many rows", 9.5)])
def test_rows_of_a_table_without_a_gradient_are_counted(
    ran: Ran, name: str, percent: float
) -> None:
    facts = facts_of(ran, name)
    assert "unused_gradients" not in facts
    table = facts["table_gradient"]
    assert (table["rows"], table["bytes"]) == (50_000, 50_000 * 24 * 4)
    # Every second row is looked at, and the ids are drawn with replacement.
    assert table["used_percent"] == pytest.approx(percent, rel=0.1)


def test_a_sparse_gradient_has_no_rows_without_one(ran: Ran) -> None:
    assert not {"unused_gradients", "table_gradient"} & facts_of(ran, "sparse").keys()


def test_gradients_that_no_optimizer_uses_are_counted(ran: Ran) -> None:
    assert facts_of(ran, "unused")["unused_gradients"] == {"unused": 900, "used": 202 + 3}


def test_an_optimizer_that_begins_late_uses_its_gradients(ran: Ran) -> None:
    assert facts_of(ran, "late")["unused_gradients"] is None
