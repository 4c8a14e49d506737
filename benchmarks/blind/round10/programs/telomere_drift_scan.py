"""A small recurrent model of telomere length along long cell lines (jax, one scan per series)."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

LINES, DIVISIONS, INPUTS, HIDDEN = 8, 2000, 4, 48
STEPS = 110


def lineages(seed):
    rng = np.random.default_rng(seed)
    stress = rng.normal(size=(DIVISIONS, LINES, INPUTS)).astype(np.float32)
    length = np.full(LINES, 10.0)
    memory = np.zeros(LINES)
    series = np.zeros((DIVISIONS, LINES), np.float32)
    for k in range(DIVISIONS):
        memory = 0.97 * memory + 0.03 * np.maximum(stress[k, :, 0], 0) * stress[k, :, 1]
        length = length - 0.01 * length - 0.2 * memory + 0.1
        series[k] = length
    return jnp.asarray(stress), jnp.asarray((series - series.mean()) / series.std())


def init(key):
    keys = jax.random.split(key, 4)
    return {
        "in": 0.3 * jax.random.normal(keys[0], (INPUTS, 2 * HIDDEN)),
        "rec": 0.1 * jax.random.normal(keys[1], (HIDDEN, 2 * HIDDEN)),
        "bias": jnp.concatenate([jnp.full(HIDDEN, 2.0), jnp.zeros(HIDDEN)]),
        "out": 0.1 * jax.random.normal(keys[2], (HIDDEN,)),
    }


def main():
    stress, target = lineages(80)
    params = init(jax.random.PRNGKey(8))
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
    opt_state = tx.init(params)

    def loss_fn(params):
        driven = stress @ params["in"] + params["bias"]

        def division(h, d):
            keep, new = jnp.split(d + h @ params["rec"], 2, axis=1)
            keep = jax.nn.sigmoid(keep)
            h = keep * h + (1 - keep) * jnp.tanh(new)
            return h, h

        _, states = jax.lax.scan(division, jnp.zeros((LINES, HIDDEN)), driven)
        return jnp.mean((states @ params["out"] - target) ** 2)

    @jax.jit
    def step(params, opt_state):
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    for it in range(STEPS):
        params, opt_state, loss = step(params, opt_state)
        if (it + 1) % 22 == 0:
            print(f"step {it + 1}  mean square error {float(loss):.4f}")
    print(f"lines {LINES}, divisions {DIVISIONS}")


if __name__ == "__main__":
    main()
