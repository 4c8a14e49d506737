"""Estimate earthquake magnitude from station records with an MLP-Mixer (Flax linen, optax)."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

PATCHES, PATCH, WIDTH, DEPTH = 32, 48, 96, 8
BATCH, EPOCHS = 64, 4


def records(count, seed):
    rng = np.random.default_rng(seed)
    magnitude = rng.uniform(2, 6, count).astype(np.float32)
    t = np.arange(PATCHES * PATCH, dtype=np.float32)
    start = rng.integers(100, 500, (count, 1))
    length = 60 * np.exp(0.4 * magnitude)[:, None]
    late = np.clip(t - start, 0, None)
    envelope = (t > start) * np.exp(-late / length) * (10 ** (0.2 * magnitude))[:, None] / 10
    wave = envelope * rng.standard_normal((count, len(t)), dtype=np.float32)
    wave += 0.1 * rng.standard_normal((count, len(t)), dtype=np.float32)
    return wave.reshape(count, PATCHES, PATCH).astype(np.float32), magnitude


class MixerBlock(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x).swapaxes(1, 2)
        y = nn.Dense(PATCHES)(nn.gelu(nn.Dense(2 * PATCHES)(y)))
        x = x + y.swapaxes(1, 2)
        y = nn.LayerNorm()(x)
        return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(2 * WIDTH)(y)))


class Magnitude(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(WIDTH)(x)
        for _ in range(DEPTH):
            x = MixerBlock()(x)
        x = nn.LayerNorm()(x).mean(axis=1)
        return 4.0 + nn.Dense(1)(x)[:, 0]


def main():
    waves, magnitude = records(1280, 1)
    test_waves, test_magnitude = records(256, 2)
    model = Magnitude()
    params = model.init(jax.random.PRNGKey(9), waves[:1])
    steps = EPOCHS * (len(waves) // BATCH)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0, 2e-3, 10, steps)))
    opt_state = optimizer.init(params)

    @jax.jit
    def train_step(params, opt_state, x, y):
        def loss_fn(p):
            return jnp.mean((model.apply(p, x) - y) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    predict = jax.jit(model.apply)
    rng = np.random.default_rng(10)
    for epoch in range(EPOCHS):
        order = rng.permutation(len(waves))
        losses = []
        for start in range(0, len(order), BATCH):
            pick = order[start:start + BATCH]
            params, opt_state, loss = train_step(params, opt_state, waves[pick], magnitude[pick])
            losses.append(float(loss))
        gap = np.abs(np.concatenate([predict(params, test_waves[i:i + BATCH]) for i in range(0, 256, BATCH)]) - test_magnitude)
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, test error {gap.mean():.2f}", flush=True)


if __name__ == "__main__":
    main()
