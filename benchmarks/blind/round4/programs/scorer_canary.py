"""Canary for a deployed ripeness scorer: send probes at a fixed pace and check answers and delay."""
import json
import multiprocessing
import pickle
import tempfile
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

PACE = 0.2  # seconds between probes, agreed with the service owners
PROBES = 125


def fruit(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (count, 12))
    ripe = x @ np.linspace(-1, 1, 12) + 0.3 * rng.standard_normal(count) > 0
    return x, ripe


def deploy(folder):
    x, ripe = fruit(20_000, 1)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, ripe)
    (folder / "scorer.pkl").write_bytes(pickle.dumps(model))


def serve(folder, ports):
    model = pickle.loads((folder / "scorer.pkl").read_bytes())

    class Scorer(BaseHTTPRequestHandler):
        def do_POST(self):
            rows = np.array(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps(model.predict_proba(rows)[:, 1].tolist()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Scorer)
    ports.put(server.server_address[1])
    server.serve_forever()


def probe(port, rows):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/score", data=json.dumps(rows.tolist()).encode())
    begin = time.perf_counter()
    with urllib.request.urlopen(request, timeout=5) as answer:
        scores = json.loads(answer.read())
    return np.array(scores), time.perf_counter() - begin


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        deploy(folder)
        ports = multiprocessing.Queue()
        server = multiprocessing.Process(target=serve, args=(folder, ports), daemon=True)
        server.start()
        port = ports.get(timeout=30)
        x, ripe = fruit(PROBES * 16, 2)
        right, delays = 0, []
        due = time.perf_counter()
        for k in range(PROBES):
            time.sleep(max(0.0, due - time.perf_counter()))
            due += PACE
            part = slice(16 * k, 16 * k + 16)
            scores, delay = probe(port, x[part])
            right += int(((scores > 0.5) == ripe[part]).sum())
            delays.append(delay)
        server.terminate()
        server.join()
    print(f"{PROBES} probes, agreement {right / (PROBES * 16):.3f}")
    print("delay within 100 ms:", bool(np.percentile(delays, 95) < 0.1))


if __name__ == "__main__":
    main()
