"""Fetch the pages of a tide archive and find the constituents of each of them.

The archive runs on this machine as a small service; it takes its pages from a
slow medium, and can look for several at a time.
"""
import asyncio
import json
import multiprocessing as mp
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))

PAGES = 110
HOURS = 720
SEEK = 0.11
AT_ONCE = 6
PERIODS = np.array([12.42, 12.0, 12.66, 11.97, 23.93, 25.82, 24.07, 6.21])


class Archive(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        page = int(self.path.rsplit("/", 1)[1])
        rng = np.random.default_rng(page)
        t = np.arange(HOURS) + page * HOURS
        level = rng.normal(0, 0.05, HOURS)
        for period, height in zip(PERIODS, (1.2, 0.5, 0.25, 0.14, 0.2, 0.15, 0.07, 0.05)):
            level += height * np.cos(2 * np.pi * t / period + height)
        time.sleep(SEEK)
        body = json.dumps({"page": page, "level": level.round(4).tolist()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(pipe):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    pipe.send(server.server_address[1])
    server.serve_forever()


def download(port, page):
    with LOCAL.open(f"http://127.0.0.1:{port}/page/{page}") as reply:
        return json.load(reply)


async def fetch(port, page, gate):
    async with gate:
        return download(port, page)


def constituents(page, level, draws=900):
    """Least squares, with a bootstrap over the hours for the error bars."""
    t = np.arange(HOURS) + page * HOURS
    arg = 2 * np.pi * t[:, None] / PERIODS
    design = np.hstack([np.ones((HOURS, 1)), np.cos(arg), np.sin(arg)])
    rng = np.random.default_rng(page)
    heights = np.empty((draws, len(PERIODS)))
    for k in range(draws):
        weight = np.bincount(rng.integers(0, HOURS, HOURS), minlength=HOURS)
        weighted = design.T * weight
        c = np.linalg.solve(weighted @ design, weighted @ level)
        heights[k] = np.hypot(c[1:9], c[9:])
    return heights.mean(axis=0), heights.std(axis=0)


async def gather_pages(port):
    gate = asyncio.Semaphore(AT_ONCE)
    return await asyncio.gather(*(fetch(port, p, gate) for p in range(PAGES)))


def main():
    ours, theirs = mp.Pipe()
    service = mp.Process(target=serve, args=(theirs,), daemon=True)
    service.start()
    port = ours.recv()
    try:
        pages = asyncio.run(gather_pages(port))
    finally:
        service.terminate()
        service.join()

    results = [constituents(p["page"], np.array(p["level"])) for p in pages]
    height = np.mean([r[0] for r in results], axis=0)
    error = np.mean([r[1] for r in results], axis=0)
    for period, h, e in zip(PERIODS, height, error):
        print(f"{period:6.2f} h  {h:.4f} +- {e:.4f} m")


if __name__ == "__main__":
    main()
