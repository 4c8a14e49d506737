"""Epochs of several loaders on the same data, in the Python that has PyTorch.

    python feed_programs.py CASE ROUNDS [FOLDER]

It prints JSON: for each loader the seconds of its epochs, the CPU time of this process, and how
many samples an epoch had: one number if all epochs had the same. The loaders take turns. The first
epoch of each loader is not counted. A loader whose package is missing is left out.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from teho.feed import loader, packed, resident

Makers = dict[str, Iterable]
WORKERS = 2
THREADS = 2


class Again:
    """An iterable that calls a function for each epoch."""

    def __init__(self, begin: Callable[[], Iterable]) -> None:
        self._begin = begin

    def __iter__(self):
        return iter(self._begin())


def workers(dataset, batch: int, count: int, **options) -> DataLoader:
    more = {"persistent_workers": True} if count else {}
    return DataLoader(dataset, batch_size=batch, num_workers=count, **more, **options)


# ---- data in memory ----


def in_memory(pixels: torch.Tensor, labels: torch.Tensor, batch: int) -> Makers:
    def sliced():
        for rows in torch.randperm(len(pixels)).split(batch):
            yield pixels[rows], labels[rows]

    def selected():
        for rows in torch.randperm(len(pixels)).split(batch):
            yield pixels.index_select(0, rows), labels.index_select(0, rows)

    dataset = TensorDataset(pixels, labels)
    return {
        "resident": resident((pixels, labels), batch, shuffle=True),
        "loader": loader(dataset, batch, shuffle=True),
        "hand-written": Again(sliced),
        "index_select": Again(selected),
        "DataLoader": workers(dataset, batch, 0, shuffle=True),
        "DataLoader, 2 workers": workers(dataset, batch, WORKERS, shuffle=True),
    }


def cifar(_: Path) -> Makers:
    images = torch.randint(0, 256, (50_000, 3, 32, 32), dtype=torch.uint8)
    return in_memory(images, torch.randint(0, 10, (50_000,)), 512)


def table(_: Path) -> Makers:
    return in_memory(torch.rand(100_000, 20), torch.rand(100_000), 256)


def small(_: Path) -> Makers:
    return in_memory(torch.rand(100_000, 20), torch.rand(100_000), 32)


# ---- the small network of `teho bench cnn`, trained on the CPU ----


class Rows(Dataset):
    """Images that are read and scaled one by one, as in `teho bench cnn`."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return scaled(self.images[row]), int(self.labels[row])


def scaled(images: torch.Tensor) -> torch.Tensor:
    return images.float() / 127.5 - 1


def cnn(_: Path) -> Makers:
    import cnn as example  # of teho.bench

    network = example._torch_network(torch)  # noqa: SLF001 - the very network of the example
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)

    def trained(feed):
        for images, labels in feed:
            loss = torch.nn.functional.cross_entropy(network(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield labels

    images = torch.randint(0, 256, (6400, 3, 32, 32), dtype=torch.uint8)
    labels = torch.randint(0, 10, (6400,))
    rows = Rows(images, labels)
    feeds = {
        "resident": resident((images, labels), 512, shuffle=True, mean=0.5, std=0.5),
        "loader": loader(rows, 512, shuffle=True),
        "host memory": resident((scaled(images), labels), 512, shuffle=True, device="cpu"),
        "DataLoader": workers(rows, 512, 0, shuffle=True),
        "DataLoader, 2 workers": workers(rows, 512, WORKERS, shuffle=True),
    }
    return {name: Again(partial(trained, feed)) for name, feed in feeds.items()}


# ---- many small files ----


class Files(Dataset):
    """Each sample is a file."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.rglob("*.bin"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> torch.Tensor:
        return bytes_to_tensor({"bin": self.paths[row].read_bytes()})


def bytes_to_tensor(sample: dict) -> torch.Tensor:
    return torch.frombuffer(bytearray(sample["bin"]), dtype=torch.uint8)


def small_files(folder: Path) -> Makers:
    files = Files(folder / "files")
    found = {
        "packed": loader(packed(folder / "packed", bytes_to_tensor), 256, shuffle=True),
        "DataLoader, 2 workers": workers(files, 256, WORKERS, shuffle=True),
        "DataLoader, 16 workers": workers(files, 256, 16, shuffle=True),
    }
    try:
        import webdataset
    except ImportError:
        return found
    shards = [str(path) for path in sorted((folder / "packed").glob("*.tar"))]
    stream = webdataset.WebDataset(shards, shardshuffle=False).shuffle(8000).map(bytes_to_tensor)
    return {**found, "webdataset on the same shards": DataLoader(stream, batch_size=256)}


def read(path: Path) -> dict:
    return {"bin": path.read_bytes()}


def in_chunks(folder: Path) -> Makers:
    """Import litdata in a process of its own: it changes how PyTorch starts workers."""
    try:
        import litdata
    except ImportError:
        return {}
    chunks, paths = folder / "litdata", Files(folder / "files").paths
    with contextlib.redirect_stdout(sys.stderr):
        litdata.optimize(read, paths, str(chunks), chunk_bytes="64MB", num_workers=1)
    dataset = litdata.StreamingDataset(str(chunks), shuffle=True, transform=bytes_to_tensor)
    workers = litdata.StreamingDataLoader(dataset, batch_size=256, num_workers=WORKERS)
    return {"litdata, 2 workers": workers}


# ---- JPEG images ----


def decoded(content: bytes) -> torch.Tensor:
    """Decode with Pillow, and make the image 224 × 224 pixels."""
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        image.draft("RGB", (224, 224))
        small = image.convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(small))


class Jpegs(Dataset):
    """Each sample is an image in a file."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("*.jpg"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> torch.Tensor:
        return decoded(self.paths[row].read_bytes())


def jpeg(folder: Path) -> Makers:
    images = Jpegs(folder / "jpegs")
    found = {
        "loader": loader(images, 32, shuffle=True),
        "loader, 2 threads": loader(images, 32, shuffle=True, num_workers=THREADS, threads=True),
        "DataLoader, 2 workers": workers(images, 32, WORKERS, shuffle=True),
        "DataLoader, 4 workers": workers(images, 32, 4, shuffle=True),
    }
    try:
        from spdl.pipeline import PipelineBuilder
    except ImportError:
        return found

    def spdl():
        order = torch.randperm(len(images)).tolist()
        pipeline = (
            PipelineBuilder()
            .add_source(order)
            .pipe(images.__getitem__, concurrency=THREADS)
            .aggregate(32)
            .pipe(torch.stack)
            .add_sink(4)
            .build(num_threads=THREADS + 1)
        )
        with pipeline.auto_stop():
            yield from pipeline.get_iterator(timeout=60)

    return {**found, "SPDL": Again(spdl), **dali(images.paths)}


def dali(paths: list[Path]) -> Makers:
    """Return DALI with its own decoder, on the CPU."""
    try:
        from nvidia.dali import fn, pipeline_def
        from nvidia.dali.plugin.base_iterator import LastBatchPolicy
        from nvidia.dali.plugin.pytorch import DALIGenericIterator
    except ImportError:
        return {}

    @pipeline_def(batch_size=32, num_threads=THREADS, device_id=None)
    def decoding():
        files = [str(path) for path in paths]
        content, _ = fn.readers.file(files=files, random_shuffle=True, name="files")
        return fn.resize(fn.decoders.image(content, device="cpu"), resize_x=224, resize_y=224)

    batches = DALIGenericIterator(
        decoding(), ["images"], reader_name="files", auto_reset=True,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )  # fmt: skip
    return {"DALI, its own decoder": Again(lambda: (one[0]["images"] for one in batches))}


# ---- controls: programs for which a loader of Teho has nothing to gain ----


class Python(Dataset):
    """Samples that take Python's lock while they are made."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, row: int) -> torch.Tensor:
        return torch.tensor([sum(number * row for number in range(20_000)) % 1000])


class Augmented(Dataset):
    """Samples that are changed at random."""

    def __init__(self) -> None:
        self.images = torch.randint(0, 256, (2048, 3, 64, 64), dtype=torch.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> torch.Tensor:
        image = self.images[row].float()
        for _ in range(10):
            image = image * random.random() + torch.rand(())
        return image.flip(-1) if random.random() < 0.5 else image


class Sleeps(Dataset):
    """Samples that wait for something, as for a file."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, row: int) -> int:
        time.sleep(0.002)
        return row


class Tiny(Dataset):
    """Samples that take a few microseconds."""

    def __init__(self) -> None:
        self.rows = torch.rand(20_000, 4)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> torch.Tensor:
        return self.rows[row]


class Stream(IterableDataset):
    """Samples that follow each other, without numbers."""

    def __iter__(self):
        for row in range(1024):
            yield torch.tensor([sum(number * row for number in range(5_000)) % 1000])


def augmented(_: Path) -> Makers:
    """Return also `resident`, which warns that it has to load each batch."""
    images = Augmented()
    return {"resident": resident(images, 64, shuffle=True), **control(images, 64)}


def first(_: Path) -> Makers:
    """Return feeds for which each epoch is the first one of a new loader."""
    samples = Python()
    return {
        "loader": Again(lambda: loader(samples, 16, shuffle=True)),
        "DataLoader, 2 workers": Again(lambda: workers(samples, 16, WORKERS, shuffle=True)),
    }


def control(dataset, batch: int) -> Makers:
    return {
        "loader": loader(dataset, batch, shuffle=True),
        "DataLoader": workers(dataset, batch, 0, shuffle=True),
        "DataLoader, 2 workers": workers(dataset, batch, WORKERS, shuffle=True),
    }


def stream(_: Path) -> Makers:
    return {
        "loader": loader(Stream(), 16),
        # So small a share that the samples do not fit into memory.
        "resident": resident(Stream(), 16, memory_share=1e-9),
        "DataLoader": DataLoader(Stream(), batch_size=16),
        "DataLoader, 1 worker": DataLoader(Stream(), batch_size=16, num_workers=1),
    }


CASES: dict[str, Callable[[Path], Makers]] = {
    "cifar": cifar,
    "table": table,
    "small": small,
    "cnn": cnn,
    "small_files": small_files,
    "litdata": in_chunks,
    "jpeg": jpeg,
    "python": lambda _: control(Python(), 16),
    "augmented": augmented,
    "sleeps": lambda _: control(Sleeps(), 16),
    "tiny": lambda _: control(Tiny(), 8),
    "stream": stream,
    "first": first,
}


def main() -> None:
    case, rounds, folder = sys.argv[1], int(sys.argv[2]), Path((*sys.argv, "")[3])
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    warnings.filterwarnings("ignore", message="teho.feed.resident loads each batch")
    makers = CASES[case](folder)
    found: dict[str, list[float]] = {name: [] for name in makers}
    cpu: dict[str, list[float]] = {name: [] for name in makers}
    samples: dict[str, set[int]] = {name: set() for name in makers}
    for number in range(rounds + 1):
        names = list(makers) if number % 2 else list(makers)[::-1]
        for name in names:
            began_s, began_cpu_s, count = time.perf_counter(), time.process_time(), 0
            for batch in makers[name]:
                count += len(batch[0] if isinstance(batch, (list, tuple)) else batch)
            if number:
                found[name].append(time.perf_counter() - began_s)
                cpu[name].append(time.process_time() - began_cpu_s)
            samples[name].add(count)
    chosen = repr(makers.get("packed") if "packed" in makers else makers.get("loader"))
    counts = {name: sorted(own) for name, own in samples.items()}
    result = {"seconds": found, "cpu_s": cpu, "samples": counts, "chosen": chosen}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
