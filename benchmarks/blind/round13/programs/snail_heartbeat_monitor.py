"""Heart rate of a pond snail from a live photodiode feed (40 frames a second for 18 s)."""
import multiprocessing as mp
import socket
import struct
import time

import numpy as np
from scipy.signal import butter, find_peaks, sosfilt, sosfilt_zi

RATE = 2000
FRAME = 50
SECONDS = 18


def photodiode(port_pipe):
    """The recorder: sends a frame of samples as soon as the frame is complete."""
    listener = socket.create_server(("127.0.0.1", 0))
    port_pipe.send(listener.getsockname()[1])
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    rng = np.random.default_rng(6)
    start = time.monotonic()
    with connection:
        for number in range(SECONDS * RATE // FRAME):
            t = (number * FRAME + np.arange(FRAME)) / RATE
            beat = np.maximum(0, np.sin(2 * np.pi * 1.4 * t)) ** 8
            samples = 0.4 * beat + rng.normal(0, 0.05, FRAME) + 0.1 * np.sin(0.5 * t)
            ready = start + (number + 1) * FRAME / RATE
            pause = ready - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            connection.sendall(samples.astype("<f4").tobytes())


def frames(connection):
    size = 4 * FRAME
    buffer = b""
    while True:
        part = connection.recv(65536)
        if not part:
            return
        buffer += part
        while len(buffer) >= size:
            yield np.frombuffer(buffer[:size], "<f4").astype(float)
            buffer = buffer[size:]


class HeartRate:
    """Band-pass the feed with a running filter and look for beats in the last six seconds."""

    def __init__(self):
        self.sos = butter(3, (0.5, 12), "bandpass", fs=RATE, output="sos")
        self.state = sosfilt_zi(self.sos) * 0.0
        self.recent = np.zeros(6 * RATE)
        self.seen = 0
        self.rates = []

    def add(self, samples):
        smooth, self.state = sosfilt(self.sos, samples, zi=self.state)
        self.recent = np.concatenate([self.recent[len(smooth):], smooth])
        self.seen += len(smooth)
        if self.seen >= len(self.recent):
            peaks, _ = find_peaks(self.recent, height=0.08, distance=int(0.3 * RATE))
            if len(peaks) > 2:
                self.rates.append(60.0 * RATE / np.diff(peaks).mean())


def main():
    ours, theirs = mp.Pipe()
    recorder = mp.Process(target=photodiode, args=(theirs,), daemon=True)
    recorder.start()
    heart = HeartRate()
    with socket.create_connection(("127.0.0.1", ours.recv())) as connection:
        for samples in frames(connection):
            heart.add(samples)
    recorder.join()
    rates = np.array(heart.rates)
    print("samples:", heart.seen, "estimates:", len(rates))
    print("heart rate: %.1f beats a minute" % np.median(rates))
    print("spread: %.2f" % rates.std())


if __name__ == "__main__":
    main()
