"""Drive a simulated four-circle goniometer over its TCP protocol and index a crystal."""
import multiprocessing as mp
import socket
import struct

import numpy as np

SETTINGS = 450
HEAD = struct.Struct("!HHI")


def read_exact(link, count):
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def controller(listener):
    """The controller: accepts one link and answers each request with a line scan."""
    link, _ = listener.accept()
    axis = np.linspace(-1.0, 1.0, 512)
    while True:
        try:
            kind, serial, length = HEAD.unpack(read_exact(link, HEAD.size))
        except EOFError:
            return
        omega, chi, phi, width = struct.unpack("!4d", read_exact(link, length))
        centre = 0.4 * np.sin(omega) * np.cos(chi) + 0.2 * np.sin(phi)
        noise = np.random.default_rng(serial).poisson(12.0, axis.size)
        counts = noise + 900.0 * np.exp(-((axis - centre) / width) ** 2)
        body = counts.astype("<f4").tobytes()
        link.sendall(HEAD.pack(kind, serial, len(body)) + body)


def scan(link, serial, omega, chi, phi, width=0.05):
    body = struct.pack("!4d", omega, chi, phi, width)
    link.sendall(HEAD.pack(3, serial, len(body)))
    link.sendall(body)
    kind, back, length = HEAD.unpack(read_exact(link, HEAD.size))
    assert (kind, back) == (3, serial)
    return np.frombuffer(read_exact(link, length), dtype="<f4")


def peak_position(counts):
    axis = np.linspace(-1.0, 1.0, counts.size)
    trials = np.linspace(-0.8, 0.8, 801)
    model = np.exp(-((axis[None, :] - trials[:, None]) / 0.05) ** 2)
    level = model @ (counts - np.median(counts))
    return trials[level.argmax()]


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    child = mp.get_context("fork").Process(target=controller, args=(listener,), daemon=True)
    child.start()
    link = socket.create_connection(listener.getsockname())
    listener.close()

    angles = np.random.default_rng(5).uniform(-np.pi, np.pi, (SETTINGS, 3))
    peaks = np.array([peak_position(scan(link, i, *a)) for i, a in enumerate(angles)])
    link.close()
    child.join()

    basis = np.column_stack([np.sin(angles[:, 0]) * np.cos(angles[:, 1]),
                             np.sin(angles[:, 2]), np.ones(SETTINGS)])
    fit, *_ = np.linalg.lstsq(basis, peaks, rcond=None)
    print("settings:", SETTINGS)
    print("orientation:", np.round(fit, 3))
    print("residual: %.4f" % np.std(peaks - basis @ fit))


if __name__ == "__main__":
    main()
