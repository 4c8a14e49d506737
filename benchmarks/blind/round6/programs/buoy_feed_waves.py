"""Learn the wave height online from the live feed of a measuring buoy."""
import json
import multiprocessing
import socket
import time

import numpy as np
from sklearn.linear_model import SGDRegressor

N_RECORDS = 440
INTERVAL = 0.045  # the buoy sends about 22 records a second
N_BINS = 64


def buoy(ports):
    rng = np.random.default_rng(7)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ports.put(server.getsockname()[1])
        link, _ = server.accept()
        with link:
            wind = 6.0
            bins = np.arange(1, N_BINS + 1)
            due = time.monotonic()
            for number in range(N_RECORDS):
                wind = 0.98 * wind + 0.02 * 8.0 + rng.normal(0, 0.3)
                peak = 40.0 / max(wind, 1.0)
                spectrum = np.exp(-(((bins - peak) / 6.0) ** 2)) * wind**2 / 50.0
                spectrum *= rng.gamma(20.0, 0.05, N_BINS)
                height = 4.0 * np.sqrt(spectrum.sum() / 10.0) + rng.normal(0, 0.05)
                record = {"n": number, "spectrum": spectrum.tolist(), "height": float(height)}
                due += INTERVAL
                time.sleep(max(0.0, due - time.monotonic()))
                link.sendall(json.dumps(record).encode() + b"\n")


def follow(stream):
    for line in stream:
        record = json.loads(line)
        yield record["n"], np.log1p(np.array(record["spectrum"])), record["height"]


def main():
    ports = multiprocessing.Queue()
    sender = multiprocessing.Process(target=buoy, args=(ports,), daemon=True)
    sender.start()
    model = SGDRegressor(learning_rate="constant", eta0=0.01, alpha=1e-5, random_state=0)
    errors = []
    with socket.create_connection(("127.0.0.1", ports.get())) as link:
        with link.makefile("rb") as stream:
            for number, features, height in follow(stream):
                x = features[None]
                if number > 0:
                    errors.append(abs(float(model.predict(x)[0]) - height))
                model.partial_fit(x, [height])
                if number % 110 == 109:
                    recent = np.mean(errors[-100:])
                    print(f"record {number + 1:4d}  mean error {recent:.3f} m", flush=True)
    sender.join()
    print(f"{len(errors) + 1} records, final error {np.mean(errors[-50:]):.3f} m")


if __name__ == "__main__":
    main()
