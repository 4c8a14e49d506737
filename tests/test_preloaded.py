"""A command in a fork of a preloaded process ends and prints the same as a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from preloaded import Preloaded
from support import TEHO, is_gone, wait_for


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["clusters", "show", "no-such-cluster"],
        ["show", "last", "--path"],
        ["list", "--nonsense"],
        ["report", "caf\udcff", "--format", "json"],
        ["tag", "last"],
        ["completion", "bash"],
        ["env", "plan", "--cluster", "puhti", "--framework", "pytorch"],
        ["--version"],
        ["--help"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_fork_prints_what_a_new_process_prints(
    words: list[str], preloaded: Preloaded, tmp_path: Path
) -> None:
    new = subprocess.run(
        [*TEHO, *words], cwd=tmp_path, input="", capture_output=True, text=True, check=False
    )
    for _ in range(2):  # the second time, all modules are loaded
        fork = preloaded.run(words, os.environ, str(tmp_path), "")
        assert (fork.stdout, fork.stderr, fork.returncode) == (
            new.stdout, new.stderr, new.returncode,
        )  # fmt: skip


def test_forks_have_their_own_environment_and_run_at_once(
    preloaded: Preloaded, tmp_path: Path
) -> None:
    homes = [str(tmp_path / f"home {number}") for number in range(8)]

    def listed(home: str) -> str:
        return preloaded.run(["list"], {**os.environ, "TEHO_HOME": home}, "/", "").stderr

    with ThreadPoolExecutor(8) as pool:
        for home, said in zip(homes, pool.map(listed, homes), strict=True):
            assert said.startswith(f"No runs in {home}/runs.")


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (["run", "--", "true"], {}),
        (["doctor", "--", "true"], {}),
        ([], {}),
        (["list"], {"LC_ALL": "C"}),
        (["list"], {"LD_LIBRARY_PATH": "/stand-in"}),
        (["list"], {"TZ": "Europe/Berlin"}),
        (["list"], {"PYTHONWARNINGS": "error"}),
    ],
)
def test_what_a_fork_cannot_do_is_started(
    words: list[str], changes: dict[str, str], preloaded: Preloaded
) -> None:
    assert preloaded.can_run(["list"], os.environ)
    assert not preloaded.can_run(words, {**os.environ, **changes})


def test_commands_with_other_libraries_have_a_process_of_their_own() -> None:
    with closing(Preloaded()) as one:
        other = {**os.environ, "LD_LIBRARY_PATH": "/stand-in"}
        assert one.of_libraries(os.environ) is one
        assert one.of_libraries(other) is one  # who calls once starts the command
        second = one.of_libraries(other)
        assert second is one.of_libraries(other) is not one
        assert second.can_run(["devices"], other)
        assert not second.can_run(["devices"], os.environ)
        listed = second.run(["list"], {**other, "TEHO_HOME": "/nowhere"}, "/", "")
        assert listed.stderr.startswith("No runs in /nowhere/runs.")


CLIENT = """
import os, sys
sys.path.insert(0, sys.argv[1])
from preloaded import Preloaded
client = Preloaded()
print(client.run(["--version"], os.environ, "/", "").stdout, end="")
print(client._server.pid, flush=True)
os._exit(0)
"""


def test_the_server_ends_with_its_client(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(Path(__file__).parent)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    version, pid = done.stdout.splitlines()
    assert version.startswith("teho ")
    wait_for(lambda: is_gone(int(pid)))
