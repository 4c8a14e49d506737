"""Which customers of an energy supplier will leave? Features from events, then LightGBM."""
import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

N_CUSTOMERS = 8000
N_EVENTS = 600_000
BUDGET = 500


def make_events(rng):
    fixed = np.repeat(np.arange(N_CUSTOMERS), 5)
    loyal = rng.gamma(2.0, 1.0, N_CUSTOMERS)
    free = rng.choice(N_CUSTOMERS, N_EVENTS - len(fixed), p=loyal / loyal.sum())
    customer = np.concatenate([fixed, free])
    events = pd.DataFrame({
        "customer": customer,
        "day": rng.integers(0, 365, N_EVENTS),
        "amount": rng.gamma(1.5, 20.0, N_EVENTS) * (0.5 + loyal[customer]),
        "complaint": rng.random(N_EVENTS) < 0.05 / (0.3 + loyal[customer]),
    })
    events = events.sample(frac=1.0, random_state=5).reset_index(drop=True)
    risk = 1.0 - loyal + rng.normal(0.0, 0.7, N_CUSTOMERS)
    return events, (risk > np.quantile(risk, 0.7)).astype(int)


def customer_features(events):
    rows = []
    for customer in range(N_CUSTOMERS):
        mine = events[events["customer"] == customer]
        amount = mine["amount"].to_numpy()
        day = np.sort(mine["day"].to_numpy())
        rows.append((
            len(mine),
            amount.mean(),
            amount.std(),
            amount.max(),
            day[-1],
            np.diff(day).max(),
            mine["complaint"].to_numpy().sum(),
            (day > 270).mean(),
        ))
    names = ["events", "mean", "spread", "largest", "last", "gap", "complaints", "recent"]
    return pd.DataFrame(rows, columns=names).astype(float)


def plan_contacts(model, held):
    """Walk through the customers and contact the endangered ones while money lasts."""
    scores, contacted = [], []
    for row in range(len(held)):
        risk = model.predict_proba(held.iloc[[row]])[0, 1]
        scores.append(risk)
        if risk > 0.6 and len(contacted) < BUDGET:
            contacted.append(held.index[row])
    return np.array(scores), contacted


def main():
    rng = np.random.default_rng(77)
    events, left = make_events(rng)
    table = customer_features(events)
    half = N_CUSTOMERS // 2
    model = lgb.LGBMClassifier(
        n_estimators=300, learning_rate=0.03, num_leaves=31, n_jobs=2, verbose=-1, random_state=0
    )
    model.fit(table[:half], left[:half])
    scores, contacted = plan_contacts(model, table[half:])
    gain = left[contacted].mean() if contacted else 0.0
    print(f"{len(events)} events of {N_CUSTOMERS} customers")
    print(f"AUC {roc_auc_score(left[half:], scores):.3f}")
    print(f"{len(contacted)} customers contacted, {100 * gain:.1f} % of them would have left")
    ranking = sorted(zip(model.feature_importances_, table.columns), reverse=True)
    print("most used:", ", ".join(name for _, name in ranking[:3]))


if __name__ == "__main__":
    main()
