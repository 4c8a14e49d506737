"""Classifies sequencing reads of different length (host or contaminant) with a small Flax network."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

READS = 3120
BATCH = 48


def simulate():
    rng = np.random.default_rng(6)
    reads, label = [], np.zeros(READS, np.int32)
    motif = np.array([1, 3, 2, 2, 4, 1, 1, 3])
    for i in range(READS):
        n = int(np.clip(rng.normal(190, 50), 40, 448))
        r = rng.integers(1, 5, n)
        if rng.random() < 0.5:
            for at in rng.integers(0, n - 8, 3):
                r[at:at + 8] = motif
            label[i] = 1
        reads.append(r)
    return reads, label


class ReadNet(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        mask = (tokens > 0)[..., None]
        x = nn.Embed(5, 32)(tokens) * mask
        for width in (64, 64, 64):
            h = nn.gelu(nn.Conv(width, (8,), padding="SAME")(x))
            x = nn.Dense(width)(h) * mask
        pooled = x.sum(1) / mask.sum(1)
        return nn.Dense(2)(nn.gelu(nn.Dense(64)(jnp.concatenate([pooled, x.max(1, where=mask, initial=-9.0)], -1))))


def collate(reads, pick):
    longest = max(len(reads[i]) for i in pick)
    out = np.zeros((len(pick), longest), np.int32)
    for row, i in enumerate(pick):
        out[row, :len(reads[i])] = reads[i]
    return out


def main():
    reads, label = simulate()
    net = ReadNet()
    tx = optax.adam(2e-3)
    params = net.init(jax.random.PRNGKey(0), jnp.zeros((1, 448), jnp.int32))
    opt_state = tx.init(params)

    @jax.jit
    def step(params, opt_state, tokens, y):
        def loss_fn(p):
            logits = net.apply(p, tokens)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        upd, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, upd), opt_state, loss

    rng = np.random.default_rng(1)
    seen = []
    order = rng.permutation(READS)
    for k in range(0, READS, BATCH):
        pick = order[k:k + BATCH]
        params, opt_state, loss = step(params, opt_state, collate(reads, pick), label[pick])
        seen.append(float(loss))
    print(f"{len(seen)} steps, loss {np.mean(seen[:10]):.3f} -> {np.mean(seen[-10:]):.3f}")


if __name__ == "__main__":
    main()
