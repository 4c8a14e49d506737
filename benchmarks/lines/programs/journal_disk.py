"""A database journal: makes a record in Python, forces it to disk and reads uncached pages (partly
CPU time in the kernel on a fast disk); works in /var/tmp, which must be a disk."""

import json
import os
import random
import sys
import tempfile
from time import perf_counter as clock

KIND = {"record": "python", "fsync": "disk", "reread": "disk"}
PAGE = 4096


def make_record(rng: random.Random, fields: int) -> bytes:
    record = {"f%d" % i: rng.randrange(1000) for i in range(fields)}
    return ";".join("%s=%d" % item for item in record.items()).encode()


def append(fd: int, record: bytes) -> None:
    os.write(fd, record)
    os.fsync(fd)


def reread(fd: int, offsets: list) -> None:
    for offset in offsets:
        os.posix_fadvise(fd, offset, PAGE, os.POSIX_FADV_DONTNEED)
        os.pread(fd, PAGE, offset)


def main(seconds: float) -> None:
    rng = random.Random(8)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        journal = os.open(os.path.join(folder, "journal"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        old = os.open(os.path.join(folder, "old"), os.O_CREAT | os.O_RDWR)
        os.write(old, os.urandom(3000 * PAGE))
        os.fsync(old)
        os.posix_fadvise(old, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(old, 0, 0, os.POSIX_FADV_RANDOM)
        made = synced = read = 0.0
        t3 = start = clock()
        while t3 - start < seconds:
            fields = rng.randrange(300, 1500)
            offsets = [rng.randrange(3000) * PAGE for _ in range(5)]
            t0 = clock()
            record = make_record(rng, fields)  #: record
            t1 = clock()
            append(journal, record)  #: fsync
            t2 = clock()
            reread(old, offsets)  #: reread
            t3 = clock()
            made, synced, read = made + t1 - t0, synced + t2 - t1, read + t3 - t2
        os.close(journal)
        os.close(old)
    stretches = {"record": made, "fsync": synced, "reread": read}
    print(json.dumps({"loop_s": t3 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
