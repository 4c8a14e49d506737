"""Fit a two-site binding model to the calorimetric titration of each ligand."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

LIGANDS, INJECTIONS, ITERATIONS = 44, 60, 300


def binding_heat(p, dose):
    """Heat per injection of two independent sites with a slow drift."""
    k1, k2 = jnp.exp(p["logk"][0]), jnp.exp(p["logk"][1])
    site1 = p["h"][0] * dose * k1 / (1.0 + dose * k1) ** 2
    site2 = p["h"][1] * dose * k2 / (1.0 + dose * k2) ** 2

    def memory(carry, now):
        carry = 0.6 * carry + 0.4 * now
        return carry, carry

    _, lagged = jax.lax.scan(memory, jnp.zeros(()), site1 + site2)
    return lagged + p["drift"][0] + p["drift"][1] * dose


simulate = jax.jit(binding_heat)


def titration(rng):
    dose = np.linspace(0.05, 6.0, INJECTIONS).astype(np.float32)
    truth = {"logk": jnp.array([rng.uniform(0, 2), rng.uniform(-2, 0)]),
             "h": jnp.array([rng.uniform(2, 5), rng.uniform(1, 3)]),
             "drift": jnp.array([0.1, 0.02])}
    heat = np.asarray(simulate(truth, dose)) + rng.normal(0, 0.02, INJECTIONS)
    return jnp.asarray(dose), jnp.asarray(heat, dtype=jnp.float32)


def misfit(p, dose, heat):
    return jnp.mean((binding_heat(p, dose) - heat) ** 2)


optimizer = optax.adam(0.03)


def fit_ligand(dose, heat):
    p = {"logk": jnp.array([1.0, -1.0]), "h": jnp.array([1.0, 1.0]), "drift": jnp.zeros(2)}
    s = optimizer.init(p)

    @jax.jit
    def update(p, s):
        loss, grad = jax.value_and_grad(misfit)(p, dose, heat)
        step, s = optimizer.update(grad, s)
        return optax.apply_updates(p, step), s, loss

    for _ in range(ITERATIONS):
        p, s, loss = update(p, s)
    return p, float(loss)


def main():
    rng = np.random.default_rng(8)
    best = []
    for ligand in range(LIGANDS):
        dose, heat = titration(rng)
        p, loss = fit_ligand(dose, heat)
        best.append(float(p["logk"].max()))
        if ligand % 11 == 10:
            print(f"ligand {ligand}: misfit {loss:.5f} log K {best[-1]:.3f}")
    print(f"median log K {np.median(best):.3f}")


if __name__ == "__main__":
    main()
