"""`teho compare` between cores and GPUs, by a stand-in for the driver."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nvml_stub
import pytest
from nvml_stub import Scenario

from experiment.comparing import CLUSTERS, as_judged, compare, found

BUSY = Scenario(("gpus 8", "0 * 90 1000 500"))
IDLE = Scenario(("gpus 8", "0 * 0 0 60"))
WHERE = ("--on", "cpu:1,gpu:1", "--for", "60s")

Compare = Callable[..., subprocess.CompletedProcess[str]]


def shell(**took_s: float) -> list[str]:
    """Return a program with these times in s, without GPUs and with them."""
    cpu, gpu = took_s["cpu"], took_s["gpu"]
    return ["sh", "-c", f'case "$CUDA_VISIBLE_DEVICES" in -1) sleep {cpu};; *) sleep {gpu};; esac']


@pytest.fixture(scope="session")
def under(
    nvml_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Scenario], dict[str, str]]:
    """Return the environment of a node with the GPUs of a scenario."""

    def variables(scenario: Scenario) -> dict[str, str]:
        path = scenario.write(tmp_path_factory.mktemp("gpus") / "scenario.txt")
        return {**nvml_stub.environment(nvml_library, path), "TEHO_EVERY": "100ms"}

    return variables


@pytest.fixture(scope="module")
def faster(
    under, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what came of a program that is faster on a GPU, and prints other results; its home."""
    home = dict.fromkeys(("TEHO_HOME", "XDG_CONFIG_HOME"), str(tmp_path_factory.mktemp("home")))
    program = shell(cpu=0.9, gpu=0.3)
    program[-1] += '; case "$CUDA_VISIBLE_DEVICES" in -1) echo sum 10;; *) echo sum 11;; esac'
    return found(*WHERE, "--", *program, env=under(BUSY) | home), home


def test_a_gpu_that_is_faster_should_be_used(faster) -> None:
    answer, _ = faster
    assert answer["outcome"] == "worth_it", answer["verdict"]
    cores, gpu = answer["points"][0]["variants"]
    assert (gpu["gpus"], "H100" in gpu["gpu_name"]) == (1, True)
    assert (cores["gpus"], cores["samples"][0]["idle_gpus"]) == (0, None)


def test_other_results_on_the_gpu_are_reported(faster) -> None:
    assert faster[0]["points"][0]["notes"][0] == (
        "The program prints other results on gpu:1 than on cpu:1: line 1 is `sum 11` instead of "
        "`sum 10`."
    )


def test_the_price_of_a_gpu_may_decide(faster) -> None:
    answer, home = faster
    words = ("--recorded", f"compare={answer['id']}")
    dear = found("--gpu-cost", "100", *words, env=home)
    assert dear["outcome"] == "not_worth_it"
    assert (
        ". For the same price, you get 100 cores, which would be at most 100 times as"
        in dear["verdict"]
    )
    birch = found("--site", "birch", *words, env={**home, "TEHO_CLUSTERS": str(CLUSTERS)})
    assert (birch["site"], birch["cost_unit"]) == ("Birch", "BU")
    assert [one["hourly_cost"] for one in birch["points"][0]["variants"]] == [1, 75]
    assert birch["outcome"] == "not_worth_it"


def test_a_gpu_that_is_slower_should_not_be_used(under) -> None:
    # Three times as long: a start that is late by a few 100 ms does not change the order.
    answer = found(*WHERE, "--", *shell(cpu=0.5, gpu=1.5), env=under(BUSY))
    assert as_judged(answer).outcome == "not_worth_it"


def test_a_gpu_that_is_as_fast_is_judged_by_its_times(under) -> None:
    # Within 5 %, the verdict would depend on the load of this machine.
    point = as_judged(found(*WHERE, "--", *shell(cpu=0.5, gpu=0.5), env=under(BUSY)))
    assert point.comparison is not None
    assert point.comparison.larger == "gpu:1"


def test_unused_gpus_are_named_and_cost_energy(under) -> None:
    answer = found("--on", "gpu:2", "--for", "60s", "--", "sleep", "3", env=under(IDLE))
    (point,) = answer["points"]
    assert point["notes"][0].startswith("On gpu:2, no GPU was ever busy")
    (sample,) = point["variants"][0]["samples"]
    assert sample["idle_gpus"] == 2
    assert sample["gpu_energy_j"] == pytest.approx(2 * 60 * sample["elapsed_s"], rel=0.1)


def test_a_framework_that_cannot_use_the_gpu_gives_no_verdict(under, torch_python: Path) -> None:
    code = "import torch; print(torch.ones(3).sum())"
    # On a busy machine, importing PyTorch takes long.
    answer = found(*WHERE, "--for", "10min", "--", torch_python, "-c", code, env=under(IDLE))
    assert answer["outcome"] == "not_enough_evidence"
    _, gpu = answer["points"][0]["variants"]
    assert gpu["why"].startswith("its PyTorch 2.")
    assert gpu["why"].endswith(" is built for CPUs only")
    assert "gpu:1 could not be measured" in answer["points"][0]["notes"][0]


def test_without_a_gpu_the_rest_is_compared_and_the_missing_variant_is_reported(under) -> None:
    done = compare(*WHERE, "--", "true", env=under(Scenario(("gpus 0",))))
    assert done.returncode == 1
    assert "? Not enough evidence: only 1 core could be measured" in done.stdout
    assert "gpu:1 was left out: this job has no GPU" in done.stdout
    done = compare("--on", "gpu:1", "--", "true", env=under(Scenario(("gpus 0",))))
    assert done.returncode == 2
    assert "--on gpu:1: this job has no GPU" in done.stderr


def test_recordings_from_elsewhere_are_compared(under, teho: Compare) -> None:
    on_cpus, on_gpus = "sleep 1.5; echo sum 10", "sleep 0.2; echo sum 11"
    code = f'case "$CUDA_VISIBLE_DEVICES" in -1) {on_cpus};; *) {on_gpus};; esac'
    words = ("run", "-q", "--keep-output", "--tag", "set=a", "--", "sh", "-c", code)
    for _ in range(3):
        for visible in ("-1", "0"):
            environment = under(BUSY) | {"CUDA_VISIBLE_DEVICES": visible}
            assert teho(*words, env=environment).returncode == 0
    answer = found("--recorded", "set=a")
    assert answer["outcome"] == "worth_it"
    assert answer["id"] == ""
    assert [one["name"][:4] for one in answer["points"][0]["variants"]] == ["cpu:", "gpu:"]
    assert answer["points"][0]["contest"]["larger"] == "gpu:1"
    text = compare("--recorded", "set=a").stdout
    assert "These recorded runs alternated between the two variants." in text
    assert "line 1 is `sum 11` instead of `sum 10`." in answer["points"][0]["notes"][0]
    assert not any("not kept" in note for note in answer["notes"])
    assert "`teho list" not in text
    assert "`teho report " in text


def test_a_program_that_fails_only_on_the_gpu_is_left_out_with_its_last_line(under) -> None:
    program = ["sh", "-c", '[ "$CUDA_VISIBLE_DEVICES" = -1 ] || { echo no kernel >&2; exit 3; }']
    done = compare(*WHERE, "--", *program, env=under(BUSY))
    assert done.returncode == 1
    assert (
        "✗ gpu:1: the run ended with exit code 3, and its last message was “no kernel”"
        in done.stdout
    )
    assert "gpu:1 could not be measured: this verdict covers only CPU cores." in done.stdout
