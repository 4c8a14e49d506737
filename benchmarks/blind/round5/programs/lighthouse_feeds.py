"""Collect the log pages of all lighthouses from the coast guard service.

The service answers each page after some 40 ms.  Eight workers fetch the
pages; a shared logbook merges them and keeps the totals.
"""
import asyncio
import json
import multiprocessing as mp
import random
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = 480
WORKERS = 8
HOST = "127.0.0.1"


class Station(BaseHTTPRequestHandler):
    """Stand-in for the remote service."""

    def do_GET(self):
        page = int(self.path.rsplit("/", 1)[1])
        rng = random.Random(page)
        time.sleep(0.04)
        entries = [{"light": f"L{rng.randrange(90):02d}",
                    "vis": round(rng.uniform(0.2, 24.0), 2),
                    "ships": rng.randrange(40)} for _ in range(60)]
        body = json.dumps({"page": page, "entries": entries}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(pipe):
    server = ThreadingHTTPServer((HOST, 0), Station)
    pipe.send(server.server_address[1])
    server.serve_forever()


class Logbook:
    """Totals per lighthouse, shared by the workers."""

    def __init__(self):
        self.lock = asyncio.Lock()
        self.pages = set()
        self.ships = {}
        self.foggy = {}

    def merge(self, page):
        if page["page"] in self.pages:
            return
        self.pages.add(page["page"])
        for e in page["entries"]:
            light = e["light"]
            self.ships[light] = self.ships.get(light, 0) + e["ships"]
            if e["vis"] < 1.0:
                self.foggy[light] = self.foggy.get(light, 0) + 1


async def fetch(port, page):
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"GET /log/{page} HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode())
    await writer.drain()
    raw = await reader.read()
    writer.close()
    return json.loads(raw.split(b"\r\n\r\n", 1)[1])


async def worker(port, todo, book):
    while todo:
        number = todo.pop()
        async with book.lock:
            page = await fetch(port, number)
            book.merge(page)


async def collect(port):
    book = Logbook()
    todo = list(range(PAGES))
    await asyncio.gather(*(worker(port, todo, book) for _ in range(WORKERS)))
    return book


def main():
    here, there = mp.Pipe()
    service = mp.Process(target=serve, args=(there,), daemon=True)
    service.start()
    book = asyncio.run(collect(here.recv()))
    service.terminate()
    busiest = max(sorted(book.ships), key=book.ships.get)
    print(f"pages: {len(book.pages)}, lights: {len(book.ships)}")
    print(f"busiest: {busiest} with {book.ships[busiest]} ships")
    print(f"foggy entries: {sum(book.foggy.values())}")


if __name__ == "__main__":
    main()
