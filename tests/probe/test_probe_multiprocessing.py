"""Workers of multiprocessing, which end by `os._exit` where they were forked."""

from __future__ import annotations

import pytest

from probe.probed import Probed

WORKERS = """
import multiprocessing, threading
def work(seconds):
    spin(seconds)
    print(os.environ.get("NOTHING"), len(threading.enumerate()), flush=True)
def main(method, seconds):
    process = multiprocessing.get_context(method).Process(target=work, args=(seconds,))
    process.start(); process.join()
    print(process.exitcode, flush=True)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_reports_what_it_saw_before_it_ends(probed: Probed, method: str) -> None:
    probed.both(WORKERS + f"if __name__ == '__main__': main({method!r}, 0.7)")
    ends = [lines[-1] for lines in probed.processes()]
    assert all("end_s" in line for line in ends)
    busy = [
        one
        for one in probed.watched()
        if any(
            s.frames and s.wall_s > 0.1 and any(frame.function == "work" for frame in s.frames)
            for s in one.stacks
        )
    ]
    assert len(busy) == 1


def test_small_things_that_are_forked_leave_no_files(probed: Probed) -> None:
    probed.both(WORKERS + "for _ in range(9): main('fork', 0)")
    assert len(probed.processes()) == 1
