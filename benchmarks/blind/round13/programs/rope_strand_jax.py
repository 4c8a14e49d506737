"""Predict the breaking load of climbing ropes from the history of falls."""
import jax
import jax.numpy as jnp
import numpy as np

FALLS = 120
SENSORS = 5
HIDDEN = 48
STEPS = 300
BATCH = 64


def make_ropes(count, seed):
    rng = np.random.default_rng(seed)
    force = rng.gamma(2.0, 0.5, (count, FALLS, SENSORS)).astype(np.float32)
    wear = np.zeros(count)
    for t in range(FALLS):
        wear = 0.98 * wear + 0.02 * force[:, t, 0] * (1 + wear) + 0.01 * force[:, t, 1]
    return force, (1.5 - wear).astype(np.float32)


def init(key):
    shapes = {
        "wz": (SENSORS, HIDDEN), "uz": (HIDDEN, HIDDEN), "wr": (SENSORS, HIDDEN),
        "ur": (HIDDEN, HIDDEN), "wh": (SENSORS, HIDDEN), "uh": (HIDDEN, HIDDEN),
        "out": (HIDDEN, 1),
    }
    params = {}
    for name, shape in shapes.items():
        key, sub = jax.random.split(key)
        params[name] = jax.random.normal(sub, shape) / np.sqrt(shape[0])
    params["bz"] = jnp.zeros(HIDDEN)
    params["br"] = jnp.zeros(HIDDEN)
    params["bh"] = jnp.zeros(HIDDEN)
    return params


def cell(p, h, x):
    z = jax.nn.sigmoid(x @ p["wz"] + h @ p["uz"] + p["bz"])
    r = jax.nn.sigmoid(x @ p["wr"] + h @ p["ur"] + p["br"])
    new = jnp.tanh(x @ p["wh"] + (r * h) @ p["uh"] + p["bh"])
    return (1 - z) * h + z * new


def predict(params, force):
    h = jnp.zeros((force.shape[0], HIDDEN))
    for t in range(FALLS):
        h = cell(params, h, force[:, t])
    return (h @ params["out"])[:, 0]


def loss_fn(params, force, load):
    return jnp.mean((predict(params, force) - load) ** 2)


@jax.jit
def train_step(params, moments, force, load):
    loss, grads = jax.value_and_grad(loss_fn)(params, force, load)
    moments = jax.tree_util.tree_map(lambda m, g: 0.9 * m + g, moments, grads)
    params = jax.tree_util.tree_map(lambda p, m: p - 0.01 * m, params, moments)
    return params, moments, loss


def main():
    force, load = make_ropes(3000, 1)
    force_test, load_test = make_ropes(500, 2)
    params = init(jax.random.PRNGKey(7))
    moments = jax.tree_util.tree_map(jnp.zeros_like, params)
    rng = np.random.default_rng(5)
    for step in range(STEPS):
        pick = rng.integers(0, len(force), BATCH)
        params, moments, loss = train_step(params, moments, force[pick], load[pick])
        if step % 75 == 74:
            print(f"step {step + 1}: loss {float(loss):.5f}", flush=True)
    error = jax.jit(loss_fn)(params, force_test, load_test)
    print(f"test error {float(error):.5f}")


if __name__ == "__main__":
    main()
