"""Collect plant monographs from an archive service that allows eight requests per second."""
import json
import multiprocessing as mp
import time
import urllib.request
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

PLANTS = 160
PER_SECOND = 8          # terms of use of the service; more is answered with 429


class Archive(BaseHTTPRequestHandler):
    last = [0.0]

    def do_GET(self):
        now = time.monotonic()
        if now - self.last[0] < 0.9 / PER_SECOND:
            self.send_response(429)
            self.end_headers()
            return
        self.last[0] = now
        number = int(self.path.rsplit("/", 1)[1])
        rng = np.random.default_rng(number)
        words = rng.zipf(1.4, 4000) % 900
        body = json.dumps({"plant": number, "text": " ".join("w%d" % w for w in words)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(pipe):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    pipe.send(server.server_address[1])
    server.serve_forever()


def monographs(port):
    """Each plant once, in the pace that the service allows."""
    last = 0.0
    for number in range(PLANTS):
        pause = last + 1.0 / PER_SECOND - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        with urllib.request.urlopen("http://127.0.0.1:%d/plant/%d" % (port, number)) as answer:
            record = json.load(answer)
        last = time.monotonic()
        yield record


def main():
    here, there = mp.Pipe()
    child = mp.get_context("fork").Process(target=serve, args=(there,), daemon=True)
    child.start()
    port = here.recv()
    total = Counter()
    richness = []
    for record in monographs(port):
        counts = Counter(record["text"].split())
        total.update(counts)
        richness.append(len(counts))
    child.terminate()
    print("monographs:", len(richness))
    print("distinct words: %d, per monograph %.1f" % (len(total), np.mean(richness)))
    print("commonest:", total.most_common(3))


if __name__ == "__main__":
    main()
