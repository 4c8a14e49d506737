"""Training on images: what is read, what feeds it, and that all forms train alike."""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from gpu_scenario import made_up
from served import PROGRAMS, Asked, Served, answers_of, figures_in, serve
from standins import on_cpu, on_gpu, with_jax

from forks import Program
from support import FRAMEWORKS, lacks_framework, path_of_teho
from teho.bench.examples import CNN
from teho.bench.images import BY_TEHO_FEED
from teho.bench.measure import Effort, measure
from teho.model.bench import Bench
from teho.show.build.bench import bench_document
from teho.show.build.bench_tables import tables_of
from teho.show.html.page import render_html
from teho.show.plot.bench import draw
from teho.show.plot.drawn import inlined
from teho.show.text.document import render_text

Cnn = Callable[[str], Served]
POINT = {"images": 48, "batch": 16, "workers": 0, "prefetch": 2}


def text_of(bench: Bench, width: int) -> str:
    return render_text(bench_document(bench), width=width, color=False, detail="why")


def page_of(bench: Bench) -> str:
    pictures = [inlined(draw(one, "svg")) for one in bench.results if one.timings]
    return render_html(bench_document(bench), pictures)


@pytest.fixture(scope="module")
def cnn() -> Iterator[Cnn]:
    """Start the small network once for each library that is asked for."""
    with ExitStack() as stack:
        yield functools.cache(lambda library: stack.enter_context(serve("cnn", library)))


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the part that the programs share; no data set is named."""
    monkeypatch.delenv("CIFAR10_PATH", raising=False)
    monkeypatch.syspath_prepend(PROGRAMS)
    return importlib.import_module("_images")


class _Python2Pickler(pickle._Pickler):
    """Writes as Python 2 did: text and bytes are both `str`, and NumPy has its old modules."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_string(self, text: str | bytes) -> None:
        raw = text.encode("latin1") if isinstance(text, str) else text
        short = len(raw) < 256
        self.write(
            (b"U" + bytes([len(raw)]) if short else b"T" + struct.pack("<i", len(raw))) + raw
        )
        self.memoize(text)

    dispatch[str] = dispatch[bytes] = save_string

    def save_global(self, thing: Any, name: str | None = None) -> None:
        if thing.__name__ == "_reconstruct":
            self.write(b"cnumpy.core.multiarray\n_reconstruct\n")
            self.memoize(thing)
        else:
            super().save_global(thing, name)


def write_cifar10(folder: Path, *, batches: int, each: int) -> tuple[np.ndarray, list[int]]:
    """Write files as the data set's; return all their pixels and labels."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (batches * each, 3072), np.uint8)
    labels = rng.integers(0, 10, batches * each).tolist()
    for number in range(batches):
        part = slice(number * each, (number + 1) * each)
        batch = {
            "batch_label": f"training batch {number + 1} of 5",
            "labels": labels[part],
            "data": pixels[part],
            "filenames": ["image.png"] * each,
        }
        with (folder / f"data_batch_{number + 1}").open("wb") as file:
            _Python2Pickler(file, protocol=2).dump(batch)
    return pixels.reshape(-1, 3, 32, 32), labels


def test_a_python_with_teho_also_measures_its_feeds(tmp_path: Path) -> None:
    own = ["loader", "host memory"]
    with serve("cnn", "torch", env={"PYTHONPATH": path_of_teho(tmp_path)}) as served:
        assert [*served.phases(POINT)] == [*own, *(f"{feed}{BY_TEHO_FEED}" for feed in own)]
        assert [*served.phases({**POINT, "only": "loader"})] == ["loader"]
        assert served.hello["note"] == ""


def test_a_python_without_teho_gives_the_reason(torch_python: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    example = CNN._replace(quick=(POINT,), checks=())
    effort = Effort(is_quick=True, seconds=0.001, most_s=0.01, samples=2)
    placements = [on_cpu(1), on_cpu(2)]
    found = measure(
        example, ["torch"], placements, str(torch_python), environment, effort, for_s=120.0
    )
    assert {one.phase for one in found.timings} == {"loader", "host memory"}
    (note,) = [note for note in found.notes if "teho.feed" in note]
    assert note == (
        "The phases with `(teho.feed)` were not measured: No module named 'teho'. Install Teho in "
        f"this Python: `{torch_python} -m pip install teho`."
    )
    bench = msgspec.structs.replace(made_up(), results=(found,))
    assert note in " ".join(text_of(bench, width=100).split())


def test_feeds_of_teho_give_the_same_batches(torch_python: Path, tmp_path: Path) -> None:
    code = """
import numpy as np, torch, _images
from teho import feed
pixels, labels = _images.load_images(40)
whole = (torch.from_numpy(pixels), torch.from_numpy(labels))
resident = feed.resident(whole, 16, device="cpu", mean=0.5, std=0.5)
loader = feed.loader(_images._Rows(pixels, labels), 16)
for found in (list(resident), list(loader)):
    for own, expected in zip(found, _images.batches_of(pixels, labels, 16), strict=True):
        np.testing.assert_allclose(own[0].numpy(), expected[0], atol=1e-6)
        np.testing.assert_array_equal(own[1].numpy(), expected[1])
"""
    path = f"{PROGRAMS}:{path_of_teho(tmp_path)}"
    subprocess.run([torch_python, "-c", code], check=True, env={**os.environ, "PYTHONPATH": path})


def test_batches_of_python_2_are_read_as_far_as_asked(images: ModuleType, tmp_path: Path) -> None:
    pixels, labels = write_cifar10(tmp_path, batches=2, each=30)
    for count in (10, 30, 45):  # a third file is not there, and not looked for
        found_pixels, found_labels = images.read_cifar10(tmp_path, count)
        assert (found_pixels.dtype, found_labels.dtype) == (np.uint8, np.int64)
        np.testing.assert_array_equal(found_pixels, pixels[:count])
        np.testing.assert_array_equal(found_labels, labels[:count])


@pytest.mark.parametrize("inside", ["", "cifar-10-batches-py"])
def test_data_set_is_found_where_the_variable_says(
    images: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    pixels, labels = write_cifar10(tmp_path / inside, batches=5, each=4)
    monkeypatch.setenv("CIFAR10_PATH", str(tmp_path))
    found_pixels, found_labels = images.load_images(20)
    np.testing.assert_array_equal(found_pixels, pixels)
    np.testing.assert_array_equal(found_labels, labels)


def test_a_data_set_with_too_few_images_is_refused(
    images: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An epoch would have fewer batches than its row says."""
    write_cifar10(tmp_path, batches=5, each=4)
    monkeypatch.setenv("CIFAR10_PATH", str(tmp_path))
    with pytest.raises(ValueError, match="has 20 images, and 21 are needed"):
        images.load_images(21)


class _Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_pickle_that_would_run_code_is_refused(images: ModuleType, tmp_path: Path) -> None:
    mark = tmp_path / "it ran"
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({"data": _Evil(mark)}))
    with pytest.raises(ValueError, match=r"data_batch_1 is not a batch file of CIFAR-10.*mkdir"):
        images.read_cifar10(tmp_path, 1)
    assert not mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps([1, 2]),
        pickle.dumps({"data": np.zeros((2, 5), np.uint8), "labels": [1, 2]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}),
    ],
)
def test_other_files_are_named(images: ModuleType, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(ValueError, match=f"{tmp_path}/data_batch_1 is not a batch file of"):
        images.read_cifar10(tmp_path, 1)


def test_variable_that_leads_nowhere_is_an_answer_not_a_traceback(
    alone: tuple[Path, dict[str, list[Any]]],
) -> None:
    folder, answers = alone
    (answer,) = answers["nowhere"]
    assert (answer["at"], answer["why"]) == ("out", "failed")
    assert f"CIFAR10_PATH is {folder}, but data_batch_1 is not in this folder" in answer["text"]


def test_generated_images_are_of_the_same_format_each_time(images: ModuleType) -> None:
    pixels, labels = images.load_images(500)
    assert (pixels.shape, pixels.dtype) == ((500, 3, 32, 32), np.uint8)
    assert (pixels.min(), pixels.max()) == (0, 255)
    assert (labels.shape, labels.dtype, set(labels)) == ((500,), np.int64, set(range(10)))
    np.testing.assert_array_equal(images.load_images(500)[0], pixels)


def test_file_has_the_content_of_the_memory(images: ModuleType) -> None:
    pixels, labels = images.load_images(10)
    rows = images._Rows(pixels, labels)
    whole, whole_labels = zip(*images.batches_of(pixels, labels, 4), strict=True)
    assert [len(part) for part in whole] == [4, 4, 2]
    from_file, labels_from_file = zip(*(rows[place] for place in range(len(rows))), strict=True)
    np.testing.assert_array_equal(np.stack(from_file), np.concatenate(whole))
    np.testing.assert_array_equal(labels_from_file, np.concatenate(whole_labels))
    assert np.concatenate(whole).dtype == np.float32
    assert (np.concatenate(whole).min(), np.concatenate(whole).max()) == (-1, 1)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_small_network_trains_alike_in_both(cnn: Cnn, library: str) -> None:
    expected = cnn("torch").figures({**POINT, "precision": "fp64"})
    found = cnn(library).figures(POINT)
    assert len(expected) == 1 + 10
    assert all(figure > 0 for figure in expected)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


_COUNT = """
import json, sys, torch
sys.path.insert(0, sys.argv[1])
import resnet152
with torch.device("meta"):  # shapes alone
    model = resnet152.resnet152(torch).eval()
    print(json.dumps(sum(parameter.numel() for parameter in model.parameters())))
    print(json.dumps(model(torch.zeros(2, 3, 64, 64)).shape[1]))
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Any]]]:
    """Return the answers of programs that are asked only once, and a folder without images."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "count.py").write_text(_COUNT)
    point = {**POINT, "images": 8, "batch": 8}
    asked = {
        "nowhere": Asked("cnn", [POINT], {"CIFAR10_PATH": str(folder)}),
        "resnet152": Asked("resnet152", [{**point, "precision": "fp64"}, point]),
    }
    count = Program(folder / "count.py", [str(PROGRAMS)])
    return folder, answers_of("torch", folder, asked, count=count)


def test_large_network_trains_as_in_float64(alone: tuple[Path, dict[str, list[Any]]]) -> None:
    expected, found = map(figures_in, alone[1]["resnet152"])
    np.testing.assert_allclose(found, expected, rtol=3e-3)


def test_large_network_has_as_many_parameters_as_the_published_one(
    alone: tuple[Path, dict[str, list[Any]]],
) -> None:
    assert alone[1]["count"] == [60192808, 1000]


@pytest.mark.parametrize(
    ("library", "feeds"), [("torch", ["loader", "host memory"]), ("jax", ["host memory"])]
)
def test_feeds_that_a_cpu_has_are_timed(cnn: Cnn, library: str, feeds: list[str]) -> None:
    phases = cnn(library).phases({**POINT, "images": 40})
    assert list(phases) == feeds
    assert all(phase["items"] == 40 for phase in phases.values())


@pytest.mark.parametrize(("library", "feeds"), [("torch", ["loader"]), ("jax", [])])
def test_settings_of_the_loader_are_swept_only_with_the_loader(
    cnn: Cnn, library: str, feeds: list[str]
) -> None:
    assert list(cnn(library).phases({**POINT, "workers": 1, "only": "loader"})) == feeds


def test_on_a_gpu_batches_are_there_before_they_are_timed(images: ModuleType) -> None:
    copied: list[np.ndarray] = []
    library = SimpleNamespace(name="jax", device="gpu", to_device=copied.append)
    epochs: list[Any] = []
    copies = {}
    for phase in images.feeds(library, epochs.append, POINT):
        before = len(copied)
        phase.run()
        copies[phase.name] = len(copied) - before
        if phase.name == "copy in":
            assert phase.bytes == sum(array.nbytes for array in copied)
    # Images and labels of three batches. What lies there goes first: nothing has warmed it up.
    assert list(copies.items()) == [("copy in", 6), ("on the device", 0), ("host memory", 0)]
    assert sum(len(array) for array in copied[:6:2]) == POINT["images"]
    assert [len(epoch) for epoch in epochs] == [3, 3]


@pytest.mark.skipif(bool(lacks_framework("jax")), reason=lacks_framework("jax"))
def test_passes_over_the_images_make_up_for_the_copy_to_a_gpu(tmp_path: Path) -> None:
    found = measure(
        CNN._replace(quick=(POINT,), checks=()),
        ["jax"],
        [on_cpu(), on_gpu()],
        str(FRAMEWORKS / "bin" / "python"),
        {**os.environ, **with_jax(tmp_path)},
        Effort(is_quick=True, seconds=0.001, most_s=0.01, samples=2),
        for_s=120.0,
    )
    timed = {one.phase: one for one in found.timings if one.placement == "gpu:1"}
    assert set(timed) == {"copy in", "on the device", "host memory"}
    (own,) = found.amortisations
    there, copy = timed["on the device"], timed["copy in"]
    assert own.first_s == pytest.approx(there.first_s - there.median_s + copy.median_s)
    assert there.first_s > 2 * there.median_s  # it was compiled, and only there
    (here,) = [one for one in found.timings if one.placement == "cpu:1"]
    assert own.runs == pytest.approx(own.first_s / (here.median_s - there.median_s))
    (table,) = [table for table in tables_of(found) if table.key == "pay_offs"]
    assert table.note.startswith("A run is one pass over 48 images, at the batch")
    (row,) = table.rows
    assert (row["pair"], row["at"], row["library"]) == ("1 GPU against 1 core", "batch 16", "JAX")
    bench = msgspec.structs.replace(made_up(), results=(found,))
    assert table.note in text_of(bench, width=100)
    assert table.note in page_of(bench)


def test_workers_are_gone_with_their_point(cnn: Cnn) -> None:
    program = cnn("torch")
    pid = program.process.pid
    assert "loader" in program.phases({**POINT, "workers": 2})
    children = Path(f"/proc/{pid}/task/{pid}/children")
    until_s = time.monotonic() + 60
    while children.read_text() and time.monotonic() < until_s:
        time.sleep(0.05)
    assert not children.read_text()
