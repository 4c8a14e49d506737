"""`teho always on|off|status` changes only what it says, and nothing stays."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from made_runs import BEGAN, make_run

Teho = Callable[..., subprocess.CompletedProcess[str]]


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the mode and the content of each file and folder."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user on a login node of Slurm and Grid Engine."""
    home, tools = tmp_path / "home", tmp_path / "tools"
    (home / ".config").mkdir(parents=True)
    (home / ".bashrc").write_text("alias a=b")
    (home / ".profile").write_text(". ~/.bashrc\n")
    tools.mkdir()
    for name in ("scontrol", "qconf"):
        (tools / name).symlink_to("/bin/true")
    return {
        "HOME": str(home), "SHELL": "/bin/bash", "PATH": f"{tools}:/usr/bin:/bin",
        "XDG_CONFIG_HOME": str(home / ".config"), "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip


def test_on_and_off_leave_no_trace(teho: Teho, env: Mapping[str, str]) -> None:
    home = Path(env["HOME"])
    before = files(home)
    for _ in range(2):
        on = teho("always", "on", env=env)
        assert on.returncode == 0, on.stderr
    said = " ".join(on.stdout.split())
    assert said.startswith("i On: every Slurm job from a new shell is recorded; log in again, or")
    assert "Why jobs are not recorded" not in said
    changed = files(home)
    assert sorted(set(changed) - set(before)) == [
        ".config/teho", ".config/teho/always", ".config/teho/always/start",
    ]  # fmt: skip
    assert (home / ".bashrc").read_text().count("export BASH_ENV=") == 1
    off = teho("always", "off", env=env)
    assert off.returncode == 0, off.stderr
    assert off.stdout.startswith("? Off")
    assert files(home) == before


def test_status_says_what_is_on_and_what_prevents_it(teho: Teho, env: dict[str, str]) -> None:
    def status(**more: str) -> dict[str, object]:
        answer = teho("always", "status", "--format", "json", env={**env, **more})
        assert answer.returncode == 0, answer.stderr
        found: dict[str, object] = json.loads(answer.stdout)
        return found

    assert status()["state"] == "off"
    teho("always", "on", env=env)
    home = Path(env["HOME"])
    shell = subprocess.run(
        ["bash", "-c", '. ~/.bashrc; . ~/.bashrc; printf %s "$BASH_ENV"'],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert str(status()["next_step"]).startswith("log in again")
    on = status(BASH_ENV=shell.stdout)
    assert on["next_step"] == ""
    assert (on["state"], on["problems"], on["recordings"]) == ("on", [], 0)
    assert [hook["scheduler"] for hook in on["hooks"]] == ["Slurm"]  # type: ignore[attr-defined]
    (home / ".config/teho/always/problem").write_text("2026-11-26 job 1 on n1: no disk\n")
    (home / ".profile").write_text("\n")
    (home / ".config/teho/always/start").unlink()
    broken = status(BASH_ENV=shell.stdout, TEHO_HOME="/proc/x")
    assert broken["state"] == "partly"
    said = "\n".join(broken["problems"])  # type: ignore[arg-type]
    for part in (
        "add `. ~/.bashrc` to ~/.profile", "job 1 on n1: no disk", "run it again",
    ):  # fmt: skip
        assert part in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"SHELL": "/usr/bin/fish"}, "your shell is fish; expected bash or zsh"),
        ({"PATH": "/usr/lib"}, "this machine has no scheduler: neither Slurm's `scontrol` nor"),
        ({"XDG_CONFIG_HOME": "/tmp/a b"}, "this path has characters that a shell would change"),
        ({"XDG_CONFIG_HOME": "/proc/none"}, "/proc/none"),
    ],
)
def test_on_refuses(teho: Teho, env: dict[str, str], change: dict[str, str], said: str) -> None:
    home = Path(env["HOME"])
    before = files(home)
    env |= change
    if "PATH" in change:
        env["PATH"] = os.devnull
    answer = teho("always", "on", env=env)
    assert answer.returncode == 2
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr
    assert files(home) == before


def test_a_file_that_cannot_be_changed_leaves_nothing_behind(
    teho: Teho, env: dict[str, str]
) -> None:
    home = Path(env["HOME"])
    (home / ".bashrc").write_text("# >>> teho always >>>\n")
    before = files(home)
    answer = teho("always", "on", env=env)
    assert answer.returncode == 2
    assert "only one of the two comments" in answer.stderr
    assert files(home) == before


def test_grid_engine_needs_an_administrator(teho: Teho, env: dict[str, str]) -> None:
    (Path(env["PATH"].partition(":")[0]) / "scontrol").unlink()
    env["PATH"] = env["PATH"].partition(":")[0]
    answer = teho("always", "on", env=env)
    assert answer.returncode == 2
    assert "Grid Engine has no file" in answer.stderr
    assert "`teho always script`" in answer.stderr


QCONF = """\
#!/bin/sh
case $* in
-sconf) echo "login_shells sh,bash" ;;
-sql) echo all.q; echo gpu.q ;;
"-sq all.q") echo "shell_start_mode posix_compliant" ;;
"-sq gpu.q") echo "shell_start_mode unix_behavior" ;;
esac
"""


def test_grid_engine_with_login_shells(teho: Teho, env: dict[str, str]) -> None:
    tools, home = Path(env["PATH"].partition(":")[0]), Path(env["HOME"])
    env["PATH"] = str(tools)
    (tools / "scontrol").unlink()
    (tools / "qconf").unlink()
    (tools / "qconf").write_text(QCONF)
    (tools / "qconf").chmod(0o755)
    (home / ".bash_profile").write_text(". ~/.profile\n")
    env["SHELL"] = "/bin/tcsh"
    before = files(home)
    on = teho("always", "on", env=env)
    assert on.returncode == 0, on.stderr
    said = " ".join(on.stdout.split())
    assert said.startswith("! On for Grid Engine, but jobs may not be recorded.")
    assert said.count("in the queue gpu.q, jobs are not recorded") == 1
    changed = files(home)
    assert {name for name in changed if changed[name] != before.get(name)} == {
        ".bash_profile", ".profile", ".config/teho", ".config/teho/always",
        ".config/teho/always/start",
    }  # fmt: skip
    found = json.loads(teho("always", "status", "--format", "json", env=env).stdout)
    assert (found["state"], found["next_step"]) == ("on", "")
    assert [hook["scheduler"] for hook in found["hooks"]] == ["Grid Engine", "Grid Engine"]
    (home / ".bash_profile").unlink()
    assert json.loads(teho("always", "status", "--format", "json", env=env).stdout)["state"] == "on"
    (home / ".bash_login").touch()
    partly = json.loads(teho("always", "status", "--format", "json", env=env).stdout)
    assert partly["state"] == "partly"
    (home / ".bash_login").unlink()
    (home / ".bash_profile").write_text(". ~/.profile\n")
    off = teho("always", "off", env=env)
    assert off.returncode == 0, off.stderr
    assert "Log in again" not in off.stdout
    assert files(home) == before


def test_a_failure_before_the_last_recording_is_over(
    teho: Teho, env: dict[str, str], home: Path
) -> None:
    teho("always", "on", env=env)
    problem = Path(env["HOME"]) / ".config/teho/always/problem"
    problem.write_bytes(b"job 1 on n1: no disk \xff\n")
    make_run(home, 0, is_automatic=True)
    began_s = BEGAN.timestamp()
    for failed_s, is_shown in ((began_s - 1, False), (began_s + 1, True)):
        os.utime(problem, (failed_s, failed_s))
        answer = teho("always", "status", "--format", "json", env=env)
        found = json.loads(answer.stdout)
        assert ("no disk" in " ".join(found["problems"])) is is_shown
        assert (found["recordings"], found["last_at"]) == (1, "2026-11-01T08:00:00Z")


def test_another_teho_is_named(teho: Teho, env: dict[str, str]) -> None:
    teho("always", "on", env=env)
    start = Path(env["HOME"]) / ".config/teho/always/start"
    start.write_text(start.read_text() + "# older\n")
    answer = teho("always", "status", env=env | {"TEHO_HOME": "/etc/passwd/x"})
    assert "or uses other directories" in " ".join(answer.stdout.split())
    assert "/etc/passwd/x cannot be written" in " ".join(answer.stdout.split())


def test_the_program_of_a_site_has_no_directories_of_a_user(
    teho: Teho, env: dict[str, str], tmp_path: Path
) -> None:
    script = teho("always", "script", env=env)
    assert script.stdout.startswith("#!/bin/sh\n")
    assert str(tmp_path) not in script.stdout
    checked = subprocess.run(["sh", "-n"], input=script.stdout, text=True, check=False)
    assert checked.returncode == 0


def bash_env(env: Mapping[str, str]) -> str:
    """Return the variable of a shell that has read `~/.bashrc`."""
    shell = subprocess.run(
        ["bash", "-c", '. ~/.bashrc; printf %s "$BASH_ENV"'],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return shell.stdout


def test_off_removes_what_on_and_the_recorders_made(
    teho: Teho, env: dict[str, str], home: Path
) -> None:
    user = Path(env["HOME"])
    (user / ".config").rmdir()
    env["XDG_CONFIG_HOME"] = str(user / "new" / "config")
    before = files(user)
    for _ in range(2):
        assert teho("always", "on", env=env).returncode == 0
    home.mkdir()
    (home / ".always").touch()
    assert teho("always", "off", env=env).returncode == 0
    assert files(user) == before
    assert list(home.iterdir()) == []
    teho("always", "on", env=env)
    (user / "new" / "config" / "other").touch()
    teho("always", "off", env=env)
    assert sorted(set(files(user)) - set(before)) == ["new", "new/config", "new/config/other"]


def test_the_lines_are_shown_only_if_they_are_in_the_file(teho: Teho, env: dict[str, str]) -> None:
    title = "Lines in your file"
    assert title not in teho("always", "status", "--why", env=env).stdout
    assert title in teho("always", "on", "--why", env=env).stdout
    assert title not in teho("always", "off", "--why", env=env).stdout


def test_half_of_the_lines_is_a_problem_of_the_status(teho: Teho, env: dict[str, str]) -> None:
    teho("always", "on", env=env)
    file = Path(env["HOME"]) / ".bashrc"
    whole = file.read_text()
    file.write_text(whole.replace("# <<< teho always <<<\n", ""))
    found = json.loads(teho("always", "status", "--format", "json", env=env).stdout)
    assert found["state"] == "partly"
    problem = found["hooks"][0]["problem"]
    assert "only one of the two comments" in problem
    assert "Next: delete the lines of `teho always`" in problem
    assert found["problems"] == [problem]
    assert "run it again" not in " ".join(found["problems"])
    text = " ".join(teho("always", "status", env=env).stdout.split())
    assert text.startswith("! Partly on for Slurm, but jobs may not be recorded.")
    (Path(env["HOME"]) / ".config/teho/always/start").unlink()
    found = json.loads(teho("always", "status", "--format", "json", env=env).stdout)
    assert (found["state"], found["problems"]) == ("partly", [problem])


def test_on_makes_no_home_directory(teho: Teho, env: dict[str, str], tmp_path: Path) -> None:
    for change in ({"HOME": str(tmp_path / "none")}, {"SHELL": "zsh", "ZDOTDIR": "/none"}):
        answer = teho("always", "on", env=env | change)
        assert (answer.returncode, answer.stdout) == (2, "")
        (line,) = answer.stderr.splitlines()
        assert "is not a folder; expected the folder of your file ." in line
        assert "Next: set HOME to your home directory" in line
    assert not (tmp_path / "none").exists()
    assert not (Path(env["HOME"]) / ".config" / "teho").exists()


def test_a_file_in_place_of_the_folder_is_named(teho: Teho, env: dict[str, str]) -> None:
    folder = Path(env["HOME"]) / ".config"
    folder.rmdir()
    folder.write_text("mine")
    before = files(Path(env["HOME"]))
    answer = teho("always", "on", env=env)
    assert (answer.returncode, answer.stdout) == (2, "")
    (line,) = answer.stderr.splitlines()
    assert f"{folder} is not a folder; expected a folder. Next: set XDG_CONFIG_HOME" in line
    assert files(Path(env["HOME"])) == before


def test_on_with_a_problem_names_the_next_shell_too(teho: Teho, env: dict[str, str]) -> None:
    (Path(env["HOME"]) / ".profile").write_text("\n")
    said = " ".join(teho("always", "on", env=env).stdout.split())
    assert said.startswith(
        "! On for Slurm, but jobs may not be recorded. Solve the problems, then log in again, or "
    )


def test_a_scheduler_that_is_only_installed_is_named(teho: Teho, env: dict[str, str]) -> None:
    scontrol = Path(env["PATH"].partition(":")[0]) / "scontrol"
    scontrol.unlink()
    fatal = "scontrol: fatal: Could not establish a configuration source"
    scontrol.write_text(f"#!/bin/sh\necho '{fatal}' >&2\nexit 1\n")
    scontrol.chmod(0o755)
    found = json.loads(teho("always", "on", "--format", "json", env=env).stdout)
    assert (found["state"], len(found["problems"])) == ("on", 1)
    assert f"the scheduler is not configured on this machine ({fatal})" in found["problems"][0]
    assert "Next: log in to such a machine" in found["problems"][0]
    scontrol.write_text("#!/bin/sh\necho 'Slurmctld(primary) at c1 is DOWN'\nexit 1\n")
    found = json.loads(teho("always", "status", "--format", "json", env=env).stdout)
    assert found["problems"] == [], "it may answer later"


def test_off_says_that_an_open_shell_keeps_the_variable(teho: Teho, env: dict[str, str]) -> None:
    teho("always", "on", env=env)
    here = {"BASH_ENV": bash_env(env)}
    said = " ".join(teho("always", "off", env=env | here).stdout.split())
    assert "Log in again: this shell still has the variable `BASH_ENV` of Teho" in said
    assert "Log in again" not in teho("always", "off", env=env).stdout
