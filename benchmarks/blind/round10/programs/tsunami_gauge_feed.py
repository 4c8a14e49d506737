"""Follows the live feed of a sea level gauge and watches for a tsunami in the residual."""
import multiprocessing as mp
import socket
import time

import numpy as np

SAMPLES = 560
INTERVAL = 0.035
ORDER = 24


def gauge(pipe):
    """The gauge: sends one reading per interval, as the instrument does."""
    rng = np.random.default_rng(2011)
    server = socket.create_server(("127.0.0.1", 0))
    pipe.send(server.getsockname()[1])
    link, _ = server.accept()
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    begin = time.monotonic()
    for k in range(SAMPLES):
        level = 1.2 * np.sin(2 * np.pi * k / 745.0) + 0.02 * rng.standard_normal()
        if k > 400:
            level += 0.9 * np.exp(-(k - 400) / 90.0) * np.sin(2 * np.pi * (k - 400) / 22.0)
        link.sendall(f"{k} {level:.5f}\n".encode())
        rest = begin + (k + 1) * INTERVAL - time.monotonic()
        if rest > 0:
            time.sleep(rest)
    link.close()
    server.close()


class Predictor:
    """Recursive least squares: predicts the next level from the last ones."""

    def __init__(self, order):
        self.weights = np.zeros(order)
        self.inverse = 100.0 * np.eye(order)
        self.recent = np.zeros(order)

    def update(self, level):
        gain = self.inverse @ self.recent
        gain /= 0.999 + self.recent @ gain
        error = level - self.weights @ self.recent
        self.weights += gain * error
        self.inverse -= np.outer(gain, self.recent @ self.inverse)
        self.inverse /= 0.999
        self.recent = np.roll(self.recent, 1)
        self.recent[0] = level
        return error


def main():
    near, far = mp.Pipe()
    source = mp.get_context("fork").Process(target=gauge, args=(far,), daemon=True)
    source.start()
    predictor = Predictor(ORDER)
    errors, alarm = [], None
    with socket.create_connection(("127.0.0.1", near.recv())) as link:
        for line in link.makefile("r"):
            number, level = line.split()
            errors.append(predictor.update(float(level)))
            quiet = np.std(errors[-160:-8]) if len(errors) > 200 else np.inf
            if alarm is None and abs(errors[-1]) > 6.0 * quiet:
                alarm = int(number)
    source.join()
    print(f"{len(errors)} readings of the gauge")
    print(f"alarm at reading {alarm}")
    print(f"residual {np.std(errors[100:400]):.4f} before, {np.std(errors[400:]):.4f} after")


if __name__ == "__main__":
    main()
