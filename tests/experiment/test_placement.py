"""Which cores and GPUs a variant is given, and what a program sees of it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from teho.cli import compare
from teho.cli.tune import _room
from teho.devices.amd.visible import visible_rocm
from teho.devices.nvidia.visible import visible_cuda
from teho.errors import InputError
from teho.experiment.placement import Machine, Placement, read_placements, this_machine
from teho.experiment.started import Started
from teho.model.device import Device

# Two threads a core, as Linux numbers them: siblings lie half the machine apart.
THREADED = ((0, 4), (1, 5), (2, 6), (3, 7))


def nvidia(number: int) -> Device:
    return Device(id=f"GPU-{number:08x}", index=number, name="H100", vendor="nvidia")


def amd(number: int, id_: str = "") -> Device:
    id_ = id_ or f"GPU-{number:016x}"
    return Device(id=id_, index=number, name="MI250X", vendor="amd")


def placed(text: str, machine: Machine) -> list[Placement]:
    return read_placements(text, machine, "--on")[0]


def test_one_thread_of_each_core_comes_before_a_second_one() -> None:
    machine = Machine(THREADED, ())
    cores = [place.cores for place in placed("cpu:1,cpu:2,cpu:4,cpu:5,cpu:all", machine)]
    assert cores == [(0,), (0, 1), (0, 1, 2, 3), (0, 1, 2, 3, 4), tuple(range(8))]


@pytest.mark.parametrize(
    ("on", "cores_a_gpu", "names"),
    [
        (None, 3, ["cpu:1", "cpu:3", "cpu:8", "gpu:1"]),
        (None, 8, ["cpu:1", "cpu:8", "gpu:1"]),
        (None, 9, ["cpu:1", "cpu:8", "gpu:1"]),
        (None, None, ["cpu:1", "cpu:8", "gpu:1"]),
        ("cpu:all,gpu:1", 3, ["cpu:8", "gpu:1"]),
    ],
)
def test_as_many_cores_as_a_gpu_costs_are_measured_too(
    monkeypatch: pytest.MonkeyPatch, on: str | None, cores_a_gpu: int | None, names: list[str]
) -> None:
    machine = Machine(THREADED, (nvidia(0),))
    monkeypatch.setattr("teho.experiment.placement.this_machine", lambda: machine)
    wish = compare._wish(on, 60.0, None, ("true",), None, cores_a_gpu)
    assert [place.name for place in wish.placements] == names


def test_cores_of_unlike_numbers_of_threads() -> None:
    machine = Machine(((0, 1), (2,), (3, 4, 5)), ())
    assert placed("cpu:4", machine)[0].cores == (0, 1, 2, 3)
    assert placed("cpu:all", machine)[0].cores == (0, 1, 2, 3, 4, 5)


def test_all_becomes_its_number_and_each_placement_comes_once() -> None:
    machine = Machine(((0,), (1,)), (nvidia(0),))
    found, notes = read_placements("cpu:2, cpu:all,gpu:1,gpu:all,", machine, "--on")
    assert [place.name for place in found] == ["cpu:2", "gpu:1"]
    assert notes == []


def test_a_gpu_comes_with_all_cores() -> None:
    machine = Machine(THREADED, (nvidia(0), nvidia(1)))
    (place,) = placed("gpu:1", machine)
    assert place.cores == tuple(range(8))
    assert place.gpus == (nvidia(0),)


def test_missing_gpus_are_left_out_and_reported() -> None:
    none = Machine(((0,), (1,)), (), "no libnvidia-ml.so.1")
    found, notes = read_placements("cpu:1,gpu:1,gpu:all", none, "--on")
    assert [place.name for place in found] == ["cpu:1"]
    assert notes == ["gpu:1 and gpu:all were left out: this job has no GPU (no libnvidia-ml.so.1)."]
    two = Machine(((0,), (1,)), (nvidia(0), nvidia(1)))
    found, notes = read_placements("gpu:2,gpu:4", two, "--on")
    assert [place.name for place in found] == ["gpu:2"]
    assert notes == ["gpu:4 was left out: this job has only 2 GPUs."]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpu", "--on cpu; expected cpu:N"),
        ("cpu:0", "--on cpu:0; expected"),
        ("cpu:01", "--on cpu:01; expected"),
        ("tpu:1", "--on tpu:1; expected"),
        ("cpu:-1", "--on cpu:-1; expected"),
        ("cpu:1;gpu:1", "--on cpu:1;gpu:1; expected"),
        ("", "--on ''; expected"),
        (",", "--on ','; expected"),
        ("cpu:3", "--on cpu:3: this job has 2 cores; expected at most this number"),
    ],
)
def test_other_texts_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_placements(text, Machine(((0,), (1,)), ()), "--on")
    assert said in str(error.value)


def test_without_gpus_they_are_hidden_and_threads_are_as_many_as_cores() -> None:
    (place,) = placed("cpu:2", Machine(THREADED, (nvidia(0),)))
    own = {"OMP_NUM_THREADS": "64", "KMP_AFFINITY": "x", "OMP_PLACES": "{9}", "HOME": "/h"}
    found = place.environment(own)
    assert found["OMP_NUM_THREADS"] == found["MKL_NUM_THREADS"] == "2"
    assert found["CUDA_VISIBLE_DEVICES"] == "-1"
    assert found["HOME"] == "/h"
    assert not {"KMP_AFFINITY", "OMP_PLACES"} & set(found)
    # By the same reading of the variables that recordings rest on.
    assert visible_cuda(found, [nvidia(0)]) == ((), ())
    assert visible_rocm(found, [amd(0)]) == ((), ())


@pytest.mark.parametrize("name", ["SLURM_CPUS_PER_TASK", "NSLOTS"])
def test_a_program_that_asks_the_scheduler_for_its_cores_hears_of_its_own(name: str) -> None:
    cores, gpu = placed("cpu:2,gpu:1", Machine(THREADED, (nvidia(0),)))
    assert cores.environment({name: "8"})[name] == "2"
    assert gpu.environment({name: "8"})[name] == "8"
    assert name not in cores.environment({})


def test_with_gpus_the_users_number_of_threads_stays() -> None:
    (place,) = placed("gpu:1", Machine(THREADED, (nvidia(0),)))
    assert place.environment({"OMP_NUM_THREADS": "7"})["OMP_NUM_THREADS"] == "7"
    assert "OMP_NUM_THREADS" not in place.environment({})


def test_cuda_gets_names() -> None:
    gpus = (nvidia(4), nvidia(6))
    own = {"CUDA_VISIBLE_DEVICES": "4,6"}
    for place in placed("gpu:1,gpu:2", Machine(((0,),), gpus)):
        found = place.environment(own)
        every = [nvidia(number) for number in range(8)]
        assert visible_cuda(found, every) == (place.gpus, ())


def test_cuda_gets_mig_instances() -> None:
    parent = Device(id="GPU-1", index=0, name="A100", vendor="nvidia")
    parts = tuple(
        Device(id=f"MIG-{number}", index=0, name="A100 1g.5gb", vendor="nvidia", parent_id="GPU-1")
        for number in (1, 2)
    )
    (place,) = placed("gpu:1", Machine(((0,),), parts))
    found = place.environment({})
    assert found["CUDA_VISIBLE_DEVICES"] == "MIG-1"
    assert visible_cuda(found, (parent, *parts)) == ((parts[0],), ())


@pytest.mark.parametrize("ids", [["", ""], ["0000:03:00.0", "0000:83:00.0"]])
def test_rocm_gets_names_or_numbers_and_only_one_variable(ids: list[str]) -> None:
    every = [amd(0), amd(1), amd(2, ids[0]), amd(3, ids[1])]
    own = {
        "ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "1",
    }  # fmt: skip
    for place in placed("gpu:1,gpu:2", Machine(((0,),), (every[2], every[3]))):
        assert visible_rocm(place.environment(own), every) == (place.gpus, ())


def test_a_program_runs_on_its_cores_and_this_process_keeps_its_own(tmp_path: Path) -> None:
    mine = os.sched_getaffinity(0)
    (place,) = placed("cpu:1", this_machine({}))
    code = (
        "import json, os, sys; found = [sorted(os.sched_getaffinity(0)), "
        "os.environ['OMP_NUM_THREADS'], os.environ['CUDA_VISIBLE_DEVICES']]; "
        "open(sys.argv[1], 'w').write(json.dumps(found))"
    )
    output = tmp_path / "found"
    started = Started(
        [sys.executable, "-c", code, str(output)], place.environment(os.environ),
        errors=tmp_path / "stderr", cores=place.cores,
    )  # fmt: skip
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    assert started.poll() == 0
    assert json.loads(output.read_text()) == [list(place.cores), "1", "-1"]
    assert os.sched_getaffinity(0) == mine


def test_a_program_that_does_not_start_is_an_error_and_this_process_keeps_its_cores(
    tmp_path: Path,
) -> None:
    mine = os.sched_getaffinity(0)
    with pytest.raises(InputError, match="no-such-program: No such file"):
        Started(["no-such-program"], {}, errors=tmp_path / "stderr", cores=[min(mine)])
    assert os.sched_getaffinity(0) == mine


@pytest.mark.parametrize(
    ("cluster", "allowed", "index", "cores"),
    [
        ("arc4", 40, 0, range(10)),
        # Jobs with other GPUs of the node take other cores.
        ("arc4", 40, 2, range(20, 30)),
        ("arc4", 25, 3, range(15, 25)),
        ("arc4", 10, 3, range(10)),
        ("oak", 40, 2, range(40)),
    ],
)
def test_a_job_has_the_cores_that_came_with_its_gpus(
    monkeypatch: pytest.MonkeyPatch, cluster: str, allowed: int, index: int, cores: range
) -> None:
    class Source:
        devices = (nvidia(index),)

        def close(self) -> None:
            pass

    module = "teho.experiment.placement"
    monkeypatch.setattr(f"{module}.open_gpus", lambda _: ([Source()], []))
    monkeypatch.setattr(f"{module}.physical_cores", lambda mine: [(core,) for core in sorted(mine)])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(allowed)))
    job = {
        "JOB_ID": "7", "SGE_ACCOUNT": "sge", "NSLOTS": "1",
        "TEHO_CLUSTER": cluster, "CUDA_VISIBLE_DEVICES": str(index),
    }  # fmt: skip
    assert this_machine(job).logical_cores == tuple(cores)
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    assert _room().cores == (10 if cluster == "arc4" else 1)
