"""Random epochs on one to eight ranks, with kills and resumes: each sample is given once."""

import itertools
import json
import os
import random
import signal
import sys
import time
from collections import Counter

import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    TensorDataset,
)

from teho.errors import InputError
from teho.feed import kept, loader, loading, packed, resident, shards
from teho.feed.order import shuffled, windowed
from teho.feed.probing import Loading

PACKED, COUNT, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(SEED)
whole = packed(PACKED, lambda sample: int(sample["txt"]))
# The measurement of a dataset takes a second, and is not what is tested here.
kept.measured = loading.measured = lambda *_: Loading(
    1e-3, chance.choice((0.9, 0.9, 0.9, 0.1)), "", True
)


class Stream(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


class Numbers(Dataset):
    """Samples that are loaded one by one."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, row):
        return row


class Seeded(Sampler):
    """An order that depends on the epoch, and the part of a rank, as in DistributedSampler."""

    def __init__(self, count, seed, rank=0, ranks=1):
        self.count, self.seed, self.epoch, self.part = count, seed, 0, slice(rank, None, ranks)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(range(self.count)[self.part])

    def __iter__(self):
        order = list(range(self.count))
        random.Random(self.seed * 1000 + self.epoch).shuffle(order)
        return iter(order[self.part])


def made(kind, count, rank, **options):
    """Return a new feed, as a program that starts again makes it."""
    numbers = torch.arange(count)
    if kind == "resident":
        return resident((numbers, numbers * 2), rank=rank, **options)
    if kind == "memory":
        return loader(TensorDataset(numbers, numbers * 2), rank=rank, **options)
    if kind == "part":  # from a quarter of the samples on, all or some of them fit
        kept.free_host_bytes = lambda: 8 * count * chance.choice((0.5, 1, 2)) + 8
        return resident(Numbers(count), rank=rank, num_workers=chance.choice((0, 2)), **options)
    if kind == "stream":
        options = {
            name: value for name, value in options.items() if name not in ("shuffle", "seed")
        }
        workers = chance.choice((0, 0, 0, 1))
        return loader(Stream(count), num_workers=workers, divided=False, rank=rank, **options)
    if kind == "sampler":
        sampler = Seeded(count, options["seed"], rank, options.get("world_size", 1))
        options = {name: options[name] for name in ("batch_size", "drop_last")}
        options["sampler"] = sampler
    dataset = whole if kind == "packed" else list(range(count))
    threads = kind != "processes" and chance.choice((True, True, True, False))
    workers = 2 if kind == "processes" else chance.choice((0, 2))
    return loader(dataset, num_workers=workers, threads=threads, rank=rank, **options)


def numbers_of(batch):
    if isinstance(batch, (list, tuple)):
        assert torch.equal(batch[1], 2 * batch[0]), "the parts of a sample stay together"
        batch = batch[0]
    return batch.tolist()


def one_epoch(kind, count, epoch, ranks, **options):
    """Return the batches of each rank. Each rank is killed up to three times, and continues."""
    found = []
    for rank in range(ranks):
        state, batches, kills = None, [], chance.randrange(4)
        while True:
            feed = made(kind, count, rank, world_size=ranks, **options)
            if state:
                feed.load_state_dict(json.loads(json.dumps(state)))
            feed.set_epoch(epoch)
            end = len(batches) + chance.randrange(1, 6) if kills else 10**9
            for batch in feed:
                batches.append(numbers_of(batch))
                if len(batches) == end:
                    break
            if not kills or len(batches) < end:
                break
            state, kills = feed.state_dict(), kills - 1
        found.append(batches)
    return found


compared, refused, dropped, wrong = 0, 0, 0, 0
for number in itertools.count():
    if compared == COUNT:
        break
    kind = chance.choice(("resident", "memory", "stream", "packed", "list", "sampler", "part"))
    count = len(whole) if kind == "packed" else chance.choice((0, 1, 7, 64, chance.randrange(200)))
    ranks = chance.randrange(1, 9)
    if kind == "sampler":
        count -= count % ranks  # its own parts are equal
    batch_size = chance.randrange(1, 17)
    options = {"batch_size": batch_size, "shuffle": chance.random() < 0.6, "seed": number,
               "drop_last": chance.random() < 0.3}  # fmt: skip
    if kind in {"resident", "part"} and not count:
        continue
    try:
        found = one_epoch(kind, count, number % 3, ranks, **options)
    except InputError as error:
        refused += 1
        impossible = count < ranks or (batch_size == 1 and count % ranks)
        if "divided" in str(error) and impossible and not options["drop_last"]:
            continue
        raise
    assert len(set(map(len, found))) == 1, "each rank has the same number of batches"
    compared += 1
    sizes = [[len(batch) for batch in batches] for batches in found]
    assert max(itertools.chain(*sizes), default=0) <= batch_size
    assert min(itertools.chain(*sizes), default=1) >= 1
    seen = Counter(itertools.chain(*itertools.chain(*found)))
    expected = count
    if options["drop_last"]:
        assert set(itertools.chain(*sizes)) <= {batch_size}
        expected -= count % (batch_size * ranks)
        dropped += count - expected
    twice, unknown = seen.total() - len(seen), len(seen.keys() - set(range(count)))
    if found_wrong := twice + unknown + abs(expected - len(seen)):
        print(number, kind, count, ranks, options, "lost or seen twice:", found_wrong)
    wrong += found_wrong
print(
    f"{compared} epochs, {refused} others refused, {dropped} samples dropped, {wrong} samples lost "
    "or seen twice"
)
assert not wrong
assert refused < COUNT / 4
assert dropped

# ---- what an interrupted epoch gives is what the whole epoch gives ----

data = torch.arange(1000)
straight = [numbers_of(batch) for batch in resident(data, 64, shuffle=True, seed=5)]
first = resident(data, 64, shuffle=True, seed=5)
got = [numbers_of(batch) for batch in itertools.islice(first, 7)]
second = resident(data, 64, shuffle=True, seed=5)
second.load_state_dict(first.state_dict())
got += map(numbers_of, second)
assert got == straight
assert second.state_dict()["epoch"] == 1
later = [numbers_of(batch) for batch in second]
assert sorted(itertools.chain(*later)) == sorted(itertools.chain(*straight))
assert later[0] != straight[0], "each epoch has another order"
try:
    resident(data, 32, shuffle=True).load_state_dict(first.state_dict())
except InputError as error:
    print(error)

# ---- a sampler that gives another order after a restart is refused ----

squares = [number * number for number in range(100)]
for sampler, is_refused in ((RandomSampler, True), (lambda data: Seeded(len(data), 1), False)):
    first = loader(squares, 8, sampler=sampler(squares), num_workers=0)
    got = [numbers_of(batch) for batch in itertools.islice(first, 5)]
    second = loader(squares, 8, sampler=sampler(squares), num_workers=0)
    second.load_state_dict(first.state_dict())
    assert second.state_dict() == first.state_dict()
    try:
        got += map(numbers_of, second)
    except InputError as error:
        print(error)
        assert is_refused
    else:
        assert not is_refused
        assert sorted(itertools.chain(*got)) == squares

# ---- a program that is killed by a signal continues ----


def until_killed(begin, state, batches):
    """Run an epoch in a process that is killed after some batches; return what it gave."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)  # with its workers, as the job's processes are killed together
        torch.set_num_threads(1)  # threads of OpenMP do not survive a fork
        feed = begin()
        if state:
            feed.load_state_dict(state)
        for batch in feed:  # each line is one step and its checkpoint
            os.write(write, json.dumps([numbers_of(batch), feed.state_dict()]).encode() + b"\n")
            time.sleep(0.005)
        os.killpg(0, signal.SIGKILL)  # with its workers
    os.close(write)
    with os.fdopen(read, encoding="ascii") as lines:
        found = list(itertools.islice(lines, batches))
        os.killpg(child, signal.SIGKILL)
        found += lines
    os.waitpid(child, 0)
    return [json.loads(line) for line in found]


for kind in ("resident", "packed", "list", "sampler", "part", "processes"):
    count = len(whole) if kind == "packed" else 300
    options = {"batch_size": 3, "shuffle": True, "seed": 9, "drop_last": False}
    seen, state, kills = [], None, 0
    while len(seen) < count:
        given = until_killed(lambda: made(kind, count, 0, **options), state, 3)  # noqa: B023 - called at once
        seen += itertools.chain(*(batch for batch, _ in given))
        state, kills = given[-1][1], kills + 1
    assert sorted(seen) == list(range(count)), kind
    assert kills > 2

# ---- orders ----

for count in (0, 1, 2, 5, 4096, (1 << 20) + 12345, (1 << 21)):
    order = shuffled(count, 7)
    assert torch.equal(order.sort().values, torch.arange(count))
    assert torch.equal(order, shuffled(count, 7))
    assert count < 5 or not torch.equal(order, shuffled(count, 8))
order = shuffled((1 << 20) + 12345, 3)
# Places and neighbours are spread as by chance: a mean of n/2, and of n/3 between neighbours.
n = len(order)
quarters = torch.histc(order[: n // 4].float(), 16, 0, n)
assert (quarters / (n / 64) - 1).abs().max() < 0.05, quarters
assert abs(float((order[1:] - order[:-1]).abs().float().mean()) / n - 1 / 3) < 0.002
assert int((order == torch.arange(n)).sum()) < 10

# The window: samples that are near each other in the files stay near each other.
sizes = [5, 1, 9, 3] * 40
blocks = shuffled(len(sizes), 3).tolist()
ends = list(itertools.accumulate(sizes))
in_blocks = [row for block in blocks for row in range(ends[block] - sizes[block], ends[block])]
assert windowed(sizes, 3, 1).tolist() == in_blocks, "the blocks follow each other"
rows = windowed(sizes, 3, 20).tolist()
assert sorted(rows) == sorted(in_blocks) == list(range(sum(sizes)))
place_of = {row: place for place, row in enumerate(in_blocks)}
moved = [place - place_of[row] for place, row in enumerate(rows)]
assert 8 < max(map(abs, moved)) < 20, "each sample moves within the window"
assert sum(map(bool, moved)) > 0.8 * len(moved), "nearly all samples move"

# Packed samples are read in blocks: each block once in an epoch, one after another.
shards._BLOCK_BYTES = 3000  # two samples
blocks = packed(PACKED, lambda sample: int(sample["txt"]), window_bytes=6000)
reads = []
read = shards._read
shards._read = lambda path, begin, size: reads.append((path, begin)) or read(path, begin, size)
for shuffle in (False, True):
    reads.clear()
    feed = loader(blocks, 4, shuffle=shuffle, num_workers=0)
    seen = [*itertools.chain(*map(numbers_of, feed))]
    assert sorted(seen) == list(range(len(whole)))
    assert len(reads) == len(set(reads)) > 20, "each block is read once"
    assert (reads == sorted(reads)) is not shuffle
    assert (seen == sorted(seen)) is not shuffle
rows = blocks.order(3)
assert torch.equal(rows.sort().values, torch.arange(len(blocks)))
shards._read = read

# A plain DataLoader reads it too, from its workers.
plain = DataLoader(whole, batch_size=10, shuffle=True, num_workers=1)
assert sorted(itertools.chain(*map(numbers_of, plain))) == list(range(len(whole)))
