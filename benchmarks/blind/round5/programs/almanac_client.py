"""Fetch an almanac of star positions from a public service.

The service allows four requests a second for each client and bans clients
that ask faster.  The client spaces its requests and works out the rise and
set times of each day while it waits for its turn.
"""
import json
import math
import multiprocessing as mp
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

DAYS = 100
INTERVAL = 0.25
LATITUDE = math.radians(52.4)


class Service(BaseHTTPRequestHandler):
    """Stand-in for the public service, with its rate limit."""
    last = 0.0

    def do_GET(self):
        now = time.monotonic()
        early = now - Service.last < INTERVAL * 0.96
        Service.last = now
        day = int(self.path.rsplit("/", 1)[1])
        body = json.dumps({
            "day": day,
            "stars": [{"ra": (37 * k + 0.01 * day) % 360, "dec": (11 * k) % 120 - 50}
                      for k in range(57)]}).encode()
        self.send_response(429 if early else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(pipe):
    server = HTTPServer(("127.0.0.1", 0), Service)
    pipe.send(server.server_address[1])
    server.serve_forever()


class Client:
    """Asks the service no more often than it permits."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/day/"
        self.next_turn = time.monotonic()
        self.refused = 0

    def day(self, number):
        while True:
            wait = self.next_turn - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            self.next_turn = time.monotonic() + INTERVAL
            try:
                with urllib.request.urlopen(f"{self.url}{number}") as reply:
                    return json.load(reply)
            except urllib.error.HTTPError as e:
                if e.code != 429:
                    raise
                self.refused += 1


def hours_up(star):
    """Hours a star is above the horizon."""
    x = -math.tan(LATITUDE) * math.tan(math.radians(star["dec"]))
    if x <= -1:
        return 24.0
    return 0.0 if x >= 1 else 2 * math.degrees(math.acos(x)) / 15.0


def main():
    here, there = mp.Pipe()
    service = mp.Process(target=serve, args=(there,), daemon=True)
    service.start()
    client = Client(here.recv())
    total, circumpolar = 0.0, 0
    for number in range(DAYS):
        almanac = client.day(number)
        up = [hours_up(star) for star in almanac["stars"]]
        total += sum(up)
        circumpolar += sum(h == 24.0 for h in up)
    service.terminate()
    print(f"days: {DAYS}, refused requests: {client.refused}")
    print(f"mean time above the horizon: {total / (57 * DAYS):.4f} h")
    print(f"circumpolar: {circumpolar / DAYS:.1f} stars")


if __name__ == "__main__":
    main()
