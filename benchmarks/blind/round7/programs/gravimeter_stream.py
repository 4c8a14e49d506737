"""Watch a superconducting gravimeter: its data logger sends a packet whenever one is full."""
import multiprocessing as mp
import socket
import struct
import time
from collections import deque

import numpy as np

PACKETS = 150
PACKET_S = 0.11            # the logger fills a packet in this time
SAMPLES = 2_048
HISTORY = 24


def logger(pipe):
    """The instrument: one packet each PACKET_S seconds, by its own clock."""
    listener = socket.create_server(("127.0.0.1", 0))
    pipe.send(listener.getsockname()[1])
    link, _ = listener.accept()
    rng = np.random.default_rng(61)
    begin = time.monotonic()
    for number in range(PACKETS):
        t = (number * SAMPLES + np.arange(SAMPLES)) / SAMPLES
        signal = 40 * np.sin(t / 9.0) + rng.normal(0, 1.5, SAMPLES)
        if number % 40 > 34:
            signal += 12 * np.sin(60.0 * t)
        body = signal.astype("<f4").tobytes()
        due = begin + (number + 1) * PACKET_S
        time.sleep(max(0.0, due - time.monotonic()))
        link.sendall(struct.pack("<II", number, len(body)) + body)
    link.close()
    listener.close()


def receive(link, count):
    parts = bytearray()
    while len(parts) < count:
        piece = link.recv(count - len(parts))
        if not piece:
            raise EOFError
        parts += piece
    return bytes(parts)


def packets(link):
    while True:
        try:
            number, size = struct.unpack("<II", receive(link, 8))
        except EOFError:
            return
        yield number, np.frombuffer(receive(link, size), dtype="<f4").astype(float)


class Watch:
    """Residuals after removal of the drift, and alarms when their power rises."""

    def __init__(self):
        self.recent = deque(maxlen=HISTORY)
        self.alarms = []
        self.power = []

    def feed(self, number, signal):
        x = np.linspace(-1, 1, len(signal))
        drift = np.polynomial.chebyshev.chebfit(x, signal, 4)
        rest = signal - np.polynomial.chebyshev.chebval(x, drift)
        power = np.abs(np.fft.rfft(rest * np.hanning(len(rest)))) ** 2
        band = float(power[5:30].sum())
        if len(self.recent) == HISTORY and band > 4 * np.median(self.recent):
            self.alarms.append(number)
        self.recent.append(band)
        self.power.append(band)


def main():
    receiver, sender = mp.Pipe(duplex=False)
    instrument = mp.Process(target=logger, args=(sender,))
    instrument.start()
    link = socket.create_connection(("127.0.0.1", receiver.recv()))
    watch = Watch()
    for number, signal in packets(link):
        watch.feed(number, signal)
    link.close()
    instrument.join()
    print("packets", len(watch.power))
    print("alarms", watch.alarms)
    print("median band power %.4e" % np.median(watch.power))


if __name__ == "__main__":
    main()
