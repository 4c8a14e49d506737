"""Nest camera of peregrine falcons: motion and feeding events from a live feed of thermal frames."""
import multiprocessing as mp
import socket
import struct
import time

import numpy as np
from scipy.ndimage import gaussian_filter, label

FRAMES = 220
RATE = 11.0
SIDE = 192


def camera(sock):
    connection, _ = sock.accept()
    rng = np.random.default_rng(21)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    begin = time.monotonic()
    with connection:
        for n in range(FRAMES):
            frame = 20.0 + rng.normal(0.0, 0.4, (SIDE, SIDE))
            for bird in range(3):
                cy, cx = 70 + 25 * bird + 6 * np.sin(n / (4.0 + bird)), 90 + 20 * np.cos(n / 9.0 + bird)
                frame += 14.0 * np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / (60.0 + 25 * bird))
            if n % 37 < 9:
                frame += 11.0 * np.exp(-((yy - 40) ** 2 + (xx - 30 - n % 37 * 6) ** 2) / 90.0)
            due = begin + n / RATE
            time.sleep(max(0.0, due - time.monotonic()))
            connection.sendall(struct.pack("<I", n) + frame.astype("<f4").tobytes())


def receive(connection, size):
    view = memoryview(bytearray(size))
    got = 0
    while got < size:
        part = connection.recv_into(view[got:])
        if part == 0:
            raise ConnectionError("camera went away")
        got += part
    return view


def warm_bodies(frame):
    smooth = gaussian_filter(frame, 2.0)
    marks, count = label(smooth > 24.5)
    sizes = np.bincount(marks.ravel())[1:]
    return int((sizes > 40).sum()), smooth


def main():
    sock = socket.create_server(("127.0.0.1", 0))
    child = mp.get_context("fork").Process(target=camera, args=(sock,))
    child.start()
    port = sock.getsockname()[1]
    sock.close()
    previous = None
    bodies, motion = [], []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(FRAMES):
            message = receive(connection, 4 + 4 * SIDE * SIDE)
            frame = np.frombuffer(message[4:], dtype="<f4").reshape(SIDE, SIDE)
            count, smooth = warm_bodies(frame)
            bodies.append(count)
            if previous is not None:
                motion.append(float(np.abs(smooth - previous).mean()))
            previous = smooth
    child.join()
    motion = np.array(motion)
    visits = int((np.diff((motion > motion.mean() + motion.std()).astype(int)) == 1).sum())
    print(f"{len(bodies)} frames, mean warm bodies {np.mean(bodies):.3f}, most {max(bodies)}")
    print(f"motion {motion.mean():.4f} +- {motion.std():.4f}, {visits} visits")


if __name__ == "__main__":
    main()
