"""Pitch and roughness of recorded steam whistles at several resolutions, in two threads."""
import os
import queue
import tempfile
import threading

import numpy as np
from scipy import fft

RECORDINGS = 20
SAMPLES = 3_000_000
RATE = 44100
FRAMES = (2048, 4096, 8192, 16384)
OVERLAP = 4
THREADS = 2


def make_recordings(folder):
    paths = []
    t = np.arange(SAMPLES, dtype=np.float32) / RATE
    breath = np.random.default_rng(0).standard_normal(SAMPLES, dtype=np.float32)
    for k in range(RECORDINGS):
        pitch = 300.0 + 17.0 * k
        tone = np.sin((2 * np.pi * pitch) * t)
        sound = tone + 0.4 * np.roll(tone, 1000 * k) * tone + 0.2 * np.roll(breath, 7777 * k)
        path = os.path.join(folder, "whistle_%02d.npy" % k)
        np.save(path, sound.astype(np.float32))
        paths.append(path)
    return paths


class Survey:
    def __init__(self, paths):
        self.jobs = queue.Queue()
        for path in paths:
            for frame in FRAMES:
                self.jobs.put((path, frame))
        self.lock = threading.Lock()
        self.rows = []
        self.windows = {frame: np.hanning(frame).astype(np.float32) for frame in FRAMES}

    def measure(self, path, frame):
        sound = np.load(path)
        frames = np.lib.stride_tricks.sliding_window_view(sound, frame)[::frame // OVERLAP]
        power = np.abs(fft.rfft(frames * self.windows[frame], axis=1)) ** 2
        spectrum = power.mean(axis=0)
        frequency = np.fft.rfftfreq(frame, 1 / RATE)
        pitch = frequency[spectrum.argmax()]
        flux = np.abs(np.diff(power, axis=0)).mean() / power.mean()
        centroid = (frequency * spectrum).sum() / spectrum.sum()
        return os.path.basename(path), frame, pitch, flux, centroid

    def worker(self):
        while True:
            try:
                path, frame = self.jobs.get_nowait()
            except queue.Empty:
                return
            with self.lock:
                row = self.measure(path, frame)
                self.rows.append(row)

    def run(self):
        workers = [threading.Thread(target=self.worker) for _ in range(THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return sorted(self.rows)


def main():
    with tempfile.TemporaryDirectory() as folder:
        rows = Survey(make_recordings(folder)).run()
    numbers = np.array([row[2:] for row in rows])
    print("measurements:", len(rows))
    print("pitch %.1f - %.1f Hz" % (numbers[:, 0].min(), numbers[:, 0].max()))
    print("mean flux %.3f, mean centroid %.0f Hz" % (numbers[:, 1].mean(), numbers[:, 2].mean()))
    print("first:", rows[0][0], "frame", rows[0][1], "pitch %.1f" % rows[0][2])


if __name__ == "__main__":
    main()
