"""Online forecast of the pulses of a sea anemone, from a camera that sends 40 readings a second."""
import json
import multiprocessing
import socket
import time

import numpy as np

READINGS, RATE = 720, 40.0
LAGS, LANDMARKS = 24, 120


def camera(port_sender):
    rng = np.random.default_rng(13)
    listener = socket.create_server(("127.0.0.1", 0))
    port_sender.send(listener.getsockname()[1])
    link, _ = listener.accept()
    begin, state = time.monotonic(), 0.0
    for number in range(READINGS):
        due = begin + number / RATE
        time.sleep(max(0.0, due - time.monotonic()))
        state = 0.95 * state + rng.normal(0, 0.1)
        width = np.sin(number / 9 + 0.3 * np.sin(number / 70)) ** 3 + state
        link.sendall((json.dumps({"n": number, "width": round(width, 6)}) + "\n").encode())
    link.close()


class RecursiveForecaster:
    """Recursive least squares on radial functions of the last readings."""

    def __init__(self, rng):
        self.marks = rng.normal(0, 1, (LANDMARKS, LAGS))
        size = LANDMARKS + LAGS + 1
        self.weights = np.zeros(size)
        self.spread = np.eye(size) * 50.0

    def features(self, past):
        distance = ((self.marks - past) ** 2).sum(axis=1)
        return np.concatenate([np.exp(-distance / LAGS), past, [1.0]])

    def learn(self, phi, target, memory=0.999):
        gain = self.spread @ phi
        gain /= memory + phi @ gain
        error = target - phi @ self.weights
        self.weights += gain * error
        self.spread = (self.spread - np.outer(gain, phi @ self.spread)) / memory
        return error


def main():
    receiver, sender = multiprocessing.Pipe()
    source = multiprocessing.Process(target=camera, args=(sender,), daemon=True)
    source.start()
    link = socket.create_connection(("127.0.0.1", receiver.recv()))
    model = RecursiveForecaster(np.random.default_rng(1))
    past, errors = [], []
    with link.makefile("r") as stream:
        for line in stream:
            width = json.loads(line)["width"]
            if len(past) == LAGS:
                errors.append(model.learn(model.features(np.array(past)), width))
                past.pop(0)
            past.append(width)
    source.join()
    errors = np.abs(errors)
    for first in range(0, len(errors), 174):
        print(f"readings {first + LAGS}..: mean error {errors[first:first + 174].mean():.4f}")


if __name__ == "__main__":
    main()
