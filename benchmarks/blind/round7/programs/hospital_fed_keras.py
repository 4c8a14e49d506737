"""Federated averaging of a length-of-stay model over simulated hospitals."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

HOSPITALS, ROUNDS, FEATURES, STAYS = 4, 5, 40, 1200


def hospital_records(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(rng.normal(0, 0.3, FEATURES), 1.0, (STAYS, FEATURES)).astype("float32")
    risk = x[:, :6].sum(1) + 0.5 * x[:, 6] * x[:, 7] + rng.normal(0, 1, STAYS)
    return x, (risk > 0.5).astype("float32")


def build_model():
    return keras.Sequential([
        keras.layers.Input((FEATURES,)),
        keras.layers.Dense(96, activation="relu"),
        keras.layers.Dense(96, activation="relu"),
        keras.layers.Dense(48, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid")])


def local_update(weights, x, y):
    local = build_model()
    local.set_weights(weights)
    local.compile(optimizer=keras.optimizers.SGD(0.05), loss="binary_crossentropy")
    local.fit(x, y, epochs=3, batch_size=50, shuffle=False, verbose=0)
    return local.get_weights()


def watch_list(model, patients):
    """Risk of the sentinel patients whom the ward follows from round to round."""
    return [float(model.predict(p[None], verbose=0)[0, 0]) for p in patients]


def main():
    keras.utils.set_random_seed(12)
    sites = [hospital_records(40 + h) for h in range(HOSPITALS)]
    sentinel, _ = hospital_records(99)
    sentinel = sentinel[:28]
    shared = build_model()
    weights = shared.get_weights()
    for round_no in range(ROUNDS):
        updates = [local_update(weights, x, y) for x, y in sites]
        weights = [np.mean(parts, axis=0) for parts in zip(*updates)]
        shared.set_weights(weights)
        risks = watch_list(shared, sentinel)
        print(f"round {round_no}: mean sentinel risk {np.mean(risks):.4f} max {max(risks):.4f}")


if __name__ == "__main__":
    main()
