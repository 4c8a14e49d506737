"""
verdict: none
stack:
  render(scene, 48000)
  spatialise(mono, event["azimuth"], event["elevation"], rate)
  hrir(SOFA, rate)
  resample_poly(raw, target, source, axis=-1)
why: hrir is cached by lru_cache, so its body runs once for each rate
"""
from functools import lru_cache

import h5py
import numpy as np
import soundfile as sf
from scipy.signal import fftconvolve, resample_poly

SOFA = "kemar.sofa"


@lru_cache(maxsize=None)
def hrir(path, target):
    with h5py.File(path, "r") as f:
        raw = f["Data.IR"][:]
        source = int(f["Data.SamplingRate"][0])
        directions = f["SourcePosition"][:, :2]
    return directions, resample_poly(raw, target, source, axis=-1)


def spatialise(mono, azimuth, elevation, rate):
    directions, filters = hrir(SOFA, rate)
    error = np.abs(directions - [azimuth % 360, elevation]).sum(axis=1)
    left, right = filters[int(error.argmin())]
    return np.stack([fftconvolve(mono, left), fftconvolve(mono, right)], axis=1)


def render(events, rate):
    duration = max(e["start"] for e in events) + 10
    mix = np.zeros((int(duration * rate), 2))
    for event in events:
        mono, _ = sf.read(event["file"])
        placed = spatialise(mono, event["azimuth"], event["elevation"], rate)
        begin = int(event["start"] * rate)
        mix[begin:begin + len(placed)] += placed[: len(mix) - begin]
    return mix / np.abs(mix).max()


if __name__ == "__main__":
    scene = [{"file": f"bird{i}.wav", "azimuth": 30 * i, "elevation": 0, "start": i} for i in range(12)]
    sf.write("scene.wav", render(scene, 48000), 48000)
