from __future__ import annotations

import errno
from pathlib import Path

import pytest

from stubs.amd_tree import NOBODY, AmdTree, RefusingKernel, build_mi210, open_amd, reason_of
from teho.devices.amd.source import AmdSource
from teho.model.device import Reading
from teho.model.missing import Reason


@pytest.fixture
def mi210(tmp_path: Path) -> AmdTree:
    tree = build_mi210(tmp_path, count=1)
    tree.gpus[0].write_errors(corrected=12, uncorrected=0)
    return tree


def errors(tree: AmdTree, source: AmdSource, reads: int = 1) -> tuple[Reading, Reading]:
    """Return corrected and uncorrected errors at the last of so many readings."""
    for _ in range(reads):
        values = tree.gpus[0].of(source.read(NOBODY))
    return values["gpu_ecc_corrected"], values["gpu_ecc_uncorrected"]


def test_counts_of_the_memory(mi210: AmdTree) -> None:
    source = open_amd(mi210)
    assert errors(mi210, source) == (12, 0)
    assert source.alerts() == []


def test_counts_are_asked_once_a_minute(mi210: AmdTree, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_amd(mi210)
    kernel = RefusingKernel(monkeypatch)
    errors(mi210, source, reads=120)
    assert kernel.opened.count("umc_err_count") == 2


def test_errors_that_ecc_could_not_correct_are_reported_once(mi210: AmdTree) -> None:
    mi210.gpus[0].write_errors(corrected=12, uncorrected=1)  # of another job
    source = open_amd(mi210)
    assert source.alerts() == []
    mi210.gpus[0].write_errors(corrected=15, uncorrected=3)
    assert errors(mi210, source, reads=60) == (15, 3)
    (alert,) = source.alerts()
    assert alert.startswith(f"{source.devices[0].id}: ECC could not correct 2 memory errors")
    errors(mi210, source, reads=60)
    assert source.alerts() == []


@pytest.mark.parametrize(
    "answer", ["ue: 1\nce: 4\nde: 0\n", "ce: 4\nue: 1\n"], ids=["newer", "other order"]
)
def test_lines_are_known_by_name(mi210: AmdTree, answer: str) -> None:
    (mi210.gpus[0].folder / "ras/umc_err_count").write_text(answer)
    assert errors(mi210, open_amd(mi210)) == (4, 1)


@pytest.mark.parametrize(
    "answer", ["", "Query currently inaccessible\n", "ue: 1\n", "ue: -1\nce: 0"]
)
def test_nonsense_is_never_a_count(mi210: AmdTree, answer: str) -> None:
    (mi210.gpus[0].folder / "ras/umc_err_count").write_text(answer)
    source = open_amd(mi210)
    for value in errors(mi210, source):
        assert reason_of(value) is Reason.FAILED
    mi210.gpus[0].write_errors(corrected=2, uncorrected=0)
    assert errors(mi210, source, reads=60) == (2, 0)


def test_gpu_without_ras_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = build_mi210(tmp_path, count=1)
    source = open_amd(tree)
    kernel = RefusingKernel(monkeypatch)
    for value in errors(tree, source, reads=130):
        assert reason_of(value) is Reason.ABSENT
    assert "umc_err_count" not in kernel.opened


@pytest.mark.parametrize(
    ("code", "expected"), [(errno.EACCES, Reason.FORBIDDEN), (errno.EINVAL, Reason.FAILED)]
)
def test_counts_that_do_not_read(
    mi210: AmdTree, monkeypatch: pytest.MonkeyPatch, code: int, expected: Reason
) -> None:
    kernel = RefusingKernel(monkeypatch)
    kernel.refused_open["umc_err_count"] = code
    for value in errors(mi210, open_amd(mi210)):
        assert reason_of(value) is expected
