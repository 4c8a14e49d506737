"""Linear reservoir model of karst springs, fitted to daily discharge.

Storage of each spring drains by a fixed fraction per day and is filled by
rain. Drainage, recharge and base flow are fitted to the observed discharge.
"""
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

DAYS = 4096
SPRINGS = 192


def make_records(seed=5):
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.25, 12.0, (DAYS, SPRINGS)).astype(np.float32)
    keep = rng.uniform(0.86, 0.99, SPRINGS)
    gain = rng.uniform(0.3, 0.9, SPRINGS)
    base = rng.uniform(0.0, 2.0, SPRINGS)
    storage = np.zeros(SPRINGS)
    flow = np.empty((DAYS, SPRINGS), np.float32)
    for day in range(DAYS):
        storage = keep * storage + gain * rain[day]
        flow[day] = (1 - keep) * storage + base
    flow *= rng.normal(1.0, 0.03, flow.shape).astype(np.float32)
    return rain, flow


def storage_series(keep, recharge):
    def one_day(storage, water):
        storage = keep * storage + water
        return storage, storage

    _, series = jax.lax.scan(one_day, jnp.zeros_like(keep), recharge)
    return series


def simulate(params, rain):
    keep = jax.nn.sigmoid(params["keep"])
    gain = jax.nn.softplus(params["gain"])
    series = storage_series(keep, gain * rain)
    return (1 - keep) * series + params["base"]


def misfit(params, rain, flow):
    error = simulate(params, rain) - flow
    return jnp.mean(jnp.sqrt(error * error + 0.01))


def main():
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    rain, flow = make_records()
    rain, flow = jnp.asarray(rain), jnp.asarray(flow)
    params = {
        "keep": jnp.full(SPRINGS, 2.0),
        "gain": jnp.full(SPRINGS, 0.3),
        "base": jnp.zeros(SPRINGS),
    }
    optimiser = optax.adam(0.01)
    state = optimiser.init(params)

    @jax.jit
    def update(params, state):
        loss, grads = jax.value_and_grad(misfit)(params, rain, flow)
        steps, state = optimiser.update(grads, state)
        return optax.apply_updates(params, steps), state, loss

    start = time.perf_counter()
    iterations, loss = 0, float("nan")
    while time.perf_counter() - start < budget_s:
        for _ in range(5):
            params, state, value = update(params, state)
            iterations += 1
        loss = float(value)

    print(f"done: {iterations} iterations, misfit {loss:.4f}")


if __name__ == "__main__":
    main()
