"""Analysis of camera frames: an FFT, a sort, a loop over single array elements and a loop of
calls on tiny arrays; one frame takes about 10 ms."""

import json
import random
import sys
from time import perf_counter as clock

import numpy as np

KIND = {"fft": "native", "sort": "native", "elements": "python", "tiny": "python"}


def trace(frame: np.ndarray, steps: int) -> float:
    x = y = 0
    total = 0.0
    for i in range(steps):
        total += frame[x, y]
        x, y = (x + 7) % 200, (y + i) % 200
    return total


def wander(steps: int) -> np.ndarray:
    place = np.zeros(3)
    for i in range(steps):
        place = place * 0.9 + np.array([i, 1.0, -i])
    return place


def main(seconds: float) -> None:
    rng = random.Random(20)
    frames = np.random.default_rng(20).random((8, 400, 400))
    np.fft.fft2(frames[0])
    fft = sort = elements = tiny = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        n = rng.randrange(900, 2700)
        frame = frames[n % 8]
        t0 = clock()
        np.fft.fft2(frame)  #: fft
        t1 = clock()
        np.sort(frame, axis=None)  #: sort
        t2 = clock()
        trace(frame, 8 * n)  #: elements
        t3 = clock()
        wander(n)  #: tiny
        t4 = clock()
        fft, sort = fft + t1 - t0, sort + t2 - t1
        elements, tiny = elements + t3 - t2, tiny + t4 - t3
    stretches = {"fft": fft, "sort": sort, "elements": elements, "tiny": tiny}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
