"""Follow runway friction from a measuring car's live feed and update a braking model."""
import json
import multiprocessing as mp
import socket

import numpy as np
from sklearn.linear_model import SGDRegressor
from sklearn.preprocessing import StandardScaler

RECORDS = 800
CHANNELS = 10
PERIOD = 0.02
GROUP = 20


def measuring_car(listener):
    import time
    rng = np.random.default_rng(15)
    link, _ = listener.accept()
    w = rng.normal(size=CHANNELS)
    begin = time.monotonic()
    with link:
        for k in range(RECORDS):
            x = rng.normal(size=CHANNELS)
            mu = 0.6 + 0.05 * float(x @ w) + rng.normal(0, 0.02)
            line = json.dumps({"k": k, "x": x.round(5).tolist(), "mu": round(mu, 5)})
            link.sendall(line.encode() + b"\n")
            rest = begin + (k + 1) * PERIOD - time.monotonic()
            if rest > 0:
                time.sleep(rest)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    car = mp.get_context("fork").Process(target=measuring_car, args=(listener,))
    car.start()
    listener.close()
    scaler = StandardScaler()
    model = SGDRegressor(learning_rate="constant", eta0=0.01, random_state=0)
    group_x, group_mu, errors = [], [], []
    with socket.create_connection(("127.0.0.1", port)) as link:
        for line in link.makefile("r"):
            record = json.loads(line)
            group_x.append(record["x"])
            group_mu.append(record["mu"])
            if len(group_x) < GROUP:
                continue
            x, mu = np.array(group_x), np.array(group_mu)
            scaler.partial_fit(x)
            z = scaler.transform(x)
            if errors or record["k"] >= GROUP:
                errors.append(float(np.abs(model.predict(z) - mu).mean()))
            model.partial_fit(z, mu)
            group_x, group_mu = [], []
            if len(errors) % 10 == 0 and errors:
                print(f"record {record['k'] + 1} error {np.mean(errors[-10:]):.4f}", flush=True)
    car.join()
    print(f"last error {errors[-1]:.4f} groups {len(errors)}")


if __name__ == "__main__":
    main()
