"""No two rows of a table are the same run, whatever sizes a user chooses."""

from __future__ import annotations

import importlib
import json
import subprocess
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pages import ROOT
from support import FRAMEWORKS, lacks_framework
from teho.bench.example import BenchExample
from teho.bench.examples import CNN, EXAMPLES, RESNET152, with_sizes
from teho.bench.images import ALL_IMAGES, LOADER, ImageSizes, RequestedSizes, effective, points_of
from teho.cli.bench import _requested_sizes
from teho.errors import InputError
from teho.model.bench import Point

KINDS = ("quick", "full", "on_gpu")


def runs(example: BenchExample, points: tuple[Point, ...]) -> list[tuple[object, ...]]:
    """Return what each row of the table comes to: its phase, and its effective settings."""
    return [
        (phase, *effective(point, phase))
        for point in points
        for phase in example.phases
        if "only" not in point or point["only"] == phase
    ]


def assert_all_differ(example: BenchExample, points: tuple[Point, ...]) -> None:
    found = runs(example, points)
    assert points
    assert len(set(found)) == len(found), [one for one in found if found.count(one) > 1]


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_two_rows_of_an_example_are_the_same_run(name: str) -> None:
    example = EXAMPLES[name]
    for is_quick, on_gpu in product((True, False), repeat=2):
        assert_all_differ(example, example.points(is_quick=is_quick, on_gpu=on_gpu))


@pytest.mark.parametrize("example", [CNN, RESNET152], ids=lambda one: one.name)
@pytest.mark.parametrize("kind", KINDS)
def test_without_options_every_listed_setting_is_fully_in_effect(
    example: BenchExample, kind: str
) -> None:
    sizes = example.sizes[kind]
    points, left_out = points_of(sizes)
    assert (points, left_out) == (getattr(example, kind), ())
    assert len(points) == len(sizes.batches) + len(sizes.workers) + len(sizes.prefetches) - 2
    for point in points:
        wanted = point["workers"] * point["prefetch"]
        assert effective(point)[2:] == (point["workers"], wanted), point


def test_a_gpu_gets_the_whole_training_set() -> None:
    assert ALL_IMAGES == 50_000
    for one in (CNN, RESNET152):
        assert {point["images"] for point in one.points(is_quick=False, on_gpu=True)} == {50_000}


_NUMBERS = {
    "images": st.one_of(st.just(0), st.integers(32, ALL_IMAGES)),
    "batches": st.lists(st.integers(1, ALL_IMAGES), max_size=4, unique=True).map(tuple),
    "workers": st.lists(st.integers(0, 256), max_size=4, unique=True).map(tuple),
    "prefetches": st.lists(st.integers(1, 64), max_size=4, unique=True).map(tuple),
}


@given(
    example=st.sampled_from([CNN, RESNET152]),
    kind=st.sampled_from(KINDS),
    asked=st.builds(RequestedSizes, **_NUMBERS),
)
def test_no_options_make_two_rows_the_same_run(
    example: BenchExample, kind: str, asked: RequestedSizes
) -> None:
    try:
        changed = with_sizes(example, asked, [kind])
    except InputError as error:
        why = str(error)
    else:
        why = ""
    if why:
        assert "\n" not in why
        assert "Next: `--" in why
        return
    points = getattr(changed, kind)
    assert_all_differ(changed, points)
    assert all(point["batch"] <= point["images"] for point in points)
    if asked.batches:  # what was asked for is there, or an error said why not
        assert {point["batch"] for point in points} == set(asked.batches)
    assert {point["workers"] for point in points} >= set(asked.workers)
    assert {point["prefetch"] for point in points} >= set(asked.prefetches)


@given(asked=st.builds(RequestedSizes, **_NUMBERS))
@example(asked=RequestedSizes(images=32, workers=(33,), prefetches=(1, 2)))
def test_the_next_step_of_an_error_leads_on(asked: RequestedSizes) -> None:
    """At most a few steps, each with the options that the error before has named."""
    for _ in range(8):
        try:
            with_sizes(CNN, asked, ["on_gpu"])
        except InputError as error:
            words = str(error).partition("Next: `")[2].rstrip("`").split()
            given_options = dict(zip(words[::2], words[1::2], strict=True))
            asked = asked._replace(
                images=int(given_options.get("--images", asked.images)),
                batches=_read(given_options, "--batch", asked.batches),
                workers=_read(given_options, "--workers", asked.workers),
            )
        else:
            return
    raise AssertionError(asked)


def _read(options: dict[str, str], name: str, own: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(int, options[name].split(","))) if name in options else own


@pytest.mark.parametrize(
    ("images", "batch", "same"),
    [
        # The defaults that Teho once had: eight and four batches in an epoch.
        (8192, 1024, [("4 2", "4 4", "4 8"), ("8 2", "16 2")]),
        (1024, 256, [("4 1", "4 2", "4 4", "4 8", "8 2", "16 2")]),
    ],
)
def test_settings_of_too_few_batches_are_the_same_run(
    images: int, batch: int, same: list[tuple[str, ...]]
) -> None:
    settings = ["4 2", "0 2", "1 2", "2 2", "8 2", "16 2", "4 1", "4 4", "4 8"]
    alike: dict[tuple[object, ...], list[str]] = {}
    for one in settings:
        workers, prefetch = map(int, one.split())
        point = {"images": images, "batch": batch, "workers": workers, "prefetch": prefetch}
        alike.setdefault(effective(point), []).append(one)
    assert {frozenset(own) for own in alike.values() if len(own) > 1} == {
        frozenset(one) for one in same
    }


def test_settings_without_an_effect_are_left_out_and_named() -> None:
    points, (note,) = points_of(ImageSizes(8192, (1024,)))
    shown = [(point["workers"], point["prefetch"]) for point in points]
    assert shown == [(4, 2), (0, 2), (1, 2), (2, 2), (8, 2), (4, 1)]
    assert note == (
        "Left out: 16 workers with prefetch 2, 4 workers with prefetch 4 and 4 workers with "
        "prefetch 8. An epoch has only 8 batches of 1,024 images, so each of these settings "
        "would give the same run as a setting that is shown."
    )


_REAL = """
import sys, json, torch

class Numbers(torch.utils.data.Dataset):
    def __init__(self, count): self.count = count
    def __len__(self): return self.count
    def __getitem__(self, place): return torch.utils.data.get_worker_info().id

found = []
for images, batch, workers, prefetch in json.loads(sys.argv[1]):
    batches = iter(torch.utils.data.DataLoader(
        Numbers(images), batch_size=batch, num_workers=workers, prefetch_factor=prefetch))
    requested = batches._send_idx  # before the first batch is used
    found.append([len({int(batch[0]) for batch in batches}), requested])
print(json.dumps(found))
"""


@pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))
def test_pytorchs_loader_follows_the_documented_settings() -> None:
    settings = [(8, 1, 4, 2), (8, 1, 4, 8), (5, 2, 4, 2), (12, 1, 2, 3), (12, 1, 2, 1)]
    done = subprocess.run(
        [str(FRAMEWORKS / "bin" / "python"), "-c", _REAL, json.dumps(settings)],
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    keys = ("images", "batch", "workers", "prefetch")
    for one, (workers, requested) in zip(settings, json.loads(done.stdout), strict=True):
        point = dict(zip(keys, one, strict=True))
        assert effective(point, LOADER)[2:] == (workers, requested), point


def test_the_settings_of_the_guide_are_taken() -> None:
    """Batches of 4,096 images, 10 workers, prefetch 2: 13 batches, of which each worker has one."""
    asked = RequestedSizes(50_000, (4096,), (10,), (2,))
    for kind in ("full", "on_gpu"):
        (point,) = getattr(with_sizes(CNN, asked, [kind]), kind)
        assert point == {"batch": 4096, "images": 50_000, "workers": 10, "prefetch": 2}
    changed = with_sizes(CNN, asked._replace(prefetches=()), ["full"])
    assert changed.left_out[0].startswith(
        "Left out: 10 workers with prefetch 4 and 10 workers with prefetch 8. An epoch has only 13"
    )


def test_a_batch_size_that_only_a_gpu_can_have_is_left_out_on_cpus() -> None:
    changed = with_sizes(CNN, RequestedSizes(batches=(256, 4096)), ["full", "on_gpu"])
    batches = [
        {point["batch"] for point in changed.points(is_quick=False, on_gpu=on_gpu)}
        for on_gpu in (False, True)
    ]
    assert batches == [{256}, {256, 4096}]
    assert changed.left_out == (
        "On CPUs, batches of 4,096 images are not measured: an epoch has only 8,192 images.",
    )
    with pytest.raises(InputError, match="with --batch 4096, an epoch has only 2 batches"):
        with_sizes(CNN, RequestedSizes(batches=(256, 4096)), ["full"])


def test_the_sizes_of_a_day_on_a_gpu_are_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make gpu` has little time, and would lose an example to a mistake in its options."""
    for folder in ("benchmarks", "benchmarks/gpu"):
        monkeypatch.syspath_prepend(ROOT / folder)
    stage = importlib.import_module("stage_bench")
    assert set(stage.EXAMPLES) <= set(EXAMPLES)
    for name, words in stage.SIZES.items():
        options = dict(zip(words[::2], words[1::2], strict=True))
        kinds = ["on_gpu"] if options.pop("--on", "") == "gpu:1" else ["full", "on_gpu"]
        names = ("--images", "--batch", "--workers", "--prefetch")
        asked = _requested_sizes(*(options.pop(name, "") for name in names))
        changed = with_sizes(EXAMPLES[name], asked, kinds)
        assert options == {}
        for kind in kinds:
            assert_all_differ(changed, getattr(changed, kind))
            settings = [one["workers"] * one["prefetch"] for one in getattr(changed, kind)]
            assert settings == [effective(one)[3] for one in getattr(changed, kind)]
