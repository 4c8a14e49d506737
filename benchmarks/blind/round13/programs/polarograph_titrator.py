"""Titrate a metal ion with a (simulated) polarograph that is driven over a TCP socket."""
import multiprocessing as mp
import socket
import struct

import numpy as np
from scipy.optimize import curve_fit

DOSES = 420
POINTS = 240


def receive(connection, size):
    parts = []
    while size:
        part = connection.recv(size)
        if not part:
            raise ConnectionError("the polarograph hung up")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def polarograph(port_pipe):
    """The instrument: gets a command with a sweep programme, answers with currents."""
    listener = socket.create_server(("127.0.0.1", 0))
    port_pipe.send(listener.getsockname()[1])
    connection, _ = listener.accept()
    rng = np.random.default_rng(3)
    with connection:
        while True:
            command, size = struct.unpack("<II", receive(connection, 8))
            if command == 0:
                break
            dose, start, stop = struct.unpack("<ddd", receive(connection, size))
            volts = np.linspace(start, stop, POINTS)
            free = max(0.02, 1.0 - dose / 30.0)
            current = 8.0 * free / (1.0 + np.exp(-(volts + 0.6) / 0.025)) + 0.3 * volts
            current += rng.normal(0.0, 0.02, POINTS)
            connection.sendall(current.astype("<f8").tobytes())


class Titrator:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))

    def sweep(self, dose, start, stop):
        programme = struct.pack("<ddd", dose, start, stop)
        self.socket.sendall(struct.pack("<II", 1, len(programme)))
        self.socket.sendall(programme)
        return np.frombuffer(receive(self.socket, 8 * POINTS), "<f8")

    def close(self):
        self.socket.sendall(struct.pack("<II", 0, 0))
        self.socket.close()


def wave(volts, height, half, slope, base):
    return height / (1.0 + np.exp(-(volts - half) / 0.025)) + slope * volts + base


def main():
    ours, theirs = mp.Pipe()
    instrument = mp.Process(target=polarograph, args=(theirs,), daemon=True)
    instrument.start()
    titrator = Titrator(ours.recv())
    volts = np.linspace(-0.9, -0.3, POINTS)
    heights = []
    for step in range(DOSES):
        dose = 0.1 * step
        current = titrator.sweep(dose, -0.9, -0.3)
        best, _ = curve_fit(wave, volts, current, p0=(4.0, -0.58, 0.2, 0.0))
        heights.append(best[0])
    titrator.close()
    instrument.join()
    heights = np.array(heights)
    doses = 0.1 * np.arange(DOSES)
    falling = doses < 25.0
    slope, offset = np.polyfit(doses[falling], heights[falling], 1)
    print("sweeps:", DOSES)
    print("first wave height %.2f uA, last %.2f uA" % (heights[0], heights[-1]))
    print("end point at %.2f ml" % (-offset / slope))


if __name__ == "__main__":
    main()
