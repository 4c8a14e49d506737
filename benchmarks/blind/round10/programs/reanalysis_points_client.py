"""Collects wind series for points on a coast from a reanalysis server and fits Weibull laws."""
import http.client
import json
import multiprocessing as mp
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from scipy import stats

POINTS = 120
HOURS = 4_000


class Reanalysis(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        time.sleep(0.11)  # stands in for the licence check of the real server

    def do_GET(self):
        point = int(self.path.rsplit("/", 1)[1])
        rng = np.random.default_rng(point)
        wind = 8.0 * rng.weibull(1.8 + 0.003 * point, HOURS)
        body = json.dumps([round(float(v), 2) for v in wind]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(pipe):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Reanalysis)
    server.daemon_threads = True
    pipe.send(server.server_address[1])
    server.serve_forever()


class Client:
    def __init__(self, port):
        self.port = port

    def wind(self, point):
        link = http.client.HTTPConnection("127.0.0.1", self.port)
        link.request("GET", f"/wind/{point}")
        series = json.loads(link.getresponse().read())
        link.close()
        return np.array(series)


def fit(series, rng):
    shape, _, scale = stats.weibull_min.fit(series[::8] + 1e-3, floc=0)
    draws = scale * rng.weibull(shape, (200, series.size))
    gust = np.quantile(draws.max(axis=1), 0.9)
    return shape, scale, gust


def main():
    near, far = mp.Pipe()
    server = mp.get_context("fork").Process(target=serve, args=(far,), daemon=True)
    server.start()
    client = Client(near.recv())
    rng = np.random.default_rng(2)
    rows = []
    for point in range(POINTS):
        series = client.wind(point)
        rows.append(fit(series, rng))
    server.terminate()
    server.join()
    rows = np.array(rows)
    print(f"{POINTS} points of {HOURS} hours")
    print(f"shape {rows[:, 0].mean():.3f}, scale {rows[:, 1].mean():.3f} m/s")
    print(f"strongest expected gust {rows[:, 2].max():.2f} m/s")


if __name__ == "__main__":
    main()
