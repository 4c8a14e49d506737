"""The newest release that fits is chosen, and each newer one says why not."""

from __future__ import annotations

import pytest

from teho.model.software import Driver
from teho.software.choose import SoftwareRequest, choose, driver_runs

ARC4 = Driver(cuda="12.0", where="ARC4's compute nodes")
NEW = Driver(version="595.71.05", cuda="13.2", where="here")
V100 = SoftwareRequest("pytorch", "conda", "nvidia", "Tesla V100", "7.0", "x86_64", ARC4)


def chosen(wish: SoftwareRequest) -> tuple[str, str, str]:
    proposal, refused = choose(wish)
    assert refused == ()
    assert proposal is not None
    return proposal.version, proposal.toolkit, proposal.python


def test_the_newest_for_an_old_gpu_and_its_driver() -> None:
    proposal, _ = choose(V100)
    assert proposal is not None
    assert (proposal.version, proposal.toolkit, proposal.python) == ("2.13", "12.9", "3.14")
    assert proposal.capabilities_known
    told = [(one.what, one.why) for one in proposal.refused]
    assert told == [
        ("PyTorch 2.14", "conda-forge has no version newer than 2.13"),
        (
            "PyTorch 2.13 with CUDA 13.0",
            "this build has no code for Tesla V100 (compute capability 7.0)",
        ),
    ]
    assert all("(20" in one.source for one in proposal.refused)


def test_an_old_gpu_is_not_given_new_cuda_by_a_new_driver() -> None:
    assert chosen(V100._replace(driver=NEW))[1] == "12.9"
    assert chosen(V100._replace(driver=NEW, capability="9.0"))[1] == "13.0"


@pytest.mark.parametrize(
    ("driver", "toolkit"),
    [("595.71.05", "13.2"), ("580", "13.2"), ("579.99", "12.6"), ("525.60.13", "12.6")],
)
def test_on_both_sides_of_a_driver(driver: str, toolkit: str) -> None:
    wish = V100._replace(
        channel="pip", capability="9.0", driver=Driver(version=driver, where="here")
    )
    assert chosen(wish)[1] == toolkit


def test_nothing_is_for_a_driver_before_cuda_11() -> None:
    proposal, refused = choose(V100._replace(driver=Driver(version="440.33", where="here")))
    assert proposal is None
    assert {one.why for one in refused if "needs driver" in one.why}


def test_an_unknown_driver_gets_what_asks_least_of_it() -> None:
    proposal, _ = choose(V100._replace(capability="9.0", driver=None))
    assert proposal is not None
    assert proposal.toolkit == "12.9"
    why = "this build needs driver 580 or newer, but the driver of the nodes is not known"
    assert ("PyTorch 2.13 with CUDA 13.0", why) in [(one.what, one.why) for one in proposal.refused]


def test_a_python_that_a_release_is_not_for() -> None:
    assert chosen(V100._replace(framework="tensorflow", python="3.13"))[0] == "2.19"
    proposal, refused = choose(V100._replace(framework="tensorflow", python="3.14"))
    assert proposal is None
    assert "this version is for Python 3.10 to 3.13, but 3.14 was requested" in {
        one.why for one in refused
    }
    assert chosen(V100._replace(python="3.9.18"))[0] == "2.7"


def test_a_version_that_is_asked_for_hides_newer_ones() -> None:
    proposal, _ = choose(V100._replace(version="2.12.1"))
    assert proposal is not None
    assert proposal.version == "2.12"
    assert [one.what for one in proposal.refused] == ["PyTorch 2.12 with CUDA 13.0"]


def test_releases_that_share_a_reason_are_shown_together() -> None:
    wish = SoftwareRequest("tensorflow", "pip", "nvidia", "GH200", "9.0", "aarch64", NEW)
    assert [(one.what, one.why) for one in choose(wish)[1]] == [
        ("TensorFlow 2.12 to 2.21", "this version has no GPU build for aarch64")
    ]


def test_amd_gets_rocm() -> None:
    wish = SoftwareRequest("pytorch", "pip", "amd", "Instinct MI250X", "", "x86_64", None)
    proposal, _ = choose(wish)
    assert proposal is not None
    assert (proposal.accelerator, proposal.toolkit) == ("rocm", "7.14")
    assert choose(wish._replace(framework="cupy"))[0] is None


@pytest.mark.parametrize(
    ("driver", "toolkit", "runs"),
    [
        (Driver(version="535.104.05"), "12.9", True),
        (Driver(version="525.60.12"), "12.0", False),
        (Driver(version="535.104.05"), "13.0", False),
        (Driver(cuda="12.0"), "12.9", True),
        (Driver(cuda="12.9"), "13.0", False),
        (Driver(version="535.104.05"), "9.2", None),
    ],
)
def test_what_a_driver_runs(driver: Driver, toolkit: str, *, runs: bool | None) -> None:
    assert driver_runs(driver, toolkit) is runs
