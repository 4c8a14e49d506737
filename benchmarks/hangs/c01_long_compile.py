"""JAX: an unrolled recurrent network; all unroll lengths up to the largest get compiled first."""
import time

import jax
import jax.numpy as jnp
import numpy as np

T0 = time.monotonic()


def make_step(length):
    def loss(p, x, y):
        h = x
        for k in range(length):
            h = jnp.tanh(h @ p["w"] + p["b"] * (k % 7) + 1e-4 * k)
        return jnp.mean((h @ p["o"] - y) ** 2)

    def step(p, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda a, b: a - 1e-3 * b, p, g), value

    return jax.jit(step)


def main():
    rng = np.random.default_rng(0)
    p = {"w": jnp.asarray(rng.standard_normal((8, 8)) * 0.3, jnp.float32),
         "b": jnp.asarray(rng.standard_normal(8) * 0.1, jnp.float32),
         "o": jnp.asarray(rng.standard_normal((8, 1)), jnp.float32)}
    x = jnp.asarray(rng.standard_normal((4, 8)), jnp.float32)
    y = jnp.sum(x, axis=1, keepdims=True)
    length = 300
    while True:  # until one more length would take too long to compile
        t = time.monotonic()
        step = make_step(length)
        p, value = step(p, x, y)
        value.block_until_ready()
        took = time.monotonic() - t
        if took > 20 or time.monotonic() - T0 > 70 or length > 15_000:
            break
        length = int(length * 1.5)
    print(f"unroll length {length}: last compilation {took:.1f} s", flush=True)
    n = 0
    while time.monotonic() - T0 < 140:
        p, value = step(p, x, y)
        n += 1
        if n % 50 == 0:
            print(f"step {n} loss {float(value):.5f}", flush=True)
        time.sleep(0.02)
    print("done", n)


if __name__ == "__main__":
    main()
