"""DQN on a home-made cart-pole."""
import math
import random
from collections import deque

import torch
from torch import nn


class CartPole:
    def reset(self):
        self.s = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return list(self.s)

    def step(self, a):
        x, v, th, w = self.s
        force = 10.0 if a else -10.0
        c, s = math.cos(th), math.sin(th)
        tmp = (force + 0.05 * w * w * s) / 1.1
        acc = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        xa = tmp - 0.05 * acc * c / 1.1
        self.s = [x + 0.02 * v, v + 0.02 * xa, th + 0.02 * w, w + 0.02 * acc]
        self.t += 1
        done = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21 or self.t >= 200
        return list(self.s), 1.0, done


class Memory:
    def __init__(self, size):
        self.buf = deque(maxlen=size)

    def push(self, *tr):
        self.buf.append(tr)

    def sample(self, k):
        return random.sample(list(self.buf), k)


def main():
    torch.set_num_threads(1)
    random.seed(0)
    torch.manual_seed(0)
    q = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    tgt = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    tgt.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), 1e-3)
    env, mem = CartPole(), Memory(200_000)
    # random play first
    s = env.reset()
    for _ in range(200_000):
        a = random.randrange(2)
        s2, r, d = env.step(a)
        mem.push(s, a, r, s2, d)
        s = env.reset() if d else s2
    s = env.reset()
    for step in range(3500):
        with torch.no_grad():
            a = int(q(torch.tensor(s)).argmax()) if random.random() > 0.1 else random.randrange(2)
        s2, r, d = env.step(a)
        mem.push(s, a, r, s2, d)
        s = env.reset() if d else s2
        bs, ba, br, bs2, bd = zip(*mem.sample(64))
        with torch.no_grad():
            y = torch.tensor(br) + 0.99 * tgt(torch.tensor(bs2)).amax(1) * (~torch.tensor(bd))
        pred = q(torch.tensor(bs)).gather(1, torch.tensor(ba)[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(pred, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 200 == 0:
            tgt.load_state_dict(q.state_dict())
            print(step, float(loss), flush=True)


if __name__ == "__main__":
    main()
