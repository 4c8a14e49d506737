"""A network in place of the look-up table of a combustion solver.

Maps the thermochemical state (temperature, pressure, mass fractions) to the
source terms; the training states are drawn from the table on the fly.
"""
import sys
import time

import jax
import jax.numpy as jnp
import optax

SPECIES = 30
STATES = 1 << 20
ON_GPU = jax.default_backend() == "gpu"
WIDTH = 4096 if ON_GPU else 64
BATCH = 16384 if ON_GPU else 128
LAYERS = 4
STEPS_PER_CALL = 8


def make_table(key):
    a, b, c = jax.random.split(key, 3)
    states = jax.random.normal(a, (STATES, SPECIES + 2))
    mix = jax.random.normal(b, (SPECIES + 2, 128)) / 6.0
    out = jax.random.normal(c, (128, SPECIES)) / 11.0
    source = jnp.tanh(states @ mix + 0.3 * jnp.sin(2.0 * (states @ mix))) @ out
    return states, source


def init_params(key):
    sizes = [SPECIES + 2] + [WIDTH] * LAYERS + [SPECIES]
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (m, n)) * (2.0 / m) ** 0.5, jnp.zeros(n))
            for k, m, n in zip(keys, sizes, sizes[1:])]


def network(params, x):
    x = x.astype(jnp.bfloat16)
    for index, (w, b) in enumerate(params):
        x = x @ w.astype(jnp.bfloat16) + b.astype(jnp.bfloat16)
        if index < len(params) - 1:
            x = jax.nn.silu(x)
    return x.astype(jnp.float32)


def loss_of(params, states, source):
    return jnp.mean((network(params, states) - source) ** 2)


def main():
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    key_table, key_net, key = jax.random.split(jax.random.key(4), 3)
    states, source = jax.jit(make_table)(key_table)
    params = init_params(key_net)
    optimiser = optax.adamw(1e-4)
    opt_state = optimiser.init(params)
    jax.block_until_ready((states, source, params))

    def one_step(carry, step_key):
        params, opt_state = carry
        rows = jax.random.randint(step_key, (BATCH,), 0, STATES)
        loss, grads = jax.value_and_grad(loss_of)(params, states[rows], source[rows])
        updates, opt_state = optimiser.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    def many_steps(params, opt_state, states_key):
        keys = jax.random.split(states_key, STEPS_PER_CALL)
        (params, opt_state), losses = jax.lax.scan(one_step, (params, opt_state), keys)
        return params, opt_state, losses.mean()

    train = jax.jit(many_steps, donate_argnums=(0, 1))
    train = train.lower(params, opt_state, key).compile()

    start = time.perf_counter()
    steps, loss = 0, float("nan")
    while time.perf_counter() - start < budget_s:
        key, sub = jax.random.split(key)
        params, opt_state, mean_loss = train(params, opt_state, sub)
        loss = float(mean_loss)
        steps += STEPS_PER_CALL

    print(f"done: {steps} steps, loss {loss:.4f}")


if __name__ == "__main__":
    main()
