"""Ages of fossil localities: a collections service is asked page by page, ages come from a zone table."""
import asyncio
import bisect
import json
import multiprocessing as mp
import os
import socket
import tempfile

import numpy as np

PAGES = 180
PER_PAGE = 40
ZONES = 40_000
WORKERS = 6


def page_text(page):
    rng = np.random.default_rng(page)
    items = [{"id": page * PER_PAGE + i, "depth": float(d), "genus": int(g)}
             for i, (d, g) in enumerate(zip(rng.uniform(0.0, 400.0, PER_PAGE), rng.integers(0, 30, PER_PAGE)))]
    return json.dumps(items)


async def answer(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.06)
        writer.write(page_text(int(line)).encode() + b"\n")
        await writer.drain()
    writer.close()


def serve(sock):
    async def run():
        server = await asyncio.start_server(answer, sock=sock)
        await server.serve_forever()
    asyncio.run(run())


def write_zones(path):
    edges = np.linspace(0.0, 400.0, ZONES)
    age = 252.0 - 0.31 * edges + 0.4 * np.sin(edges / 9.0)
    with open(path, "w") as out:
        json.dump([{"top": float(e), "age": float(a), "zone": f"Z{i:05d}"}
                   for i, (e, a) in enumerate(zip(edges, age))], out)


def load_zones(path):
    with open(path) as src:
        zones = json.load(src)
    return [z["top"] for z in zones], [z["age"] for z in zones]


class Collector:
    def __init__(self, port, zone_path):
        self.port = port
        self.zone_path = zone_path
        self.lock = asyncio.Lock()
        self.todo = list(range(PAGES))
        self.ages = {}

    def date(self, items):
        tops, ages = load_zones(self.zone_path)
        rng = np.random.default_rng(items[0]["id"])
        for item in items:
            where = item["depth"] + rng.normal(0.0, 1.5, 4000)
            index = [min(max(bisect.bisect_left(tops, w), 0), ZONES - 1) for w in where[:200].tolist()]
            spread = np.sort(where).std()
            self.ages[item["id"]] = (sum(ages[i] for i in index) / len(index), spread, item["genus"])

    async def work(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        while self.todo:
            async with self.lock:
                if not self.todo:
                    break
                page = self.todo.pop()
                writer.write(f"{page}\n".encode())
                await writer.drain()
                items = json.loads(await reader.readline())
            self.date(items)
        writer.close()


async def collect(port, zone_path):
    collector = Collector(port, zone_path)
    await asyncio.gather(*(collector.work() for _ in range(WORKERS)))
    return collector.ages


def main():
    sock = socket.create_server(("127.0.0.1", 0))
    child = mp.get_context("fork").Process(target=serve, args=(sock,), daemon=True)
    child.start()
    with tempfile.TemporaryDirectory() as folder:
        zone_path = os.path.join(folder, "zones.json")
        write_zones(zone_path)
        ages = asyncio.run(collect(sock.getsockname()[1], zone_path))
    child.terminate()
    child.join()
    values = np.array([ages[k][0] for k in sorted(ages)])
    genus = np.array([ages[k][2] for k in sorted(ages)])
    print(f"{len(ages)} localities, age {values.mean():.3f} +- {values.std():.3f} Ma")
    print("oldest genus", int(np.argmax(np.bincount(genus, values) / np.bincount(genus))))


if __name__ == "__main__":
    main()
