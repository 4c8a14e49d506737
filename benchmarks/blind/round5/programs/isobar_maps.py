"""Download forecast fields and draw pressure contours as text.

The forecast service accepts at most four requests of one client at a time
and needs some time for each field.  The client keeps four requests on the
way and evaluates the fields as they come in.
"""
import asyncio
import json
import math
import multiprocessing as mp
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIELDS = 400
PERMITTED = 4
SECONDS = 0.22
GRID = 24


class Forecast(BaseHTTPRequestHandler):
    """Stand-in for the forecast service."""
    slots = threading.Semaphore(PERMITTED)

    def do_GET(self):
        if not Forecast.slots.acquire(blocking=False):
            self.reply(503, b"{}")
            return
        number = int(self.path.rsplit("/", 1)[1])
        time.sleep(SECONDS)
        rng = random.Random(number)
        lows = [(rng.uniform(0, GRID), rng.uniform(0, GRID), rng.uniform(5, 35))
                for _ in range(3)]
        rows = [[round(1015 - sum(d * math.exp(-((x - a) ** 2 + (y - b) ** 2) / 40)
                                  for a, b, d in lows), 1)
                 for x in range(GRID)] for y in range(GRID)]
        Forecast.slots.release()
        self.reply(200, json.dumps({"number": number, "hpa": rows}).encode())

    def reply(self, code, body):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(pipe):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Forecast)
    pipe.send(server.server_address[1])
    server.serve_forever()


async def fetch(port, number, turn, refused):
    async with turn:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET /field/{number} HTTP/1.0\r\n\r\n".encode())
            await writer.drain()
            raw = await reader.read()
            writer.close()
            head, body = raw.split(b"\r\n\r\n", 1)
            if b" 200 " in head.split(b"\r\n", 1)[0]:
                return json.loads(body)
            refused.append(number)
            await asyncio.sleep(0.1)


def storm(field):
    """Lowest pressure and strongest gradient of a field."""
    rows = field["hpa"]
    low = min(min(row) for row in rows)
    steep = max(abs(row[k + 1] - row[k]) for row in rows for k in range(GRID - 1))
    return low, steep


async def collect(port):
    turn = asyncio.Semaphore(PERMITTED)
    refused, result = [], []
    jobs = [fetch(port, n, turn, refused) for n in range(FIELDS)]
    for done in asyncio.as_completed(jobs):
        result.append(storm(await done))
    return result, refused


def main():
    here, there = mp.Pipe()
    service = mp.Process(target=serve, args=(there,), daemon=True)
    service.start()
    result, refused = asyncio.run(collect(here.recv()))
    service.terminate()
    print(f"fields: {len(result)}, refused: {'some' if refused else 'none'}")
    print(f"deepest low: {min(r[0] for r in result):.1f} hPa")
    print(f"steepest gradient: {max(r[1] for r in result):.1f} hPa a cell")


if __name__ == "__main__":
    main()
