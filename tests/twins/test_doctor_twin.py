"""`teho doctor --in-job` at the top of a real job of a twin: a doomed one ends, others run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import nvml_stub
import pytest
from slurm_twin import SlurmTwin

from support import TEHO
from teho.clusters.catalogue import load_cluster
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.script.write import ScriptOptions, write_script


@pytest.fixture(scope="module")
def twin(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmTwin]:
    cluster = load_cluster("narval", {})
    with SlurmTwin(
        cluster, tmp_path_factory.mktemp("t"), live={"a100": 2, "cpu-250g": 1}, asleep=False
    ) as twin:
        yield twin


def run(twin: SlurmTwin, folder: Path, *lines: str, gpus: int) -> tuple[str, str]:
    """Run a job that says `trained`; return its state with its exit code, and what it wrote."""
    request = Request(
        command=("echo", "trained"),
        gpus=gpus,
        cpus=None if gpus else 1,
        memory_mib=None if gpus else 2048,
        account=twin.cluster.account.example,
        time_s=600.0,
        lines=lines,
    )
    option = answer(request, [twin.cluster]).options[0]
    script = write_script(option, twin.cluster, ScriptOptions(check=True, teho=tuple(TEHO))).text
    sent = twin.run("sbatch", "--parsable", f"--output={folder}/%j.out", stdin=script)
    assert sent.returncode == 0, f"{sent.stderr}\n{script}"
    number, end_s = sent.stdout.strip(), time.monotonic() + 120
    while True:
        told = twin.run("sacct", "-X", "-n", "-P", "-j", number, "-o", "state,exitcode").stdout
        if told and not told.startswith(("RUNNING", "PENDING")):
            return told.strip(), (folder / f"{number}.out").read_text()
        assert time.monotonic() < end_s, told
        time.sleep(0.2)


def test_a_job_whose_gpus_are_not_there_ends_at_once(twin: SlurmTwin, tmp_path: Path) -> None:
    # The twin gives GPUs that no driver knows, as a broken node does.
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    state, said = run(twin, tmp_path, f"export LD_LIBRARY_PATH={tmp_path}", gpus=1)
    assert state == "FAILED|1:0", said
    assert (
        "this job will fail: The job was allocated 1 GPU on this node, but none can be used" in said
    )
    assert "trained" not in said


def test_a_job_with_its_gpu_runs(twin: SlurmTwin, nvml_library: Path, tmp_path: Path) -> None:
    scenario = nvml_stub.SCENARIOS / "h100x4_three_used.txt"
    variables = nvml_stub.environment(nvml_library, scenario)
    lines = [f"export {name}={value}" for name, value in variables.items()]
    state, said = run(twin, tmp_path, *lines, gpus=1)
    assert state == "COMPLETED|0:0", said
    assert "trained" in said
    assert "doomed" not in said


def test_a_job_without_a_gpu_runs(twin: SlurmTwin, tmp_path: Path) -> None:
    state, said = run(twin, tmp_path, gpus=0)
    assert state == "COMPLETED|0:0", said
    assert "trained" in said
