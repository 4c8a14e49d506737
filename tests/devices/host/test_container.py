from __future__ import annotations

from pathlib import Path

import pytest

from teho.devices.host.container import container_of


@pytest.mark.parametrize(
    ("environment", "files", "kind"),
    [
        ({"APPTAINER_CONTAINER": "/home/me/x.sif"}, [], "Apptainer"),
        ({"container": "podman"}, [], "podman"),
        ({}, [".dockerenv"], "Docker"),
        ({}, ["run/.containerenv"], "Podman"),
        ({}, [], "not known"),
    ],
)
def test_containers(
    tmp_path: Path, environment: dict[str, str], files: list[str], kind: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert container_of(environment, tmp_path) == kind


@pytest.mark.parametrize(
    ("namespace", "kind"), [("pid:[4026531836]", "none"), ("pid:[4026532000]", "of unknown kind")]
)
def test_a_container_by_its_process_ids(tmp_path: Path, namespace: str, kind: str) -> None:
    link = tmp_path / "proc/self/ns/pid"
    link.parent.mkdir(parents=True)
    link.symlink_to(namespace)
    assert container_of({}, tmp_path).startswith(kind)
