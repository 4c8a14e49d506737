"""Calibrates a degree-day snow model on many stations by gradient descent through the season."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

DAYS = 60
STATIONS = 3000


def forcing():
    rng = np.random.default_rng(1913)
    day = np.arange(DAYS)[:, None]
    temp = -6 + 10 * np.sin((day - 60) / DAYS * np.pi) + rng.normal(0, 3, (DAYS, STATIONS))
    rain = rng.gamma(0.4, 6.0, (DAYS, STATIONS))
    return temp.astype(np.float32), rain.astype(np.float32)


def one_day(state, theta, t, p):
    snow, liquid, soil = state
    frac = jax.nn.sigmoid((theta["t_snow"] - t) * 1.5)
    fall = p * frac * (1 + jax.nn.softplus(theta["undercatch"]))
    melt = jnp.minimum(snow, jax.nn.softplus(theta["ddf"]) * jax.nn.softplus(t - theta["t_melt"]))
    refreeze = jnp.minimum(liquid, 0.05 * jax.nn.softplus(theta["t_melt"] - t))
    snow = snow + fall - melt + refreeze
    liquid = liquid + melt + p * (1 - frac) - refreeze
    drain = jax.nn.relu(liquid - 0.1 * snow)
    liquid = liquid - drain
    et = 0.02 * soil * jax.nn.sigmoid(t / 5)
    runoff = jax.nn.sigmoid(theta["k"]) * soil * jnp.tanh(soil / 50)
    soil = soil + drain - et - runoff
    return (snow, liquid, soil), runoff


def season(theta, temp, rain):
    zero = jnp.zeros(STATIONS)
    state = (zero, zero, zero + 10.0)
    flow = []
    for d in range(DAYS):
        state, q = one_day(state, theta, temp[d], rain[d])
        flow.append(q)
    return jnp.stack(flow)


def main():
    temp, rain = forcing()
    names = ("t_snow", "t_melt", "ddf", "undercatch", "k")
    truth = {n: jnp.full(STATIONS, v) for n, v in zip(names, (0.5, -0.3, 1.5, -1.0, -2.0))}
    noise = np.random.default_rng(4).normal(0, 0.05, (DAYS, STATIONS)).astype(np.float32)
    gauge = jax.jit(season)(truth, temp, rain) + noise
    theta = {n: jnp.full(STATIONS, v) for n, v in zip(names, (0.0, 0.0, 1.0, -1.5, -1.6))}
    tx = optax.adam(0.02)

    @jax.jit
    def improve(theta, opt):
        def misfit(th):
            return jnp.mean((season(th, temp, rain) - gauge) ** 2)

        value, g = jax.value_and_grad(misfit)(theta)
        step, opt = tx.update(g, opt)
        return optax.apply_updates(theta, step), opt, value

    opt = tx.init(theta)
    for it in range(400):
        theta, opt, value = improve(theta, opt)
    print(f"misfit {float(value):.4f}, mean degree day factor {float(jax.nn.softplus(theta['ddf']).mean()):.3f}")


if __name__ == "__main__":
    main()
