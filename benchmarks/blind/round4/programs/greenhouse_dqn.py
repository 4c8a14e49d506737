"""Double DQN for a greenhouse climate controller (JAX, optax)."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

SENSORS, ACTIONS = 40, 5
CAPACITY, BATCH, STEPS = 20_000, 256, 2400
GAMMA = 0.97


class Greenhouse:
    """Linear heat and humidity exchange between 40 zones, five actuator programmes."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        mix = self.rng.random((SENSORS, SENSORS)) ** 6
        self.exchange = 0.93 * mix / mix.sum(1, keepdims=True)
        self.effect = self.rng.normal(0, 0.25, (ACTIONS, SENSORS))
        self.reset()

    def reset(self):
        self.zones = self.rng.normal(0, 1, SENSORS)
        self.age = 0
        return self.zones.astype(np.float32)

    def step(self, action):
        weather = 0.1 * self.rng.standard_normal(SENSORS)
        self.zones = self.exchange @ self.zones + self.effect[action] + weather
        self.age += 1
        reward = -float(np.mean(self.zones**2))
        return self.zones.astype(np.float32), reward, self.age >= 120


def init_net(key, sizes):
    net = []
    for k, n_in, n_out in zip(jax.random.split(key, len(sizes) - 1), sizes[:-1], sizes[1:]):
        net.append((jax.random.normal(k, (n_in, n_out)) * np.sqrt(2 / n_in), jnp.zeros(n_out)))
    return net


def q_values(net, obs):
    for w, b in net[:-1]:
        obs = jax.nn.relu(obs @ w + b)
    w, b = net[-1]
    return obs @ w + b


optimizer = optax.adam(5e-4)
greedy = jax.jit(lambda net, obs: jnp.argmax(q_values(net, obs[None])[0]))


@jax.jit
def learn(net, target, opt_state, batch):
    def loss_fn(net):
        chosen = jnp.argmax(q_values(net, batch["next_obs"]), axis=1)
        after = jnp.take_along_axis(q_values(target, batch["next_obs"]), chosen[:, None], axis=1)[:, 0]
        goal = batch["reward"] + GAMMA * (1 - batch["done"]) * jax.lax.stop_gradient(after)
        now = jnp.take_along_axis(q_values(net, batch["obs"]), batch["action"][:, None], axis=1)[:, 0]
        return jnp.mean(optax.huber_loss(now, goal))

    loss, grads = jax.value_and_grad(loss_fn)(net)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(net, updates), opt_state, loss


def main():
    env = Greenhouse(4)
    rng = np.random.default_rng(8)
    net = init_net(jax.random.PRNGKey(0), [SENSORS, 256, 256, ACTIONS])
    target, opt_state = net, optimizer.init(net)
    memory = {
        "obs": jnp.zeros((CAPACITY, SENSORS), jnp.float32),
        "next_obs": jnp.zeros((CAPACITY, SENSORS), jnp.float32),
        "action": jnp.zeros(CAPACITY, jnp.int32),
        "reward": jnp.zeros(CAPACITY, jnp.float32),
        "done": jnp.zeros(CAPACITY, jnp.float32),
    }
    obs, total, returns = env.reset(), 0.0, []
    for step in range(STEPS):
        explore = rng.random() < max(0.05, 1 - step / 1200)
        action = int(rng.integers(ACTIONS)) if explore else int(greedy(net, obs))
        next_obs, reward, done = env.step(action)
        row = {"obs": obs, "next_obs": next_obs, "action": action, "reward": reward, "done": float(done)}
        slot = step % CAPACITY
        for name, value in row.items():
            memory[name] = memory[name].at[slot].set(value)
        total += reward
        obs = next_obs
        if done:
            returns.append(total)
            obs, total = env.reset(), 0.0
        if step >= BATCH:
            pick = rng.integers(0, min(step + 1, CAPACITY), BATCH)
            batch = {name: column[pick] for name, column in memory.items()}
            net, opt_state, loss = learn(net, target, opt_state, batch)
        if step % 200 == 0:
            target = net
    print(f"{len(returns)} episodes, first five {np.mean(returns[:5]):.1f}, last five {np.mean(returns[-5:]):.1f}")


if __name__ == "__main__":
    main()
