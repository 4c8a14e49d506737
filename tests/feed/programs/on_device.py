"""Data that stay on the device: what is copied there, how images change, what is refused."""

import contextlib
import itertools
import re
import warnings
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from teho.errors import InputError
from teho.feed import kept, kept_batches, resident
from teho.feed.arrays import Arrays

images = torch.randint(0, 256, (50, 3, 12, 10), dtype=torch.uint8)
labels = torch.arange(50)


class Samples(Dataset):
    def __init__(self, sample=lambda row: (images[row], row)):
        self.sample = sample

    def __len__(self):
        return 50

    def __getitem__(self, row):
        return self.sample(row)


class Stream(IterableDataset):
    def __iter__(self):
        return iter([{"x": np.float32([row, row]), "y": row} for row in range(21)])


def iter_once():
    yield from range(50)


def same(ours, theirs):
    ours, theirs = list(ours), list(theirs)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for left, right in zip(one, other, strict=True):
            assert left.dtype == right.dtype
            assert torch.equal(left, right)


# ---- what a DataLoader gives ----

wanted = list(DataLoader(Samples(), batch_size=16))
for dataset in (TensorDataset(images, labels), Samples(), (images.numpy(), labels)):
    same(resident(dataset, 16), wanted)
(first, *_, last) = resident(Stream(), 8)
assert first["x"].tolist() == [[row, row] for row in range(8)]
assert last["y"].tolist() == list(range(16, 21))

# ---- what programs read of a DataLoader ----

for dataset in (Samples(), TensorDataset(images, labels), (images, labels), {"x": images}, images):
    feed = resident(dataset, 16, drop_last=True)
    assert (len(feed.dataset), feed.batch_size, feed.drop_last) == (50, 16, True)
assert torch.equal(resident((images, labels), 16).dataset[7][0], images[7])

# ---- the rows of an array are copied together if its batches are small ----


class Calls(TorchDispatchMode):
    """Counts the calls of PyTorch's operators."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


large = torch.randint(0, 256, (50, 3, 64, 64), dtype=torch.uint8)
with Calls() as calls:
    ours = list(resident((large, labels), 8, shuffle=True))
assert calls.names.count("index_select") == 7 + 7
order = [row for _, rows in ours for row in rows.tolist()]
assert order != sorted(order) == list(range(50))
for some, rows in ours:
    assert torch.equal(some, large[rows])
ours[0][0].zero_()
assert large.any(dim=(1, 2, 3)).all(), "a batch is a copy"
# While a batch is made, only the one before it is in memory, as in a loop written by hand.
del ours, some, rows
for dataset in ((large, labels), TensorDataset(large, labels)):
    places = []
    for batch in resident(dataset, 8, shuffle=True):
        places.append(weakref.ref(batch[0]))
        assert sum(place() is not None for place in places) == 1
    assert len(places) == 7
# Batches that were copied together can be changed in place, even if gradients need the others.
first, second = resident(torch.arange(16.0), 8)
parameter = torch.ones((), requires_grad=True)
needed = (second * parameter).sum()
first.mul_(parameter).add_(1)
needed.backward()
assert parameter.grad == sum(range(8, 16))
# On a device for which a call takes longer than a copy; `meta` has shapes, and no values.
there = [large.to("meta"), labels.to("meta")]
with Calls() as calls:
    shapes = [
        [list(part.shape) for part in batch]
        for batch in Arrays(there, tuple).batches(labels.to("meta"), [8] * 6 + [2])
    ]
assert shapes == [[[size, 3, 64, 64], [size]] for size in [8] * 6 + [2]]
assert calls.names.count("index_select") == 2

# ---- a part of the data fits ----

size = images.nbytes + 8 * 50
kept.free_host_bytes = lambda: size
feed = resident(Samples(), 16, shuffle=True, memory_share=0.5, seed=2)
print(feed.how)
same(feed, resident((images, labels), 16, shuffle=True, seed=2))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    feed = resident(Samples(), 16, shuffle=True, memory_share=0.05, seed=2)
print(caught[0].message)
same(feed, resident((images, labels), 16, shuffle=True, seed=2))
kept.free_host_bytes = lambda: 2**40

# ---- the memory of a GPU, which PyTorch may have reserved without using it ----

for name, bytes_ in (("mem_get_info", (1000, 9000)), ("memory_reserved", 300),
                     ("memory_allocated", 100)):  # fmt: skip
    setattr(torch.cuda, name, lambda device, found=bytes_: found)
assert kept.Room(torch.device("cuda", 0), 0.5).device_bytes == (1000 + 300 - 100) / 2


class FakeRoom(NamedTuple):
    """The memory of a node with a GPU."""

    device_bytes: int
    host_bytes: int
    device: torch.device = torch.device("cuda", 0)


# ---- batches that are copied from the node to a GPU, two in advance ----


class Buffer(torch.Tensor):
    """A pinned buffer; its copy on the GPU has the same class."""

    def to(self, device, *, non_blocking):
        assert non_blocking
        assert gpu.entered == [device, gpu.streams[0]], "on the device, and in the second stream"
        gpu.copied += 1
        return self.clone()

    def record_stream(self, stream):
        assert stream is gpu.program
        gpu.recorded += 1


class GpuStream:
    """A stream. An event is the number of copies before it."""

    def __init__(self):
        self.waited = []

    def record_event(self):
        assert self in gpu.entered
        return gpu.copied

    def wait_event(self, event):
        self.waited.append(event)


class Gpu:
    """In place of the module `torch.cuda`."""

    def __init__(self):
        self.entered, self.streams, self.program = [], [], GpuStream()
        self.copied = self.recorded = 0

    def Stream(self, device):  # noqa: N802 - as in torch.cuda
        self.streams.append(GpuStream())
        return self.streams[-1]

    def current_stream(self, device):
        return self.program

    @contextlib.contextmanager
    def device(self, one):
        self.entered.append(one)
        yield
        self.entered.remove(one)

    stream = device


def pinned(shape, *, dtype, pin_memory):
    assert pin_memory
    return torch.empty(shape, dtype=dtype).as_subclass(Buffer)


def counted(rows):
    for some in rows:
        asked.append(len(some))
        yield some


gpu, asked = Gpu(), []
kept_batches.torch = SimpleNamespace(cuda=gpu, empty=pinned, index_select=torch.index_select)
parts = torch.randperm(50).split(8)
batches = kept_batches._copied([images, labels], torch.device("cuda", 0), counted(parts))
for number, (batch, part) in enumerate(zip(batches, parts, strict=True), 1):
    some, rows = (leaf.as_subclass(torch.Tensor) for leaf in batch)
    assert some.dtype == torch.uint8
    assert torch.equal(some, images[part])
    assert torch.equal(rows, part)
    assert len(asked) == min(number + 2, 7), "two batches are copied in advance"
    assert gpu.program.waited == list(range(2, 2 * number + 1, 2)), "the program waits for its copy"
    assert gpu.recorded == 2 * number
assert asked == [8] * 6 + [2]
kept_batches.torch = torch

# ---- a stream that fits into the node, and not into the GPU ----

size = 21 * (8 + 8)
found = kept.keep(Stream(), FakeRoom(size - 1, size), None)
assert found.how == f"{size} B do not fit into {size - 1} B on cuda:0: batches are copied"
assert found.arrays.leaves[0].tolist() == [[row, row] for row in range(21)]
assert kept.keep(Stream(), FakeRoom(size, size - 1), None) == (
    f"the samples need more than {size - 1} B"
)

# ---- a stream that fits nowhere is loaded in its own order, by each rank its own part ----

kept.free_host_bytes = lambda: size
for more in ({}, {"num_workers": 4}):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        feeds = [resident(Stream(), 4, rank=rank, world_size=2, **more) for rank in range(2)]
    print(caught[0].message)
    parts = [[batch["y"].tolist() for batch in feed] for feed in feeds]
    assert [list(map(len, part)) for part in parts] == [[4, 4, 2], [4, 4, 3]]
    assert sorted(itertools.chain(*itertools.chain(*parts))) == list(range(21))
for dataset, more in ((Stream(), {"shuffle": True}), (map(abs, range(50)), {})):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            resident(dataset, 4, **more)
        except InputError as error:
            print(error)
kept.free_host_bytes = lambda: 2**40
assert sorted(row for batch in resident(iter_once(), 4, shuffle=True) for row in batch) == list(
    range(50)
)

# ---- a stream needs its own size of memory, and not twice of it ----


class Large(IterableDataset):
    def __iter__(self):
        for row in range(24):
            yield torch.full((16 * 1024**2,), row, dtype=torch.uint8), row


def memory_kib(name):
    """Return a value of this process: its memory, or the most that this has been."""
    (line,) = re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line)


Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins again at the present memory
before_kib, need_kib = memory_kib("VmRSS"), 24 * 16 * 1024
feed = resident(Large(), 4)
peak = (memory_kib("VmHWM") - before_kib) / need_kib
assert peak < 1.5, peak
for number, (large, rows) in enumerate(feed):
    assert rows.tolist() == list(range(4 * number, 4 * number + 4))
    assert large.amin(1).tolist() == large.amax(1).tolist() == rows.tolist()
del feed, large

# ---- what cannot stay on the device is loaded, and the reason is said ----

for sample in (
    lambda row: torch.rand(3),
    lambda row: (images[row], f"text {row}"),
    lambda row: images[row, :, : 5 + (row == 49)],
):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        feed = resident(
            Samples(sample), 1, num_workers=0, flip=False, transform=lambda batch: [batch]
        )
    print(caught[0].message)
    (batch, *_) = feed
    assert isinstance(batch, list), "the transform is applied all the same"

# ---- random crops and flips, against a loop over single images ----

changed = next(iter(resident((images, labels), 50, crop_padding=2, flip=True, seed=1)))[0]
padded = torch.nn.functional.pad(images, (2, 2, 2, 2))
places = set()
for image, result in zip(padded, changed, strict=True):
    parts = {
        (top, left): image[:, top : top + 12, left : left + 10]
        for top in range(5)
        for left in range(5)
    }
    found = [
        (*place, flipped)
        for place, part in parts.items()
        for flipped in (False, True)
        if torch.equal(result, part.flip(-1) if flipped else part)
    ]
    assert len(found) == 1, "each result is one crop of its own image"
    places.add(found[0])
assert len({top for top, _, _ in places}) == len({left for _, left, _ in places}) == 5
assert {flipped for _, _, flipped in places} == {False, True}

# ---- normalisation ----

mean, std = [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]
seen = []
feed = resident(images, 50, mean=mean, std=std, transform=lambda x: seen.append(x.dtype) or x)
normal = next(iter(feed))
assert seen == [torch.float32]
assert feed.how.startswith("17.6 KiB"), "the images stay in uint8"
wanted = (images.float() / 255 - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[
    :, None, None
]
assert normal.dtype == torch.float32
assert torch.allclose(normal, wanted, atol=1e-5)
floats = next(iter(resident(images.float(), 50, mean=100.0)))
assert torch.allclose(floats, images.float() - 100)

# ---- the same seed gives the same changes, also after a resume ----


def started(state=None):
    feed = resident((images, labels), 16, shuffle=True, seed=4, crop_padding=2, flip=True)
    if state:
        feed.load_state_dict(state)
    return feed


straight = list(started())
broken = started()
head = [batch for batch, _ in zip(broken, range(2), strict=False)]
same(head + list(started({**broken.state_dict(), "batch": 2})), straight)
two = [
    resident(images, 5, seed=4, flip=True, crop_padding=2, rank=rank, world_size=2)
    for rank in (0, 1)
]
for feed in two:
    assert len(feed) == 5

for wrong in ({"batch_size": 0}, {"memory_share": 0}, {"rank": 2, "world_size": 2}):
    try:
        list(resident((images, labels), **{"batch_size": 4, **wrong}))
    except InputError as error:
        print(error)
try:
    list(resident((labels, images), 4, flip=True))
except InputError as error:
    print(error)
try:
    resident((images, labels[:3]), 4)
except InputError as error:
    print(error)
