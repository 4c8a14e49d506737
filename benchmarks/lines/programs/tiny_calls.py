"""A parser of binary records: one call that unpacks all, a Python loop of tiny C calls,
exceptions raised and caught for bad records, and a burst of sleeps of a microsecond."""

import json
import random
import struct
import sys
from time import perf_counter as clock
from time import sleep

KIND = {"unpack_all": "native", "unpack_each": "python", "errors": "python", "naps": "sleeping"}
RECORD = struct.Struct("<IHhd")


def check(kind: int) -> int:
    if kind % 3:
        raise ValueError(kind)
    return kind


def count_bad(records: list) -> int:
    bad = 0
    for record in records:
        try:
            check(record[1])
        except ValueError:
            bad += 1
    return bad


def nap(count: int) -> None:
    for _ in range(count):
        sleep(1e-6)


def main(seconds: float) -> None:
    rng = random.Random(6)
    data = b"".join(RECORD.pack(i, rng.randrange(999), -i, i / 7) for i in range(9000))
    whole = each = errors = naps = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        n = rng.randrange(2000, 9000)
        t0 = clock()
        records = list(RECORD.iter_unpack(data[: n * RECORD.size]))  #: unpack_all
        t1 = clock()
        [RECORD.unpack_from(data, i) for i in range(0, 12 * n, RECORD.size)]  #: unpack_each
        t2 = clock()
        count_bad(records[: n // 3])  #: errors
        t3 = clock()
        nap(n // 900)  #: naps
        t4 = clock()
        whole, each = whole + t1 - t0, each + t2 - t1
        errors, naps = errors + t3 - t2, naps + t4 - t3
    stretches = {"unpack_all": whole, "unpack_each": each, "errors": errors, "naps": naps}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
