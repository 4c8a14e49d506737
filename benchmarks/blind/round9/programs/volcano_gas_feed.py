"""Follow the live spectrometer feed at a crater rim and estimate the sulphur flux per minute."""
import asyncio
import json
import multiprocessing as mp
import time

import numpy as np

SCANS = 800
PERIOD = 0.025
CHANNELS = 256


def instrument(port_pipe):
    """The scanner: one spectrum each 25 ms, as the mirror turns."""
    import socket
    server = socket.create_server(("127.0.0.1", 0))
    port_pipe.send(server.getsockname()[1])
    link, _ = server.accept()
    rng = np.random.default_rng(2001)
    wave = np.linspace(300, 320, CHANNELS)
    began = time.monotonic()
    for scan in range(SCANS):
        column = 2.0 + np.sin(scan / 60.0) + 0.1 * rng.normal()
        bands = 0.02 * column * (1 + np.sin(2 * np.pi * wave / 2.1))
        counts = rng.poisson(3000 * np.exp(-bands)).tolist()
        line = json.dumps({"scan": scan, "angle": scan % 50 * 3.6 - 90, "counts": counts})
        pause = began + scan * PERIOD - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        link.sendall(line.encode() + b"\n")
    link.close()


class Retrieval:
    def __init__(self):
        wave = np.linspace(300, 320, CHANNELS)
        base = np.column_stack([-0.02 * (1 + np.sin(2 * np.pi * wave / 2.1)),
                                np.ones(CHANNELS), wave - 310.0])
        self.solve = np.linalg.pinv(base)

    def column(self, counts):
        return (self.solve @ np.log(np.maximum(counts, 1.0)))[0]


async def follow(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**18)
    retrieval = Retrieval()
    turns, current = [], []
    while line := await reader.readline():
        record = json.loads(line)
        column = retrieval.column(np.array(record["counts"], dtype=float))
        current.append(column * np.cos(np.radians(record["angle"])))
        if len(current) == 50:
            turns.append(3.6 * float(np.sum(current)))
            current = []
            if len(turns) % 4 == 0:
                print("after %d turns: flux %.2f" % (len(turns), turns[-1]), flush=True)
    writer.close()
    return np.array(turns)


def main():
    here, there = mp.Pipe()
    child = mp.get_context("fork").Process(target=instrument, args=(there,))
    child.start()
    turns = asyncio.run(follow(here.recv()))
    child.join()
    print("turns:", len(turns), "mean flux: %.3f" % turns.mean(), "spread: %.3f" % turns.std())


if __name__ == "__main__":
    main()
