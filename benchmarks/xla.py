"""Compiled steps on this machine's CPU, as ratios: to eager mutagrad, and to the same written by hand for JAX.

    python benchmarks/xla.py [row ...]

Each row alternates the two and takes the best of several; a bound that is missed is marked.
"""
from __future__ import annotations

import os
import sys
import time

os.environ["MUTAGRAD_CACHE"] = "0"  # or a second run would find the first calls' programs on disk

import jax
import jax.numpy as jnp
import numpy as np

import gpu
import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F


def best(*calls, rounds=12, seconds=0.4):
    """The best time of each call, in alternation."""
    counts = []
    for call in calls:
        for _ in range(5):  # the first ones trace and compile
            call()
        start = time.perf_counter()
        for _ in range(5):
            call()
        counts.append(max(1, int(5 * seconds / 4 / max(time.perf_counter() - start, 1e-6))))
    found = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, (call, count) in enumerate(zip(calls, counts)):
            start = time.perf_counter()
            for _ in range(min(count, 400)):
                call()
            found[k] = min(found[k], (time.perf_counter() - start) / min(count, 400))
    return found


ROWS = {}


def row(bound):
    def enter(function):
        ROWS[function.__name__] = function, bound
        return function
    return enter


def show(name, what, ratio, bound, detail):
    mark = "" if ratio <= bound else "  MISSED"
    print(f"{name:12} {what:42} {ratio:7.3f}   at most {bound:g}{mark}   ({detail})", flush=True)


def ms(seconds):
    return f"{seconds * 1e3:.3f} ms"


def step_of(model, optimizer, loss_of):
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


@row(0.3)
def tiny(bound):
    def made(device):
        mg.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
        return step_of(model, mg.optim.SGD(model.parameters(), lr=0.1), F.mse_loss), mg.randn(16, 4).to(device), mg.randn(16, 1).to(device)

    eager, x, y = made("cpu")
    compiled, dx, dy = made("xla")
    compiled = mg.compile(compiled)
    a, b = best(lambda: eager(x, y), lambda: compiled(dx, dy))
    show("tiny", "MLP step 4-8-1, SGD: compiled / eager", b / a, bound, f"{ms(b)} / {ms(a)}")
    program = compiled.last
    tensors = [dx, dy]
    given = [[m.value(m.root(tensors), tensors) for m in (program.memories[k] for k in ks)] for ks in (program.donated, program.kept)]
    tables = program.tables
    state = [[jnp.array(v, copy=True) for v in given[0]], [table.held + 0 for table in tables]]
    reused = [k for k, (owner, _, _) in enumerate(program.outputs) if owner is not None]
    spare = [jnp.zeros(program.outputs[k][2].shape, program.outputs[k][2].dtype) for k in reused]

    def bare():
        """The same call of the jitted function, with nothing around it."""
        out = program.jitted(state[0], given[1], [table.values for table in tables], [], list(spare), state[1])
        state[0], state[1] = list(out[:len(program.written)]), list(out[len(out) - len(tables):])
        for place, k in enumerate(reused):
            spare[place] = out[len(program.written) + k]

    a, b = best(bare, lambda: compiled(dx, dy))
    show("call", "a compiled call over the jitted function, us", (b - a) * 1e6, 30, f"{b * 1e6:.0f} us / {a * 1e6:.0f} us")


@row(1.1)
def mlp(bound):
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to("xla")
    step = mg.compile(step_of(model, mg.optim.Adam(model.parameters(), lr=1e-3), F.cross_entropy))
    x, y = mg.randn(128, 784).to("xla"), mg.randint(0, 10, (128,)).to("xla")

    rng = np.random.default_rng(0)
    sizes = [(784, 512), (512, 512), (512, 10)]
    params = [(jnp.array(rng.standard_normal(s) * 0.03, jnp.float32), jnp.zeros(s[1], jnp.float32)) for s in sizes]
    jx, jy = jnp.array(x.cpu().numpy()), jnp.array(y.cpu().numpy())

    def loss_of(params, x, y):
        for k, (w, b) in enumerate(params):
            x = x @ w + b
            x = jax.nn.relu(x) if k < 2 else x
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()

    def by_hand(state, x, y):
        params, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(params, x, y)
        t = t + 1
        m = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree_util.tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate = (1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)).astype(jnp.float32)
        params = jax.tree_util.tree_map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return (params, m, v, t), loss

    by_hand = jax.jit(by_hand, donate_argnums=0)
    state = [(params, jax.tree_util.tree_map(jnp.zeros_like, params), jax.tree_util.tree_map(jnp.zeros_like, params), jnp.float32(0))]

    def jax_step():
        state[0], loss = by_hand(state[0], jx, jy)
        loss.block_until_ready()

    a, b = best(jax_step, lambda: step(x, y).item())
    show("mlp", "MLP step 784-512-512-10, Adam: / jax.jit", b / a, bound, f"{ms(b)} / {ms(a)}")


@row(2.0)
def wave(bound):
    size, times = 32, 200
    floats = mg.randperm(size * size)[:60]
    seen = 0.1 * mg.randn(times, 60)

    def simulate(start, floats, rounds):
        height, speed = start.clone(), mg.zeros_like(start)
        record = mg.zeros(times, len(floats), device=start.device)
        inside, pushed = height[1:-1, 1:-1], speed[1:-1, 1:-1]
        above, below, left, right = height[:-2, 1:-1], height[2:, 1:-1], height[1:-1, :-2], height[1:-1, 2:]

        def one(t):
            pushed.add_(0.25 * (above + below + left + right - 4 * inside) - 0.02 * inside ** 3)
            inside.add_(pushed)
            record[t] = height.view(-1)[floats]

        rounds(times, one)
        return record

    def made(device, rounds):
        guess = mg.zeros(size - 2, size - 2, device=device, requires_grad=True)
        optimizer, places, wanted = mg.optim.Adam([guess], lr=0.05), floats.to(device), seen.to(device)

        def step():
            start = mg.zeros(size, size, device=device)
            start[1:-1, 1:-1] = guess
            optimizer.zero_grad()
            loss = F.mse_loss(simulate(start, places, rounds), wanted)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    def rounds(n, body):
        for i in range(n):
            body(i)

    eager, compiled = made("cpu", rounds), mg.compile(made("xla", mg.loop))
    jfloats, jseen = jnp.array(floats.numpy()), jnp.array(seen.numpy())

    def loss_of(guess):
        height = jnp.zeros((size, size), jnp.float32).at[1:-1, 1:-1].set(guess)
        speed = jnp.zeros((size - 2, size - 2), jnp.float32)

        def one(carry, _):
            h, s = carry
            i = h[1:-1, 1:-1]
            s = s + 0.25 * (h[:-2, 1:-1] + h[2:, 1:-1] + h[1:-1, :-2] + h[1:-1, 2:] - 4 * i) - 0.02 * i ** 3
            h = h.at[1:-1, 1:-1].add(s)
            return (h, s), h.reshape(-1)[jfloats]

        _, record = jax.lax.scan(one, (height, speed), None, length=times)
        return ((record - jseen) ** 2).mean()

    def by_hand(g, m, v, k):
        loss, d = jax.value_and_grad(loss_of)(g)
        k, m, v = k + 1, 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d * d
        return g - 0.05 / (1 - 0.9 ** k) * m / (jnp.sqrt(v) / jnp.sqrt(1 - 0.999 ** k) + 1e-8), m, v, k, loss

    by_hand = jax.jit(by_hand, donate_argnums=(0, 1, 2))
    state = [jnp.zeros((size - 2, size - 2), jnp.float32) for _ in range(3)] + [jnp.float32(0)]

    def jax_step():
        *state[:], loss = by_hand(*state)
        loss.block_until_ready()

    e, a, b = best(eager, jax_step, lambda: compiled().item(), rounds=8)
    show("wave", "200 in-place steps by loop: compiled / eager", b / e, 0.06, f"{ms(b)} / {ms(e)}")
    show("wave", "the same: / lax.scan by hand", b / a, bound, f"{ms(b)} / {ms(a)}; traced in {compiled.last.seconds:.2f} s, compiled in {compiled.last.compile_seconds:.2f} s")


@row(1.5)
def gpt(bound):
    """The first call of a small GPT: tracing and compiling."""
    gpu.VOCABULARY, gpu.CONTEXT, gpu.WIDTH, gpu.HEADS, gpu.LAYERS, gpu.BATCH = 128, 128, 128, 4, 4, 8
    step, state = gpu.gpt_by_hand()
    a = gpu.first(lambda: jax.jit(step)(state)[1], lambda r: r.block_until_ready())
    compiled = mg.compile(gpu.gpt_of(mg, "xla", 4, 8)[0])
    b = gpu.first(compiled, lambda r: r.item())
    show("gpt", "first call of a small GPT: / jax.jit", b / a, bound, f"{b:.1f} s / {a:.1f} s; traced in {compiled.last.seconds:.1f} s, {compiled.last.equations} equations")


def main(names):
    for name, (function, bound) in ROWS.items():
        if not names or name in names:
            function(bound)


if __name__ == "__main__":
    main(sys.argv[1:])
