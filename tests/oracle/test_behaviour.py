"""One expression a line, evaluated in both libraries: the same value, type, shape and gradient, the same strides, the same text.

`m` is the library. The tensors are those of `tensors_for`; expressions are evaluated on leaves, so whatever they return that
has a history is differentiated, too.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

from .compare import attempt, difference, gradient_difference

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

inf, nan = float("inf"), float("nan")


def tensors_for(library: Any) -> dict[str, Any]:
    """What the expressions name: the same in both libraries, double precision leaves where they are floats."""
    rng = np.random.default_rng(3)
    arrays = {
        "x": rng.standard_normal((2, 3)), "y": rng.standard_normal((2, 3)), "q": rng.standard_normal((3, 3)), "v": rng.standard_normal(4),
        "w": rng.standard_normal(3), "t": rng.standard_normal((2, 3, 4)), "s": np.array(1.5), "e": np.zeros((0, 3)), "r": rng.standard_normal((3, 1)),
        "p": np.array([0.5, 1.0, 2.0, 3.0]), "ties": np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), "n": np.array([1.0, nan, 3.0, -inf, 2.0]),
        "zeros": np.array([[2.0, 0.0, 3.0], [0.0, 4.0, 0.0], [1.0, 2.0, 3.0]]), "halves": np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 0.49]),
        "signs": np.array([-7.0, -3.5, 0.0, 3.5, 7.0]), "big": np.array([1e30, -1e30, 1e-30]), "a": rng.standard_normal((2, 2, 3)),
        "c": rng.standard_normal(3) + 1j * rng.standard_normal(3), "f": rng.standard_normal((2, 3)).astype(np.float32),
        "i": np.array([3, -2, 5, 0]), "k": np.array([[1, 2, 3], [4, 5, 6]]), "b": np.array([True, False, True, False]), "h": np.array([1.5, 2.5], np.float16),
        "halfs": (rng.random((30, 100)) * 40).astype(np.float16), "u": np.array([200, 100], np.uint8), "i32": np.array([7, -7], np.int32),
        "idx": np.array([[0, 2, 1], [1, 0, 0]]), "one": np.array([0, 1, 0, 2]),
    }
    return {name: library.tensor(value, requires_grad=value.dtype.kind in "fc" and value.dtype != np.float16) for name, value in arrays.items()}


EXPRESSIONS = """
# creation
m.arange(5)
m.arange(1, 6, 2)
m.arange(0.5, 3)
m.arange(3, 0, -1)
m.arange(5.0)
m.arange(0, 1, 0.1)
m.arange(3, dtype=m.float64)
m.arange(0)
m.zeros(2, 3)
m.zeros((2, 3), dtype=m.int32)
m.zeros([2])
m.zeros(())
m.zeros(0)
m.zeros(size=(2, 1))
m.ones(m.tensor(2), 3)
m.ones(2, dtype=m.bool)
m.full((2,), 7)
m.full((2,), 7.5)
m.full((2, 2), True)
m.full((), 2.0)
m.full((2,), 1, dtype=m.float16)
m.full((2,), m.tensor(3))
m.eye(3)
m.eye(2, 4, dtype=m.int64)
m.linspace(0, 1, 5)
m.linspace(-1, 1, 1)
m.linspace(3, 0, 4, dtype=m.float64)
m.logspace(0, 2, 3)
m.zeros_like(x)
m.ones_like(k)
m.ones_like(x, dtype=m.int64)
m.full_like(x, 2)
m.full_like(k, 2.7)
m.empty_like(x).shape
m.zeros_like(x.t()).shape
x.new_zeros(2)
x.new_ones((2, 2))
x.new_full((2,), 3)
x.new_tensor([1, 2])
k.new_tensor([1.7, 2])
x.new_empty(3).shape
m.as_tensor([1, 2.5])
m.as_tensor(k, dtype=m.float32)
m.from_numpy(np.arange(3))
m.tensor(3)
m.tensor([[1, 2], [3, 4]]).dtype == m.int64
m.Tensor([1, 2]).dtype == m.float32
m.Tensor(2, 3).shape
m.rand(2, 3).shape
m.randn(2, dtype=m.float64).dtype == m.float64
m.randint(5, (3,)).dtype == m.int64
m.randint(2, 5, (3,), dtype=m.int32).dtype == m.int32
m.randperm(6).sort().values
m.rand_like(x).shape
m.randn_like(f).dtype == m.float32
m.is_tensor(x), m.is_tensor(1)
# what a tensor says of itself
x.size()
x.size(1), x.size(-1)
x.shape[0], x.shape[-1], len(x.shape), tuple(x.shape)
x.shape == (2, 3), x.shape + (4,)
x.shape.numel()
x.stride(), x.t().stride(), t.transpose(0, 2).stride(), t.permute(2, 0, 1).stride()
x.stride(0), x.stride(-1)
t[:, 1].stride(), t[..., ::2].stride(), t[1:].storage_offset(), t[1, 2, 3].storage_offset()
x.expand(4, 2, 3).stride(), r.expand(3, 5).stride(), s.expand(3).stride()
x.unsqueeze(0).stride(), x.unsqueeze(1).stride(), x.unsqueeze(-1).stride()
t.view(6, 4).stride(), t.reshape(2, 12).stride(), t.diagonal(0, 0, 1).stride(), v.unfold(0, 2, 1).stride()
v.as_strided((2, 2), (1, 2)).stride(), t.as_strided((2, 2), (1, 2), 1)
x.is_contiguous(), x.t().is_contiguous(), t[:, 0].is_contiguous(), t[0].is_contiguous(), s.is_contiguous(), e.is_contiguous(), t[:1].is_contiguous()
x.contiguous().stride(), x.t().contiguous().stride(), x.t().clone().shape
x.dim(), x.ndim, s.dim(), e.dim()
x.numel(), s.numel(), e.numel(), x.nelement()
x.element_size(), f.element_size(), b.element_size(), c.element_size(), h.element_size(), k.element_size()
x.itemsize, x.nbytes, e.nbytes
x.is_floating_point(), k.is_floating_point(), c.is_complex(), x.is_complex(), b.is_signed(), u.is_signed(), i.is_signed()
x.dtype.is_floating_point, c.dtype.is_complex, x.dtype.itemsize
x.requires_grad, x.is_leaf, (x * 2).is_leaf, (x * 2).requires_grad, k.requires_grad, x.detach().requires_grad, x[0].is_leaf
x.device.type, str(x.device)
len(x), len(v), len(e)
x.tolist(), s.tolist(), k.tolist(), b.tolist(), e.tolist()
s.item(), k[0, 0].item(), b[0].item(), m.tensor([[2.5]]).item()
bool(s), bool(m.tensor(0)), bool(m.tensor([0.0])), bool(b[1])
int(s), float(s), int(k[0, 0]), float(k[0, 0])
[1, 2, 3][m.tensor(1)]
3.0 in ties, 9.0 in ties, m.tensor(2.0) in ties
[r.shape for r in x], [float(r) for r in v]
list(m.arange(3))
f"{s:.3f}", f"{k[0, 0]:5d}", f"{s}"
hash(x) == hash(x), x is x
m.numel(x), m.is_floating_point(x), m.is_complex(c)
x.grad is None
x.type_as(f).dtype == m.float32
x.to(m.float32), x.to(f).dtype == m.float32, x.to("cpu") is x, x.to(m.float64) is x
x.float(), x.double() is x, x.half(), x.long(), x.int(), x.short(), x.char(), x.byte().shape, x.bool()
c.to(m.complex64), x.cfloat(), k.float(), b.float(), b.long()
m.tensor(3.7).to(m.int64), m.tensor(-3.7).to(m.int64), m.tensor(300).to(m.uint8), m.tensor(nan).to(m.bool)
m.finfo(m.float32).eps, m.finfo(m.float64).max, m.iinfo(m.int8).min, m.finfo(m.float16).tiny, m.iinfo(m.int64).max, m.finfo(m.float32).bits
# views and their parts
t.view(-1).shape, t.view(2, -1).shape, t.view(4, 6)
x.view(3, 2), x.reshape(3, 2), x.t().reshape(6), x.reshape(-1)
x.view_as(x.reshape(3, 2)).shape, x.reshape_as(x.t()).shape
t.flatten().shape, t.flatten(1).shape, t.flatten(0, 1).shape, s.flatten().shape
t.unflatten(2, (2, 2)).shape, t.unflatten(-1, (2, -1))
t.transpose(0, 2), x.t(), v.t(), s.t(), x.T, x.mT
t.permute(2, 0, 1), t.permute(-1, 0, 1).shape, m.permute(t, (1, 0, 2)).shape
t.movedim(0, 2).shape, t.movedim((0, 1), (1, 0)).shape, t.movedim(-1, 0)
t.swapaxes(0, 1).shape, m.swapdims(t, 0, 2).shape
x.squeeze().shape, x.unsqueeze(0).squeeze(0).shape, x[None, :, None].squeeze().shape, x[None, :, None].squeeze(2).shape, x.squeeze(0).shape
x.unsqueeze(0).unsqueeze(-1).squeeze((0, 3)).shape
r.expand(3, 4), r.expand(-1, 4).shape, r.expand(2, -1, 5).shape, x.expand_as(x.expand(4, 2, 3)).shape
m.broadcast_to(r, (3, 2)), [z.shape for z in m.broadcast_tensors(r, w)]
v.chunk(2), v.chunk(3), v.chunk(5), t.chunk(2, dim=2), e.chunk(2, 1), m.arange(7).chunk(3)
v.split(3), v.split([1, 3]), t.split(3, dim=2), m.split(v, 1), e.split(2), m.arange(6).split([0, 2, 4])
x.unbind(), x.unbind(1), t.unbind(-1)
x.select(0, 1), x.select(1, -1), x.narrow(1, 1, 2), x.narrow(0, -1, 1)
q.diagonal(), q.diagonal(1), q.diagonal(-1), t.diagonal(0, 1, 2), x.diagonal(5), t.diagonal(dim1=0, dim2=2)
v.unfold(0, 2, 1), v.unfold(0, 2, 2), v.unfold(0, 3, 1), t.unfold(2, 2, 1).shape, x.unfold(1, 1, 1).shape
x.repeat(2, 1), v.repeat(2), s.repeat(2).shape, x.repeat(2, 1, 2).shape, v.repeat(0).shape
x.tile(2), x.tile((2, 1)), x.tile(1, 1, 2).shape, m.tile(v, (2, 2)).shape
x.flip(0), x.flip(0, 1), x.flip((1,)), x.flip([-1])
x.roll(1), x.roll(1, 0), x.roll((1, 2), (0, 1)), x.roll(-1, 1), v.roll(5)
m.cat([x, y]), m.cat([x, y], 1), m.cat((x, y), dim=-1), m.cat([x, m.zeros(0)]), m.cat([k, x])
m.stack([x, y]), m.stack([x, y], 1), m.stack([x, y], -1), m.stack([s, s])
m.concat([v, v]), m.concatenate([v, v])
x[0], x[1, 2], x[:, 1], x[..., 0], x[None].shape, x[0, None].shape, x[-1, -1], x[1:, ::2], x[[1, 0]], x[x > 0], x[idx[0, :2] % 2]
t[0, ..., 1], t[:, None, 1].shape, t[[0, 1], :, [2, 3]], t[:, [0, 2]][:, :, [1]].shape, t[m.tensor([[0, 1], [1, 0]])].shape
x[True].shape, x[False].shape, s[None], s[...], s[True].shape, x[()].shape
# arithmetic: signs, zeros, edges
p ** 2, p ** 0.5, p ** -1, p ** 3, p ** 0, 2 ** p, p ** p, p ** 1, p ** -0.5, p ** 2.5
m.tensor(0.0) ** 0, m.tensor(0) ** 0, m.tensor([0.0, -0.0]) ** -1, m.tensor(-8.0) ** (1 / 3), m.tensor(-2.0) ** 3, m.tensor(-2.0) ** 2, m.tensor(-2) ** 3
m.pow(signs, 2), m.pow(signs, 3), m.pow(signs, m.tensor([2.0, 3.0, 2.0, 0.0, -1.0], dtype=m.float64)), m.pow(2, i.abs()), m.pow(signs, 0.5)
m.tensor([0.0, 0.0, 2.0], dtype=m.float64) ** m.tensor([0.0, 2.0, -1.0], dtype=m.float64), i ** 2, i.float() ** -1
m.tensor(2) ** m.tensor(-1), m.tensor([1, -1, 2]) ** m.tensor(-3), m.tensor([True, False]) ** 2, m.tensor(2, dtype=m.uint8) ** 9
signs % 3, signs % -3, signs.remainder(2.5), signs.fmod(3), signs.fmod(-3), signs // 3, signs // -3, -signs // 2
i % 3, i % -3, i.fmod(3), i.fmod(-3), i // 2, i // -2, 7 // (i + 1), 7 % (i + 1), -7 // m.tensor([2, -2]), -7 % m.tensor([2, -2])
m.remainder(5, signs[1:2]), m.fmod(signs, signs + 0.25), m.floor_divide(signs, 2), m.remainder(i, i + 1)
m.div(signs, 2, rounding_mode="floor"), m.div(signs, 2, rounding_mode="trunc"), m.div(i, 2), m.div(i, 2, rounding_mode="trunc")
m.div(-i, 2, rounding_mode="floor")
m.div(m.tensor([1.0, -1.0, 0.0]), 0), m.tensor([1.0]) // 0, m.tensor([1.0]) % 0, m.fmod(m.tensor([1.0]), 0), m.tensor([inf]) // 1, m.tensor([inf]) % 2
halves.round(), m.round(halves), halves.round(decimals=1), (halves * 100).round(decimals=-1), m.round(i), halves.floor(), halves.ceil()
halves.trunc(), halves.frac()
i.floor(), i.ceil(), i.trunc(), i.round()
i / 2, i / i.abs().clamp(1), 1 / (i + 1), i.true_divide(2), u + 100, u * 2, -u, u - 201, i32 // 2, i32 % 4, i32 / 2
abs(signs), -signs, +signs, signs.sign(), signs.sgn(), i.abs(), i.neg(), i.sign(), n.sign(), n.abs(), signs.square(), i.square()
1 - x, 2 * x, 1 / p, x - 1, x + y * 2, x / y, x.add(y, alpha=2), x.sub(y, alpha=0.5), m.rsub(x, 1), m.rsub(x, y, alpha=2), x.add(1, alpha=3)
m.lerp(x, y, 0.3), m.lerp(x, y, y), m.lerp(x, y, 1.0), m.addcmul(x, y, y, value=0.5), m.addcdiv(x, y, y + 9, value=2), m.addcmul(x, w, w)
m.clamp(x, -0.5, 0.5), m.clamp(x, min=0), m.clamp(x, max=0), m.clamp(x, y), m.clamp(x, max=y), m.clamp(x, y, y + 1), m.clamp(x, 1, -1), m.clamp(x, min=w)
m.clamp(n, 0, 2), m.clamp(i, 0, 3), m.clamp(i, 0.5), m.clamp(i, min=-1), x.clamp(min=m.tensor(0.0)), x.clip(0, 1), x.clamp_min(0), x.clamp_max(0)
m.clamp(i, 2, 1)
m.clamp(ties, 2, 3), m.clamp(ties, ties, ties), m.maximum(ties, ties.flip(1)), m.minimum(ties, ties.flip(1)), m.fmax(n, n.flip(0)), m.fmin(n, n.flip(0))
m.maximum(n, n.flip(0)), m.minimum(n, n.flip(0)), m.maximum(i, i.flip(0)), m.max(x, y), m.min(x, y), x.relu(), zeros.relu(), n.relu()
m.where(x > 0, x, y), m.where(x > 0, x, 0.0), m.where(x > 0, 1.0, x), m.where(b, v, -v), m.where(b, 1, 0), m.where(b, 1.0, 0), m.where(x > 0)
x.where(x > 0, y)
m.where(b, i, v), m.where(b, m.tensor(1), 2.5), m.where(r > 0, r, w), m.where(m.tensor(True), s, 0)
p.sqrt(), p.rsqrt(), p.exp(), p.log(), p.log2(), p.log10(), p.log1p(), p.expm1(), p.exp2(), p.reciprocal(), m.tensor([-1.0, 0.0]).sqrt()
m.tensor([-1.0, 0.0]).log()
x.sin(), x.cos(), x.tan(), x.tanh().asin(), x.tanh().acos(), x.atan(), x.sinh(), x.cosh(), x.tanh(), x.asinh(), (x.abs() + 1).acosh()
x.tanh().atanh(), m.atan2(x, y), m.atan2(s * 0, s * 0)
x.sigmoid(), x.erf(), big.sigmoid(), big.tanh(), big.erf(), (p / 4).logit(), (p / 4).logit(0.3), m.logaddexp(x, y), m.hypot(x, y), x.deg2rad()
x.rad2deg(), m.tensor([800.0, -800.0]).sigmoid()
m.logaddexp(m.tensor([1e4, -inf]), m.tensor([1e4, -inf])), m.hypot(m.tensor(3.0), m.tensor(4.0))
x.abs().sqrt().sum(), zeros.abs().sum(), zeros.sqrt(), (zeros * 0).sgn()
x > 0, x >= y, i == 3, i != 3, x < s, m.eq(x, x), m.ne(x, y), 0 < x, b == True, i == 3.0, m.lt(i, 2.5), n == n, m.tensor(1) == m.tensor(1.0)
b & ~b, b | m.tensor(True), b ^ True, i & 3, i | 4, ~i, i ^ 1, i32 << 1, i32 >> 1, m.bitwise_not(b), m.logical_and(x, y > 0), m.logical_not(i)
m.logical_or(b, i), m.logical_xor(b, i)
n.isnan(), n.isinf(), n.isfinite(), i.isnan(), n.signbit(), m.isclose(n, n), m.isclose(n, n, equal_nan=True), m.allclose(x, x + 1e-9)
m.allclose(n, n), m.equal(x, x), m.equal(x, y), m.equal(x, x[0]), m.isclose(i, i + 1)
c.abs(), c.conj(), c.sgn(), c * c.conj(), c + 1, c * 2j, c.exp(), c.sqrt(), (c * c).sum(), c.mean(), c ** 2, c.log(), c.sin(), 1 / c, c.abs().sum()
x[0] * c, c.sum() * 1j
# reductions
x.sum(), x.sum(0), x.sum(-1), x.sum((0, 1)), x.sum(dim=1, keepdim=True), t.sum((0, 2)), t.sum((0, 2), keepdim=True), x.sum(()), e.sum(), e.sum(0)
e.sum(1), s.sum(), s.sum(0), x.sum(axis=0)
b.sum(), u.sum(), i32.sum(), k.sum(0), b.sum(0), k.sum(dtype=m.float32), x.sum(dtype=m.float32), i.sum(dtype=m.int32), f.sum(dtype=m.float64), h.sum()
x.mean(), x.mean(0), x.mean((0, 1), keepdim=True), e.mean(), e.mean(0), s.mean(), k.mean(dtype=m.float64), k.float().mean(1), h.mean()
x.prod(), x.prod(0), zeros.prod(), zeros.prod(0), zeros.prod(1), zeros.prod(1, keepdim=True), e.prod(), k.prod(), b.prod(), i.prod(), s.prod(), u.prod()
x.var(), x.var(0), x.var(1, unbiased=False), x.var(dim=1, correction=0), x.var(False), x.var((0, 1), keepdim=True), x.var(0, correction=2)
x[0, :1].var(), x.var(1, True, True), c.var()
x.std(), x.std(0), x.std(1, unbiased=False), x.std(dim=1, correction=0), x.std(False), x.std((0, 1), keepdim=True), m.std_mean(x, 1), m.var_mean(x)
m.var_mean(x, dim=0, correction=0), x.std(1, True)
x.max(), x.min(), x.max(0), x.min(1), x.max(1, keepdim=True), x.max(dim=0).values, x.min(dim=1).indices, ties.max(), ties.max(1), ties.min(1), n.max()
n.min(), n.max(0), n.min(0), i.max(), b.max(), s.max(), s.max(0)
x.amax(), x.amax(0), x.amin(1), x.amax((0, 1)), x.amax(1, True), ties.amax(1), ties.amin(1), ties.amax(), n.amax().detach(), m.aminmax(x)
m.aminmax(x, dim=1), m.aminmax(x, dim=0, keepdim=True)
x.argmax(), x.argmin(), x.argmax(0), x.argmin(1), x.argmax(1, keepdim=True), ties.argmax(1), ties.argmin(1), ties.argmax(), n.argmax(), n.argmin()
i.argmax(), s.argmax(), x.argmax(keepdim=True).shape
b.any(), b.all(), b.any(0), x.any(), x.all(1), x.any(0, keepdim=True), e.any(), e.all(), e.any(0), e.all(1), k.all(), u.all(), s.any(), n.any()
x.any((0, 1))
x.cumsum(0), x.cumsum(1), x.cumsum(-1), k.cumsum(1), b.cumsum(0), s.cumsum(0), e.cumsum(1), u.cumsum(0), f.cumsum(0, dtype=m.float64), i32.cumsum(0)
x.cumprod(1), zeros.cumprod(0), zeros.cumprod(1), k.cumprod(1), s.cumprod(0), b.cumprod(0), (zeros * 0).cumprod(1), f.cumprod(0, dtype=m.float64)
x.logsumexp(0), x.logsumexp((0, 1)), x.logsumexp(1, keepdim=True), m.logsumexp(m.tensor([1e4, 1e4]), 0), m.logsumexp(m.tensor([-inf, -inf]), 0)
m.logsumexp(m.tensor([inf, 1.0]), 0), k.logsumexp(0), s.logsumexp(0)
x.softmax(0), x.softmax(-1), x.log_softmax(1), s.softmax(0), m.softmax(m.tensor([1e4, 0.0]), 0), m.log_softmax(m.tensor([1e4, 0.0]), 0)
x.softmax(1, dtype=m.float32), m.softmax(m.tensor([-inf, 0.0]), 0), k.softmax(1, dtype=m.float64), e.softmax(1)
x.norm(), x.norm(2), x.norm(1), x.norm(inf), x.norm(-inf), x.norm(0), x.norm(3), x.norm(0.5), x.norm(dim=0), x.norm(2, 1), x.norm(1, dim=1)
x.norm(3, (0, 1), True), x.norm("fro"), (x * 0).norm(), (x * 0).norm(dim=1), (x * 0).norm(1), c.norm(), c.norm(1), ties.norm(inf), ties.norm(-inf, 1)
zeros.norm(3), s.norm(), m.norm(x, 2), m.dist(x, y), m.dist(x, y, 1), m.dist(x, x)
x.count_nonzero(), zeros.count_nonzero(), zeros.count_nonzero(0), b.count_nonzero(), zeros.count_nonzero((0, 1)), zeros.nonzero()
zeros.nonzero(as_tuple=True), b.nonzero(), s.nonzero().shape, (s * 0).nonzero().shape, m.argwhere(zeros), s.nonzero(as_tuple=True)
halfs.sum(), halfs.sum(0), halfs.mean(), halfs.mean(1), halfs.var(), halfs.std(0), halfs.norm(), halfs.reshape(-1).cumsum(0), halfs.logsumexp(1)
halfs.softmax(0)
halfs.log_softmax(1), (halfs / 40).prod(1), (halfs / 20).cumprod(1), halfs.amax(0), halfs.sort(1).values, halfs @ halfs.t() / 9, halfs * 2
halfs + 1.5, halfs.exp()
# order
x.sort(), x.sort(0), x.sort(1, True), x.sort(descending=True), x.sort(dim=0, descending=True), n.sort(), n.sort(descending=True)
k.sort(1, descending=True), s.sort(), ties.sort(stable=True), ties.sort(1, descending=True).values, i.sort(), b.sort(stable=True)
m.sort(x, stable=True, dim=1, descending=True)
x.argsort(), x.argsort(0), x.argsort(1, descending=True), n.argsort(), ties.argsort(stable=True), n.argsort(descending=True)
v.topk(2), v.topk(2, largest=False), x.topk(1, 0), x.topk(2, dim=1), x.topk(3, 1, False), n.topk(2), n.topk(2, largest=False), v.topk(0)
v.topk(4).values, s.topk(1), ties.topk(1).values
# products
x @ q, x @ w, w @ q, w @ w, t @ v, v @ v, t @ t.mT, t.matmul(t.transpose(1, 2)), q @ a.mT, a @ q, x.mm(q), m.mm(x, q), m.mv(x, w), m.dot(v, v)
v.dot(v), m.outer(v, w), v.outer(w), m.ger(v, w), m.bmm(t, t.mT), t.bmm(t.mT)
e @ q, q @ e.t(), e.t() @ e, k @ k.t(), c @ c, c.conj() @ c, x.t() @ x, x.addmm(x, q), m.addmm(w, x, q, beta=0.5, alpha=2), m.addmm(x, x, q, beta=0)
m.tensordot(x, q, 1), m.tensordot(t, a, ([1], [2])), m.tensordot(x, y, 2), m.tensordot(x, y, ([0, 1], [0, 1])), m.tensordot(v, w, 0)
m.tensordot(t, t, ([0, -1], [0, -1]))
m.einsum("ij,jk->ik", x, q), m.einsum("ij,jk", x, q), m.einsum("ij->ji", x), m.einsum("ji", x), m.einsum("ii", q), m.einsum("ii->i", q)
m.einsum("ij->", x), m.einsum("ij->i", x), m.einsum("i,i", w, w), m.einsum("i,j->ij", v, w)
m.einsum("...ij,...jk->...ik", t, t.mT), m.einsum("...ij->...ji", t), m.einsum("i...->...", t), m.einsum("b...,b...->...", t, t), m.einsum("...", x)
m.einsum("...i,i->...", x, w), m.einsum("i...,i...", t, t), m.einsum("ij,ij->ij", x, y)
m.einsum("bij,bjk->bik", t, t.mT), m.einsum("ij,jk,kl->il", x, q, q), m.einsum("i,i,i->i", w, w, w), m.einsum("ij,kj->ik", x, y)
m.einsum("iij->j", t[:, :2]), m.einsum("ij, jk -> ki", x, q), m.einsum("i,j,k->", v, w, v), m.einsum("ij,j->", x, w)
m.einsum("ij,ij->i", r, q), m.einsum("ij,ij->", r.expand(3, 3), q), m.einsum("Ij,jK->KI", x, q), m.einsum("ij,jk->ik", [x, q])
m.einsum("a,b->ab", v, w).shape, m.einsum("i->", w), m.einsum(",i->i", s, w), m.einsum("ijk,ikj->", t, t.mT)
m.einsum("i,i->i", c, c), m.einsum("ij,j->i", k, k[0])
# by position
x.gather(1, idx), x.gather(0, idx % 2), m.gather(x, 1, idx[:1]), x.take(idx), x.take(m.tensor(-1)), m.take_along_dim(x, idx, 1)
m.take_along_dim(x, idx), m.take_along_dim(x, x.argsort(1), 1), s.gather(0, m.tensor([0, 0])), s.gather(0, m.tensor(0)), s.take(m.tensor([0]))
x.index_select(1, m.tensor([2, 0, 0])), x.index_select(0, m.tensor(1)), v.index_select(0, m.tensor([3])), x.masked_select(x > 0)
x.masked_select(m.tensor([True, False, True])), s.masked_select(m.tensor(True))
x.masked_fill(x > 0, 0), x.masked_fill(x > 0, s), x.masked_fill(m.tensor([True, False, False]), -inf), k.masked_fill(k > 2, 0)
m.masked_fill(r, r > 0, 9.0)
x.masked_scatter(x > 0, y), x.masked_scatter(m.tensor([True, False, False]), y), x.index_fill(1, m.tensor([0, 2]), 7)
x.index_fill(0, m.tensor([1]), s), x.index_add(1, m.tensor([0, 0]), y[:, :2]), x.index_add(0, m.tensor([1]), y[:1], alpha=-2)
x.index_copy(1, m.tensor([2, 0]), y[:, :2]), x.index_put((m.tensor([0, 1]), m.tensor([2, 1])), w[:2])
x.index_put((m.tensor([0, 0]),), y, accumulate=True), x.index_put((x > 0,), s), x.put(m.tensor([0, 5]), w[:2])
x.put(m.tensor([0, 0]), w[:2], accumulate=True)
x.scatter(1, idx[:, :2], y), x.scatter(0, idx[:1] % 2, y), x.scatter(1, idx[:, :1], 9.0), x.scatter(1, idx[:, :1], value=9.0)
x.scatter_add(1, idx, y), x.scatter_add(0, idx % 2, y), m.scatter(x, 1, idx[:, :1], 2.0, reduce="add").detach()
m.scatter(x, 1, idx[:, :1], 2.0, reduce="multiply").detach()
v.scatter_reduce(0, one, v.flip(0), "sum"), v.scatter_reduce(0, one, v.flip(0), "prod"), v.scatter_reduce(0, one, v.flip(0), "mean")
v.scatter_reduce(0, one, v.flip(0), "amax"), v.scatter_reduce(0, one, v.flip(0), "amin")
v.scatter_reduce(0, one, p, "sum", include_self=False), v.scatter_reduce(0, one, p, "prod", include_self=False)
v.scatter_reduce(0, one, p, "mean", include_self=False), v.scatter_reduce(0, one, p, "amax", include_self=False)
v.scatter_reduce(0, one, p, "amin", include_self=False)
zeros.scatter_reduce(1, one[:3].expand(3, 3), zeros.t(), "prod"), zeros.scatter_reduce(1, one[:3].expand(3, 3), zeros.t(), "prod", include_self=False)
ties.scatter_reduce(1, idx, ties, "amax"), ties.scatter_reduce(1, idx, ties, "amin", include_self=False).detach(), k.scatter_reduce(1, idx, k, "sum")
k.scatter_reduce(1, idx, k, "mean"), k.scatter_reduce(1, idx, k, "amax", include_self=False)
# text
repr(x), repr(k), repr(b), repr(c), repr(e), repr(s), repr(f), repr(u), repr(h), repr(n), repr(zeros), repr(t), repr(big), repr(m.arange(2000))
str(x.detach())
repr(x * 2), repr(x.sum()), repr(x.exp()), repr(m.cat([x, y])), repr(x.clone()), repr(x + 1), repr(m.zeros(2, 0)), repr(m.tensor(1e-8))
repr(m.tensor([1e10, 1.0])), repr(m.tensor([nan, inf]))
x.type(), k.type(), f.type(), repr(x.dtype), repr(x.shape), repr(x.size()), repr(m.float16), repr(m.tensor(True)), repr(m.tensor([[1 + 2j]]))
repr(m.ones(2, 2, 2))
# second derivatives of what is easy to get wrong
m.autograd.grad((zeros.prod(0) * w).sum(), zeros, create_graph=True)[0]
m.autograd.grad((zeros.cumprod(0) ** 2).sum(), zeros, create_graph=True)[0]
m.autograd.grad(x.norm(), x, create_graph=True)[0]
m.autograd.grad((x.std(0) * w).sum(), x, create_graph=True)[0]
m.autograd.grad((p ** 3).sum(), p, create_graph=True)[0], m.autograd.grad((p ** p).sum(), p, create_graph=True)[0]
m.autograd.grad((signs ** 2).sum(), signs, create_graph=True)[0]
m.autograd.grad((x.softmax(1) * y).sum(), x, create_graph=True)[0], m.autograd.grad((x.log_softmax(1) * y).sum(), x, create_graph=True)[0]
m.autograd.grad(x.logsumexp(1).sum(), x, create_graph=True)[0]
m.autograd.grad(ties.amax(1).sum(), ties, create_graph=True)[0].detach(), m.autograd.grad((x.max(1).values ** 2).sum(), x, create_graph=True)[0]
m.autograd.grad((x.sort(1).values * y).sum() ** 2, x, create_graph=True)[0]
m.autograd.grad((x @ q).sin().sum(), [x, q], create_graph=True), m.autograd.grad(m.einsum("ij,jk,ik->", x, q, y), [x, q, y], create_graph=True)
m.autograd.grad((x[idx[:, 0] % 2] ** 3).sum(), x, create_graph=True)[0]
"""


def lines() -> list[str]:
    return [line for line in EXPRESSIONS.strip().splitlines() if not line.startswith("#")]


def plain(value: Any) -> Any:
    """Sizes, strides and texts as both libraries write them."""
    if isinstance(value, (torch.Size, mg.Size)):
        return tuple(value)
    if isinstance(value, str):
        return " ".join(value.replace("torch.", "mutagrad.").split())  # the longer name breaks lines elsewhere
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value


def parts_of(line: str) -> list[str]:
    """The expressions on a line, which are separated by commas outside brackets and text."""
    found, depth, start, quoted = [], 0, 0, False
    for at, char in enumerate(line):
        quoted ^= char == '"'
        depth += 0 if quoted else (char in "([{") - (char in ")]}")
        if char == "," and not depth and not quoted:
            found.append(line[start:at])
            start = at + 1
    return [part.strip() for part in [*found, line[start:]]]


def evaluate(expression: str, library: Any, tensors: dict[str, Any]) -> Any:
    return plain(eval(expression, {"m": library, "np": np, "inf": inf, "nan": nan, **tensors}))


@pytest.mark.parametrize("line", lines(), ids=lambda line: parts_of(line)[0])
def test_expression(line: str) -> None:
    failed = []
    for expression in parts_of(line):
        theirs, mine = tensors_for(torch), tensors_for(mg)
        expected, refused = attempt(lambda: evaluate(expression, torch, theirs), quiet=True)
        assert refused is None, f"{expression}: PyTorch raised {refused!r}"
        found, error = attempt(lambda: evaluate(expression, mg, mine))
        text = repr(error) if error is not None else difference(expected, found) or gradient_difference(expected, found, theirs, mine)
        if text:
            failed.append(f"{expression}: {text}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_of_linspace(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        (first, last), steps = rng.normal(size=2) * 10. ** rng.integers(-3, 4), int(rng.integers(1, 300))
        ours, theirs = (lib.linspace(first, last, steps, dtype=getattr(lib, dtype)).numpy() for lib in (mg, torch))
        assert np.array_equal(ours, theirs), (first, last, steps)
