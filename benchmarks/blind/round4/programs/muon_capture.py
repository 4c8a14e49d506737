"""Pulse spectra from the raw byte capture of a muon telescope."""
import os
import struct
import tempfile
import zlib

import numpy as np

SYNC = 0xFAF33400
HEAD = struct.Struct(">III")
POINTS = 512
SIZE = HEAD.size + 2 * POINTS
PACKETS = 100_000
READ = 1 << 20


def write_capture(path, rng):
    layout = np.dtype([("sync", ">u4"), ("seq", ">u4"), ("crc", ">u4"),
                       ("wave", "<i2", (POINTS,))])
    pulse = 900 * np.exp(-np.arange(POINTS) / 40.0)
    with open(path, "wb") as fh:
        for first in range(0, PACKETS, 10_000):
            block = np.zeros(10_000, dtype=layout)
            noise = rng.integers(-60, 60, size=(10_000, POINTS), dtype=np.int16)
            size = rng.gamma(2.0, 0.5, 10_000)
            block["wave"] = noise + np.outer(size, pulse).astype(np.int16)
            block["sync"] = SYNC
            block["seq"] = np.arange(first, first + 10_000)
            block["crc"] = [zlib.crc32(w) for w in block["wave"].copy()]
            block.tofile(fh)


def analyse(payload, shape):
    wave = np.frombuffer(payload, dtype="<i2").astype(np.float64)
    low, base, high = np.percentile(wave, [5, 50, 95])
    wave = wave - base
    spectrum = np.abs(np.fft.rfft(wave)) ** 2
    bands = [spectrum[a:b].sum() for a, b in ((1, 8), (8, 40), (40, 257))]
    match = np.correlate(wave, shape)
    return (high - low, wave.std(), match.max(), bands[0] / (bands[1] + bands[2]))


def packets(path):
    buf = b""
    with open(path, "rb") as fh:
        while True:
            chunk = fh.read(READ)
            if not chunk:
                break
            buf += chunk
            while len(buf) >= SIZE:
                packet = buf[:SIZE]
                buf = buf[SIZE:]
                yield packet


def main():
    rng = np.random.default_rng(105)
    shape = np.exp(-np.arange(32) / 40.0)
    shape -= shape.mean()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        path = os.path.join(tmp, "telescope.raw")
        write_capture(path, rng)
        rows = []
        broken = 0
        for packet in packets(path):
            sync, seq, crc = HEAD.unpack_from(packet)
            payload = packet[HEAD.size:]
            if sync != SYNC or zlib.crc32(payload) != crc:
                broken += 1
                continue
            rows.append(analyse(payload, shape))
    rows = np.array(rows)
    print("packets", len(rows), "broken", broken)
    print("mean", np.round(rows.mean(axis=0), 5))
    print("spread", np.round(np.percentile(rows[:, 2], [10, 50, 90]), 4))


if __name__ == "__main__":
    main()
