"""Follow the acidity of kombucha tanks with a model that learns from a live sensor feed."""
import multiprocessing as mp
import socket
import time

import numpy as np
from sklearn.linear_model import SGDRegressor

FRAMES = 80
ROWS = 64
SENSORS = 12
SIZE = ROWS * (SENSORS + 1) * 4


def tank_controller(pipe):
    """Sends one frame of readings each 0.25 s, as the controller of the tanks does."""
    rng = np.random.default_rng(5)
    weight = rng.normal(0, 1, SENSORS)
    server = socket.create_server(("127.0.0.1", 0))
    pipe.send(server.getsockname()[1])
    link, _ = server.accept()
    with link:
        for frame in range(FRAMES):
            readings = rng.normal(0, 1, (ROWS, SENSORS))
            acidity = readings @ weight + 0.01 * frame + rng.normal(0, 0.2, ROWS)
            block = np.column_stack([readings, acidity]).astype(np.float32)
            time.sleep(0.25)
            link.sendall(block.tobytes())


def receive(link):
    chunks, missing = [], SIZE
    while missing:
        chunk = link.recv(missing)
        if not chunk:
            raise ConnectionError("the controller closed the link")
        chunks.append(chunk)
        missing -= len(chunk)
    return np.frombuffer(b"".join(chunks), dtype=np.float32).reshape(ROWS, SENSORS + 1)


def main():
    near, far = mp.Pipe()
    controller = mp.Process(target=tank_controller, args=(far,), daemon=True)
    controller.start()
    model = SGDRegressor(learning_rate="constant", eta0=0.01, random_state=0)
    errors = []
    with socket.create_connection(("127.0.0.1", near.recv())) as link:
        for frame in range(FRAMES):
            block = receive(link)
            readings, acidity = block[:, :SENSORS], block[:, SENSORS]
            if frame:
                errors.append(float(np.abs(model.predict(readings) - acidity).mean()))
            model.partial_fit(readings, acidity)
            if frame % 20 == 19:
                print(f"frame {frame + 1}: mean error {np.mean(errors[-19:]):.4f}", flush=True)
    controller.join()


if __name__ == "__main__":
    main()
