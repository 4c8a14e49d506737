# Copy a raw detector dump and verify it block by block on the way back
import hashlib
import os
import tempfile

BLOCK = 8 << 20
with tempfile.TemporaryDirectory() as d:
    src, dst = os.path.join(d, "dump.raw"), os.path.join(d, "mirror.raw")
    seed = os.urandom(BLOCK)
    for round_ in range(3):
        with open(src, "wb") as f:
            for k in range(70):
                f.write(seed)
            f.flush()
            os.fsync(f.fileno())
        fd = os.open(src, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        h = hashlib.blake2b()
        with open(src, "rb", buffering=0) as a, open(dst, "wb", buffering=0) as b:
            while chunk := a.read(BLOCK):
                h.update(chunk)
                b.write(chunk)
            os.fsync(b.fileno())
        print(round_, h.hexdigest()[:16], flush=True)
