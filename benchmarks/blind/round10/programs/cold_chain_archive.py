"""Excursions above the limit in temperature records of vaccine shipments."""
import bz2
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SHIPMENTS = 84
READINGS = 2_600_000
LIMIT = 800


def record(route):
    rng = np.random.default_rng(route)
    slow = np.interp(np.arange(READINGS), np.linspace(0, READINGS, 400),
                     rng.normal(500, 130, 400))
    return (slow + rng.integers(-3, 4, READINGS)).astype("<i2").tobytes()


def fill(folder):
    routes = [bz2.compress(record(route), 1) for route in range(4)]
    names = []
    for number in range(SHIPMENTS):
        name = os.path.join(folder, f"shipment_{number:03d}.bz2")
        with open(name, "wb") as f:
            f.write(routes[number % len(routes)])
        names.append(name)
    return names


class Archive:
    """Reads shipment records for several readers and keeps account of the volume."""

    def __init__(self, names):
        self.names = names
        self.lock = threading.Lock()
        self.files = 0
        self.volume = 0

    def load(self, number):
        with self.lock:
            with open(self.names[number], "rb") as f:
                raw = bz2.decompress(f.read())
            self.files += 1
            self.volume += len(raw)
        return np.frombuffer(raw, dtype="<i2")


def excursions(values):
    above = values > LIMIT
    edges = np.flatnonzero(np.diff(above.astype(np.int8)))
    lengths = np.diff(edges)[::2] if edges.size > 1 else np.zeros(1)
    return int(edges.size // 2), int(lengths.max(initial=0))


def mean_kinetic(values):
    kelvin = values.astype(np.float32) / 100.0 + 273.15
    rate = np.exp(-10_000.0 / kelvin).mean(dtype=np.float64)
    return -10_000.0 / np.log(rate) - 273.15


def assess(archive, number):
    values = archive.load(number)
    count, longest = excursions(values)
    return number, count, longest, mean_kinetic(values)


def main():
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(fill(folder))
        with ThreadPoolExecutor(2) as pool:
            rows = list(pool.map(lambda n: assess(archive, n), range(SHIPMENTS)))
    worst = max(rows, key=lambda row: row[2])
    print(f"{archive.files} shipments, {archive.volume / 1e6:.0f} MB of readings")
    print(f"excursions in all: {sum(row[1] for row in rows)}")
    print(f"longest: {worst[2]} readings in shipment {worst[0]}, mkt {worst[3]:.2f} C")


if __name__ == "__main__":
    main()
