"""Where the objects of a museum travelled, from the loans service.

The service (a child process here) allows ten requests in each second, with a
small reserve for jitter, and refuses the rest with status 429. The client
keeps to that pace and lets its requests overlap, so that the delay of an
answer does not matter.
"""
import json
import multiprocessing as mp
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

OBJECTS = 180
RATE = 10
TOWNS = ["Leiden", "Gent", "Basel", "Lyon", "Turin", "Graz", "Brno", "Lund"]


class Loans(BaseHTTPRequestHandler):
    lock = threading.Lock()
    tokens, last = 8.0, time.monotonic()

    def do_GET(self):
        now = time.monotonic()
        with Loans.lock:
            Loans.tokens = min(8.0, Loans.tokens + (now - Loans.last) * RATE)
            Loans.last = now
            allowed = Loans.tokens >= 1.0
            if allowed:
                Loans.tokens -= 1.0
        time.sleep(0.15)
        number = int(self.path.rsplit("/", 1)[1])
        rng = np.random.default_rng(1500 + number)
        stays = [[TOWNS[i], int(d)] for i, d in zip(rng.integers(0, 8, 6), rng.integers(30, 900, 6))]
        body = json.dumps({"object": number, "stays": stays}).encode()
        self.send_response(200 if allowed else 429)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def service(port_box):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Loans)
    port_box.put(server.server_address[1])
    server.serve_forever()


direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(port, number):
    url = f"http://127.0.0.1:{port}/object/{number}"
    with direct.open(url, timeout=10) as answer:
        return json.load(answer)


def collect(port):
    answers = []
    begin = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        for number in range(OBJECTS):
            slot = begin + number / RATE
            time.sleep(max(0.0, slot - time.monotonic()))
            answers.append(pool.submit(ask, port, number))
        return [answer.result() for answer in answers]


def main():
    port_box = mp.Queue()
    process = mp.Process(target=service, args=(port_box,), daemon=True)
    process.start()
    records = collect(port_box.get())
    process.terminate()
    process.join()
    days = dict.fromkeys(TOWNS, 0)
    moves = np.zeros((8, 8), dtype=int)
    for record in records:
        places = [TOWNS.index(town) for town, _ in record["stays"]]
        np.add.at(moves, (places[:-1], places[1:]), 1)
        for town, stay in record["stays"]:
            days[town] += stay
    town = max(days, key=days.get)
    print(f"{len(records)} objects, {moves.sum()} moves, {np.trace(moves)} within a town")
    print(f"longest in {town}: {days[town]} days")


if __name__ == "__main__":
    main()
