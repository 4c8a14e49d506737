"""Learns the force between bubbles of a raft by following their motion (JAX)."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

BUBBLES, RAFTS, FRAMES = 32, 4, 80
ITERATIONS = 120


def pair_force(distance, weights):
    hidden = jnp.tanh(distance[..., None] * weights["a"] + weights["b"])
    hidden = jnp.tanh(hidden @ weights["c"])
    return hidden @ weights["d"]


def true_force(distance):
    return 1.5 * jnp.exp(-3.0 * distance) - 0.4 * jnp.exp(-((distance - 1.0) ** 2) * 4.0)


def follow(place, law):
    def frame(place, _):
        gap = place[:, None] - place[None]
        distance = jnp.sqrt((gap**2).sum(-1) + 1e-3)
        push = (law(distance) * (1 - jnp.eye(BUBBLES)) / distance)[..., None] * gap
        place = place + 0.02 * push.sum(1) - 0.002 * place
        return place, place

    return jax.lax.scan(frame, place, None, length=FRAMES)[1]


def main():
    keys = jax.random.split(jax.random.PRNGKey(41), 5)
    start = 2.0 * jax.random.normal(keys[0], (RAFTS, BUBBLES, 2))
    seen = jax.jit(jax.vmap(lambda p: follow(p, true_force)))(start)
    weights = {
        "a": jax.random.normal(keys[1], (24,)),
        "b": jax.random.normal(keys[2], (24,)),
        "c": 0.2 * jax.random.normal(keys[3], (24, 24)),
        "d": 0.05 * jax.random.normal(keys[4], (24,)),
    }
    optimizer = optax.adam(3e-3)

    @jax.jit
    def step(weights, state, start, seen):
        def loss(w):
            path = jax.vmap(lambda p: follow(p, lambda d: pair_force(d, w)))(start)
            return ((path - seen) ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(weights)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(weights, updates), state, value

    state = optimizer.init(weights)
    for iteration in range(ITERATIONS):
        weights, state, value = step(weights, state, start, seen)
        if iteration % 40 == 39:
            print(f"iteration {iteration + 1}: error {float(value):.6f}")
    distance = jnp.array([0.3, 1.0, 2.0])
    print("learnt", np.asarray(pair_force(distance, weights)).round(3))
    print("true  ", np.asarray(true_force(distance)).round(3))


if __name__ == "__main__":
    main()
