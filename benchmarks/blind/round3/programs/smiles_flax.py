"""Solubility from molecule strings with a GRU (Flax, Optax)."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

ALPHABET, HIDDEN, BATCH, STEPS = 40, 128, 64, 140


def molecules(n=4000, seed=8):
    rng = np.random.default_rng(seed)
    length = np.clip(rng.lognormal(3.0, 0.3, n), 8, 37).astype(int)
    weight = rng.normal(size=ALPHABET)
    strings, target = [], []
    for size in length:
        s = rng.integers(1, ALPHABET, size)
        strings.append(s)
        target.append(np.tanh(weight[s].mean() * 2) + 0.01 * size + 0.05 * rng.normal())
    return strings, np.array(target, np.float32)


def pad_batch(strings):
    longest = max(len(s) for s in strings)
    ids = np.zeros((len(strings), longest), np.int32)
    for row, s in enumerate(strings):
        ids[row, :len(s)] = s
    return ids, (ids > 0).astype(np.float32)


class Solubility(nn.Module):
    @nn.compact
    def __call__(self, ids, mask):
        x = nn.Embed(ALPHABET, 48)(ids)
        size = mask.sum(1).astype(jnp.int32)
        forward = nn.RNN(nn.GRUCell(HIDDEN), return_carry=True)
        carry, _ = forward(x, seq_lengths=size)
        h = nn.tanh(nn.Dense(64)(jnp.concatenate([carry, mask.sum(1, keepdims=True) / 50], -1)))
        return nn.Dense(1)(h)[:, 0]


model = Solubility()
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(2e-3))


@jax.jit
def update(params, state, ids, mask, y):
    def cost(p):
        return jnp.mean((model.apply(p, ids, mask) - y) ** 2)

    value, grads = jax.value_and_grad(cost)(params)
    change, state = tx.update(grads, state, params)
    return optax.apply_updates(params, change), state, value


def main():
    strings, target = molecules()
    rng = np.random.default_rng(0)
    ids, mask = pad_batch(strings[:BATCH])
    params = model.init(jax.random.PRNGKey(0), ids, mask)
    state = tx.init(params)
    losses = []
    for step in range(STEPS):
        rows = rng.integers(0, len(strings), BATCH)
        ids, mask = pad_batch([strings[i] for i in rows])
        params, state, value = update(params, state, ids, mask, target[rows])
        losses.append(value)
    losses = np.array(losses)
    print(f"squared error: first 20 steps {losses[:20].mean():.3f}, last 20 steps {losses[-20:].mean():.3f}")


if __name__ == "__main__":
    main()
