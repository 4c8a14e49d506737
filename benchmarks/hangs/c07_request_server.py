"""A small prediction server; a client sends 20 requests at once, then one each 40 s."""
import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np

CLIENT = r"""
import json, sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def ask(n):
    data = json.dumps({"x": [n % 7, n % 5, n % 3, 1.0], "last": n == 24}).encode()
    with opener.open(f"http://127.0.0.1:{sys.argv[1]}/predict", data, timeout=30) as r:
        return json.load(r)["y"]
for n in range(20):
    ask(n)
    time.sleep(0.1)
for n in range(21, 25):
    time.sleep(40)
    ask(n)
"""


class Handler(BaseHTTPRequestHandler):
    weights = np.linspace(-1, 1, 4)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        y = float(np.tanh(self.weights @ np.asarray(body["x"])))
        reply = json.dumps({"y": y}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
        self.server.finished = body["last"]


def main():
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.finished = False
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(server.server_address[1])])
    while not server.finished:
        server.handle_request()
    server.server_close()
    print("client ended with", client.wait())


if __name__ == "__main__":
    main()
