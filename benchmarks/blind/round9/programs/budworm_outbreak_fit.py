"""Fit of a spruce budworm outbreak model to defoliation series of many stands."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

STANDS, YEARS = 48, 160
ITERATIONS = 15


def simulate(params, start):
    growth = jax.nn.softplus(params["growth"])
    capacity = jax.nn.softplus(params["capacity"])
    predation = jax.nn.softplus(params["predation"])

    def year(density, _):
        eaten = predation * density**2 / (1.0 + density**2)
        density = density + 0.2 * (growth * density * (1.0 - density / capacity) - eaten)
        density = jnp.clip(density, 1e-3, 50.0)
        return density, density

    _, path = jax.lax.scan(year, start, None, length=YEARS)
    return path


def observe(key):
    keys = jax.random.split(key, 5)
    truth = {
        "growth": 0.4 + 0.1 * jax.random.normal(keys[0], (STANDS,)),
        "capacity": 8.0 + jax.random.normal(keys[1], (STANDS,)),
        "predation": 0.9 + 0.1 * jax.random.normal(keys[2], (STANDS,)),
    }
    start = jax.random.uniform(keys[3], (STANDS,), minval=0.2, maxval=2.0)
    path = simulate(truth, start)
    return start, jnp.log(path) + 0.05 * jax.random.normal(keys[4], path.shape)


def main():
    start, observed = observe(jax.random.PRNGKey(11))

    def loss(params):
        residual = jnp.log(simulate(params, start)) - observed
        prior = sum(jnp.mean((p - 1.0) ** 2) for p in params.values())
        return jnp.mean(residual**2) + 1e-3 * prior

    optimizer = optax.lbfgs(memory_size=8)
    value_and_grad = optax.value_and_grad_from_state(loss)

    def step(params, state):
        value, grad = value_and_grad(params, state=state)
        updates, state = optimizer.update(
            grad, state, params, value=value, grad=grad, value_fn=loss
        )
        return optax.apply_updates(params, updates), state, value

    params = {name: jnp.ones(STANDS) for name in ("growth", "capacity", "predation")}
    state = optimizer.init(params)
    history = []
    for iteration in range(ITERATIONS):
        params, state, value = step(params, state)
        history.append(float(value))
    print("loss at start", round(history[0], 4))
    print("loss at end", round(history[-1], 4))
    growth = np.asarray(jax.nn.softplus(params["growth"]))
    print("growth rate, mean and spread", growth.mean().round(3), growth.std().round(3))


if __name__ == "__main__":
    main()
