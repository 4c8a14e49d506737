from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from teho.errors import MissingCommandError, NoAnswerError, RefusedError
from teho.schedulers import command
from teho.schedulers.command import Completed, accepted, message_of, run, unreachable


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def shell(code: str) -> tuple[str, ...]:
    return ("bash", "-c", code)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command, "_PAUSE_S", 0.01)


def counting(tmp_path: Path, then: str) -> tuple[str, ...]:
    return shell(f"echo x >> '{tmp_path}/count'; n=$(wc -l < '{tmp_path}/count'); {then}")


def count(tmp_path: Path) -> int:
    return len((tmp_path / "count").read_text().splitlines())


def test_what_a_command_says_is_kept():
    answer = run(shell("echo out; echo err >&2; exit 3"))
    assert (answer.exit_code, answer.stdout, answer.stderr) == (3, "out\n", "err\n")


def test_bytes_that_are_no_text_come_through():
    answer = run(shell(r"printf 'a\377b'"))
    assert answer.stdout.encode(errors="surrogateescape") == b"a\xffb"


def test_input_is_closed():
    assert run(("cat",)).stdout == ""


def test_a_missing_command_is_named_with_a_way_out():
    with pytest.raises(MissingCommandError, match=r"no-such-sbatch.*login node.*module load"):
        run(("no-such-sbatch", "x"))


def gone(pid: int) -> bool:
    """Tell whether a process goes away, or waits to be reaped; being killed takes a moment."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path):
    pid = tmp_path / "pid"
    started = time.monotonic()
    with pytest.raises(NoAnswerError, match="bash did not answer within"):
        run(shell(f"sleep 60 & echo $! > '{pid}'; wait"), timeout_s=2.0)
    assert time.monotonic() - started < 30
    assert gone(int(pid.read_text()))


def test_an_error_that_passes_is_waited_for_if_repeating_is_safe(tmp_path: Path):
    argv = counting(
        tmp_path, "test $n = 2 || { echo 'Socket timed out on send/recv operation' >&2; exit 1; }"
    )
    assert run(argv, repeat=True).exit_code == 0
    assert count(tmp_path) == 2


def test_nothing_else_is_ever_run_twice(tmp_path: Path):
    answer = run(counting(tmp_path, "echo 'Socket timed out on send/recv operation' >&2; exit 1"))
    assert unreachable(answer)
    with pytest.raises(NoAnswerError):
        run(counting(tmp_path, "sleep 60"), timeout_s=2.0)
    assert count(tmp_path) == 2


def test_a_question_that_must_be_answered_in_time_is_not_asked_again(tmp_path: Path):
    with pytest.raises(NoAnswerError, match="within 1 s"):
        run(counting(tmp_path, "sleep 60"), timeout_s=1.0, repeat=True, again_if_late=False)
    assert count(tmp_path) == 1


def test_a_scheduler_that_stays_away_is_an_error_in_its_own_words(tmp_path: Path):
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    with pytest.raises(NoAnswerError) as caught:
        run(counting(tmp_path, f"echo '{words}' >&2; exit 1"), repeat=True)
    assert words in str(caught.value)
    assert count(tmp_path) == 2


def test_a_refusal_is_not_repeated(tmp_path: Path):
    words = "slurm_load_jobs error: Invalid job id specified"
    answer = run(counting(tmp_path, f"echo '{words}' >&2; exit 1"), repeat=True)
    assert count(tmp_path) == 1
    with pytest.raises(RefusedError, match=words):
        accepted(answer)


def test_questions_are_asked_in_plain_english_and_without_preferences(monkeypatch):
    monkeypatch.setenv("LC_ALL", "fi_FI.UTF-8")
    monkeypatch.setenv("SQUEUE_STATES", "RUNNING")
    argv = shell('echo "$LC_ALL ${SQUEUE_STATES-unset} ${EXTRA-unset}"')
    assert run(argv, repeat=True, environment={"EXTRA": "1"}).stdout == "C unset 1\n"
    # A submission hands its environment on to the job.
    assert run(argv).stdout == "fi_FI.UTF-8 RUNNING unset\n"


@pytest.mark.parametrize("name", ["SQUEUE_STATES", "SACCT_FORMAT", "SCANCEL_STATE"])
def test_no_preference_filters_an_answer_or_a_cancel(monkeypatch, name):
    monkeypatch.setenv(name, "mine")
    assert run(shell(f"echo ${{{name}-unset}}"), repeat=True).stdout == "unset\n"


def test_no_variable_wins_over_a_script_unless_it_is_wanted(monkeypatch):
    for name in ("SBATCH_TIMELIMIT", "SBATCH_ACCOUNT", "SLURM_CONF"):
        monkeypatch.setenv(name, "mine")
    argv = shell("echo ${SBATCH_TIMELIMIT-unset} ${SBATCH_ACCOUNT-unset} ${SLURM_CONF-unset}")
    assert run(argv).stdout == "unset unset mine\n"
    assert run(argv, wanted=("SBATCH_ACCOUNT",)).stdout == "unset mine mine\n"


def test_a_command_has_a_session_of_its_own():
    answer = run(python("import os; print(os.getsid(0) == os.getpid())"))
    assert answer.stdout == "True\n"


@pytest.mark.parametrize(
    ("code", "out", "err", "words"),
    [
        (1, "out", "err", "err"),
        (1, "out", " ", "out"),
        (2, "", "", "(no output; exit code 2)"),
        (-9, "", "", "(no output; signal 9 ended it)"),
    ],
)
def test_a_command_s_words(code, out, err, words):
    assert message_of(Completed(("x",), code, out, err)) == words


def test_an_interrupt_leaves_no_command_behind(monkeypatch: pytest.MonkeyPatch):
    pids: list[int] = []

    def interrupted(process: subprocess.Popen[bytes], **_: object) -> None:
        pids.append(process.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(("sleep", "60"))
    assert not Path(f"/proc/{pids[0]}").exists()


@pytest.mark.parametrize(
    "text",
    [
        # Slurm 22.05 and Grid Engine 8.1 outside of a cluster.
        (
            "squeue: error: fetch_config: DNS SRV lookup failed\n"
            "squeue: fatal: Could not establish a configuration source"
        ),
        "critical error: Please set the environment variable SGE_ROOT.",
        "error: unable to read qmaster name: the file act_qmaster has zero length",
    ],
)
def test_a_machine_outside_of_a_cluster_is_named(text: str):
    with pytest.raises(RefusedError) as caught:
        accepted(run(shell(f"echo '{text}' >&2; exit 1")))
    shown = str(caught.value)
    assert shown.startswith("the scheduler is not configured on this machine")
    assert text.splitlines()[-1] in shown
    assert "DNS" not in shown
    assert "a login node" in shown
