"""Learns the water level behind a beaver dam from a live gauge, one reading at a time."""
import json
import multiprocessing as mp
import socket
import time

import numpy as np
from sklearn.linear_model import SGDRegressor
from sklearn.preprocessing import StandardScaler

READINGS, INTERVAL, LAGS = 420, 0.045, 12


def gauge(listener):
    """Stands for the gauge in the stream: it sends a reading when it has measured one."""
    rng = np.random.default_rng(70)
    link, _ = listener.accept()
    level, rain = 80.0, 0.0
    with link:
        for number in range(READINGS):
            rain = 0.9 * rain + (rng.gamma(1.2, 2.0) if rng.random() < 0.08 else 0.0)
            level += 0.25 * rain - 0.05 * (level - 78.0) + rng.normal(0, 0.1)
            reading = {"n": number, "rain": round(rain, 3), "level": round(level, 3)}
            link.sendall((json.dumps(reading) + "\n").encode())
            time.sleep(INTERVAL)


class PondModel:
    def __init__(self):
        self.scale = StandardScaler()
        self.model = SGDRegressor(learning_rate="constant", eta0=0.01, penalty="l2", alpha=1e-4,
                                  random_state=0)
        self.history = []
        self.errors = []

    def take(self, reading):
        row = (reading["rain"], reading["level"])
        if len(self.history) >= LAGS:
            x = np.array(self.history[-LAGS:]).reshape(1, -1)
            target = np.array([row[1] - self.history[-1][1]])
            self.scale.partial_fit(x)
            z = self.scale.transform(x)
            if len(self.history) > LAGS:
                self.errors.append(float(self.model.predict(z)[0] - target[0]))
            self.model.partial_fit(z, target)
        self.history.append(row)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    station = mp.Process(target=gauge, args=(listener,))
    station.start()
    pond = PondModel()
    with socket.create_connection(listener.getsockname()) as link:
        for text in link.makefile("r"):
            pond.take(json.loads(text))
            if len(pond.history) % 105 == 0:
                recent = np.array(pond.errors[-100:])
                print(f"reading {len(pond.history)}  rms error {np.sqrt((recent ** 2).mean()):.3f}")
    station.join()
    listener.close()
    print(f"readings {len(pond.history)}, last level {pond.history[-1][1]:.2f} cm")


if __name__ == "__main__":
    main()
