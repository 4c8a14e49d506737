"""Learn online from a conveyor belt: one packet of vibration windows per beat."""
import multiprocessing as mp
import socket
import struct
import time

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

PACKETS = 210
WINDOWS = 200
POINTS = 128
BEAT = 0.1


def belt(listener):
    """The control unit of the belt: it sends what the sensors measured in one beat."""
    rng = np.random.default_rng(33)
    t = np.arange(POINTS)
    connection, _ = listener.accept()
    begin = time.monotonic()
    for number in range(PACKETS):
        worn = rng.integers(0, 2, WINDOWS).astype(np.float32)
        rate = 0.11 + 0.05 * worn + 0.01 * rng.standard_normal(WINDOWS)
        wave = np.sin(2 * np.pi * rate[:, None] * t) + rng.standard_normal((WINDOWS, POINTS))
        packet = np.column_stack([worn, wave]).astype(np.float32).tobytes()
        time.sleep(max(0.0, begin + (number + 1) * BEAT - time.monotonic()))
        connection.sendall(struct.pack("!I", len(packet)) + packet)
    connection.close()


def receive(connection, size):
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("belt stopped")
        parts += part
    return bytes(parts)


def describe(wave):
    spectrum = np.abs(np.fft.rfft(wave * np.hanning(POINTS), axis=1))
    return np.log1p(spectrum)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    process = mp.get_context("fork").Process(target=belt, args=(listener,), daemon=True)
    process.start()
    connection = socket.create_connection(listener.getsockname())
    scaler = StandardScaler()
    model = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=0)
    scores = []
    for number in range(PACKETS):
        size, = struct.unpack("!I", receive(connection, 4))
        table = np.frombuffer(receive(connection, size), dtype=np.float32)
        table = table.reshape(WINDOWS, POINTS + 1)
        x, worn = describe(table[:, 1:]), table[:, 0].astype(int)
        scaler.partial_fit(x)
        x = scaler.transform(x)
        if number:
            scores.append(model.score(x, worn))
        model.partial_fit(x, worn, classes=[0, 1])
        if (number + 1) % 70 == 0:
            print(f"packet {number + 1} accuracy of the last 30 {np.mean(scores[-30:]):.4f}")
    connection.close()
    process.join()
    print(f"packets {PACKETS} mean accuracy {np.mean(scores):.4f}")


if __name__ == "__main__":
    main()
