"""Growth of mussels from survey batches of many beds.

Batches of measurements come in one after the other.  The register of beds
(a web service) gives the tidal height of the bed; the measurements go into
an LMDB store, one entry with the whole series for each bed.
"""
import json
import multiprocessing as mp
import pickle
import random
import tempfile
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import lmdb
import numpy as np

BEDS = 10
BATCHES = 240
PER_BATCH = 110


class Register(BaseHTTPRequestHandler):
    """Stand-in for the register of beds at the institute."""

    def do_GET(self):
        bed = int(self.path.rsplit("/", 1)[1])
        time.sleep(0.028)
        body = json.dumps({"bed": bed, "height": 0.3 + 0.17 * bed,
                           "shore": "north" if bed % 3 else "south"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(pipe):
    server = HTTPServer(("127.0.0.1", 0), Register)
    pipe.send(server.server_address[1])
    server.serve_forever()


class BedRegister:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/beds/"

    def lookup(self, bed):
        with urllib.request.urlopen(f"{self.url}{bed}") as reply:
            return json.load(reply)


class Store:
    """Series of (day, length, height) for each bed."""

    def __init__(self, folder):
        self.env = lmdb.open(folder, map_size=4 << 30)

    def series(self, txn, bed):
        raw = txn.get(f"bed{bed:03d}".encode())
        return pickle.loads(raw) if raw else []

    def add(self, txn, bed, record):
        series = self.series(txn, bed)
        series.append(record)
        txn.put(f"bed{bed:03d}".encode(), pickle.dumps(series))


def batch(number, rng):
    """Lengths in mm measured on one day at one bed."""
    bed = number % BEDS
    day = 3 * number + rng.randrange(3)
    grown = 60.0 * (1 - 2.718 ** (-(day + 200) / 700.0))
    return bed, [(day, round(rng.gauss(grown, 3.5), 2)) for _ in range(PER_BATCH)]


def growth(series):
    """Slope of length over time, with a jackknife error over days."""
    day, length, _ = np.array(series).T
    slopes = [np.polyfit(day[day != d], length[day != d], 1)[0]
              for d in np.unique(day)]
    n = len(slopes)
    error = np.sqrt((n - 1) / n * np.sum((slopes - np.mean(slopes)) ** 2))
    return np.mean(slopes), error


def main():
    here, there = mp.Pipe()
    service = mp.Process(target=serve, args=(there,), daemon=True)
    service.start()
    register = BedRegister(here.recv())
    rng = random.Random(19)
    with tempfile.TemporaryDirectory() as work:
        store = Store(work)
        for number in range(BATCHES):
            bed, records = batch(number, rng)
            info = register.lookup(bed)
            factor = 1.02 if info["shore"] == "north" else 0.98
            with store.env.begin(write=True) as txn:
                for day, length in records:
                    store.add(txn, bed, (day, length * factor, info["height"]))
        with store.env.begin() as txn:
            table = [growth(store.series(txn, bed)) for bed in range(BEDS)]
        store.env.close()
    service.terminate()
    rates = np.array(table)
    print(f"batches: {BATCHES}, measurements: {BATCHES * PER_BATCH}")
    print("growth (mm a year):", " ".join(f"{r * 365:.3f}" for r in rates[:, 0]))
    print(f"largest error: {rates[:, 1].max() * 365:.4f}")


if __name__ == "__main__":
    main()
