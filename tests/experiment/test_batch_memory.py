"""Memory is named as the reason only if there is evidence."""

from __future__ import annotations

import pytest

from teho.experiment.out_of_memory import Kills, memory_failure

NONE = Kills(0, 0)
CPU = (
    "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
    "allocate memory: you tried to allocate 1073741824 bytes. Error code 12 (Cannot allocate)"
)


@pytest.mark.parametrize(
    ("exit_code", "raised", "tail", "kills", "said"),
    [
        (1, ["torch.OutOfMemoryError"], "", NONE, "torch.OutOfMemoryError"),
        (1, ["torch.cuda.OutOfMemoryError: CUDA out of memory. Tried"], "", NONE, "CUDA out of"),
        (1, ["torch.OutOfMemoryError: HIP out of memory."], "", NONE, "HIP out of memory"),
        (1, [CPU], "", NONE, "RuntimeError: … can't allocate memory: you tried to allocate 1073"),
        (1, ["MemoryError"], "", NONE, "MemoryError"),
        (1, ["ChildFailedError: ", "torch.OutOfMemoryError"], "", NONE, "torch.OutOfMemoryError"),
        (1, ["RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED"], "", NONE, "ALLOC_FAILED"),
        (1, ["OSError: [Errno 12] Cannot allocate memory"], "", NONE, "Cannot allocate memory"),
        # The probe has left out the message of an exception.
        (1, ["RuntimeError"], "x\nRuntimeError: CUDA out of memory", NONE, "CUDA out of memory"),
        (-6, [], "terminate called\n  what():  std::bad_alloc", NONE, "what():  std::bad_alloc"),
        (-9, [], "", Kills(None, 1),
         "the operating system killed a process because memory ran out"),
        (137, [], "", Kills(0, 1), "the operating system killed a process because memory ran out"),
        (1, ["RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. "], "",
         Kills(None, 1), "the operating system killed a process because memory ran out"),
        (1, ["ChildFailedError: "], "rank 0 exitcode: -9 (pid: 7)", Kills(None, 1), "killed a"),
        # The kernel killed a worker, and the program waited for it until Teho ended it.
        (None, [], "", Kills(1, 1), "the operating system killed a process because memory ran out"),
        (-9, [], "", Kills(None, None),
         "the program was killed (SIGKILL), probably because memory was full"),
    ],
)  # fmt: skip
def test_memory_is_recognised(
    exit_code: int | None, raised: list[str], tail: str, kills: Kills, said: str
) -> None:
    lacking, otherwise = memory_failure(exit_code, raised, tail, kills)
    assert said in lacking
    assert otherwise == ""


@pytest.mark.parametrize(
    ("exit_code", "raised", "tail", "kills"),
    [
        (None, [], "", Kills(0, 5)),  # another job's process was killed
        (0, [], "a warning: not enough memory for the cache", NONE),
        (1, ["ValueError: shapes"], "not enough memory for the cache", NONE),
        (1, ["ValueError: shapes"], "", Kills(None, 3)),
        (-11, [], "", Kills(None, 1)),
        (1, [], "", Kills(None, None)),
    ],
)
def test_other_ends_are_not_called_memory(
    exit_code: int | None, raised: list[str], tail: str, kills: Kills
) -> None:
    assert memory_failure(exit_code, raised, tail, kills) == ("", "")


def test_a_kill_without_lack_of_memory_is_named() -> None:
    lacking, otherwise = memory_failure(-9, [], "", NONE)
    assert lacking == ""
    assert (
        otherwise
        == "the program was killed (SIGKILL), but the kernel did not report a lack of memory"
    )
