"""A reporting service that sums up measurements in Python, then writes and re-reads them as JSON.
One round takes about 50 ms."""

import json
import random
import sys
from time import perf_counter as clock

KIND = {"summary": "python", "dumps": "native", "loads": "native"}


class Summary:
    def __init__(self) -> None:
        self.sums = {}
        self.counts = {}

    def add(self, row: dict) -> None:
        site = row["site"]
        self.sums[site] = self.sums.get(site, 0.0) + sum(row["values"])
        self.counts[site] = self.counts.get(site, 0) + 1

    def means(self) -> dict:
        return {site: self.sums[site] / self.counts[site] for site in sorted(self.sums)}


def summarise(rows: list, times: int) -> dict:
    summary = Summary()
    for row in rows * times:
        summary.add(row)
    return summary.means()


def main(seconds: float) -> None:
    rng = random.Random(2)
    rows = [
        {"id": i, "site": "s%d" % (i % 40), "values": [rng.random() for _ in range(5)], "ok": True}
        for i in range(7400)
    ]
    python = dumped = loaded = 0.0
    t3 = start = clock()
    while t3 - start < seconds:
        t0 = clock()
        summarise(rows, 12)  #: summary
        t1 = clock()
        text = json.dumps(rows)  #: dumps
        t2 = clock()
        rows = json.loads(text)  #: loads
        t3 = clock()
        python += t1 - t0
        dumped += t2 - t1
        loaded += t3 - t2
    stretches = {"summary": python, "dumps": dumped, "loads": loaded}
    print(json.dumps({"loop_s": t3 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
