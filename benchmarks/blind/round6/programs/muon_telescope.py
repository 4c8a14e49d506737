"""Read coincidences from a muon telescope as they arrive and fit the zenith angle law."""
import multiprocessing as mp
import socket
import struct
import time

import numpy as np

PACKETS = 400
PER_PACKET = 600
HEADER = struct.Struct("!II")


def telescope(conn):
    rng = np.random.default_rng(77)
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    conn.send(server.getsockname()[1])
    client, _ = server.accept()
    start = time.monotonic()
    for number in range(PACKETS):
        cosine = rng.random(PER_PACKET) ** (1 / 3.1)
        energy = 1.0 + rng.pareto(2.2, PER_PACKET)
        body = np.column_stack([cosine, energy]).astype(">f4").tobytes()
        delay = start + 0.04 * (number + 1) - time.monotonic()
        if delay > 0:
            time.sleep(delay)
        client.sendall(HEADER.pack(number, len(body)) + body)
    client.close()
    server.close()


def receive(stream, size):
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("telescope closed the stream")
    return data


class Spectrum:
    def __init__(self):
        self.angles = np.zeros(50)
        self.energies = np.zeros(60)
        self.events = 0

    def add(self, block):
        self.angles += np.histogram(block[:, 0], bins=50, range=(0, 1))[0]
        self.energies += np.histogram(np.log10(block[:, 1]), bins=60, range=(0, 3))[0]
        self.events += len(block)

    def exponent(self):
        centre = (np.arange(50) + 0.5) / 50
        used = self.angles > 20
        slope, _ = np.polyfit(np.log(centre[used]), np.log(self.angles[used]), 1)
        return slope


def main():
    ours, theirs = mp.Pipe()
    source = mp.Process(target=telescope, args=(theirs,))
    source.start()
    spectrum = Spectrum()
    with socket.create_connection(("127.0.0.1", ours.recv())) as link, link.makefile("rb") as stream:
        for _ in range(PACKETS):
            number, size = HEADER.unpack(receive(stream, HEADER.size))
            block = np.frombuffer(receive(stream, size), dtype=">f4").reshape(-1, 2)
            spectrum.add(block.astype(np.float64))
            if (number + 1) % 100 == 0:
                print("packet %d  events %d  exponent %.4f" % (number + 1, spectrum.events, spectrum.exponent()))
    source.join()
    print("energy bins filled", int((spectrum.energies > 0).sum()))


if __name__ == "__main__":
    main()
