"""`--bind FILE`: the cores of each local rank, as the user wants them."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch_trees import lumi, task

from teho.errors import InputError
from teho.launch.binding import RankBinding, bind
from teho.launch.gpus import Gpus

GCDS = Gpus("ROCR_VISIBLE_DEVICES", [str(number) for number in range(8)], [None] * 8)
NONE = Gpus("", [], [])
FORTY = frozenset(range(40))


def from_file(path: Path, text: str, rank: int = 0, **changes: str) -> RankBinding:
    path.write_text(text)
    return bind(
        str(path), task(rank, 2), NONE, None, changes, frozenset(range(4)), str(path.parent)
    )


def test_cores_of_a_file(tmp_path: Path):
    path = tmp_path / "my cores"
    text = "# near the GPUs\n2-3  # the first\n\n0x3\n9 # one more rank than there are\n"
    assert from_file(path, text).cores == (2, 3)
    assert from_file(path, text, 1).cores == (0, 1)
    assert from_file(path, text, 1).threads == 2
    # Cores of the other tasks of the step are the job's, too.
    masks = {"SLURM_CPU_BIND_TYPE": "mask_cpu:", "SLURM_CPU_BIND_LIST": "0xf,0xf0"}
    assert from_file(path, "4-5\n0-1\n", **masks).cores == (4, 5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["0 lines with cores, but 2 tasks", "a line for each local rank"]),
        ("0\n", ["1 line with cores, but 2 tasks"]),
        ("0\nfour\n", ["line 2", "'four'", "cores such as 0-3,8"]),
        ("0\n\n3-1\n", ["line 3", "'3-1'"]),
        ("0xg\n1\n", ["line 1", "a mask such as 0x00fe"]),
        ("7\n1\n", ["local rank 0 would run on core 7", "this job: 0,1,2,3"]),
        (",\n1\n", ["local rank 0 would run on no core"]),
        ("0x0\n1\n", ["local rank 0 would run on no core"]),
    ],
)
def test_a_file_with_a_mistake(tmp_path: Path, text: str, words: list[str]):
    with pytest.raises(InputError) as caught:
        from_file(tmp_path / "cores", text)
    assert [word for word in ["--bind", *words] if word not in str(caught.value)] == []


def test_a_file_that_does_not_read(tmp_path: Path):
    for name, why in (("none", "No such file"), ("", "Is a directory")):
        with pytest.raises(InputError, match=why):
            bind(str(tmp_path / name), task(), NONE, None, {}, FORTY, str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="the file is not text"):
        bind(str(tmp_path / "binary"), task(), NONE, None, {}, FORTY, str(tmp_path))


def test_a_file_may_not_name_a_reserved_core(tmp_path: Path):
    path = tmp_path / "cores"
    path.write_text("8\n" * 8)
    with pytest.raises(InputError, match="local rank 0 would run on core 8"):
        bind(str(path), task(), GCDS, lumi(), {}, frozenset(range(64)), str(tmp_path))
