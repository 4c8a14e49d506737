"""Drivers, toolkits and GPUs: the data are sound in themselves, and read to the digit."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import teho.software
from teho.clusters.catalogue import load_catalogue
from teho.config.toml import read_toml
from teho.software.drivers import (
    capability_of,
    cudnn_fits,
    lowest_capability,
    lowest_driver,
    newest_cuda,
    numbers,
)
from teho.software.releases import releases, supports

FOLDER = Path(teho.software.__file__).parent
CUDA = read_toml(FOLDER / "cuda.toml")
FRAMEWORKS = read_toml(FOLDER / "frameworks.toml")


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("595.71.05", "13.2"),
        ("580.65.06", "13.0"),
        ("580.65.05", "12.9"),
        ("535.104.05", "12.2"),
        ("525.60.13", "12.0"),
        ("525.60.12", "11.8"),
        ("515.105.01", "11.7"),
        ("450.51.05", "11.0"),
        ("440.33", None),
    ],
)
def test_the_newest_cuda_of_a_driver(driver: str, cuda: str | None) -> None:
    assert newest_cuda(driver) == cuda


@pytest.mark.parametrize(
    ("toolkit", "driver", "capability"),
    [("13.2", (580,), "7.5"), ("12.6", (525, 60, 13), "5.0"), ("12", (525, 60, 13), "5.0"),
     ("11.8", (450, 80, 2), "3.5"), ("10.2", None, None), ("", None, None)],
)  # fmt: skip
def test_what_a_toolkit_asks_for(
    toolkit: str, driver: tuple[int, ...] | None, capability: str | None
) -> None:
    assert (lowest_driver(toolkit), lowest_capability(toolkit)) == (driver, capability)


def test_every_gpu_of_the_catalogue_is_known() -> None:
    models = {
        node.gpu.model
        for cluster in load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"}).values()
        for node in cluster.nodes
        if node.gpu
    }
    assert [model for model in sorted(models) if capability_of(model) is None] == []
    assert capability_of("NVIDIA A100-SXM4-40GB MIG 1g.5gb") == "8.0"
    assert capability_of("AMD Instinct MI250X") == "gfx90a"
    assert capability_of("GeForce 256") is None


def test_cudnn_and_old_gpus() -> None:
    assert cudnn_fits("9.10.2.21", "7.0")
    assert not cudnn_fits("9.11.0", "7.0")
    assert cudnn_fits("9.24.0", "7.5")


def test_the_table_of_drivers_is_in_order() -> None:
    rows = [(numbers(cuda), numbers(driver)) for cuda, driver in CUDA["with_driver"].items()]
    assert all(newer[0] > older[0] and newer[1] > older[1] for newer, older in pairwise(rows))
    for cuda, driver in CUDA["with_driver"].items():
        assert numbers(driver) >= (lowest_driver(cuda) or ())[:1], cuda


def test_every_release_has_its_sources_and_its_sets() -> None:
    for row in FRAMEWORKS["release"]:
        keys = [key for key in row["source"].split("; ") if key.isupper()]
        assert keys
        assert set(keys) <= set(FRAMEWORKS["sources"])
        for build in row["builds"]:
            assert {"cuda", "rocm"} & set(build)
            for key in ("capabilities", "arm"):
                assert build.get(key, "toolkit") in FRAMEWORKS["capabilities"]
        newest_first = [numbers(one["cuda"]) for one in row["builds"] if "cuda" in one]
        assert newest_first == sorted(newest_first, reverse=True)


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "jax", "cupy"])
@pytest.mark.parametrize("channel", ["pip", "conda"])
def test_there_are_releases_newest_first(framework: str, channel: str) -> None:
    versions = [numbers(one.version) for one in releases(framework, channel)]
    assert versions == sorted(set(versions), reverse=True)
    assert versions


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("7.0", "pytorch", "2.14.0+cu126", "12.6"), True),
        (("7.0", "pytorch", "2.14.0+cu130", "13.0"), False),
        (("7.0", "pytorch", "2.10.0", "12.8"), True),
        (("6.0", "pytorch", "2.10.0", "12.8"), False),
        (("8.9", "pytorch", "2.14.0", "12.6"), True),  # by the code for 8.6
        (("10.3", "pytorch", "2.14.0", "12.6"), False),  # nothing for 10.x, no PTX
        (("12.1", "pytorch", "2.14.0", "13.0"), True),  # by PTX
        (("7.0", "pytorch", "2.11.0", "12.8"), None),  # not documented
        (("7.0", "pytorch", "1.0", "9.0"), None),
        (("7.0", "jax", "0.11.0", "13"), False),
        (("7.0", "jax", "0.11.0", "12"), True),
        (("7.0", "pytorch", "2.13.0", "12.9", "conda"), True),
        (("7.0", "pytorch", "2.13.0", "13.0", "conda"), False),
        (("9.0", "pytorch", "2.14.0", "13.0", "pip", "aarch64"), True),
        (("7.5", "pytorch", "2.14.0", "13.0", "pip", "aarch64"), False),
        (("9.0", "pytorch", "2.9.0", "13.0", "pip", "aarch64"), None),
    ],
)
def test_which_build_has_code_for_which_gpu(
    arguments: tuple[str, ...], expected: bool | None
) -> None:
    assert supports(*arguments) is expected
