"""Folders for what frameworks compile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from launch_trees import lumi, task

from teho.launch.caches import Caches, create, find_caches
from teho.launch.gpus import Gpus
from teho.schedulers.site import find_generation
from teho.schedulers.sites import SITES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teho.schedulers.site_types import Site

NVIDIA = Gpus("CUDA_VISIBLE_DEVICES", ["0"], [None])
AMD = Gpus("ROCR_VISIBLE_DEVICES", ["0"], [None])
NONE = Gpus("", [], [])


def puhti() -> Site:
    return next(site for site in SITES if site["name"] == "puhti")


def test_on_an_nvidia_node():
    environment = {"USER": "maija", "HOME": "/users/maija", "LOCAL_SCRATCH": "/local/17/"}
    caches = find_caches(puhti(), None, NVIDIA, task(), environment)
    root = "/local/17/teho-cache-maija"
    assert caches.variables == {
        "TRITON_CACHE_DIR": f"{root}/triton",
        "CUDA_CACHE_PATH": f"{root}/cuda",
        "XDG_CACHE_HOME": f"{root}/xdg",
        "HF_HOME": "/users/maija/.cache/huggingface",
        "TORCH_HOME": "/users/maija/.cache/torch",
    }
    assert caches.directories == [root, f"{root}/cuda", f"{root}/triton", f"{root}/xdg"]
    assert caches.links_to == "/users/maija/.cache"


def test_lumis_own_folders_go_before():
    generation = find_generation(lumi(), "")
    environment = {"USER": "maija", "HOME": "/users/maija"}
    caches = find_caches(lumi(), generation, AMD, task(), environment)
    assert caches.variables == {
        "FI_MR_CACHE_MONITOR": "userfaultfd",
        "MIOPEN_CUSTOM_CACHE_DIR": "/tmp/miopen-cache-maija",
        "MIOPEN_USER_DB_PATH": "/tmp/miopen-config-maija",
        "TRITON_CACHE_DIR": "/tmp/teho-cache-maija/triton",
    }
    # /tmp is memory there, which is too dear for all of XDG.
    assert caches.directories == [
        "/tmp/miopen-cache-maija", "/tmp/miopen-config-maija",
        "/tmp/teho-cache-maija", "/tmp/teho-cache-maija/triton",
    ]  # fmt: skip
    without = find_caches(lumi(), None, AMD, task(), environment)
    assert without.variables["MIOPEN_USER_DB_PATH"] == "/tmp/teho-cache-maija/miopen"


def test_names_in_braces_are_replaced():
    generation = find_generation(lumi(), "workshop-2025")
    other = task()
    other.node_rank = 3
    caches = find_caches(lumi(), generation, NONE, other, {"LOGNAME": "matti"})
    assert caches.variables["MIOPEN_USER_DB_PATH"] == "/tmp/matti-miopen-cache-3"
    assert caches.directories == ["/tmp/matti-miopen-cache-3"]
    nobody = find_caches(lumi(), generation, NONE, other, {})
    assert nobody.directories == [f"/tmp/{os.getuid()}-miopen-cache-3"]


def test_what_the_user_has_set_stays():
    environment = {
        "USER": "maija", "HOME": "/users/maija", "TRITON_CACHE_DIR": "/mine", "HF_HOME": "/hub",
        "XDG_CACHE_HOME": "/also/mine", "FI_MR_CACHE_MONITOR": "memhooks",
    }  # fmt: skip
    generation = find_generation(lumi(), "")
    for site in (lumi(), puhti()):
        caches = find_caches(site, generation, NVIDIA, task(), environment)
        assert not {*caches.variables} & {*environment}
        assert caches.links_to == ""
    assert "TORCH_HOME" not in caches.variables


def test_without_a_gpu_nothing_is_compiled_that_is_worth_keeping():
    caches = find_caches(puhti(), None, NONE, task(), {"USER": "maija", "HOME": "/h"})
    assert (caches.variables, caches.directories) == ({}, [])


def test_a_program_without_a_home_keeps_its_caches_where_they_are():
    caches = find_caches(None, None, NVIDIA, task(), {"USER": "maija"})
    assert {*caches.variables} == {"TRITON_CACHE_DIR", "CUDA_CACHE_PATH"}


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({}, "/tmp"),
        ({"TMPDIR": "/a/"}, "/a"),
        ({"TMPDIR": "/a", "SLURM_TMPDIR": "/b"}, "/b"),
        ({"TMPDIR": "/a", "LOCAL_SCRATCH": "/c"}, "/c"),
    ],
)
def test_the_nodes_own_disk(environment: dict[str, str], root: str):
    caches = find_caches(None, None, NVIDIA, task(), {"USER": "maija", **environment})
    assert caches.directories[0] == f"{root}/teho-cache-maija"
    # Puhti's variable is there for jobs that asked for a disk alone.
    caches = find_caches(puhti(), None, NVIDIA, task(), {"USER": "maija", **environment})
    assert caches.directories[0] == f"{root}/teho-cache-maija"


def found(tmp_path: Path, unusable: dict[str, str] | None = None) -> Caches:
    environment = {"USER": "maija", "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    return find_caches(None, None, NVIDIA, task(), environment, unusable or {})


def test_folders_are_made_and_the_old_cache_is_found_through_links(tmp_path: Path):
    old = tmp_path / "home" / ".cache"
    (old / "whisper").mkdir(parents=True)
    (old / "pip").mkdir()
    caches = found(tmp_path)
    for _ in range(2):  # another rank does it again
        assert create(caches) == {}
    root = tmp_path / "teho-cache-maija"
    assert [root / name for name in ("cuda", "triton", "xdg")] == sorted(root.iterdir())
    assert {path.stat().st_mode & 0o777 for path in (root, *root.iterdir())} == {0o700}
    xdg = root / "xdg"
    assert {path.name: path.readlink() for path in xdg.iterdir()} == {
        "whisper": old / "whisper",
        "pip": old / "pip",
    }
    # What is there already stays.
    (xdg / "pip").unlink()
    (xdg / "pip").mkdir()
    assert create(caches) == {}
    assert not (xdg / "pip").is_symlink()


def test_no_old_cache_is_no_mistake(tmp_path: Path):
    assert create(found(tmp_path)) == {}


def refused(tmp_path: Path) -> str:
    """Return why the root is refused; nothing of it may be used, and nothing stand in it."""
    caches = found(tmp_path)
    ((folder, why),) = create(caches).items()
    assert folder == str(tmp_path / "teho-cache-maija")
    left = found(tmp_path, {folder: why})
    assert (left.variables, left.directories, left.links_to) == ({}, [], "")
    return why


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "teho-cache-maija" / "triton").mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert refused(tmp_path) == "the folder belongs to another user"


def test_a_folder_that_everybody_may_write_is_not_used(tmp_path: Path):
    # Its owner could be anybody's, and what lies there is run.
    root = tmp_path / "teho-cache-maija"
    root.mkdir()
    root.chmod(0o777)
    assert refused(tmp_path) == "all users may write to the folder"
    assert list(root.iterdir()) == []


def test_a_link_is_no_folder(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "teho-cache-maija").symlink_to(tmp_path / "mine")
    assert refused(tmp_path) == "the path is not a folder"
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path):
    (tmp_path / "teho-cache-maija").write_text("")
    assert refused(tmp_path) == "the path is not a folder"


def test_a_disk_that_is_not_there(tmp_path: Path):
    caches = find_caches(
        None, None, NVIDIA, task(), {"USER": "maija", "TMPDIR": str(tmp_path / "gone")}
    )
    assert [*create(caches).values()] == ["No such file or directory"]
    assert not (tmp_path / "gone").exists()


def test_only_what_is_refused_is_given_up(tmp_path: Path):
    generation = {
        "name": "x",
        "variables": {"A": f"{tmp_path}/a", "B": f"{tmp_path}/b", "NCCL_X": "1"},
        "directories": [f"{tmp_path}/a", f"{tmp_path}/b"],
    }
    environment = {"USER": "maija", "TMPDIR": str(tmp_path)}
    (tmp_path / "a").write_text("")
    caches = find_caches(None, generation, NVIDIA, task(), environment)
    problem = create(caches)
    assert problem == {f"{tmp_path}/a": "the path is not a folder"}
    caches = find_caches(None, generation, NVIDIA, task(), environment, problem)
    assert create(caches) == {}
    assert {*caches.variables} == {"B", "NCCL_X", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"}
