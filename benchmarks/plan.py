"""Times the planner: `plan.py [COUNT]` prints how long the catalogue and COUNT plans take."""

from __future__ import annotations

import argparse
import itertools
import time

from teho.clusters.catalogue import load_catalogue
from teho.model.request import Request
from teho.planner.answer import answer


def requests(count: int) -> list[Request]:
    """Return different requests of every size, fitting and not."""
    sizes = itertools.product((0, 1, 2, 3, 4, 8, 16, 64), (None, 1, 7, 16), (None, 60.0, 300.0))
    different = [
        Request(gpus=gpus, cpus_per_gpu=cores, memory_gib=memory, time_s=hours * 3600.0)
        for hours in (1, 30)
        for gpus, cores, memory in sizes
    ]
    return list(itertools.islice(itertools.cycle(different), count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=10_000)
    count = parser.parse_args().count
    begin = time.perf_counter()
    clusters = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})
    loaded = time.perf_counter()
    options = sum(len(answer(request, clusters.values()).options) for request in requests(count))
    done = time.perf_counter()
    print(f"{len(clusters)} clusters loaded in {(loaded - begin) * 1000:.1f} ms")
    print(f"{count} plans, {options} options, in {done - loaded:.2f} s")


if __name__ == "__main__":
    main()
