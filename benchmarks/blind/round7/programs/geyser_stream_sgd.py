"""Learn online when a geyser will erupt, from a tremor feed that comes over a socket."""
import json
import multiprocessing
import socket
import time

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

READINGS, RATE, CHANNELS = 900, 45.0, 24


def station(listener):
    """The field station sends one reading at each tick of its own clock."""
    rng = np.random.default_rng(61)
    connection, _ = listener.accept()
    began = time.monotonic()
    pressure = 0.0
    with connection:
        for tick in range(READINGS):
            pressure = pressure + rng.uniform(0, 0.06)
            tremor = rng.normal(pressure, 1.0, CHANNELS)
            erupts = int(pressure + rng.normal(0, 0.1) > 1.0)
            if pressure > 1.6:
                pressure = 0.0
            due = began + tick / RATE
            time.sleep(max(0.0, due - time.monotonic()))
            line = json.dumps({"tremor": tremor.tolist(), "erupts": erupts})
            connection.sendall(line.encode() + b"\n")


def features(tremor):
    tremor = np.asarray(tremor)
    spectrum = np.abs(np.fft.rfft(tremor))
    return np.concatenate([tremor, spectrum, [tremor.mean(), tremor.std()]])[None]


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    context = multiprocessing.get_context("fork")
    child = context.Process(target=station, args=(listener,), daemon=True)
    child.start()
    feed = socket.create_connection(listener.getsockname()).makefile("r")
    scaler = StandardScaler()
    model = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=0)
    hits, late = [], 0
    for number, line in enumerate(feed):
        reading = json.loads(line)
        x = features(reading["tremor"])
        y = [reading["erupts"]]
        scaler.partial_fit(x)
        x = scaler.transform(x)
        if number > 20:
            hits.append(int(model.predict(x)[0] == y[0]))
        model.partial_fit(x, y, classes=[0, 1])
        if number % 225 == 224:
            print(f"{number + 1} readings: accuracy of the last 200 {np.mean(hits[-200:]):.3f}")
    child.join()
    print(f"{len(hits)} forecasts, accuracy {np.mean(hits):.3f}")


if __name__ == "__main__":
    main()
