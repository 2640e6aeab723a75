"""Statements in which something quietly loses a gradient, or has it of another program: tensors that stand for numbers, and
regions that are computed once more when they are differentiated."""

from __future__ import annotations

import numpy as np

from .statements import bare, kind


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def scaled(a, eps, axes=None):
    """Centred, and divided by the standard deviation."""
    centred = a - a.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + eps)


def softmax(a):
    e = np.exp(a)
    return e / e.sum(-1, keepdims=True)


def smoothed_cross_entropy(m, k):
    logs = np.log(softmax(m))
    return (-(1 - k) * logs[:, 0] - k * logs.mean(-1)).mean()


def with_first(x, row):
    out = x.copy()
    out[:1] = row
    return out


# By the text of the expression: what NumPy says. x and y are of one shape, m is a matrix, and s a tensor where a number is meant.
OF_ANY = {
    "mg.add(x, y, alpha=s)": lambda x, y, s: x + s * y,
    "mg.sub(x, y, alpha=s)": lambda x, y, s: x - s * y,
    "mg.rsub(x, y, alpha=s)": lambda x, y, s: y - s * x,
    "x.clone().add_(y, alpha=s)": lambda x, y, s: x + s * y,
    "mg.lerp(x, y, s)": lambda x, y, s: x + s * (y - x),
    "x.clone().lerp_(y, s)": lambda x, y, s: x + s * (y - x),
    "mg.clamp(x, min=s)": lambda x, y, s: np.maximum(x, s),
    "x.clone().clamp_(max=s)": lambda x, y, s: np.minimum(x, s),
    "mg.clamp_min(x, s)": lambda x, y, s: np.maximum(x, s),
    "mg.pow(x * x + 1.2, s)": lambda x, y, s: (x * x + 1.2) ** s,
    "(s * s + 0.5) ** x": lambda x, y, s: (s * s + 0.5) ** x,
    "mg.pow(1.5, s) * x": lambda x, y, s: 1.5**s * x,
    "mg.float_power(x * x + 1.2, s)": lambda x, y, s: (x * x + 1.2) ** s,
    "mg.addcmul(x, y, x, value=s)": lambda x, y, s: x + s * y * x,
    "x.clone().addcmul_(x, y, value=s)": lambda x, y, s: x + s * x * y,
    "mg.addcdiv(x, y, y * y + 1.5, value=s)": lambda x, y, s: x + s * y / (y * y + 1.5),
    "x.clone().fill_(s)": lambda x, y, s: np.full(x.shape, s),
    "mg.full((2, 2), s, dtype=mg.float64)": lambda x, y, s: np.full((2, 2), s),
    "mg.full_like(x, s)": lambda x, y, s: np.full(x.shape, s),
    "x.new_full((3,), s)": lambda x, y, s: np.full((3,), s),
    "mg.arange(s, s + 2.5, dtype=mg.float64)": lambda x, y, s: s + np.arange(3.0),
    "mg.linspace(0.5, s, 3, dtype=mg.float64)": lambda x, y, s: 0.5 + (s - 0.5) * np.arange(3) / 2,
    "mg.logspace(0.0, s * 0.2, 3, dtype=mg.float64)": lambda x, y, s: 10 ** (s * 0.1 * np.arange(3)),
    "F.softplus(x, beta=s * s + 0.5)": lambda x, y, s: np.log1p(np.exp((s * s + 0.5) * x)) / (s * s + 0.5),
    "F.leaky_relu(x, s)": lambda x, y, s: np.where(x > 0, x, s * x),
    "F.elu(x, s)": lambda x, y, s: np.where(x > 0, x, s * np.expm1(x)),
    "F.celu(x, s * s + 0.5)": lambda x, y, s: np.where(x > 0, x, (s * s + 0.5) * np.expm1(x / (s * s + 0.5))),
    "F.threshold(x, 0.25, s)": lambda x, y, s: np.where(x > 0.25, x, s),
    "F.hardtanh(x, -30.0, s)": lambda x, y, s: np.minimum(x, s),
    "F.huber_loss(x.tanh(), y.tanh() + 3.0, delta=s.sigmoid() * 0.5 + 0.1)":
        lambda x, y, s: ((sigmoid(s) * 0.5 + 0.1) * (np.tanh(y) + 3 - np.tanh(x) - (sigmoid(s) * 0.5 + 0.1) / 2)).mean(),
    "F.smooth_l1_loss(x.tanh(), y.tanh() + 3.0, beta=s.sigmoid() * 0.5 + 0.1)":
        lambda x, y, s: (np.tanh(y) + 3 - np.tanh(x) - (sigmoid(s) * 0.5 + 0.1) / 2).mean(),
    "F.poisson_nll_loss(x * x + 1.0, y, log_input=False, eps=s * s + 0.5)":
        lambda x, y, s: (x * x + 1 - y * np.log(x * x + 1.5 + s * s)).mean(),
    "F.margin_ranking_loss(x, y, mg.ones_like(x), margin=s * s + 20.0)": lambda x, y, s: (y - x + s * s + 20).mean(),
    "F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=s * s + 0.5)":
        lambda x, y, s: (-(s * s + 0.5) * sigmoid(y) * np.log(sigmoid(x)) - (1 - sigmoid(y)) * np.log(sigmoid(-x))).mean(),
    "mg.masked_fill(x, y > 0.25, s)": lambda x, y, s: np.where(y > 0.25, s, x),
    "mg.where(y > 0.25, x, s)": lambda x, y, s: np.where(y > 0.25, x, s),
    "mg.linalg.vector_norm(x * x + 1.0, s * s + 1.5)": lambda x, y, s: ((x * x + 1) ** (s * s + 1.5)).sum() ** (1 / (s * s + 1.5)),
    "mg.dist(x * x + 7.0, y.tanh(), p=s * s + 1.5)": lambda x, y, s: ((x * x + 7 - np.tanh(y)) ** (s * s + 1.5)).sum() ** (1 / (s * s + 1.5)),
}
OF_VECTORS = {
    "F.pad(x, (1, 2), value=s)": lambda x, y, s: np.concatenate([np.broadcast_to(s, (*x.shape[:-1], 1)), x, np.broadcast_to(s, (*x.shape[:-1], 2))], -1),
    "F.layer_norm(x, x.shape, eps=s * s + 0.5)": lambda x, y, s: scaled(x, s * s + 0.5),
    "F.rms_norm(x, tuple(x.shape), eps=s * s + 0.5)": lambda x, y, s: x / np.sqrt((x * x).mean() + s * s + 0.5),
    "F.normalize(x, dim=0, eps=s * s + 50.0)": lambda x, y, s: x / (s * s + 50),
    "mg.trapezoid(x, dx=s)": lambda x, y, s: s * (x[..., 1:] + x[..., :-1]).sum(-1) / 2,
    "mg.index_fill(x, 0, mg.tensor([0]), s)": lambda x, y, s: with_first(x, s),
    "mg.index_add(x, 0, mg.tensor([0]), y[:1], alpha=s)": lambda x, y, s: with_first(x, x[:1] + s * y[:1]),
}
OF_MATRICES = {
    "F.scaled_dot_product_attention(m, m, m, scale=s)": lambda m, s: softmax(s * m @ m.T) @ m,
    "mg.addmm(m @ m.T, m, m.T, beta=s)": lambda m, s: s * m @ m.T + m @ m.T,
    "mg.addmm(m @ m.T, m, m.T, alpha=s)": lambda m, s: s * m @ m.T + m @ m.T,
    "mg.addmv(m[:, 0], m, m[0], beta=s)": lambda m, s: s * m[:, 0] + m @ m[0],
    "mg.addr(m, m[:, 0], m[0], alpha=s)": lambda m, s: m + s * np.outer(m[:, 0], m[0]),
    "mg.baddbmm((m @ m.T)[None], m[None], m.T[None], beta=s)": lambda m, s: (s * m @ m.T + m @ m.T)[None],
    "mg.addbmm(m @ m.T, m[None], m.T[None], alpha=s)": lambda m, s: s * m @ m.T + m @ m.T,
    "m.clone().fill_diagonal_(s)": lambda m, s: np.where(np.eye(*m.shape) > 0, s, m),
    "F.group_norm(m, 1, eps=s * s + 0.5)": lambda m, s: scaled(m, s * s + 0.5, 1),
    "F.cross_entropy(m, mg.tensor([0] * m.shape[0]), label_smoothing=s.sigmoid())": lambda m, s: smoothed_cross_entropy(m, sigmoid(s)),
    "F.multi_margin_loss(m, mg.tensor([0] * m.shape[0]), margin=s * s + 20.0)":
        lambda m, s: ((s * s + 20 - m[:, :1] + m[:, 1:]).sum(1) / m.shape[1]).mean(),
    "mg.cdist(m.tanh(), m.tanh() + 3.0, p=s * s + 1.5)":
        lambda m, s: ((np.tanh(m)[None] + 3 - np.tanh(m)[:, None]) ** (s * s + 1.5)).sum(-1) ** (1 / (s * s + 1.5)),
}
TABLE = OF_ANY | OF_VECTORS | OF_MATRICES
KINKED = {text for text in TABLE if any(part in text for part in ("clamp", "relu", "F.elu", "celu", "> 0.25", "threshold", "hardtanh"))}

# Where a tensor is as good as a number, as in PyTorch.
SURE = {text for text in TABLE if any(part in text for part in ("lerp", "clamp", "pow", "**", ".fill_(", "masked_fill", "where", "index_fill", "pos_weight"))}


@kind(25, family="scalars")
def tensor_or_number(g):
    return number(g, SURE)


@kind(8, family="scalars", refuses=("TypeError", "BadValue", "NotSupported"))
def tensor_as_number(g):
    """It must have its gradient, or be declined; once in a program, because that ends it."""
    return None if any(s.kind == "tensor_as_number" for s in g.statements) else number(g, TABLE.keys() - SURE)


def number(g, texts):
    s = bare(g.tensor_value(()))
    text = g.r.choice([t for t in TABLE if t in texts])
    if text in OF_MATRICES:
        m = g.variable(lambda a: a.ndim == 2 and a.size)
        return m and f"{g.new()} = number({text!r}, m={m}, s={s})"
    x = g.variable(lambda a: a.size and a.ndim >= (text in OF_VECTORS))
    return x and f"{g.new()} = number({text!r}, x={x}, y={bare(g.tensor_value(g.shape(x)))}, s={s})"


@kind(6, writes=True, family="scalars")
def number_changed_later(g):
    """A recorded operation keeps the number it was given."""
    x = g.variable(lambda a: a.size)
    if x is None:
        return None
    y, made = g.value(g.shape(x)), g.new()
    call = g.r.choice([f"{x}.add({y}, alpha=amount)", f"{x}.sub({y}, alpha=amount)", f"{x}.clamp(-0.9, amount)", f"{x}.clone().add_({y}, alpha=amount)"])
    later = g.r.choice(["zero_()", "mul_(3.0)", "data.fill_(7.0)"])
    return f"amount = f64({abs(g.scalar())})\n{made} = {call}\namount.{later}"


# Regions that are computed once more. One that cannot be is declined, when it is differentiated.

@kind(20, writes=True, family="regions", refuses=("GradientError: checkpoint",))
def checkpointed(g):
    """With writes inside, and to what it was given, afterwards."""
    x = g.variable(lambda a: a.size)
    if x is None:
        return None
    y, s = bare(g.tensor_value(g.shape(x))), g.scalar()
    return g.r.choice([
        lambda: f"{g.new()} = checkpoint(lambda t: mg.sin(t) * t, {x})",
        lambda: f"{g.new()} = checkpoint(lambda t: (t * {s}).sin_().mul_(t), {x})",
        lambda: f"{g.new()} = checkpoint(lambda t, u: mg.sin(t * u), {x}, {y})\n{x}.mul_({s})",
        lambda: f"{g.new()} = checkpoint(lambda t: t.mul_({s}).sin(), {x})",
        lambda: f"{g.new()}, {g.new()} = checkpoint(lambda t: (mg.sin(t), mg.cos(t * {s})), {x})",
        lambda: f"{g.new()} = checkpoint(lambda t: checkpoint(lambda u: mg.sin(u) * u, t) * t, {x})",
        lambda: f"def region(p, q):\n    r = p * q\n    r.mul_({s}).add_(p.sin())\n    return r\n{g.new()} = checkpoint(region, {x}, {y})",
        lambda: f"{g.new()} = checkpoint(lambda p, q: mg.stack([p, q]).square(), {g.window(x, 1)}, {g.window(x, 1)})",
        lambda: f"read = {y}\n{g.new()} = checkpoint(lambda t, c=read: mg.sin(t * c), {x})",
        lambda: f"read = ({y}) * {s}\n{g.new()} = checkpoint(lambda t, c=read: mg.sin(t * c), {x})",
    ])()


@kind(6, writes=True, family="regions", refuses=("GradientError: checkpoint",))
def checkpointed_and_changed(g):
    """What the region reads is written to afterwards, or by the region itself: it cannot be computed once more."""
    x = g.variable(lambda a: a.size)
    if x is None:
        return None
    shape = g.shape(x)
    held, s, result = g.literal(shape), g.scalar(), g.new()
    source = held if g.chance(0.7) else f"({bare(g.tensor_value(shape))}) * {s}"
    return f"read = {source}\n" + g.r.choice([
        f"{result} = checkpoint(lambda t, c=read: mg.sin(t * c), {x})\nread.mul_({s})",
        f"{result} = checkpoint(lambda t, c=read: mg.sin(t * c) + c, {x})\nread.data.zero_()",
        f"{result} = checkpoint(lambda t, c=read: mg.sin(t * c), {x})\nwith mg.no_grad():\n    read += {s}",
        f"{result} = checkpoint(lambda t, c=read: mg.sin(t * c[...]), {x})\nread[...] = {s}",
        f"{result} = checkpoint(lambda t, c=read: mg.sin(t * c), {x})\nread.mul_({x})",
        f"state = [read]\n{result} = checkpoint(lambda t, c=state: mg.sin(t * c[0]), {x})\nstate[0] = {g.literal(shape)}",
        f"{result} = checkpoint(lambda t, c=read: c.mul_({s}) * t, {x})",
        f"{result} = checkpoint(lambda t, c=read: c.add_(1.0).detach() * t, {x})",
    ])
