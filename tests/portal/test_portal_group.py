"""The runs of a group whose members are other real users, each with a home of their own."""

from __future__ import annotations

import os
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from portal_process import PortalProcess, portal

from made_runs import make_run
from other_users import ALICE, BOB, as_user, root
from support import wait_for
from teho.store.share import share

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
HERS, HIS = "20261123-094500-hers-aaaa", "20261123-094600-his-bbbb"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a folder in which two users share a run each with the group of this user."""
    for above in (tmp_path, *tmp_path.parents):
        if "pytest" in str(above):
            above.chmod(0o711)
    shared = tmp_path / "project"
    shared.mkdir()
    shared.chmod(0o1777)
    for user, run_id in ((ALICE, HERS), (BOB, HIS)):
        home = tmp_path / f"home of {user}"
        run = home / "runs" / run_id
        shutil.copytree(EXAMPLE, run)
        private = make_run(home, user, gpus=1)
        for path in (home, *home.rglob("*")):
            os.chown(path, user, user)
        assert private.is_dir()
        as_user(user, [0], lambda run=run: share(run, shared, "root"))
    return shared


def runs_of(running: PortalProcess, address: str) -> list[str]:
    page = running.ask(address).text
    return sorted(re.findall(r'<th scope="row"><a href="[^"]*" title="([^"]*)"', page))


@root
def test_a_group_of_several_homes(project: Path, tmp_path: Path) -> None:
    own = make_run(tmp_path / "home", 1, command=("python", "own.py")).name
    with portal(tmp_path, env={"TEHO_SHARED": str(project)}) as one:
        assert runs_of(one, "/runs?of=group") == [HERS, HIS]
        assert runs_of(one, "/runs?of=group&user=news") == [HIS]
        assert runs_of(one, "/runs?of=group&sort=user&order=asc") == [HERS, HIS]
        page = one.ask("/runs?of=group").text
        for user, run_id in (("games", HERS), ("news", HIS)):
            address = f"run?id={run_id}&by={user}"
            assert address in unescape(page)
            assert "GPU 3 on g1 was never used." in one.ask(f"/{address}").text
        # The name of one user with the run of the other one is not a run.
        assert one.ask(f"/run?id={HERS}&by=news").status == 404
        assert one.ask(f"/run?id={HIS}&by=games").status == 404
        # The user's own pages have no run of others.
        for address in ("/", "/runs", "/runs?by=program", "/usage?by=user", "/usage?by=name"):
            text = one.ask(address).text
            assert "hers" not in text, address
            assert "games" not in text, address
            assert "one-idle-gpu" not in text, address
        assert runs_of(one, "/runs") == [own]
        wait_for(lambda: "GPU never used" in one.ask("/usage?of=group&by=kind").text, 60)
        rows = re.findall(r'<tr><th scope="row".*?>(games|news|root)</a></th>\s*<td class="n">(\d)',
                          one.ask("/usage?of=group&by=user").text)  # fmt: skip
        assert sorted(rows) == [("games", "1"), ("news", "1")]
        programs = one.ask("/runs?of=group&by=program").text
        assert "2 runs" in programs, "the same program of two people is one line"
        both = f"/compare?run=games:{HERS}&run=news:{HIS}"
        assert one.ask(both).status == 200
        # What was not shared is not shown, although this user could read it.
        assert not any("made" in run_id for run_id in runs_of(one, "/runs?of=group"))


@root
def test_one_member_who_stops_sharing_does_not_hide_the_others(
    project: Path, tmp_path: Path
) -> None:
    with portal(tmp_path, env={"TEHO_SHARED": str(project)}) as one:
        assert runs_of(one, "/runs?of=group") == [HERS, HIS]
        shutil.rmtree(project / "games")
        # The folders of the group are looked at again after half a minute.
        wait_for(lambda: runs_of(one, "/runs?of=group") == [HIS], 60)
        assert one.ask(f"/run?id={HIS}&by=news").status == 200
        assert one.ask(f"/run?id={HERS}&by=games").status == 404
