"""Dives of grey seals from a satellite relay.

The relay (a child process here) passes on one block of depth samples per
overflight, every 0.3 s; each block is analysed as soon as it is there.
"""
import multiprocessing as mp
import socket
import time

import numpy as np
from scipy import signal

BLOCKS = 60
SAMPLES = 40000
PERIOD = 0.3


def block(number):
    rng = np.random.default_rng(70 + number)
    t = np.arange(SAMPLES) / 10.0
    depth = 45.0 * np.clip(np.sin(2 * np.pi * t / rng.uniform(300, 420)), 0, None) ** 0.4
    depth += 3.0 * np.sin(2 * np.pi * t / 17.0) * (depth > 5)
    return (depth + 0.4 * rng.normal(size=SAMPLES)).astype(np.float32)


def relay(port_box):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port_box.put(server.getsockname()[1])
        link, _ = server.accept()
        with link:
            begin = time.monotonic()
            for number in range(BLOCKS):
                data = block(number).tobytes()
                due = begin + (number + 1) * PERIOD
                time.sleep(max(0.0, due - time.monotonic()))
                link.sendall(data)


def receive(link, size):
    buffer = bytearray(size)
    view = memoryview(buffer)
    got = 0
    while got < size:
        count = link.recv_into(view[got:])
        if count == 0:
            raise ConnectionError("relay closed")
        got += count
    return np.frombuffer(buffer, dtype=np.float32)


def dives(depth):
    smooth = signal.savgol_filter(depth.astype(float), 31, 2)
    under = smooth > 5.0
    edges = np.flatnonzero(np.diff(under.astype(np.int8)))
    starts = edges[smooth[edges + 1] > smooth[edges]]
    frequencies, power = signal.welch(smooth, fs=10.0, nperseg=4096)
    wiggle = power[(frequencies > 0.04) & (frequencies < 0.09)].sum()
    return len(starts), float(smooth.max()), float(wiggle)


def main():
    port_box = mp.Queue()
    process = mp.Process(target=relay, args=(port_box,), daemon=True)
    process.start()
    count, deepest, wiggles = 0, 0.0, []
    with socket.create_connection(("127.0.0.1", port_box.get())) as link:
        for number in range(BLOCKS):
            found, depth, wiggle = dives(receive(link, 4 * SAMPLES))
            count += found
            deepest = max(deepest, depth)
            wiggles.append(wiggle)
            if number % 20 == 19:
                print(f"block {number + 1}: {count} dives so far, deepest {deepest:.2f} m", flush=True)
    process.join()
    print(f"{count} dives, prey chases {np.mean(wiggles):.4f}")


if __name__ == "__main__":
    main()
