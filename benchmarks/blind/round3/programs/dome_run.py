"""Take a series of exposures with the dome camera and measure each frame.

The camera is one device behind a small HTTP service: it exposes one frame at a
time (the shutter is open for EXPOSURE seconds), and refuses a second request
while it is busy.  A frame is measured while the next one is exposed.
"""
import asyncio
import json
import multiprocessing as mp
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))

FRAMES = 26
EXPOSURE = 0.95
SHAPE = (360, 480)


class Camera(BaseHTTPRequestHandler):
    shutter = threading.Lock()

    def do_GET(self):
        if not Camera.shutter.acquire(blocking=False):
            self.send_error(409, "shutter is open")
            return
        try:
            number = int(self.path.rsplit("/", 1)[1])
            time.sleep(EXPOSURE)
            rng = np.random.default_rng(number)
            frame = rng.poisson(120.0, SHAPE).astype(np.uint16)
            for k in range(40):
                y, x = rng.integers(5, SHAPE[0] - 5), rng.integers(5, SHAPE[1] - 5)
                frame[y - 2 : y + 3, x - 2 : x + 3] += np.uint16(60 + 15 * k)
            body = frame.tobytes()
        finally:
            Camera.shutter.release()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Shape", json.dumps(SHAPE))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def camera_service(pipe):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Camera)
    pipe.send(server.server_address[1])
    server.serve_forever()


def expose(port, number):
    with LOCAL.open(f"http://127.0.0.1:{port}/expose/{number}", timeout=30) as reply:
        shape = json.loads(reply.headers["X-Shape"])
        return np.frombuffer(reply.read(), dtype=np.uint16).reshape(shape)


def measure(frame):
    """Sky level, noise, and the count and light of the sources."""
    sky = np.median(frame)
    noise = 1.4826 * np.median(np.abs(frame - sky))
    signal = np.clip(frame - sky, 0.0, None)
    box = sum(np.roll(np.roll(signal, a, 0), b, 1) for a in (-1, 0, 1) for b in (-1, 0, 1))
    bright = box > 15.0 * noise
    return float(sky), float(noise), int(bright.sum()), float(signal[bright].sum())


async def observe(port):
    rows = []
    pending = asyncio.create_task(asyncio.to_thread(expose, port, 0))
    for number in range(FRAMES):
        frame = await pending
        if number + 1 < FRAMES:
            pending = asyncio.create_task(asyncio.to_thread(expose, port, number + 1))
        rows.append(await asyncio.to_thread(measure, frame))
    return np.array(rows)


def main():
    ours, theirs = mp.Pipe()
    camera = mp.Process(target=camera_service, args=(theirs,), daemon=True)
    camera.start()
    try:
        rows = asyncio.run(observe(ours.recv()))
    finally:
        camera.terminate()
        camera.join()
    print(f"{len(rows)} frames, sky {rows[:, 0].mean():.2f}, noise {rows[:, 1].mean():.2f}")
    print(f"light {rows[:, 3].mean():.0f} +- {rows[:, 3].std():.0f}")


if __name__ == "__main__":
    main()
