"""Three programs on a GPU: compiled mutagrad, the same by hand in JAX, and PyTorch. Times in milliseconds.

    python benchmarks/gpu.py [mlp] [wave] [gpt] [--no-torch]

Each is written as a user of its library would write it. PyTorch is left out where it is not installed.
"""
from __future__ import annotations

import os
import sys
import time
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

import mutagrad as mg
from mutagrad.nn import functional as F

DEVICE = "cuda" if mg.cuda.is_available() else "xla"
WITH_TORCH = "--no-torch" not in sys.argv


def first(call, wait):
    begun = time.perf_counter()
    wait(call())
    return time.perf_counter() - begun


class Row:
    """One library's step: what a call is, how to wait for its result, and how long the first one took."""

    def __init__(self, library, call, wait):
        self.library, self.call, self.wait = library, call, wait
        self.first = first(call, wait)
        self.best = float("inf")
        for _ in range(2):  # state that the first call has made may make a program of its own
            call()
        self.count = max(1, min(50, int(0.2 / max(first(call, wait), 1e-5))))

    def measure(self):
        begun = time.perf_counter()
        for _ in range(self.count):
            last = self.call()
        self.wait(last)
        self.best = min(self.best, (time.perf_counter() - begun) / self.count * 1e3)


def show(name, rows, rounds=10):
    """Measure the rows in alternation, and print the best of each in milliseconds."""
    for _ in range(rounds):
        for row in rows:
            row.measure()
    base = {row.library: row.best for row in rows}.get("jax")
    for row in rows:
        ratio = f"{row.best / base:6.2f} of jax.jit" if base else ""
        print(f"{name:6} {row.library:18} {row.best:9.3f} ms   {ratio}   first call {row.first:.1f} s", flush=True)


def ours(step, *arguments):
    compiled = mg.compile(step)
    return Row("mutagrad", lambda: compiled(*arguments), lambda r: r.item())


def theirs(step, state):
    jitted = jax.jit(step, donate_argnums=0)
    holder = [state]

    def call():
        holder[0], loss = jitted(holder[0])
        return loss

    return Row("jax", call, lambda r: r.block_until_ready())


def torchs(name, step):
    return Row(name, step, lambda r: r.item())


def adam(params, grads, m, v, t, lr=1e-3, eps=1e-8, decay=0.0):
    t = t + 1
    each = jax.tree_util.tree_map
    m = each(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = each(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    rate = lr * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
    new = each(lambda p, m, v: (p * (1 - lr * decay) - rate.astype(p.dtype) * m / (jnp.sqrt(v) + eps)).astype(p.dtype), params, m, v)
    return new, m, v, t


def started(params):
    zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
    return params, zeros, jax.tree_util.tree_map(jnp.zeros_like, params), jnp.float32(0)


# ---------------------------------------------------------------------------------------------------------------- mlp

SIZES = (784, 512, 512, 10)


def mlp_of(lib, device, compiled):
    layers = []
    for a, b in pairwise(SIZES):
        layers += [lib.nn.Linear(a, b), lib.nn.ReLU()]
    model = lib.nn.Sequential(*layers[:-1]).to(device)
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    x, y = lib.randn(128, 784, device=device), lib.randint(0, 10, (128,), device=device)

    def step():
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def mlp():
    rng = np.random.default_rng(0)
    params = [(jnp.array(rng.standard_normal(s) * 0.03, jnp.float32), jnp.zeros(s[1], jnp.float32)) for s in pairwise(SIZES)]
    x, y = jnp.array(rng.standard_normal((128, 784)), jnp.float32), jnp.array(rng.integers(0, 10, 128))

    def loss_of(params):
        h = x
        for k, (w, b) in enumerate(params):
            h = jnp.matmul(h, w, precision="highest") + b
            h = jax.nn.relu(h) if k < 2 else h
        return -jnp.take_along_axis(jax.nn.log_softmax(h), y[:, None], 1).mean()

    def step(state):
        params, m, v, t = state
        loss, grads = jax.value_and_grad(loss_of)(params)
        return adam(params, grads, m, v, t), loss

    rows = [ours(mlp_of(mg, DEVICE, True)), theirs(step, started(params))]
    if torch is not None:
        rows.append(torchs("torch eager", mlp_of(torch, "cuda", False)))
    show("mlp", rows)


# --------------------------------------------------------------------------------------------------------------- wave

SMALL = os.environ.get("SMALL")
CELLS, TIMES = (50, 20) if SMALL else (1000, 500)


def wave():
    rng = np.random.default_rng(0)
    start, seen = (rng.standard_normal((CELLS, CELLS)).astype(np.float32) * 0.1 for _ in range(2))

    def loss_of(start):
        def one(carry, _):
            h, s = carry
            i = h[1:-1, 1:-1]
            s = s + 0.25 * (h[:-2, 1:-1] + h[2:, 1:-1] + h[1:-1, :-2] + h[1:-1, 2:] - 4 * i) - 0.02 * i ** 3
            return (h.at[1:-1, 1:-1].add(s), s), None

        (h, _), _ = jax.lax.scan(one, (start, jnp.zeros((CELLS - 2, CELLS - 2), jnp.float32)), None, length=TIMES)
        return ((h - jnp.asarray(seen)) ** 2).mean()

    def by_hand(state):
        loss, g = jax.value_and_grad(loss_of)(state)
        return state - 0.1 * g, loss

    x = mg.tensor(start).to(DEVICE).requires_grad_()
    wanted = mg.tensor(seen).to(DEVICE)

    def step():
        height, speed = x.clone(), mg.zeros(CELLS - 2, CELLS - 2, device=DEVICE)
        inside = height[1:-1, 1:-1]
        above, below, left, right = height[:-2, 1:-1], height[2:, 1:-1], height[1:-1, :-2], height[1:-1, 2:]

        def one(t):
            speed.add_(0.25 * (above + below + left + right - 4 * inside) - 0.02 * inside ** 3)
            inside.add_(speed)

        mg.loop(TIMES, one)
        x.grad = None
        loss = F.mse_loss(height, wanted)
        loss.backward()
        with mg.no_grad():
            x.sub_(0.1 * x.grad)
        return loss.detach()

    rows = [ours(step), theirs(by_hand, jnp.asarray(start))]
    if torch is not None:
        p, target = torch.tensor(start, device="cuda", requires_grad=True), torch.tensor(seen, device="cuda")

        def torch_step():
            h, s = p, torch.zeros(CELLS - 2, CELLS - 2, device="cuda")
            for _ in range(TIMES):
                i = h[1:-1, 1:-1]
                s = s + 0.25 * (h[:-2, 1:-1] + h[2:, 1:-1] + h[1:-1, :-2] + h[1:-1, 2:] - 4 * i) - 0.02 * i ** 3
                h = h.clone()
                h[1:-1, 1:-1] += s
            p.grad = None
            loss = torch.nn.functional.mse_loss(h, target)
            loss.backward()
            with torch.no_grad():
                p.sub_(0.1 * p.grad)
            return loss.detach()

        rows.append(torchs("torch eager", torch_step))
    show("wave", rows)


# ---------------------------------------------------------------------------------------------------------------- gpt

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, BATCH = (100, 64, 48, 4, 2, 2) if SMALL else (50257, 1024, 768, 12, 12, 8)


def gpt_of(lib, device, layers=LAYERS, batch=BATCH):
    nn, functional = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(WIDTH, dim=2)
            q, k, v = (z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in (q, k, v))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(WIDTH)
            for p in self.parameters():
                nn.init.normal_(p, std=0.02)

        def forward(self, x):
            h = self.tokens(x) + self.places(lib.arange(x.shape[1], device=x.device))
            for block in self.blocks:
                h = block(h)
            return self.norm(h) @ self.tokens.weight.t()

    model = GPT().to(device).to(lib.bfloat16)
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4)
    x = lib.randint(0, VOCABULARY, (batch, CONTEXT), device=device)
    y = lib.randint(0, VOCABULARY, (batch, CONTEXT), device=device)

    def step(forward=model):
        optimizer.zero_grad()
        loss = functional.cross_entropy(forward(x).view(-1, VOCABULARY), y.view(-1))
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, model


def gpt_by_hand():
    keys = iter(jax.random.split(jax.random.key(0), 1000))

    def weight(*shape):
        return (0.02 * jax.random.normal(next(keys), shape, jnp.float32)).astype(jnp.bfloat16)

    def linear(a, b):
        return weight(a, b), weight(b)

    params = {"tokens": weight(VOCABULARY, WIDTH), "places": weight(CONTEXT, WIDTH), "norm": linear(1, WIDTH),
              "blocks": [{"norm1": linear(1, WIDTH), "norm2": linear(1, WIDTH), "qkv": linear(WIDTH, 3 * WIDTH), "out": linear(WIDTH, WIDTH),
                          "up": linear(WIDTH, 4 * WIDTH), "down": linear(4 * WIDTH, WIDTH)} for _ in range(LAYERS)]}
    rng = np.random.default_rng(0)
    x, y = (jnp.array(rng.integers(0, VOCABULARY, (BATCH, CONTEXT))) for _ in range(2))

    def normed(p, h):
        wide = h.astype(jnp.float32)
        wide = (wide - wide.mean(-1, keepdims=True)) * jax.lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)
        return wide.astype(h.dtype) * p[0][0] + p[1]

    def dense(p, h):
        return h @ p[0] + p[1]

    def loss_of(p):
        h = p["tokens"][x] + p["places"]
        for b in p["blocks"]:
            q, k, v = jnp.split(dense(b["qkv"], normed(b["norm1"], h)), 3, -1)
            q, k, v = (z.reshape(BATCH, CONTEXT, HEADS, WIDTH // HEADS) for z in (q, k, v))
            o = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn" if DEVICE == "cuda" else None)
            h = h + dense(b["out"], o.reshape(BATCH, CONTEXT, WIDTH))
            h = h + dense(b["down"], jax.nn.gelu(dense(b["up"], normed(b["norm2"], h)), approximate=True))
        logits = (normed(p["norm"], h) @ p["tokens"].T).astype(jnp.float32)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()

    def step(state):
        params, m, v, t = state
        loss, grads = jax.value_and_grad(loss_of)(params)
        return adam(params, grads, m, v, t, 1e-4, decay=0.01), loss

    return step, started(params)


def gpt():
    rows = [ours(gpt_of(mg, DEVICE)[0]), theirs(*gpt_by_hand())]
    if torch is not None:
        eager, model = gpt_of(torch, "cuda")
        rows.append(torchs("torch eager", eager))
        compiled = torch.compile(model)
        rows.append(torchs("torch.compile", lambda: eager(compiled)))
    show("gpt", rows)


torch = None
if __name__ == "__main__":
    if WITH_TORCH:
        try:
            import torch
        except ImportError:
            torch = None
    print(f"device {DEVICE}: {jax.devices()[0]}; jax {jax.__version__}" + (f"; torch {torch.__version__}" if torch else ""), flush=True)
    for name in ("mlp", "wave", "gpt"):
        if name in sys.argv or not {"mlp", "wave", "gpt"} & set(sys.argv):
            globals()[name]()
