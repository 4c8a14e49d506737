"""Learn the law of motion of a damped pendulum with a neural ODE in JAX."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

N_PATHS = 64
N_TIMES = 40
DT = 0.1
HIDDEN = 64
STEPS_PER_CALL = 225
CALLS = 4


def true_slope(s):
    return jnp.stack([s[..., 1], -9.0 * jnp.sin(s[..., 0]) - 0.3 * s[..., 1]], axis=-1)


def rk4(slope, s):
    a = slope(s)
    b = slope(s + 0.5 * DT * a)
    c = slope(s + 0.5 * DT * b)
    d = slope(s + DT * c)
    return s + DT / 6.0 * (a + 2 * b + 2 * c + d)


def solve(slope, start):
    def body(s, _):
        s = rk4(slope, s)
        return s, s

    return jax.lax.scan(body, start, None, length=N_TIMES)[1]


def init(key):
    sizes = (2, HIDDEN, HIDDEN, 2)
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (a, b)) / jnp.sqrt(a), jnp.zeros(b))
        for k, a, b in zip(keys, sizes[:-1], sizes[1:])
    ]


def net(params, s):
    for w, b in params[:-1]:
        s = jnp.tanh(s @ w + b)
    w, b = params[-1]
    return s @ w + b


def loss_fn(params, start, paths):
    return jnp.mean((solve(lambda s: net(params, s), start) - paths) ** 2)


optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(2e-3))


@jax.jit
def train(params, state, start, paths):
    def body(carry, _):
        params, state = carry
        loss, grads = jax.value_and_grad(loss_fn)(params, start, paths)
        step, state = optimizer.update(grads, state, params)
        return (optax.apply_updates(params, step), state), loss

    (params, state), losses = jax.lax.scan(body, (params, state), None, length=STEPS_PER_CALL)
    return params, state, losses


def main():
    rng = np.random.default_rng(3)
    start = jnp.asarray(rng.uniform(-1.5, 1.5, (N_PATHS, 2)), jnp.float32)
    paths = jax.jit(lambda s: solve(true_slope, s))(start)
    paths = paths + 0.02 * jnp.asarray(rng.normal(size=paths.shape), jnp.float32)
    params = init(jax.random.PRNGKey(0))
    state = optimizer.init(params)
    for call in range(CALLS):
        params, state, losses = train(params, state, start, paths)
        print(f"step {(call + 1) * STEPS_PER_CALL:5d}  loss {float(losses[-1]):.5f}", flush=True)
    fresh = jnp.asarray(rng.uniform(-1.2, 1.2, (64, 2)), jnp.float32)
    error = jnp.abs(solve(lambda s: net(params, s), fresh) - solve(true_slope, fresh)).mean()
    print(f"mean error on new paths {float(error):.4f}")


if __name__ == "__main__":
    main()
