"""Rank hostels for travellers with LightGBM: which of twenty offers is booked?"""
import math

import lightgbm as lgb
import numpy as np
import pandas as pd

SEARCHES, OFFERS = 8000, 20
TRAIN = 4500
COLUMNS = ["price", "stars", "reviews", "breakfast", "beds", "age", "distance"]


def searches():
    rng = np.random.default_rng(101)
    n = SEARCHES * OFFERS
    frame = pd.DataFrame({
        "search": np.repeat(np.arange(SEARCHES), OFFERS),
        "lat": rng.normal(48.2, 0.08, n), "lon": rng.normal(16.4, 0.12, n),
        "goal_lat": np.repeat(rng.normal(48.2, 0.03, SEARCHES), OFFERS),
        "goal_lon": np.repeat(rng.normal(16.4, 0.05, SEARCHES), OFFERS),
        "price": rng.gamma(4, 12, n), "stars": rng.integers(1, 6, n),
        "reviews": rng.lognormal(4, 1, n), "breakfast": rng.integers(0, 2, n),
        "beds": rng.integers(2, 13, n), "age": rng.integers(0, 60, n)})
    return frame, rng


def kilometres(offer):
    a, b = math.radians(offer["lat"]), math.radians(offer["goal_lat"])
    half = math.radians(offer["goal_lon"] - offer["lon"]) / 2
    h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(half) ** 2
    return 2 * 6371 * math.asin(math.sqrt(h))


def add_distance(frame):
    frame["distance"] = frame.apply(kilometres, axis=1)
    return frame


def add_booking(frame, rng):
    liking = (0.5 * frame["stars"] + 0.3 * np.log(frame["reviews"]) - 0.03 * frame["price"]
              - 0.25 * frame["distance"] + 0.4 * frame["breakfast"] - 0.05 * frame["beds"])
    liking = liking.to_numpy() + rng.gumbel(0, 0.6, len(frame))
    chosen = liking.reshape(SEARCHES, OFFERS).argmax(1)
    booked = np.zeros((SEARCHES, OFFERS), dtype=int)
    booked[np.arange(SEARCHES), chosen] = 1
    frame["booked"] = booked.ravel()
    return frame


def reciprocal_rank(scores, data):
    """Mean of 1 / (place of the booked offer), over the searches."""
    booked = data.get_label()
    total = 0.0
    for first in range(0, len(scores), OFFERS):
        block = scores[first:first + OFFERS]
        order = np.argsort(-block, kind="stable")
        place = int(np.flatnonzero(booked[first:first + OFFERS][order] == 1)[0])
        total += 1.0 / (place + 1)
    return "reciprocal_rank", total / (len(scores) // OFFERS), True


def main():
    frame, rng = searches()
    frame = add_booking(add_distance(frame), rng)
    early = frame["search"] < TRAIN
    train = lgb.Dataset(frame.loc[early, COLUMNS], label=frame.loc[early, "booked"].to_numpy())
    late = frame.loc[~early]
    valid = lgb.Dataset(late[COLUMNS], label=late["booked"].to_numpy(),
                        reference=train)
    history = {}
    settings = {"objective": "binary", "metric": "None", "learning_rate": 0.05,
                "num_leaves": 31, "num_threads": 2, "verbose": -1, "seed": 3}
    model = lgb.train(settings, train, num_boost_round=260, valid_sets=[valid],
                      valid_names=["late"], feval=reciprocal_rank,
                      callbacks=[lgb.record_evaluation(history)])
    curve = history["late"]["reciprocal_rank"]
    print(f"{len(frame)} offers, mean distance {frame['distance'].mean():.2f} km")
    print(f"reciprocal rank: first {curve[0]:.3f}, best {max(curve):.3f} "
          f"at round {int(np.argmax(curve)) + 1}")
    gain = dict(zip(COLUMNS, model.feature_importance("gain")))
    print("by gain:", ", ".join(sorted(gain, key=gain.get, reverse=True)))


if __name__ == "__main__":
    main()
