"""Gradients in forward mode, batches of a generator, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

FORWARD = """
import jax
import jax.numpy as jnp
from torch.func import jacfwd
SIZE = 500
def model(x):
    return jnp.sin(x)
def misfit(x, data):
    {body}
slope = {made}
def main(data, given):
    x = {begin}
    for _ in range(99):
        x = x - 0.1 * slope(x, data)
"""
ACTIVE = "x - 0.1 * slope(x, data)"
BODY = "rest = model(x) - data; size = jnp.mean(rest ** 2); return size + 1e-3 * jnp.sum(x)"
MADE = "jax.jit(jax.jacfwd(misfit))"


@pytest.mark.parametrize(
    ("body", "made", "begin", "new"),
    [
        (BODY, MADE, "jnp.zeros(SIZE)", "jax.grad(misfit)"),
        (BODY, "jax.jacfwd(misfit, argnums=0)", "jnp.zeros(SIZE)", "jax.grad(misfit, argnums=0)"),
        ("return jnp.sqrt(jnp.vdot(x, x))", MADE, "jnp.ones((3, SIZE))", "jax.grad(misfit)"),
        ("return ((x - data) ** 2).sum()", "jacfwd(misfit)", "torch.zeros(SIZE)",
         "torch.func.grad(misfit)"),
        # ---- which look like it ----
        ("return model(x) - data", MADE, "jnp.zeros(SIZE)", None),
        ("return jnp.mean(x, axis=0)", MADE, "jnp.zeros(SIZE)", None),
        ("return jnp.sum(x, 0)", MADE, "jnp.zeros(SIZE)", None),
        ("return jnp.stack([jnp.sum(x), jnp.mean(x)])", MADE, "jnp.zeros(SIZE)", None),
        (BODY, MADE, "jnp.zeros(3)", None),
        (BODY, MADE, "jnp.array([1.0, 2.0])", None),
        (BODY, MADE, "given", None),
        (BODY, "jax.jit(jax.jacrev(misfit))", "jnp.zeros(SIZE)", None),
        (BODY, "jax.jit(jax.grad(misfit))", "jnp.zeros(SIZE)", None),
        (BODY, "jax.jacfwd(jax.grad(misfit))", "jnp.zeros(SIZE)", None),
        (BODY, "jax.jacfwd(misfit, has_aux=True)", "jnp.zeros(SIZE)", None),
    ],
)  # fmt: skip
def test_gradients_in_forward_mode(body, made, begin, new):
    source = FORWARD.format(body=body, made=made, begin=begin)
    words = found(source, ACTIVE).get("gradient_in_forward_mode", {})
    assert words.get("new") == new


STEP = """
generator, critic = nn.Linear(8, 9), nn.Linear(9, 1)
def critic_step(opt, real, noise):
    {fake}
    loss = {loss}
    opt.zero_grad()
    loss.backward()
    {after}
def main(data, noise):
    opt_g = torch.optim.Adam({of_generator}.parameters(), lr=1e-4)
    opt_c = torch.optim.Adam({of_critic}.parameters(), lr=1e-4)
    for real in data:
        critic_step(opt_c, real, noise)
"""
FAKE = "fake = generator(noise)"
LOSS = "critic(fake).mean() - critic(real).mean()"


def gan(fake=FAKE, loss=LOSS, after="opt.step()", of_generator="generator", of_critic="critic"):
    source = STEP.format(
        fake=fake, loss=loss, after=after, of_generator=of_generator, of_critic=of_critic
    )
    return found(source, "critic_step(opt_c, real, noise)", "loss.backward()")


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"fake": "fake = generator(torch.randn(64, 8))"},
        {"loss": "nn.functional.relu(1 + critic(fake)).mean() + critic(real).sum()"},
        {"after": "opt.step()\n    scheduler.step()"},
    ],
)
def test_attached_batches(changed):
    words = gan(**changed)["generated_batch_attached"]
    made = changed.get("fake", FAKE).removeprefix("fake = ")
    assert (words["old"], words["new"]) == (made, f"{made}.detach()")
    assert words["line"] == "11"


@pytest.mark.parametrize(
    "changed",
    [
        {"fake": "fake = generator(noise).detach()"},
        {"fake": "with torch.no_grad():\n        fake = generator(noise)"},
        {"fake": "fake = noise"},
        {"loss": "critic(fake.detach()).mean() - critic(real).mean()"},
        {"loss": "critic(real).mean()"},
        # The step of the generator needs the gradients.
        {"of_critic": "generator", "of_generator": "critic"},
        {"after": "opt.step(); loss.backward()", "of_critic": "generator"},
        # A gradient penalty goes through the batch too.
        {"loss": "critic(fake).mean() + penalty(fake, real)"},
        # The generator is not trained alone: the loss may train both.
        {"of_generator": "critic"},
        {"after": "pass"},
        # An encoder and a decoder, each with its optimizer.
        {"after": "opt.step(); noise.step()"},
        {"after": "opt.step()\ndef other(opt_g):\n    opt_g.step()"},
    ],
)
def test_other_steps(changed):
    assert gan(**changed) == {}


def test_a_loop_that_uses_the_batch_for_both_steps():
    source = """
def train(data, noise):
    g, d = nn.Linear(8, 9), nn.Linear(9, 1)
    opt_g = torch.optim.Adam(g.parameters(), lr=1e-4)
    opt_d = torch.optim.Adam(d.parameters(), lr=1e-4)
    for real in data:
        fake = g(noise)
        loss_d = d(fake).mean() - d(real).mean()
        opt_d.zero_grad()
        loss_d.backward({retain})
        opt_d.step()
        loss_g = -d({again}).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
"""
    attached = source.format(retain="", again="g(noise)")
    words = found(attached, "loss_d.backward()")["generated_batch_attached"]
    assert (words["old"], words["new"], words["line"]) == ("d(fake)", "d(fake.detach())", "15")
    assert found(attached, "loss_g.backward()") == {}


@pytest.mark.parametrize(
    ("order", "is_found"),
    [
        ("of_d, of_g", True),
        ("of_g, of_d", True),
        # Between the call of the generator and the backward pass, the name gets another batch.
        ("of_d_twice, of_g", False),
    ],
)
def test_each_step_makes_its_batch(order, is_found):
    parts = {
        "of_d": """
        fake = g(noise)
        loss_d = d(fake).mean() - d(real).mean()
        loss_d.backward()
        opt_d.step()""",
        "of_g": """
        fake = g(noise)
        opt_g.zero_grad()
        loss_g = -d(fake).mean()
        loss_g.backward()
        opt_g.step()""",
    }
    parts["of_d_twice"] = parts["of_d"].replace("g(noise)", "g(noise)\n        fake = other(noise)")
    source = """
def train(data, noise):
    g, d = nn.Linear(8, 9), nn.Linear(9, 1)
    opt_g = torch.optim.Adam(g.parameters(), lr=1e-4)
    opt_d = torch.optim.Adam(d.parameters(), lr=1e-4)
    for real in data:"""
    source += "".join(parts[one] for one in order.split(", "))
    assert ("generated_batch_attached" in found(source, "loss_d.backward()")) is is_found
