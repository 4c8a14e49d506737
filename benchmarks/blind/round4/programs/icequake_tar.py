"""Scan borehole geophone records of a glacier for repeating icequakes.

The records of one melt season sit in a single compressed archive, one member
per half hour.  The catalogue of trigger times lists the members by the size of
the strongest event.
"""
import io
import os
import tarfile
import tempfile

import numpy as np
from scipy import fft as sfft

RECORDS = 160
SAMPLES = 120_000
TEMPLATES = 14
TEMPLATE_LEN = 800
NFFT = 131_072


def wavelets(rng):
    t = np.arange(TEMPLATE_LEN) / 400.0
    out = []
    for _ in range(TEMPLATES):
        f0 = rng.uniform(8, 60)
        decay = rng.uniform(2, 9)
        out.append(np.sin(2 * np.pi * f0 * t + rng.uniform(0, 6)) * np.exp(-decay * t))
    bank = np.array(out)
    bank -= bank.mean(axis=1, keepdims=True)
    return bank / np.linalg.norm(bank, axis=1, keepdims=True)


def write_season(path, bank, rng):
    strength = {}
    with tarfile.open(path, "w:gz", compresslevel=1) as season:
        for k in range(RECORDS):
            trace = rng.normal(0.0, 220.0, SAMPLES)
            top = 0.0
            for _ in range(6):
                at = rng.integers(0, SAMPLES - TEMPLATE_LEN)
                amp = rng.uniform(1500, 6000)
                trace[at:at + TEMPLATE_LEN] += amp * bank[rng.integers(TEMPLATES)]
                top = max(top, amp)
            raw = np.clip(trace, -32000, 32000).astype("<i2").tobytes()
            info = tarfile.TarInfo(f"bh07/{k:04d}.i2")
            info.size = len(raw)
            season.addfile(info, io.BytesIO(raw))
            strength[info.name] = top
    return strength


def running_norm(trace):
    power = np.concatenate(([0.0], np.cumsum(trace * trace)))
    return np.sqrt(power[TEMPLATE_LEN:] - power[:-TEMPLATE_LEN])


def detect(trace, bank_f):
    trace = trace - trace.mean()
    spec = sfft.rfft(trace, NFFT)
    cc = sfft.irfft(spec[None, :] * bank_f, NFFT, axis=1)
    cc = cc[:, :SAMPLES - TEMPLATE_LEN + 1]
    score = np.abs(cc).max(axis=0) / running_norm(trace)
    floor = np.median(score)
    mad = np.median(np.abs(score - floor))
    hits = np.flatnonzero(score > floor + 9.0 * mad)
    if hits.size == 0:
        return 0, float(score.max())
    groups = 1 + int(np.count_nonzero(np.diff(hits) > TEMPLATE_LEN))
    return groups, float(score.max())


def main():
    rng = np.random.default_rng(20190814)
    bank = wavelets(rng)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        path = os.path.join(tmp, "season.tar.gz")
        strength = write_season(path, bank, rng)
        catalogue = sorted(strength, key=strength.get, reverse=True)
        bank_f = np.conj(sfft.rfft(bank, NFFT, axis=1))
        found = {}
        with tarfile.open(path, "r:gz") as season:
            for name in catalogue:
                raw = season.extractfile(name).read()
                trace = np.frombuffer(raw, dtype="<i2").astype(np.float64)
                found[name] = detect(trace, bank_f)
    names = sorted(found)
    events = sum(found[n][0] for n in names)
    best = np.array([found[n][1] for n in names])
    print(f"records {len(names)}  events {events}  mean best score {best.mean():.5f}")


if __name__ == "__main__":
    main()
