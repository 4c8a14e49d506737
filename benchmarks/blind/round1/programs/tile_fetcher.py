"""Download map tiles from the tile service and build a mosaic."""
import http.server
import socketserver
import threading
import time
import urllib.request

import numpy as np

SIDE = 64


class Tiles(http.server.BaseHTTPRequestHandler):
    # stand-in for the real service (far away, answers in about 60 ms)
    def do_GET(self):
        time.sleep(0.06)
        z, x, y = (int(v) for v in self.path.strip("/").split("/"))
        body = np.random.default_rng(x * 1000 + y).integers(0, 255, (SIDE, SIDE), dtype=np.uint8).tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *a):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def get(base, z, x, y):
    with urllib.request.urlopen(f"{base}/{z}/{x}/{y}") as r:
        return np.frombuffer(r.read(), np.uint8).reshape(SIDE, SIDE)


def main():
    srv = Server(("127.0.0.1", 0), Tiles)
    threading.Thread(target=srv.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{srv.server_port}"
    n = 18
    mosaic = np.zeros((n * SIDE, n * SIDE), np.uint8)
    for x in range(n):
        for y in range(n):
            mosaic[y * SIDE:(y + 1) * SIDE, x * SIDE:(x + 1) * SIDE] = get(base, 12, x, y)
        print("column", x, "of", n, flush=True)
    print("mean brightness", mosaic.mean())


if __name__ == "__main__":
    main()
