"""The single calls that are timed: one line each, the same text for both libraries.

    F.layer_norm(x, (1024,), scale, shift) wrt x scale shift

The text is the name of the row. With `wrt` there are two rows: the call alone, and the call with its backward, for a
random adjoint of its result, down to the leaves named. `CALLS` has the lines by family and `INPUTS` what their names
mean: only those that a line names are made, from NumPy with the name as the seed, so that both libraries see the same
numbers. Statements before the last `;` are part of the call; what comes after it is the result that is compared.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from programs import filled

# ------------------------------------------------------------------------------------------ inputs

INPUTS_TEXT = """
small = normal(10)
small2 = normal(10)
medium = normal(256, 1024)
medium2 = normal(256, 1024)
x = normal(1024, 1024)
y = normal(1024, 1024)
z = normal(1024, 1024)
large = normal(4096, 1024)
large2 = normal(4096, 1024)
transposed = normal(1024, 256).T
window = normal(512, 2048)[::2, ::2]
row = normal(1024)
column = normal(1024, 1)
cube = normal(32, 128, 256)
vectors = normal(200_000, 3)
vectors2 = normal(200_000, 3)
line = normal(1_000_000)
distinct = torch.from_numpy(self.random.permutation(256 * 1024).reshape(256, 1024)).float()
distinct_line = torch.from_numpy(self.random.permutation(1_000_000)).float()
positive = uniform(0.1, 3, 1024, 1024)
positive2 = uniform(0.1, 3, 1024, 1024)
unit = uniform(0.01, 0.99, 1024, 1024)
beyond = uniform(1.01, 3, 1024, 1024)
near = uniform(0.99, 1.01, 256, 1024)
half = normal(1024, 1024).half()
half2 = normal(1024, 1024).half()
bf16 = normal(1024, 1024).bfloat16()
bf16_2 = normal(1024, 1024).bfloat16()
double = normal(1024, 1024).double()
double2 = normal(1024, 1024).double()
cplx = torch.complex(normal(512, 1024), normal(512, 1024))
cplx2 = torch.complex(normal(512, 1024), normal(512, 1024))
ints = integers(-100, 100, 1024, 1024)
ints2 = integers(1, 100, 1024, 1024)
int32 = integers(0, 100, 1024, 1024).int()
uint8 = integers(0, 256, 1024, 1024).byte()
mask = normal(1024, 1024) > 0
mask2 = normal(1024, 1024) > 0
with_nans = torch.where(normal(1024, 1024) > 2, float("nan"), normal(1024, 1024))
turned = normal(1024, 1024).T
inner = normal(1026, 1026)[1:-1, 1:-1]
int32_2 = integers(1, 100, 1024, 1024).int()
dbl = normal(512, 1024).double()
dbl_pos = uniform(0.1, 3, 512, 1024).double()
tile = normal(64, 64)
tile2 = normal(64, 64)

index = integers(0, 1024, 256, 1024)
rows = integers(0, 4096, 2048)
rows2 = integers(0, 1024, 100_000)
columns = integers(0, 1024, 100_000)
flat_index = integers(0, 1_000_000, 200_000)
places = torch.from_numpy(self.random.permutation(4096)[:2048])
counts = integers(0, 5, 1024)
sorted_row = torch.sort(normal(1024))[0]
medium_mask = normal(256, 1024) > 0
picked = normal(100_000)
vocabulary = normal(10_000, 128)
tokens = integers(0, 10_000, 64, 128)
offsets = torch.arange(0, 64 * 128, 32)
flat_tokens = integers(0, 10_000, 64 * 128)
classes = integers(0, 1024, 4096)
small_classes = integers(0, 100, 10_000)

a = normal(512, 512)
b = normal(512, 512)
tall = normal(2048, 256)
wide = normal(256, 2048)
vector = normal(1024)
vector2 = normal(1024)
batch = normal(64, 64, 64)
batch2 = normal(64, 64, 64)
many4 = normal(2000, 4, 4) + 3 * torch.eye(4)
many16 = normal(200, 16, 16) + 6 * torch.eye(16)
many16_2 = normal(200, 16, 16)
spd = (lambda r: r @ r.T / 256 + torch.eye(256))(normal(256, 256))
spd_many = (lambda r: r @ r.mT / 16 + torch.eye(16))(normal(200, 16, 16))
apart = (lambda r: (r + r.T) / 8 + torch.diag(torch.arange(256.0)))(normal(256, 256)).double()
square = normal(256, 256) + 24 * torch.eye(256)
rectangle = normal(256, 128)
sides = normal(256, 64)
lower = torch.tril(normal(256, 256)) + 24 * torch.eye(256)
points = normal(400, 32)
points2 = normal(500, 32)
int_a = integers(-10, 10, 256, 256)
int_b = integers(-10, 10, 256, 256)
weight = normal(1024, 1024) / 32
bias = normal(1024)

image = normal(16, 32, 32, 32)
images = normal(16, 3, 64, 64)
last = normal(16, 32, 32, 32).to(memory_format=torch.channels_last)
w3x3 = normal(64, 32, 3, 3) / 16
w_stem = normal(32, 3, 7, 7) / 12
w1x1 = normal(64, 32, 1, 1) / 6
w_depth = normal(32, 1, 3, 3) / 3
w_group = normal(64, 8, 3, 3) / 8
w_transposed = normal(32, 16, 4, 4) / 16
b64 = normal(64)
b32 = normal(32)
b16 = normal(16)
signal = normal(16, 32, 1024)
w1d = normal(64, 32, 5) / 12
volume = normal(4, 8, 16, 16, 16)
w3d = normal(16, 8, 3, 3, 3) / 14
grid = uniform(-1.1, 1.1, 16, 64, 64, 2)
theta = normal(16, 2, 3)
patches = normal(16, 288, 1024)
scale = normal(1024)
shift = normal(1024)
scale32 = normal(32)
shift32 = normal(32)
mean32 = torch.zeros(32)
var32 = torch.ones(32)

q = normal(4, 8, 256, 64)
k = normal(4, 8, 256, 64)
v = normal(4, 8, 256, 64)
q1 = normal(2, 4, 8)
allowed = torch.tril(torch.ones(256, 256)).bool()
sequence = normal(32, 16, 64)
lstm = filled(nn.LSTM(64, 128))
gru = filled(nn.GRU(64, 128))
rnn = filled(nn.RNN(64, 128))
cell = filled(nn.LSTMCell(64, 128))
words = normal(16, 64, 128)
multihead = filled(nn.MultiheadAttention(128, 8, batch_first=True))
encoder = filled(nn.TransformerEncoderLayer(128, 8, 256, dropout=0.0, batch_first=True))
linear = filled(nn.Linear(1024, 1024))
logits = normal(10_000, 100)
letters = normal(50, 16, 20)
ctc_targets = integers(1, 20, 16, 12)
ctc_inputs = torch.full((16,), 50)
ctc_lengths = torch.full((16,), 12)
signs = torch.sign(normal(1024, 1024))
sign_row = torch.sign(normal(4096))
chances = torch.softmax(normal(1024, 1024), -1)

numbers = list(range(1000))
array = self.random.normal(size=(1024, 1024)).astype("f4")
SGD = stepping(torch.optim.SGD, lr=1e-6)
SGD_momentum = stepping(torch.optim.SGD, lr=1e-6, momentum=0.9, weight_decay=1e-4)
Adam = stepping(torch.optim.Adam)
AdamW = stepping(torch.optim.AdamW)
RMSprop = stepping(torch.optim.RMSprop)
Adagrad = stepping(torch.optim.Adagrad)
Adadelta = stepping(torch.optim.Adadelta)
NAdam = stepping(torch.optim.NAdam)
small_Adam = stepping(torch.optim.Adam, shape=(10,))
parameters = [p for p in graded()]
"""
INPUTS: dict[str, str] = dict(line.split(" = ", 1) for line in INPUTS_TEXT.splitlines() if line)

# ------------------------------------------------------------------------------------------- calls

CALLS: dict[str, str] = {}

CALLS["arithmetic"] = """
x + y wrt x y
x - y
x * y wrt x y
x / positive wrt x positive
x + 1.5
x * 2.0 wrt x
2.0 / positive wrt positive
-x
x ** 2 wrt x
positive ** 1.5
positive ** unit wrt positive unit
large + large2 wrt large large2
large * 2.0
medium + medium2 wrt medium medium2
medium * medium2
small + small2 wrt small small2
small * 2.0 wrt small
x + row wrt x row
x * column wrt x column
column * row
transposed + medium wrt transposed medium
transposed * transposed
window * medium wrt window medium
window + window
half * 2
half + half2
half * half2 wrt half half2
bf16 * 2
bf16 + bf16_2 wrt bf16 bf16_2
double * double2 wrt double double2
double + 1
cplx + cplx2
cplx * cplx2 wrt cplx cplx2
ints + ints2
ints * 3
ints * ints2
ints // ints2
ints % ints2
ints / ints2
int32 + int32
torch.remainder(x, 1.7) wrt x
torch.remainder(x, positive)
torch.fmod(x, 1.7) wrt x
torch.fmod(x, positive)
torch.floor_divide(x, 0.7)
torch.addcmul(x, y, z, value=0.5) wrt x y z
torch.addcdiv(x, y, positive, value=0.5)
torch.lerp(x, y, 0.3) wrt x y
torch.maximum(x, y) wrt x y
torch.minimum(x, y)
torch.hypot(x, y)
torch.atan2(x, y) wrt x y
torch.logaddexp(x, y) wrt x y
torch.copysign(x, y)
torch.bitwise_and(ints, ints2)
ints2 << 2
torch.gcd(ints, ints2)
turned + x wrt turned x
inner * inner wrt inner
tile + tile2 wrt tile tile2
x[:, :, None] * row[:2]
-cplx
cplx * 2.0 wrt cplx
int32 * int32_2
int32 // int32_2
int32 % 7
ints & 15
torch.maximum(ints, ints2)
torch.fmod(dbl, 1.3)
torch.remainder(dbl, dbl_pos)
dbl_pos ** 3 wrt dbl_pos
torch.lerp(x, y, unit) wrt x y
torch.clamp(x, min=y)
torch.logaddexp2(x, y)
torch.nextafter(x, y)
"""

CALLS["in place"] = """
x.add_(1.0)
x.mul_(-1.0)
x.neg_()
x.add_(y, alpha=1e-3)
large.add_(large2, alpha=1e-3)
large.mul_(-1.0)
half.mul_(-1.0)
x.clamp_(-1, 1)
x.relu_()
x.zero_()
x.fill_(0.5)
x.copy_(y)
x.copy_(double)
medium.copy_(transposed)
window.mul_(-1.0)
x[10:500].add_(1e-3)
x.masked_fill_(mask, 0.5)
x.addcmul_(y, z, value=1e-4)
x.lerp_(y, 0.01)
torch.add(x, y, out=z)
torch.exp(x, out=z)
u = x.clone(); u *= 2.0; u wrt x
u = x.clone(); u.exp_(); u wrt x
u = x.clone(); u[:, ::2] = 0.0; u wrt x
u = x.clone(); u[mask] = 0.5; u wrt x
u = x.clone(); u[100:200] = row; u wrt x row
u = x.clone(); u[:, 3] += 1.0; u wrt x
ints.add_(1)
inner.add_(1.0)
x.triu_()
x[:, 10:20] = 1.0; x
"""

CALLS["unary"] = """
x.abs() wrt x
x.sign()
x.ceil()
x.floor()
x.round()
x.trunc()
x.frac() wrt x
x.neg() wrt x
positive.sqrt() wrt positive
positive.rsqrt() wrt positive
positive.reciprocal()
x.square() wrt x
x.exp() wrt x
x.exp2()
x.expm1()
positive.log() wrt positive
positive.log2()
positive.log10()
positive.log1p() wrt positive
x.sin() wrt x
x.cos() wrt x
x.tan()
unit.asin()
unit.acos() wrt unit
x.atan()
x.sinh()
x.cosh()
x.tanh() wrt x
x.asinh()
beyond.acosh()
unit.atanh()
x.sigmoid() wrt x
unit.logit()
x.erf() wrt x
x.erfc()
unit.erfinv()
positive.lgamma()
positive.digamma()
torch.special.i0(medium)
torch.sinc(x)
torch.special.xlogy(x, positive)
torch.special.entr(unit)
torch.nan_to_num(with_nans)
x.clamp(-1, 1) wrt x
x.clamp(min=0)
torch.deg2rad(x)
small.exp() wrt small
small.abs()
medium.exp()
medium.tanh() wrt medium
large.exp()
large.tanh() wrt large
transposed.exp() wrt transposed
transposed.abs()
window.exp() wrt window
window.floor()
half.exp()
half.tanh() wrt half
half.abs()
bf16.exp()
bf16.sigmoid()
double.exp() wrt double
double.sin()
cplx.abs() wrt cplx
cplx.exp()
cplx.angle()
cplx.conj() * cplx
ints.abs()
torch.polar(positive, x)
torch.view_as_real(cplx) * 2
torch.exp2(x) wrt x
turned.exp() wrt turned
inner.exp()
dbl.cos() wrt dbl
dbl.tan()
dbl.erf()
dbl.tanh() wrt dbl
"""

CALLS["comparison"] = """
x > y
x > 0
x == y
half > 0
ints == ints2
ints < 50
transposed > medium
torch.isnan(with_nans)
torch.isfinite(x)
torch.isclose(x, y)
torch.allclose(x, x)
torch.equal(x, x)
torch.logical_and(mask, mask2)
mask & mask2
mask | mask2
~mask
mask.any()
mask.all(1)
mask.sum()
(x > 0).sum(1)
torch.count_nonzero(x)
torch.where(mask, x, y) wrt x y
torch.where(mask, x, 0.0) wrt x
small > 0
"""

CALLS["reduction"] = """
x.sum() wrt x
x.sum(0) wrt x
x.sum(1) wrt x
large.sum(1)
large.sum(0)
large.mean()
transposed.sum(1)
window.sum(1)
cube.sum((0, 2)) wrt cube
half.sum()
bf16.sum(1)
double.sum(1)
ints.sum(1)
x.mean(1) wrt x
x.mean(0)
x.var(1) wrt x
x.var(0)
x.std() wrt x
x.std(1)
torch.var_mean(x, 1)
near.prod(1) wrt near
near.prod()
x.amax(1) wrt x
x.amax(0)
x.amin(1)
x.max()
x.max(1) wrt x
x.min(0)
torch.aminmax(x)
x.argmax(1)
x.argmax(0)
x.argmin()
half.amax(1)
x.norm() wrt x
x.norm(dim=1) wrt x
x.norm(p=1, dim=1)
torch.linalg.vector_norm(x, 3, dim=1)
torch.logsumexp(x, 1) wrt x
torch.nansum(with_nans, 1)
torch.nanmean(with_nans, 1)
small.sum() wrt small
medium.sum(1)
medium.mean() wrt medium
torch.cov(medium)
torch.corrcoef(medium)
turned.sum(0)
turned.max(1)
inner.sum() wrt inner
inner.sum(1)
cplx.sum(1)
dbl.std(1)
tile.max(1)
"""

CALLS["cumulative"] = """
x.cumsum(1) wrt x
x.cumsum(0) wrt x
large.cumsum(1)
ints.cumsum(1)
transposed.cumsum(1)
near.cumprod(1) wrt near
x.cummax(1) wrt x
x.cummin(0)
torch.logcumsumexp(medium, 1) wrt medium
torch.diff(x) wrt x
torch.trapezoid(x, dim=1)
"""

CALLS["sorting"] = """
distinct.sort(1) wrt distinct
distinct.sort(0)
distinct_line.sort()
line.sort()[0]
ints.sort(1)[0]
ints.sort(dim=1, stable=True)
distinct.argsort(1)
distinct.T.sort(1)
half.sort(1)[0]
small.sort()
x.topk(10) wrt x
line.topk(100)
medium.kthvalue(100, dim=1) wrt medium
medium.median(1) wrt medium
x.median()
medium.quantile(0.3, dim=1)
torch.nanmedian(medium, 1)
ints.unique()
ints.unique(return_inverse=True, return_counts=True)
line.unique()
torch.unique_consecutive(ints2)
torch.searchsorted(sorted_row, x)
torch.bucketize(x, sorted_row)
torch.mode(index, 1)[0]
torch.isin(ints, counts)
torch.histc(x, 100, -3, 3)
torch.bincount(flat_tokens)
mask.nonzero()
x.unique(dim=0)
torch.nanmedian(with_nans)
tile.topk(5)
"""

CALLS["indexing"] = """
medium.gather(1, index) wrt medium
medium.gather(0, index % 256)
medium.scatter_add(1, index, medium2) wrt medium medium2
medium.scatter(1, index.sort(1)[0], 2.0)
medium.scatter_reduce(1, index, medium2, "amax") wrt medium medium2
medium.scatter_reduce(1, index, medium2, "mean")
medium.scatter_reduce(1, index, medium2, "sum")
large.index_select(0, rows) wrt large
large.index_select(1, counts)
large.index_add(0, rows, large2[:2048]) wrt large
large.index_copy(0, places, large2[:2048])
large.index_fill(0, places, 0.5)
large[rows] wrt large
x[rows2, columns] wrt x
x[:, counts] wrt x
x[mask] wrt x
x[mask2 & mask]
x.masked_select(mask)
x.masked_fill(mask, 0.5) wrt x
x.masked_scatter(mask, y)
x.take(flat_index)
torch.take_along_dim(medium, index, 1)
x.index_put((rows2, columns), picked, accumulate=True) wrt x picked
F.embedding(tokens, vocabulary) wrt vocabulary
F.embedding_bag(flat_tokens, vocabulary, offsets) wrt vocabulary
F.one_hot(small_classes, 100)
x[10:500] wrt x
x[:, 3]
x[::2, ::2] + 1.0
x[5, 6] wrt x
x[None, ..., 0]
torch.repeat_interleave(medium, 3, 0) wrt medium
torch.repeat_interleave(x, counts, 0)
x.tril() wrt x
x.triu(1)
x.diagonal() wrt x
torch.diag(row)
torch.diag_embed(normal_rows)
torch.where(mask)
torch.argwhere(mask)
x.bool().nonzero()
"""
INPUTS["normal_rows"] = "normal(64, 128)"

CALLS["shape"] = """
torch.cat([x, y]) wrt x y
torch.cat([x, y], 1) wrt x y
torch.cat([medium, transposed], 1)
torch.cat([small, small2]) wrt small small2
torch.stack([x, y]) wrt x y
torch.stack([x, y], -1) wrt x y
torch.stack([small, small2])
torch.hstack([x, y])
x.split(256, 1) wrt x
x.chunk(4)
medium.unbind() wrt medium
x.T.contiguous() wrt x
cube.permute(2, 0, 1).contiguous() wrt cube
image.permute(0, 2, 3, 1).contiguous()
x.T.reshape(-1)
x.clone() wrt x
transposed.clone()
window.contiguous()
x.view(-1)
x.reshape(512, 2048) wrt x
x.permute(1, 0)
x.unsqueeze(0)
x.flatten()
row.expand(1024, 1024) wrt row
row.expand(1024, 1024).contiguous()
medium.repeat(2, 3) wrt medium
medium.tile(4)
x.flip(0) wrt x
x.flip(1)
x.roll(100, 1) wrt x
torch.rot90(x)
x.unfold(1, 16, 8) wrt x
x.unfold(1, 16, 8).contiguous()
torch.meshgrid(row, vector, indexing="ij")
torch.movedim(cube, 0, 2)
torch.kron(batch[0], batch[1])
torch.block_diag(batch[0], batch[1], batch[2])
F.pad(image, (1, 1, 1, 1)) wrt image
F.pad(image, (2, 2, 2, 2), mode="reflect") wrt image
F.pad(image, (2, 2, 2, 2), mode="replicate")
F.pad(image, (2, 2, 2, 2), mode="circular")
F.pad(x, (0, 24)) wrt x
F.pixel_shuffle(image, 2) wrt image
F.unfold(image, 3, padding=1) wrt image
F.fold(patches, (32, 32), 3, padding=1) wrt patches
turned.flip(0)
torch.fliplr(x)
torch.vstack([turned, x])
x.view(32, 32, 32, 32).permute(0, 2, 1, 3).reshape(1024, 1024) wrt x
last.contiguous()
F.pad(last, (1, 1, 1, 1))
torch.combinations(row[:100])
cube.tril() wrt cube
"""

CALLS["cast"] = """
x.double() wrt x
double.float()
x.half() wrt x
half.float() wrt half
x.bfloat16() wrt x
bf16.float() wrt bf16
half.bfloat16()
x.long()
x.int()
ints.float()
ints.double()
int32.long()
mask.float()
mask.long()
x.bool()
uint8.float() / 255
x.byte()
x.to(torch.complex64)
cplx.real
transposed.double()
small.double()
x.sum().item()
small.tolist()
"""

CALLS["factory"] = """
torch.zeros(1024, 1024)
torch.ones(1024, 1024)
torch.full((1024, 1024), 0.5)
torch.zeros(10)
torch.ones(4096, 1024)
torch.zeros_like(x)
torch.ones_like(x)
torch.full_like(x, 2.0)
torch.arange(1_000_000)
torch.arange(0, 1000, 0.001)
torch.arange(10)
torch.linspace(0, 1, 1_000_000)
torch.logspace(0, 1, 100_000)
torch.eye(1024)
torch.eye(4)
torch.tensor(numbers)
torch.tensor([1.0, 2.0, 3.0])
torch.tensor(array)
torch.from_numpy(array)
torch.tril_indices(500, 500)
torch.hann_window(100_000)
torch.complex(x, y) wrt x y
x.new_zeros(1024, 1024)
"""

CALLS["random"] = """
torch.randn(1024, 1024)
torch.rand(1024, 1024)
torch.randint(0, 100, (1024, 1024))
torch.randperm(100_000)
torch.randn(10)
torch.randn_like(x)
torch.normal(x, positive)
torch.bernoulli(unit)
torch.multinomial(chances, 1)
torch.multinomial(chances, 10, replacement=True)
torch.poisson(positive)
x.uniform_()
x.normal_()
x.exponential_()
F.dropout(x, 0.1) wrt x
F.dropout(large, 0.5)
F.gumbel_softmax(medium)
torch.distributions.Normal(medium, 1.0).sample()
torch.distributions.Categorical(logits=medium).sample()
"""

CALLS["product"] = """
a @ b wrt a b
x @ y
x @ y.T wrt x y
tall @ wide
wide @ tall wrt wide tall
x @ vector wrt x vector
torch.dot(line, line) wrt line
torch.outer(row, vector) wrt row vector
torch.bmm(batch, batch2) wrt batch batch2
batch @ batch2.mT
batch[0] @ batch[1]
many4 @ many4
torch.einsum("i,j->ij", row, vector) wrt row vector
torch.einsum("ij,jk->ik", a, b) wrt a b
torch.einsum("bij,bjk->bik", batch, batch2) wrt batch batch2
torch.einsum("ij,ij->i", x, y) wrt x y
torch.einsum("bhqd,bhkd->bhqk", q, k)
torch.einsum("ii->i", a)
torch.einsum("ij,ij->", x, y)
tile @ tile2 wrt tile tile2
torch.addmm(bias, x, weight) wrt bias x weight
torch.baddbmm(batch, batch, batch2)
F.linear(x, weight, bias) wrt x weight bias
linear(medium) wrt linear
F.linear(small_batch, weight, bias)
F.bilinear(points, points, bilinear_weight) wrt points bilinear_weight
int_a @ int_b
half[:256, :256] @ half2[:256, :256]
bf16[:512, :512] @ bf16_2[:512, :512]
double[:512, :512] @ double2[:512, :512]
cplx[:, :512] @ cplx2[:, :512]
torch.tensordot(cube, cube, dims=([1, 2], [1, 2]))
torch.matrix_power(a / 32, 5)
torch.linalg.multi_dot([wide, tall, wide])
torch.linalg.cross(vectors, vectors2) wrt vectors vectors2
torch.cdist(points, points2) wrt points
torch.cdist(points, points2, p=1.0)
F.cosine_similarity(x, y, dim=1) wrt x y
F.pairwise_distance(x, y) wrt x y
F.normalize(x, dim=1) wrt x
"""
INPUTS["small_batch"] = "normal(8, 1024)"
INPUTS["bilinear_weight"] = "normal(16, 32, 32)"

CALLS["linalg"] = """
torch.linalg.cholesky(spd) wrt spd
torch.linalg.cholesky(spd_many) wrt spd_many
torch.linalg.qr(rectangle) wrt rectangle
torch.linalg.qr(many16)
torch.linalg.svd(square)[1] wrt square
torch.linalg.svdvals(rectangle)
torch.linalg.svdvals(many16) wrt many16
torch.linalg.eigh(apart)[0] wrt apart
torch.linalg.eigvalsh(apart)
torch.linalg.eigvalsh(spd_many)
torch.linalg.eigvals(square).abs().max()
torch.linalg.solve(square, sides) wrt square sides
torch.linalg.solve(many16, many16_2) wrt many16 many16_2
torch.linalg.inv(square) wrt square
torch.linalg.inv(many4)
torch.linalg.inv(many16) wrt many16
torch.linalg.det(many16) wrt many16
torch.linalg.det(many4) wrt many4
torch.linalg.slogdet(square) wrt square
torch.linalg.lstsq(rectangle, sides).solution
torch.linalg.pinv(rectangle)
torch.linalg.solve_triangular(lower, sides, upper=False) wrt lower sides
torch.cholesky_solve(sides, lower)
torch.linalg.lu_factor(square)
torch.linalg.lu(square)
torch.linalg.matrix_norm(x)
torch.linalg.matrix_norm(rectangle, 2)
torch.linalg.matrix_exp(many4) wrt many4
torch.linalg.matrix_rank(rectangle)
torch.trace(x) wrt x
"""

CALLS["fourier"] = """
torch.fft.fft(x) wrt x
torch.fft.ifft(cplx) wrt cplx
torch.fft.rfft(x) wrt x
torch.fft.irfft(cplx) wrt cplx
torch.fft.fft2(image) wrt image
torch.fft.rfft2(image)
torch.fft.rfft(line)
torch.fft.fftshift(x)
torch.stft(signal[:, 0], 128, return_complex=True, window=torch.hann_window(128))
"""

CALLS["activation"] = """
F.relu(x) wrt x
F.relu(large) wrt large
F.relu(transposed) wrt transposed
F.relu(half)
F.relu(small) wrt small
F.relu6(x) wrt x
F.leaky_relu(x, 0.1) wrt x
F.elu(x) wrt x
F.selu(x) wrt x
F.celu(x) wrt x
F.gelu(x) wrt x
F.gelu(x, approximate="tanh") wrt x
F.gelu(large)
F.gelu(half)
F.silu(x) wrt x
F.silu(large)
F.silu(bf16)
F.mish(x) wrt x
F.hardswish(x) wrt x
F.hardsigmoid(x) wrt x
F.hardtanh(x) wrt x
F.hardshrink(x) wrt x
F.softshrink(x) wrt x
F.tanhshrink(x) wrt x
F.softsign(x) wrt x
F.softplus(x) wrt x
F.logsigmoid(x) wrt x
F.threshold(x, 0.1, 0.5) wrt x
F.prelu(x, slope) wrt x slope
F.rrelu(x)
F.glu(x) wrt x
F.softmax(x, -1) wrt x
F.softmax(x, 0) wrt x
F.softmax(large, -1)
F.softmax(half, -1)
F.softmax(small, -1) wrt small
F.softmin(x, -1)
F.log_softmax(x, -1) wrt x
F.log_softmax(large, -1)
F.softmax(turned, -1) wrt turned
F.softmax(tile, -1) wrt tile
F.gelu(dbl) wrt dbl
F.relu(inner) wrt inner
F.relu(last) wrt last
"""
INPUTS["slope"] = "torch.full((1,), 0.25)"

CALLS["loss"] = """
F.mse_loss(x, y) wrt x y
F.mse_loss(large, large2)
F.l1_loss(x, y) wrt x y
F.smooth_l1_loss(x, y) wrt x
F.huber_loss(x, y, delta=0.5) wrt x
F.cross_entropy(large, classes) wrt large
F.cross_entropy(logits, small_classes) wrt logits
F.cross_entropy(logits, small_classes, label_smoothing=0.1) wrt logits
F.cross_entropy(x, chances) wrt x
F.nll_loss(logits, small_classes) wrt logits
F.binary_cross_entropy(unit, mask.float()) wrt unit
F.binary_cross_entropy_with_logits(x, unit) wrt x
F.kl_div(x, chances, reduction="batchmean") wrt x
F.gaussian_nll_loss(x, y, positive) wrt x positive
F.poisson_nll_loss(x, positive) wrt x
F.soft_margin_loss(x, signs) wrt x
F.hinge_embedding_loss(x, signs) wrt x
F.margin_ranking_loss(x[0], x[1], signs[0])
F.multi_margin_loss(logits, small_classes) wrt logits
F.multilabel_soft_margin_loss(x, mask.float()) wrt x
F.triplet_margin_loss(x, y, z) wrt x y z
F.cosine_embedding_loss(large, large2, sign_row) wrt large
F.ctc_loss(F.log_softmax(letters, -1), ctc_targets, ctc_inputs, ctc_lengths) wrt letters
F.mse_loss(small, small2) wrt small
F.mse_loss(tile, tile2) wrt tile
"""

CALLS["convolution"] = """
F.conv2d(image, w3x3, b64, padding=1) wrt image w3x3 b64
F.conv2d(image, w3x3, b64, stride=2) wrt image w3x3
F.conv2d(image, w1x1) wrt image w1x1
F.conv2d(image, w_depth, b32, padding=1, groups=32) wrt image w_depth b32
F.conv2d(image, w_group, padding=1, groups=4) wrt image w_group
F.conv2d(image, w3x3, dilation=2)
F.conv2d(images, w_stem, stride=2, padding=3) wrt w_stem
F.conv_transpose2d(image, w_transposed, b16, stride=2, padding=1) wrt image w_transposed
F.conv1d(signal, w1d, b64, padding=2) wrt signal w1d
F.conv1d(signal, w1d[:, :, :1]) wrt signal
F.conv_transpose1d(signal, w1d.transpose(0, 1).contiguous(), stride=2)
F.conv3d(volume, w3d, padding=1) wrt volume w3d
F.conv2d(image[:1, :, :8, :8], w3x3)
"""

CALLS["pooling"] = """
F.max_pool2d(image, 2) wrt image
F.max_pool2d(image, 3, stride=2, padding=1) wrt image
F.max_pool2d(image, 2, return_indices=True)
F.avg_pool2d(image, 2) wrt image
F.avg_pool2d(image, 3, stride=1, padding=1) wrt image
F.max_pool1d(signal, 4) wrt signal
F.avg_pool1d(signal, 4)
F.max_pool3d(volume, 2)
F.adaptive_avg_pool2d(image, 1) wrt image
F.adaptive_avg_pool2d(image, 7) wrt image
F.adaptive_max_pool2d(image, 4) wrt image
F.lp_pool2d(image, 2, 2)
F.max_pool2d(last, 2) wrt last
F.avg_pool2d(last, 2)
F.adaptive_max_pool2d(image, 5)
"""

CALLS["normalization"] = """
F.layer_norm(x, (1024,), scale, shift) wrt x scale shift
F.layer_norm(large, (1024,)) wrt large
F.layer_norm(medium, (1024,), scale, shift)
F.rms_norm(x, (1024,), scale) wrt x scale
F.batch_norm(image, mean32, var32, scale32, shift32, True) wrt image scale32 shift32
F.batch_norm(image, mean32, var32, scale32, shift32, False) wrt image
F.group_norm(image, 8, scale32, shift32) wrt image scale32 shift32
F.instance_norm(image) wrt image
F.local_response_norm(image, 5)
F.layer_norm(small, (10,)) wrt small
F.layer_norm(turned, (1024,)) wrt turned
F.layer_norm(dbl, (1024,)) wrt dbl
F.batch_norm(last, mean32, var32, scale32, shift32, True) wrt last
torch.nn.utils.clip_grad_norm_(parameters, 1e6)
"""

CALLS["attention"] = """
F.scaled_dot_product_attention(q, k, v) wrt q k v
F.scaled_dot_product_attention(q, k, v, is_causal=True) wrt q k v
F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
F.scaled_dot_product_attention(q1, q1, q1) wrt q1
multihead(words, words, words, need_weights=False)[0] wrt multihead
encoder(words) wrt encoder
"""

CALLS["recurrent"] = """
lstm(sequence) wrt lstm
gru(sequence) wrt gru
rnn(sequence) wrt rnn
cell(sequence[0]) wrt cell
"""

CALLS["resampling"] = """
F.interpolate(image, scale_factor=2) wrt image
F.interpolate(image, scale_factor=2, mode="bilinear") wrt image
F.interpolate(image, size=(48, 48), mode="bilinear", align_corners=True)
F.interpolate(image, size=(16, 16), mode="area")
F.interpolate(images, scale_factor=2, mode="bicubic") wrt images
F.interpolate(signal, scale_factor=2, mode="linear") wrt signal
F.interpolate(last, scale_factor=2) wrt last
F.grid_sample(images, grid, align_corners=False) wrt images grid
F.grid_sample(images, grid, mode="nearest", align_corners=False)
F.affine_grid(theta, (16, 3, 64, 64), align_corners=False) wrt theta
"""

CALLS["optimizer"] = """
SGD()
SGD_momentum()
Adam()
AdamW()
RMSprop()
Adagrad()
Adadelta()
NAdam()
small_Adam()
"""

NOT_COMPARED = {"random", "F.rrelu(x)"}  # families, or calls: what they draw differs; shapes and types do not

# Why calls that contain a text take more than three times as long as PyTorch.
SHARED = "the gradient is a copy of what backward() was given; PyTorch lets them share memory"
FEW_US = "a call of a few microseconds: what is checked and recorded around NumPy's is Python"
REASONS = {
    "torch.randn(10)": "a few microseconds: PyTorch's pairs of doubles, drawn under the generator's lock, in Python",
    "half": "halves are converted by their bits, in some ten steps of NumPy's; with Numba it is the processor's instructions",
    "torch.fft.": "pocketfft, against MKL",
    "torch.stft": "pocketfft, against MKL",
    "int_a @ int_b": "there is no BLAS for integers",
    "bf16[:512, :512] @": "BLAS has no products of bfloat16: it is converted to float32 and back",
    "igamma": "SciPy's function, one element at a time",
    "nextafter": "found by their bits, in some fifteen steps of NumPy's; there is no compiled loop",
    "x.reshape(512, 2048) backward": SHARED,
    "torch.cat([x, y]) backward": SHARED,
    "torch.stack([x, y]) backward": SHARED,
    "x.split(256, 1) backward": SHARED,
    "torch.vstack": SHARED,
    "unfold(1, 16, 8) backward": "windows that overlap are added by position; PyTorch adds the slices of each place in them",
    "torch.linalg.det(many4)": "NumPy's calls of LAPACK, a small matrix each; PyTorch solves them by its own loop",
    "medium.sum(1)": "BLAS's on one thread: waking another takes longer",
    "near.prod(1)": "two threads wake for five microseconds of work each",
    "many4 @ many4": "a call of BLAS's for each small matrix",
    "tile": FEW_US,
    "small": FEW_US,
    "q1": FEW_US,
    "torch.meshgrid": FEW_US,
    "torch.trace": FEW_US,
    "torch.block_diag": FEW_US,
    "torch.eye(4)": FEW_US,
    "torch.arange(10)": FEW_US,
    "torch.zeros(10)": FEW_US,
}
# The same with NumPy alone, which MUTAGRAD_KERNELS=numpy asks for, by family: of those that have kernels otherwise.
STEPS = "NumPy passes over memory once for each step of the formula; with Numba it is one loop"
ALONE = {
    "arithmetic": STEPS, "in place": STEPS, "activation": STEPS, "loss": STEPS, "normalization": STEPS, "attention": STEPS,
    "unary": "NumPy or SciPy has no vectors of the function, or it is several steps; with Numba it is one loop",
    "cumulative": "in blocks, of two elements, then of four: several passes; with Numba there is a kernel",
    "reduction": "NumPy widens before it reduces, or goes over memory twice; with Numba there is a kernel",
    "sorting": "NumPy's sorts on threads that wait for the interpreter's lock; with Numba there are kernels for the rest",
    "indexing": "NumPy reads and writes by position on one thread; with Numba there are kernels",
    "shape": "NumPy copies on one thread, and turned rows one element at a time; with Numba there is a kernel",
    "cast": "by bits, in several steps of NumPy's, or on one thread; with Numba it is one loop",
    "random": "PyTorch's numbers to the bit: in double, or one by one; with Numba there are kernels",
    "product": "more than one pass over memory, or over all pairs; with Numba it is one loop",
    "linalg": "one call of LAPACK after the other, and of NumPy's between them",
    "convolution": "columns of the image are copied, and multiplied by BLAS; with Numba tiles stay in registers",
    "pooling": "a step of NumPy's for each element of a window; with Numba there is a kernel",
    "recurrent": "ten of NumPy's calls for each step of the sequence; with Numba a step is one loop",
    "resampling": "a gather of NumPy's for each neighbour and channel; with Numba there is a kernel",
    "factory": "NumPy fills on one thread",
}

# -------------------------------------------------------------------------------- lines into programs


@dataclass(frozen=True)
class Call:
    name: str
    family: str
    statement: str
    leaves: tuple[str, ...] = ()  # those of the backward; empty: forward alone

    @property
    def compared(self) -> bool:
        return not {self.family, self.statement} & NOT_COMPARED

    @property
    def reason(self) -> str:
        found = next((why for text, why in REASONS.items() if text in self.name), "")
        return found or (ALONE.get(self.family, "") if os.environ.get("MUTAGRAD_KERNELS") == "numpy" else "")

    def arrays(self, result: Any) -> dict[str, np.ndarray]:
        """What is compared, by place and type."""
        return {f"{i} {kind}": values for i, (kind, values) in enumerate(parts(result))}

    def make(self, lib: Any) -> Callable[[], Any]:
        inputs = Inputs(lib)
        leaves = [leaf for name in self.leaves for leaf in inputs.leaf(name)]
        forward = inputs.function(self.statement)
        return backward(lib, forward, leaves) if leaves else forward


def calls() -> Iterator[Call]:
    for family, lines in CALLS.items():
        for line in lines.strip().splitlines():
            statement, _, leaves = line.partition(" wrt ")
            yield Call(statement, family, statement)
            if leaves:
                yield Call(f"{statement} backward", family, statement, tuple(leaves.split()))


class Inputs(dict[str, Any]):
    """What the names in a call mean to one library; each is made when it is first looked up."""

    def __init__(self, lib: Any) -> None:
        super().__init__(torch=lib, nn=lib.nn, F=lib.nn.functional, self=self, float=float, list=list, range=range)
        self.update(normal=self.normal, uniform=self.uniform, integers=self.integers, filled=filled)
        self.update(graded=self.graded, stepping=self.stepping)

    def __missing__(self, name: str) -> Any:
        self.seed, self.random = crc32(name.encode()), np.random.default_rng(crc32(name.encode()))
        self[name] = eval(INPUTS[name], self, self)
        return self[name]

    def normal(self, *shape: int) -> Any:
        return self.drawn("normal", 0, 1, shape)

    def uniform(self, low: float, high: float, *shape: int) -> Any:
        return self.drawn("uniform", low, high, shape)

    def integers(self, low: int, high: int, *shape: int) -> Any:
        return self.drawn("integers", low, high, shape)

    def drawn(self, kind: str, low: float, high: float, shape: tuple[int, ...]) -> Any:
        self.seed += 1
        return self["torch"].tensor(draw(self.seed, kind, low, high, shape))

    def graded(self, shape: tuple[int, ...] = (500, 500)) -> list[Any]:
        """Four parameters that have gradients."""
        weights = [self["nn"].Parameter(self.normal(*shape)) for _ in range(4)]
        for w in weights:
            w.grad = self.normal(*shape)
        return weights

    def stepping(self, optimizer: Any, lr: float = 1e-3, shape: tuple[int, ...] = (500, 500), **settings: Any) -> Any:
        weights = self.graded(shape)
        step = optimizer(weights, lr=lr, **settings).step

        def run() -> Any:
            step()
            return weights

        return run

    def leaf(self, name: str) -> list[Any]:
        """The tensors that get gradients for this name: itself, or a module's parameters."""
        value = self[name]
        if isinstance(value, self["nn"].Module):
            return list(value.parameters())
        self[name] = value.detach().requires_grad_()
        return [self[name]]

    def function(self, statement: str) -> Callable[[], Any]:
        *first, last = statement.split("; ")
        code = compile("\n ".join(["def run():", *first, f"return {last}"]), statement, "exec")
        for node in ast.walk(ast.parse(statement)):
            if isinstance(node, ast.Name) and node.id in INPUTS:
                self[node.id]
        exec(code, self)
        return self["run"]


@lru_cache(maxsize=12)  # neighbouring rows share their inputs, and a million draws take longer than most calls
def draw(seed: int, kind: str, low: float, high: float, shape: tuple[int, ...]) -> np.ndarray:
    values = getattr(np.random.default_rng(seed), kind)(low, high, shape)
    return values if kind == "integers" else values.astype(np.float32)


def backward(lib: Any, forward: Callable[[], Any], leaves: list[Any]) -> Callable[[], Any]:
    random = np.random.default_rng(0)

    def adjoint(y: Any) -> Any:
        g = lib.tensor(random.normal(size=tuple(y.shape)))
        return (lib.complex(g, g.flip(0)) if y.is_complex() else g).to(y.dtype)

    result = forward()
    adjoints = [adjoint(y) for y in tensors(result) if y.requires_grad]
    alone = not isinstance(result, tuple | list)

    def run() -> Any:
        for leaf in leaves:
            leaf.grad = None
        if alone:
            forward().backward(adjoints[0])
        else:
            lib.autograd.backward([y for y in tensors(forward()) if y.requires_grad], adjoints)
        return [leaf.grad for leaf in leaves]

    return run


def tensors(result: Any) -> list[Any]:
    """The tensors in it, in order."""
    if isinstance(result, tuple | list):
        return [y for part in result for y in tensors(part)]
    return [result] if hasattr(result, "requires_grad") else []


def parts(result: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The type and the values of each tensor and each number in it."""
    if isinstance(result, tuple | list):
        for part in result:
            yield from parts(part)
    elif not tensors(result):
        yield type(result).__name__, np.asarray(result)
    else:
        y, kind = result.detach(), str(result.dtype).split(".")[-1]
        yield kind, np.array(y.float() if kind == "bfloat16" else y.resolve_conj())


ROWS: dict[str, Call] = {}
for call in calls():
    assert call.name not in ROWS, f"twice: {call.name}"
    ROWS[call.name] = call
