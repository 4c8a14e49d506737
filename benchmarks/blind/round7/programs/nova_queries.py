"""Light curves of old novae from an observatory's query service, which allows 18 requests a second."""
import json
import multiprocessing as mp
import socket
import time

import numpy as np

N_STARS = 280
ALLOWED_PER_S = 18.0
PENALTY_S = 8.0            # the service answers nothing for so long to a client that is faster


def service(pipe):
    """The observatory: keeps to its published limit."""
    listener = socket.create_server(("127.0.0.1", 0))
    pipe.send(listener.getsockname()[1])
    link, _ = listener.accept()
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = link.makefile("rwb")
    last = -1.0
    for line in stream:
        now = time.monotonic()
        if now - last < 0.7 / ALLOWED_PER_S:
            time.sleep(PENALTY_S)
        last = now
        star = int(line)
        rng = np.random.default_rng(star)
        days = np.sort(rng.uniform(0, 900, 700))
        fade = 6.0 + rng.uniform(1, 3) * np.log10(1 + days / rng.uniform(3, 30))
        magnitude = fade + 0.2 * np.sin(days / rng.uniform(0.5, 4)) + rng.normal(0, 0.05, 700)
        stream.write(json.dumps([days.round(3).tolist(), magnitude.round(3).tolist()]).encode() + b"\n")
        stream.flush()
    listener.close()


class Pace:
    """Next moment at which a request is allowed."""

    def __init__(self, per_second):
        self.gap = 1.0 / per_second
        self.due = time.monotonic()

    def wait(self):
        time.sleep(max(0.0, self.due - time.monotonic()))
        self.due = max(self.due, time.monotonic()) + self.gap


def decline(days, magnitude):
    """Days to fade by two magnitudes, and the best period of the remaining variation."""
    basis = np.column_stack([np.ones_like(days), np.log10(1 + days / 10.0), np.log10(1 + days / 10.0) ** 2])
    fit, *_ = np.linalg.lstsq(basis, magnitude, rcond=None)
    smooth = basis @ fit
    slow = days[np.argmax(smooth > smooth[0] + 2.0)] if np.any(smooth > smooth[0] + 2.0) else np.nan
    rest = magnitude - smooth
    rate = np.linspace(0.2, 2.2, 200)
    power = np.abs(np.exp(1j * rate[:, None] * days) @ rest) ** 2
    return slow, 2 * np.pi / rate[power.argmax()]


def main():
    receiver, sender = mp.Pipe(duplex=False)
    server = mp.Process(target=service, args=(sender,))
    server.start()
    link = socket.create_connection(("127.0.0.1", receiver.recv()))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = link.makefile("rwb")
    pace = Pace(ALLOWED_PER_S)
    table = []
    for star in range(N_STARS):
        pace.wait()
        stream.write(b"%d\n" % star)
        stream.flush()
        days, magnitude = json.loads(stream.readline())
        table.append(decline(np.array(days), np.array(magnitude)))
    stream.close()
    link.close()
    server.join()
    table = np.array(table)
    print("novae", len(table))
    print("days to fade by 2 mag: median %.1f" % np.nanmedian(table[:, 0]))
    print("period: median %.3f days" % np.median(table[:, 1]))


if __name__ == "__main__":
    main()
