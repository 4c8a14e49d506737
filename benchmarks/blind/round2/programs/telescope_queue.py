"""Follows the live frame feed of a small telescope and reports transients as frames come in."""
import http.client
import multiprocessing as mp
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from scipy.ndimage import gaussian_filter, maximum_filter

FRAMES = 62
CADENCE = 0.35
SIDE = 256


class Dome(BaseHTTPRequestHandler):
    """Plays the camera: a frame exists only after its exposure has ended."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        n = int(self.path.split("=")[1])
        wait = self.server.opened + (n + 1) * CADENCE - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        rng = np.random.default_rng(n)
        img = rng.poisson(40, (SIDE, SIDE)).astype(np.uint16)
        stars = np.random.default_rng(12345).integers(8, SIDE - 8, (60, 2))
        for y, x in stars:
            img[y - 1:y + 2, x - 1:x + 2] += 90
        if n % 9 == 4:
            y, x = rng.integers(20, SIDE - 20, 2)
            img[y - 1:y + 2, x - 1:x + 2] += 160
        body = img.tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *a):
        pass


def reduce_frames(inbox, outbox):
    reference = None
    while True:
        item = inbox.get()
        if item is None:
            return
        n, raw = item
        img = np.frombuffer(raw, np.uint16).reshape(SIDE, SIDE).astype(float)
        if reference is None:
            stars = np.random.default_rng(12345).integers(8, SIDE - 8, (60, 2))
            reference = np.full((SIDE, SIDE), 40.0)
            for y, x in stars:
                reference[y - 1:y + 2, x - 1:x + 2] += 90
        diff = gaussian_filter(img - reference, 1.2)
        sky = np.median(np.abs(diff)) * 1.48
        peaks = (maximum_filter(diff, 9) == diff) & (diff > 9 * sky)
        outbox.put((n, [(int(y), int(x)) for y, x in np.argwhere(peaks)]))


def main():
    inbox, outbox = mp.Queue(8), mp.Queue()
    crew = [mp.Process(target=reduce_frames, args=(inbox, outbox), daemon=True) for _ in range(2)]
    for p in crew:
        p.start()
    dome = ThreadingHTTPServer(("127.0.0.1", 0), Dome)
    dome.daemon_threads = True
    dome.opened = time.monotonic()
    threading.Thread(target=dome.serve_forever, daemon=True).start()
    link = http.client.HTTPConnection("127.0.0.1", dome.server_address[1])
    for n in range(FRAMES):
        link.request("GET", f"/frame?after={n}")
        inbox.put((n, link.getresponse().read()))
    for _ in crew:
        inbox.put(None)
    seen = dict(outbox.get() for _ in range(FRAMES))
    for p in crew:
        p.join()
    found = {n: p for n, p in seen.items() if p}
    print(f"{FRAMES} frames, {sum(map(len, found.values()))} candidates in {len(found)} frames")
    print("frames with candidates:", *sorted(found))


if __name__ == "__main__":
    main()
