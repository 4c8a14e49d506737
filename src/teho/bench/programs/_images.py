"""Images in CIFAR-10's format, and three ways to feed them to a training loop.

If `$CIFAR10_PATH` names the data set, it is used. Otherwise the images are noise in the same
format, which takes the same time. An image is 3 × 32 × 32 bytes, and a network gets float32 from
-1 to 1.
"""

from __future__ import annotations

import os
import pickle
import shlex
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import numpy as np
from harness import Phase, Point
from libraries import Library

__all__ = ["ImageExample", "TorchTraining", "batches_of", "feeds", "load_images", "read_cifar10"]

_SHAPE = (3, 32, 32)
_BYTES = 3 * 32 * 32
_FILES = tuple("data_batch_%d" % number for number in range(1, 6))
LEARNING_RATE = 0.001


class _ArraysOnly(pickle.Unpickler):
    """Builds only NumPy arrays, because a pickle could run any code."""

    _ALLOWED = {  # noqa: RUF012 - Python 3.8
        # In numpy.core or numpy._core, depending on the version.
        "_reconstruct": np.empty(0).__reduce__()[0],
        "ndarray": np.ndarray,
        "dtype": np.dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "numpy" and name in self._ALLOWED:
            return self._ALLOWED[name]
        text = "the file uses %s.%s, but image data do not need it" % (module, name)
        raise pickle.UnpicklingError(text)


def read_cifar10(folder: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first images uint8 [n, 3, 32, 32] and labels int64 [n] of the training set.

    Args:
        folder: with `data_batch_1` and so on, the data set's Python version.
        count: number of images; n is less if the data set has fewer.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not a batch of CIFAR-10.
    """
    pixels: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for name in _FILES:
        if sum(map(len, labels)) >= count:
            break
        own_pixels, own_labels = _read_batch(folder / name)
        pixels.append(own_pixels)
        labels.append(own_labels)
    return np.concatenate(pixels)[:count], np.concatenate(labels)[:count]


def _read_batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with path.open("rb") as file:
            # Python 2 wrote it. Its strings are bytes.
            batch = _ArraysOnly(file, encoding="latin1").load()
        pixels = np.asarray(batch["data"], np.uint8).reshape(-1, *_SHAPE)
        labels = np.asarray(batch["labels"], np.int64).reshape(len(pixels))
    except OSError:
        raise
    except Exception as error:
        text = "%s is not a batch file of CIFAR-10 (python version): %s" % (path, error)
        raise ValueError(text) from error
    return pixels, labels


def load_images(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 [n, 3, 32, 32] and labels int64 [n]: CIFAR-10's, or generated.

    Raises:
        OSError: `$CIFAR10_PATH` has no data set.
        ValueError: its files have another format, or fewer images.
    """
    folder = _cifar10_folder()
    if folder:
        pixels, labels = read_cifar10(folder, count)
        if len(labels) < count:
            # Otherwise an epoch would have fewer batches than its row says.
            found = (folder, len(labels), count)
            raise ValueError("CIFAR10_PATH: %s has %d images, and %d are needed" % found)
        return pixels, labels
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (count, *_SHAPE), np.uint8), rng.integers(0, 10, count)


def _cifar10_folder() -> Path | None:
    named = os.environ.get("CIFAR10_PATH")
    if not named:
        return None
    for folder in (Path(named), Path(named, "cifar-10-batches-py")):
        if (folder / _FILES[0]).is_file():
            return folder
    raise FileNotFoundError(
        "CIFAR10_PATH is %s, but %s is not in this folder or its subfolder cifar-10-batches-py. "
        "Unset the variable to use generated images" % (named, _FILES[0])
    )


def _as_inputs(pixels: np.ndarray) -> np.ndarray:
    return pixels.astype(np.float32) / 127.5 - 1


def batches_of(
    pixels: np.ndarray, labels: np.ndarray, batch: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield images float32 [batch, 3, 32, 32] and labels int64 [batch]; the last may have fewer."""
    for first in range(0, len(labels), batch):
        part = slice(first, first + batch)
        yield _as_inputs(pixels[part]), labels[part]


class _Rows:
    """Images in a file, read one at a time: a data set for a DataLoader.

    A row is a label and an image, as in CIFAR-10's binary version. The file has no name, so it is
    deleted when the program ends. Its rows mostly come from the page cache.
    """

    def __init__(self, pixels: np.ndarray, labels: np.ndarray) -> None:
        with tempfile.TemporaryFile() as file:
            np.column_stack((labels.astype(np.uint8), pixels.reshape(-1, _BYTES))).tofile(file)
            rows = np.memmap(file, np.uint8, "r", shape=(len(labels), 1 + _BYTES))
        self._rows = np.asarray(rows)  # a plain array takes less time to index

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> tuple[np.ndarray, int]:
        row = self._rows[place]
        return _as_inputs(row[1:].reshape(_SHAPE)), int(row[0])


def feeds(library: Library, epoch: Callable[[Any], object], point: Point) -> Iterator[Phase]:
    """Yield one epoch with each feed that the library has, and the copy to the device.

    The feed on a GPU comes first. So its first run includes the compilation and warm-up for which a
    GPU has to make up.

    Args:
        library: PyTorch or JAX.
        epoch: trains on all given batches, in host memory or on the device.
        point: `images`, `batch`, and for the DataLoader `workers` and `prefetch`. If `only` is
            `loader`, only this feed is yielded.

    If the Python has Teho, the same feeds come once more, from `teho.feed`.
    """
    is_whole = point.get("only") != "loader"
    pixels, labels = load_images(point["images"])
    count, batch = float(len(labels)), point["batch"]
    if library.device == "gpu" and is_whole:
        yield from _on_the_device(library, epoch, list(batches_of(pixels, labels, batch)))
    if library.name == "torch":
        loader = _loader(library, _Rows(pixels, labels), point)
        yield Phase("loader", lambda: epoch(loader), items=count)
        del loader  # and its workers
    if is_whole:
        host = [
            (_in_host_memory(library, images), _in_host_memory(library, own))
            for images, own in batches_of(pixels, labels, batch)
        ]
        yield Phase("host memory", lambda: epoch(host), items=count)
        del host
    if library.name == "torch" and is_whole:
        yield from _from_teho_feed(library, epoch, pixels, labels, batch)


def _from_teho_feed(
    library: Library,
    epoch: Callable[[Any], object],
    pixels: np.ndarray,
    labels: np.ndarray,
    batch: int,
) -> Iterator[Phase]:
    """Yield one epoch with each feed of `teho.feed`. `resident` scales the images itself."""
    feed, _ = _teho_feed()
    if feed is None:
        return
    count = float(len(labels))
    # Forked workers inherit the mapped file.
    loader = feed.loader(_Rows(pixels, labels), batch, multiprocessing_context="fork")
    yield Phase("loader (teho.feed)", partial(epoch, loader), items=count)
    del loader
    images = (library.package.from_numpy(pixels), library.package.from_numpy(labels))
    scale = {"mean": 0.5, "std": 0.5}
    host = feed.resident(images, batch, device="cpu", **scale)
    yield Phase("host memory (teho.feed)", partial(epoch, host), items=count)
    if library.device == "gpu":
        device = feed.resident(images, batch, device=library.handle, **scale)
        yield Phase("on the device (teho.feed)", partial(epoch, device), items=count)


def _teho_feed() -> tuple[Any, str]:
    """Return `teho.feed`; if this Python cannot import it, None and the reason as a sentence."""
    if sys.version_info < (3, 10):
        return None, "`teho.feed` needs Python 3.10 or later, and this Python is %d.%d." % (
            sys.version_info[:2]
        )
    try:
        from teho.feed import loader, resident
    except ImportError as error:
        found = (error, shlex.quote(sys.executable))
        return None, "%s. Install Teho in this Python: `%s -m pip install teho`." % found
    return SimpleNamespace(loader=loader, resident=resident), ""


def _on_the_device(
    library: Library,
    epoch: Callable[[Any], object],
    batches: list[tuple[np.ndarray, np.ndarray]],
) -> Iterator[Phase]:
    """Yield the copy of all batches to a GPU, and an epoch on these copies."""

    def copied() -> list[tuple[Any, Any]]:
        return [(library.to_device(images), library.to_device(own)) for images, own in batches]

    moved = float(sum(images.nbytes + own.nbytes for images, own in batches))
    yield Phase("copy in", copied, bytes=moved)
    device = copied()
    count = float(sum(len(own) for _, own in batches))
    yield Phase("on the device", lambda: epoch(device), items=count)


def _loader(library: Library, rows: _Rows, point: Point) -> Any:
    from_workers = {}
    if point["workers"]:
        from_workers = {
            "prefetch_factor": point["prefetch"],
            # In a short epoch, starting the workers would take most of the time.
            "persistent_workers": True,
            # So that they inherit the mapped file.
            "multiprocessing_context": "fork",
        }
    return library.package.utils.data.DataLoader(
        rows,
        batch_size=point["batch"],
        num_workers=point["workers"],
        pin_memory=library.device == "gpu",
        **from_workers,
    )


def _in_host_memory(library: Library, array: np.ndarray) -> Any:
    """Return an array in host memory; for a GPU, in pinned memory if the library has it."""
    if library.name != "torch":
        return array
    tensor = library.package.from_numpy(array)
    return tensor.pin_memory() if library.device == "gpu" else tensor


class ImageExample:
    """A network in one library, for all examples with images.

    The point has `images` and `batch`, and for the DataLoader `workers` and `prefetch`. In a
    check, `precision` may be `fp64`.
    """

    def __init__(self, library: Library) -> None:
        self.library = library

    @property
    def note(self) -> str:
        """Why the feeds of `teho.feed` are not measured; empty if they are."""
        why = _teho_feed()[1] if self.library.name == "torch" else ""
        return why and "The phases with `(teho.feed)` were not measured: " + why

    def training(self, *, exact: bool = False) -> Any:
        """Return a training with `epoch` and `figures`; if exact, in float64."""
        raise NotImplementedError

    def check(self, point: Point) -> list[float]:
        """Return the last loss of an epoch and how far each parameter moved."""
        images = load_images(point["images"])
        training = self.training(exact=point.get("precision") == "fp64")
        found: list[float] = training.figures(batches_of(*images, point["batch"]))
        return found

    def phases(self, point: Point) -> Iterator[Phase]:
        """Yield an epoch with each feed, and the copy of all images to a GPU."""
        return feeds(self.library, self.training().epoch, point)


class TorchTraining:
    """A model of PyTorch, trained by plain gradient descent.

    Args:
        library: PyTorch.
        model: in float32 or float64.
    """

    def __init__(self, library: Library, model: Any) -> None:
        self.torch = library.package
        self.device = library.handle
        self.model = model.to(self.device)
        self.optimizer = self.torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)

    def epoch(self, batches: Any) -> Any:
        """Train on each batch; return the loss on the last."""
        for host_images, host_labels in batches:
            images = host_images.to(self.device, non_blocking=True)
            labels = host_labels.to(self.device, non_blocking=True)
            loss = self.torch.nn.functional.cross_entropy(self.model(images), labels)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        return loss.detach()

    def figures(self, batches: Any) -> list[float]:
        """Train, and return the last loss and how far each parameter moved, over the learning rate.

        TF32, PyTorch's default for convolutions on NVIDIA, is off: it is too coarse to show that
        two programs compute the same.
        """
        cudnn = self.torch.backends.cudnn
        cudnn.allow_tf32, before = False, cudnn.allow_tf32
        try:
            old = [parameter.detach().clone() for parameter in self.model.parameters()]
            dtype = old[0].dtype
            from_numpy = self.torch.from_numpy
            loss = self.epoch((from_numpy(x).to(dtype), from_numpy(y)) for x, y in batches)
            moved = [new.detach() - was for new, was in zip(self.model.parameters(), old)]
            return [float(loss), *(float(one.norm()) / LEARNING_RATE for one in moved)]
        finally:
            cudnn.allow_tf32 = before
