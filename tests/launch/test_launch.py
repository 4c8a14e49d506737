"""`teho launch` from end to end: what the program finds, and what is said where there is none."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from launch_trees import lumi

from support import TEHO

HOST = os.uname().nodename
TOLD = (
    "import json, os, sys; json.dump({'pid': os.getpid(), 'parent': os.getppid(), "
    "'argv': sys.argv[1:], 'env': dict(os.environ), 'cores': sorted(os.sched_getaffinity(0))}, "
    "sys.stdout)"
)
TELL = [sys.executable, "-c", TOLD]
STEP = {
    "SLURM_JOB_ID": "1234",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "n1",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_STEP_TASKS_PER_NODE": "2",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
}


@pytest.fixture(autouse=True)
def _of_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without what this machine may be told of threads, ranks and caches."""
    for name in list(os.environ):
        if name.endswith(("_NUM_THREADS", "_CACHE_HOME")) or name in {"RANK", "WORLD_SIZE"}:
            monkeypatch.delenv(name)


def launch(
    *words: str | bytes, env: Mapping[str, str] | None = None, **options: object
) -> subprocess.CompletedProcess[bytes]:
    options.setdefault("capture_output", True)
    return subprocess.run(
        [*TEHO, "launch", *words], env={**os.environ, **(env or {})}, timeout=60, check=False,
        **options,
    )  # fmt: skip


def told(*options: str, env: Mapping[str, str] | None = None) -> dict:
    """Return what the program found."""
    result = launch(*options, "--", *TELL, env=env)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def line(result: subprocess.CompletedProcess[bytes], code: int) -> str:
    """Return the one line that is said of a mistake."""
    assert result.returncode == code, result
    assert result.stdout == b""
    (text,) = result.stderr.decode().splitlines()
    assert text.startswith("teho: ")
    return text


def test_the_program_is_the_process_that_was_started():
    with subprocess.Popen([*TEHO, "launch", "--", *TELL], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        found = json.loads(process.stdout.read())
    assert found["pid"] == process.pid
    assert found["parent"] == os.getpid()


def test_nothing_of_teho_stays_open_or_behind():
    # The list itself is one descriptor more.
    for words in ([], [*TEHO, "launch", "--"]):
        seen = subprocess.run(
            [*words, sys.executable, "-c", "import os; print(os.listdir('/proc/self/fd'))"],
            capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert seen.stdout == "['0', '1', '2', '3']\n"
    found = launch("--", "cat", "/proc/self/cmdline")
    assert found.stdout == b"cat\0/proc/self/cmdline\0"


def test_one_rank_alone():
    found = told()["env"]
    expected = {
        "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
        "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1",
        "OMP_NUM_THREADS": found["MKL_NUM_THREADS"],
    }  # fmt: skip
    assert expected.items() <= found.items()
    assert 1 <= int(found["OMP_NUM_THREADS"]) <= len(os.sched_getaffinity(0))
    assert "TF_CONFIG" not in found
    # The rest of the environment is what it was.
    assert os.environ.items() <= {**found, "_": os.environ.get("_", "")}.items()


def test_arguments_arrive_as_they_are():
    words = ["a b", "it's", 'say "so"', "line\nline", "$HOME", "*", "--bind", "--", ""]
    assert json.loads(launch("--", *TELL, *words).stdout)["argv"] == words
    raw = [b"\xff\xfe", "ä".encode("latin-1")]
    result = launch("--", "printf", "%s;", *raw)
    assert result.stdout == b"\xff\xfe;\xe4;"


def test_a_variable_that_is_no_text_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(os.environb, b"ODD", b"\xff=\n")
    assert launch("--", "printenv", "ODD").stdout == b"\xff=\n\n"


def test_input_is_the_programs():
    result = launch("--", "sh", "-c", "read first; echo got $first; cat", input=b"one\ntwo\n")
    assert result.stdout == b"got one\ntwo\n"


def test_signals_mask_folder_and_priority_are_as_without():
    def seen(command: Sequence[str], program: str) -> str:
        before = "trap '' USR1 INT; ulimit -n 77; umask 027; cd /usr; exec"
        return subprocess.run(
            ["nice", "-n", "3", "sh", "-c", f"{before} {' '.join(command)} {program}"],
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout  # fmt: skip

    signals = "grep -E '^Sig[BCI]|^Shd' /proc/self/status"
    # SIGINT and SIGUSR1, and nothing of Python's.
    assert "SigIgn:\t0000000000000202" in seen([], signals)
    for program in (signals, "sh -c 'umask; ulimit -n; pwd; nice'"):
        assert seen([*TEHO, "launch", "--"], program) == seen([], program)


@pytest.mark.parametrize(("value", "stays"), [(None, False), ("C.UTF-8", True)])
def test_the_locale_is_as_python_found_it(value: str | None, stays: bool):
    # In the C locale, Python sets LC_CTYPE for itself and for what it starts (PEP 538).
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("LC_") and name not in {"LANG", "PYTHONUTF8"}
    }
    environment = kept if value is None else {**kept, "LC_CTYPE": value}
    result = subprocess.run(
        [*TEHO, "launch", "--", "printenv", "LC_CTYPE"],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.stdout == (f"{value}\n" if stays else "")


@pytest.mark.parametrize("closed", ["0", "1", "2"])
def test_a_closed_stream_stays_closed(closed: str):
    def seen(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        script = f"exec {closed}>&-; exec {' '.join(command)} ls /proc/self/fd"
        # Of a batch script there is something to say, which must not land among the results.
        environment = {**os.environ, "SLURM_JOB_ID": "1", "SLURM_NTASKS": "4"}
        return subprocess.run(
            ["sh", "-c", script], env=environment, capture_output=True, text=True, check=False,
            timeout=60,
        )  # fmt: skip

    without, result = seen([]), seen([*TEHO, "launch", "--"])
    said, _, rest = result.stderr.partition("\n") if closed != "2" else ("teho: ", "", "")
    assert said.startswith("teho: ")
    assert (result.returncode, result.stdout, rest) == (
        without.returncode, without.stdout, without.stderr,
    )  # fmt: skip


def test_words_for_nobody_do_not_hinder():
    environment = {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4"}
    for target in ("/dev/full", None):
        if target:
            with Path(target).open("w") as full:
                result = launch("--", "echo", "ran", env=environment, stdout=subprocess.PIPE,
                                stderr=full, capture_output=False)  # fmt: skip
        else:
            reading, writing = os.pipe()
            os.close(reading)
            result = launch("--", "echo", "ran", env=environment, stdout=subprocess.PIPE,
                            stderr=writing, capture_output=False)  # fmt: skip
            os.close(writing)
        assert (result.returncode, result.stdout) == (0, b"ran\n")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder on the PATH, with programs of all kinds."""
    folder = tmp_path / "my programs"
    folder.mkdir()
    texts = {
        "plain": 'echo plain "$0" "$@"\n',
        "lost": "#!/nonexistent/python\n",
        "locked": "#!/bin/sh\n",
        "foreign": "\x7fELF\x02\x01\x01" + "\0" * 60,
        "empty": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644 if name == "locked" else 0o755)
    return folder


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("nosuch", 127, "nosuch: command not found"),
        ("{}/nosuch", 127, "/nosuch: command not found"),
        ("{}/plain/nosuch", 127, "/plain/nosuch: command not found"),
        ("{}/locked", 126, "/locked: not executable"),
        ("locked", 126, "locked: not executable"),
        ("{}", 126, "my programs: not executable"),
        ("{}/lost", 126, "/lost: its interpreter does not exist"),
        ("{}/foreign", 126, "/foreign: built for another kind of machine"),
        ("foreign", 126, "foreign: built for another kind of machine"),
    ],
)
def test_what_cannot_be_started(programs: Path, command: str, code: int, reason: str):
    result = launch("--", command.format(programs), env={"PATH": str(programs)})
    assert line(result, code).endswith(reason)


@pytest.mark.parametrize("command", ["plain", "{}/plain"])
def test_a_script_without_a_first_line_goes_to_the_shell(programs: Path, command: str):
    result = launch("--", command.format(programs), "a b", env={"PATH": str(programs)})
    assert result.stdout.decode() == f"plain {programs}/plain a b\n"
    assert launch("--", f"{programs}/empty").returncode == 0


def test_more_arguments_than_linux_takes(tmp_path: Path):
    assert launch("--env", "BIG=" + "x" * 120_000, "--", "true").returncode == 0
    # For a container each variable is there three times.
    fake = tmp_path / "apptainer"
    fake.touch(mode=0o755)
    pairs = [word for number in range(20) for word in ("--env", f"B{number}=" + "x" * 60_000)]
    result = launch(*pairs, "--", str(fake), "-e")
    assert line(result, 126).endswith("apptainer: Argument list too long")


def test_the_exit_code_and_the_end_are_the_programs():
    assert launch("--", "sh", "-c", "exit 3").returncode == 3
    assert launch("--", "sh", "-c", "kill -9 $$").returncode == -9


@pytest.mark.parametrize(
    ("words", "environment", "parts"),
    [
        ((), {"SLURM_PROCID": "2"}, ["rank 2 on", "rank 2 of 2"]),
        ((), {"SLURM_STEP_NODELIST": "n[1"}, ["rank 0 on", "brackets"]),
        ((), {"MASTER_PORT": "none"}, ["rank 0 on", "MASTER_PORT is 'none'", "1 to 65533"]),
        ((), {"MASTER_PORT": "65534"}, ["rank 0 on", "MASTER_PORT is '65534'"]),
        ((), {"MASTER_PORT": "0"}, ["MASTER_PORT is '0'"]),
        ((), {"MASTER_PORT": "²"}, ["MASTER_PORT is '²'"]),
        ((), {"MASTER_PORT": "9" * 5000}, ["MASTER_PORT is '999"]),
        ((), {"MASTER_ADDR": 'n1"'}, ["rank 0 on", "MASTER_ADDR is 'n1\"'"]),
        ((), {"MASTER_ADDR": "n1\nn2"}, ["MASTER_ADDR is 'n1\\nn2'"]),
        (("--bind", "/nonexistent"), {"SLURM_PROCID": "1", "SLURM_LOCALID": "1"},
         ["rank 1 on", "--bind /nonexistent: No such file"]),
        (("--generation", "x"), {}, ["rank 0 on", "--generation x: a site that Teho does not"]),
        ((), {"TEHO_SITE": "x"}, ["rank 0 on", "TEHO_SITE does not read"]),
    ],
)  # fmt: skip
def test_a_mistake_names_rank_and_host(words, environment, parts):
    text = line(launch(*words, "--", "true", env={**STEP, **environment}), 2)
    assert [part for part in [f" on {HOST}: ", *parts] if part not in text] == []


def test_nobody_tells_where_rank_0_is():
    pmi = {"PMI_RANK": "3", "PMI_SIZE": "4", "PMI_LOCAL_RANK": "1", "PMI_LOCAL_SIZE": "2"}
    text = line(launch("--", "true", env=pmi), 2)
    assert f"rank 3 on {HOST}: PMI tells no names of its nodes" in text
    assert "mpirun -x MASTER_ADDR" in text
    assert told(env={**pmi, "MASTER_ADDR": "n1"})["env"]["MASTER_ADDR"] == "n1"


def test_a_port_in_use():
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        environment = {**STEP, "MASTER_PORT": port}
        text = line(launch("--", "true", env=environment), 2)
        assert f"rank 0 on {HOST}: port {port} is in use by another program" in text
        assert "MASTER_PORT=NUMBER" in text
        # The other ranks come to it; and one rank alone meets nobody.
        other = {**environment, "SLURM_PROCID": "1", "SLURM_LOCALID": "1"}
        assert launch("--", "true", env=other).returncode == 0
        assert launch("--", "true", env={"MASTER_PORT": port}).returncode == 0
        # torchrun's own agent listens there for the tasks that it has started.
        by_torchrun = {
            "TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "MASTER_ADDR": HOST, "MASTER_PORT": port,
        }  # fmt: skip
        assert launch("--", "true", env=by_torchrun).returncode == 0
        # A torchrun that is started is to listen there itself.
        shell = ["sh", "-c", "exit 0", "torchrun"]
        assert "in use" in line(launch("--", *shell, env={"MASTER_PORT": port}), 2)


def test_a_port_that_was_in_use_a_moment_ago_is_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()  # this end waits in TIME_WAIT
            client.recv(1)
    result = launch("--", "true", env={**STEP, "MASTER_PORT": str(port)})
    assert result.returncode == 0, result.stderr


def test_the_users_own_variables():
    found = told("--env", "A=b=c", "--env", "RANK=7", "--env=EMPTY=", env={"OMP_NUM_THREADS": "3"})
    assert {"A": "b=c", "RANK": "7", "EMPTY": ""}.items() <= found["env"].items()
    assert found["env"]["OMP_NUM_THREADS"] == found["env"]["MKL_NUM_THREADS"] == "3"


@pytest.mark.parametrize(
    ("options", "visible", "jax"), [((), "4,5", "1"), (("--gpus", "own"), "5", "0")]
)
def test_gpus_that_a_rank_sees(tmp_path: Path, options: tuple[str, ...], visible: str, jax: str):
    environment = {
        **STEP, "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "CUDA_VISIBLE_DEVICES": "4,5",
        "TMPDIR": str(tmp_path),
    }  # fmt: skip
    found = told(*options, env=environment)["env"]
    assert found["CUDA_VISIBLE_DEVICES"] == visible
    assert found["JAX_LOCAL_DEVICE_IDS"] == jax


def test_caches_are_on_the_nodes_own_disk(tmp_path: Path):
    environment = {"CUDA_VISIBLE_DEVICES": "0", "TMPDIR": str(tmp_path), "USER": "maija"}
    found = told(env=environment)["env"]
    root = tmp_path / "teho-cache-maija"
    assert found["TRITON_CACHE_DIR"] == f"{root}/triton"
    assert (root / "triton").is_dir()
    # Where they cannot be, all is as it was, and rank 0 says so.
    shutil.rmtree(root)
    root.write_text("not mine")
    result = launch("--", *TELL, env=environment)
    assert result.stderr.decode() == f"teho: {root} cannot hold caches: it is no folder\n"
    assert "TRITON_CACHE_DIR" not in json.loads(result.stdout)["env"]
    quiet = launch("-q", "--env", "TRITON_CACHE_DIR=/mine", "--", *TELL, env=environment)
    assert quiet.stderr == b""
    assert json.loads(quiet.stdout)["env"]["TRITON_CACHE_DIR"] == "/mine"


def test_a_container_gets_what_it_needs(tmp_path: Path):
    fake = tmp_path / "apptainer"
    fake.write_text("#!/bin/sh\nenv\n")
    fake.chmod(0o755)
    environment = {
        **STEP, "TEHO_CLUSTER": "puhti", "CUDA_VISIBLE_DEVICES": "0,1", "USER": "maija",
        "LOCAL_SCRATCH": str(tmp_path), "SINGULARITY_BIND": "/pfs",
    }  # fmt: skip
    result = launch("--", str(fake), "exec", "--cleanenv", "x.sif", "python", env=environment)
    found = dict(pair.split("=", 1) for pair in result.stdout.decode().splitlines())
    root = f"{tmp_path}/teho-cache-maija"
    assert found["APPTAINERENV_RANK"] == found["SINGULARITYENV_RANK"] == "0"
    assert found["APPTAINERENV_TRITON_CACHE_DIR"] == f"{root}/triton"
    if not str(tmp_path).startswith("/tmp/"):
        assert found["APPTAINER_BIND"].startswith(f"/pfs,{root},")


def test_a_task_of_a_batch_script_is_told_how_to_start_all():
    job = {"SLURM_JOB_ID": "1234", "SLURM_NTASKS": "8", "SLURM_PROCID": "0"}
    text = line(launch("--", "true", env=job), 0)
    assert "this is one task, and the job has 8: write `srun teho launch -- …`" in text
    assert launch("--quiet", "--", "true", env=job).stderr == b""


def test_a_torchrun_for_each_gpu_is_one_too_many():
    text = line(launch("--", "sh", "-c", "exit 0", "torchrun", env={**STEP, **UNBOUND}), 0)
    assert "2 tasks of this node start a torchrun each" in text


# As many cores as there are, so that nothing is said of binding.
UNBOUND = {"SLURM_CPUS_ON_NODE": str(len(os.sched_getaffinity(0)))}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core cannot be shared out")
def test_tasks_are_bound_to_cores_of_their_own():
    shares = []
    for rank in ("0", "1"):
        environment = {**STEP, **UNBOUND, "SLURM_PROCID": rank, "SLURM_LOCALID": rank}
        shares.append({*told(env=environment)["cores"]})
    assert not shares[0] & shares[1]
    assert shares[0] | shares[1] <= os.sched_getaffinity(0)
    environment = {**STEP, **UNBOUND}
    assert {*told("--bind", "none", env=environment)["cores"]} == os.sched_getaffinity(0)


def site_with(cores: list[list[int]]) -> str:
    own = {"name": "oak", "cores_of_gpu": cores, "reserved_cores": [], "scratch": ""}
    return json.dumps({**lumi(), **own})


@pytest.mark.parametrize("more", [True, False])
def test_a_system_that_refuses(tmp_path: Path, more: bool):
    # The masks name cores that the kernel does not have; with one that it has, it grants that.
    mine = sorted(os.sched_getaffinity(0))
    strange = [4000, *mine[:1]] if more else [4000, 4001]
    masks = [sum(1 << core for core in cores) for cores in (mine, range(3998, 3998 + len(mine)))]
    listed = ",".join(map(hex, masks))
    environment = {
        **STEP, "SLURM_CPU_BIND_TYPE": "mask_cpu:", "SLURM_CPU_BIND_LIST": listed,
        "TEHO_SITE": site_with([strange, [mine[-1]]]), "ROCR_VISIBLE_DEVICES": "0,1",
    }  # fmt: skip
    if masks[0].bit_count() < 2 and more:
        pytest.skip("one core cannot be granted in part")
    result = launch("--", *TELL, env={**environment, "USER": "maija", "TMPDIR": str(tmp_path)})
    assert json.loads(result.stdout)["cores"] == mine
    text = result.stderr.decode()
    assert "rank 0 stays on the cores that it had: the system " in text


def test_two_hundred_and_fifty_six_ranks_together(tmp_path: Path):
    step = {
        **STEP, "SLURM_STEP_NODELIST": "n[001-032]", "SLURM_STEP_NUM_TASKS": "256",
        "SLURM_STEP_TASKS_PER_NODE": "8(x32)", "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
        "TMPDIR": str(tmp_path), "USER": "maija", "HOME": str(tmp_path),
    }  # fmt: skip
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "pip").mkdir()
    words = ["sh", "-c", 'echo "$RANK $LOCAL_RANK $NODE_RANK $MASTER_ADDR $MASTER_PORT"']
    ranks = []
    for rank in range(256):
        node, local = divmod(rank, 8)
        own = {"SLURM_PROCID": rank, "SLURM_LOCALID": local, "SLURM_NODEID": node}
        environment = {**os.environ, **step, **{name: str(value) for name, value in own.items()}}
        ranks.append(
            subprocess.Popen(
                [*TEHO, "launch", "--", *words], env=environment,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
    said = [process.communicate(timeout=120) for process in ranks]
    assert {process.returncode for process in ranks} == {0}
    lines = [out.split() for out, _ in said]
    assert [(int(line[0]), int(line[1]), int(line[2])) for line in lines] == [
        (rank, rank % 8, rank // 8) for rank in range(256)
    ]
    assert len({(line[3], line[4]) for line in lines}) == 1
    assert lines[0][3] == "n001"
    # All of them made the same folders at once.
    assert {error for _, error in said[1:]} == {""}
    xdg = tmp_path / "teho-cache-maija" / "xdg"
    assert [path.name for path in xdg.iterdir()] == ["pip"]
