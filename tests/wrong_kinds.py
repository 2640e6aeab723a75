"""Calls with an argument of the wrong kind: expressions that are right, in each of which every argument in turn is replaced."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

# Right calls in `m`, the library, and the names that `names` gives.
EXPRESSIONS = """
m.tensor([1.0, 2.0], dtype=m.float32, requires_grad=True); m.as_tensor([1.0], dtype=m.float64); m.from_numpy(array); m.asarray([1.0]); m.zeros((2, 3), dtype=m.float32)
m.zeros(2, 3, requires_grad=True); m.ones(2); m.empty(2); m.full((2,), 1.0); m.eye(2); m.arange(0, 5, 2); m.linspace(0, 1, 3); m.logspace(0, 1, 3); m.rand(2); m.randn(2, 3)
m.randint(0, 5, (2,)); m.randperm(4); m.normal(0.0, 1.0, (2,)); m.multinomial(v.abs(), 2); m.bernoulli(v.sigmoid()); m.zeros_like(x); m.full_like(x, 2.0); m.randint_like(x, 3)
m.manual_seed(0); m.set_default_dtype(m.float32); m.promote_types(m.int32, m.float32); m.result_type(x, 1); m.can_cast(m.int32, m.float32); m.finfo(m.float32); m.iinfo(m.int32)
m.is_tensor(x); m.is_floating_point(x); m.is_complex(x); m.numel(x); m.equal(x, x); m.allclose(x, x, 1e-5); m.isclose(x, x); m.get_num_threads(); m.set_grad_enabled(True)
m.cat([x, x], 0); m.stack([x, x], 0); m.hstack([x, x]); m.vstack([x, x]); m.split(x, 1, 0); m.chunk(x, 2, 0); m.unbind(x, 0); m.where(x > 0, x, x); m.einsum("ij,kj->ik", x, x)
m.meshgrid(v, v, indexing="ij"); m.cartesian_prod(v, v); m.broadcast_shapes((2, 1), (3,)); m.broadcast_tensors(x, x); m.atleast_2d(v); m.tril(x, 0); m.triu(x, 0); m.diag(v, 0)
m.diag_embed(x); m.flip(x, (0,)); m.roll(x, 1, 0); m.rot90(x, 1, (0, 1)); m.gather(x, 0, index2); m.topk(v, 2, 0); m.sort(v, 0); m.argsort(v, 0); m.searchsorted(v, v); m.bucketize(v, v)
m.unique(i); m.bincount(i); m.histc(v, 3); m.nonzero(v); m.count_nonzero(v); m.repeat_interleave(v, 2); m.take(v, i); m.index_select(v, 0, i); m.masked_select(v, mask)
m.sum(x, 0); m.mean(x, 0); m.prod(x, 0); m.var(x, 0); m.std(x, 0); m.norm(x, 2, 0); m.max(x, 0); m.min(x, 0); m.amax(x, 0); m.argmax(x, 0); m.all(mask, 0); m.any(mask, 0); m.cumsum(x, 0)
m.cumprod(x, 0); m.logsumexp(x, 0); m.softmax(x, 0); m.quantile(v, 0.5); m.median(v); m.trapezoid(v); m.cov(x); m.cdist(x, x); m.renorm(x, 2, 0, 1.0); m.clamp(x, 0.0, 1.0)
m.add(x, x, alpha=2); m.sub(x, 1); m.mul(x, 2); m.div(x, 2, rounding_mode="floor"); m.pow(x, 2); m.fmod(x, 2); m.lerp(x, x, 0.5); m.addcmul(x, x, x, value=2); m.addmm(x, x @ x.t(), x)
m.matmul(x, x.t()); m.mm(x, x.t()); m.mv(x, x[0]); m.dot(v, v); m.outer(v, v); m.bmm(x[None], x.t()[None]); m.tensordot(x, x, 2); m.kron(x, x); m.cross(x, x, dim=1); m.maximum(x, x)
m.exp(x); m.sqrt(x); m.sign(x); m.atan2(x, x); m.isnan(x); m.isfinite(x); m.logical_and(mask, mask); m.bitwise_and(i, i); m.lt(x, x); m.eq(x, 1); m.hypot(x, x); m.view_as_real(c); m.real(c)
m.nn.functional.relu(x); m.nn.functional.softmax(x, 0); m.nn.functional.log_softmax(x, dim=0); m.nn.functional.dropout(x, 0.5); m.nn.functional.linear(x, x, x[:, 0]); m.nn.functional.normalize(x, dim=0)
m.nn.functional.cross_entropy(x, i[:2]); m.nn.functional.mse_loss(x, x); m.nn.functional.nll_loss(x, i[:2]); m.nn.functional.pad(x, (1, 1), value=0.0); m.nn.functional.one_hot(i, 5)
m.nn.functional.layer_norm(x, (3,)); m.nn.functional.embedding(i % 2, x); m.nn.functional.interpolate(image, size=4); m.nn.functional.max_pool2d(image, 2); m.nn.functional.avg_pool2d(image, 2)
m.nn.functional.conv2d(image, image[:1], None, 1, 0); m.nn.functional.conv1d(image[0], image[0]); m.nn.functional.gelu(x); m.nn.functional.binary_cross_entropy(x.sigmoid(), x.sigmoid())
m.nn.functional.kl_div(x, x); m.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]); m.nn.functional.cosine_similarity(x, x, 0); m.nn.functional.gumbel_softmax(x, 1.0)
m.nn.functional.one_hot(i); m.nn.functional.unfold(image, 2); m.nn.functional.smooth_l1_loss(x, x); m.nn.functional.pixel_shuffle(m.ones(1, 4, 2, 2), 2); m.nn.functional.batch_norm(x, x[0], x[0].abs())
x.size(0); x.dim(); x.view(3, 2); x.view(m.int32); x.view_as(x); x.reshape(-1); x.reshape_as(x); x.expand(2, 3); x.expand_as(x); x.permute(1, 0); x.transpose(0, 1); x.unsqueeze(0); x[None].squeeze(0)
x.flatten(0); x.unflatten(1, (3, 1)); x.narrow(0, 0, 1); x.select(0, 1); x.repeat(2, 1); x.tile(2); x.movedim(0, 1); x.unfold(1, 2, 1); x.t(); x.to(m.float64); x.to("cpu"); x.type(m.float64)
x.type_as(x); x.float(); x.double(); x.half(); x.long(); x.clone(); x.contiguous(); x.detach(); x.item() if x.numel() == 1 else x; x.tolist(); x.numpy(); x.cpu(); x.requires_grad_(True); x.copy_(x)
x.fill_(1.0); x.zero_(); x.add_(x); x.mul_(2); x.div_(2); x.sub_(1); x.clamp_(0.0, 1.0); x.masked_fill(x > 0, 0.0); x.masked_fill_(x > 0, 0.0); x.index_fill_(0, i[:2] % 2, 0.0); v.index_add_(0, i, m.ones(3))
v.index_copy_(0, i, m.ones(3)); v.index_put_((i,), m.ones(3)); v.scatter_(0, i, m.ones(3)); v.scatter_add_(0, i, m.ones(3)); v.scatter_reduce(0, i, m.ones(3), "sum"); v.put(i, m.ones(3))
v.gather(0, i); v.masked_scatter_(mask, m.ones(4)); x.uniform_(0, 1); x.normal_(0, 1); x.random_(0, 5); x.bernoulli_(0.5); x.new_zeros((2,)); x.new_ones(2); x.new_full((2,), 1.0); x.new_tensor([1.0])
x.new_empty((2,)); x.stride(0); x.is_contiguous(); x.storage_offset(); x.is_floating_point(); x.backward(m.ones(2, 3)) if x.requires_grad else x; x.register_hook(len) if x.requires_grad else x; x.resize_(2, 3)
x.sum(dim=0, keepdim=True); x.mean(1); x.norm(2); x.max(1); x.argmax(1); x.softmax(1); x.all(); x.unique(); x.diagonal(0); x.triu(0); x.cumsum(0); x.topk(1); x.sort(0); x.chunk(2); x.split([1, 1])
x[0]; x[0, 1]; x[0:1]; x[i[:2] % 2]; x[x > 0]; x.__setitem__(0, 1.0); x.__setitem__((0, 1), 1.0); x.__setitem__(slice(0, 1), m.ones(3)); x + 1; x - x; x * 2; x / 2; x // 2; x % 2; x ** 2; x @ x.t(); x > 0; x == x
m.linalg.norm(x, 2); m.linalg.vector_norm(x, 2, 0); m.linalg.matrix_norm(x); m.linalg.inv(square); m.linalg.solve(square, square); m.linalg.cholesky(square); m.linalg.qr(square); m.linalg.svd(square)
m.linalg.eigh(square); m.linalg.det(square); m.linalg.lstsq(square, square); m.linalg.pinv(square); m.linalg.multi_dot([square, square]); m.linalg.matrix_rank(square); m.linalg.solve_triangular(square, square, upper=True)
m.fft.fft(v); m.fft.fft2(x); m.fft.ifft(v); m.fft.fftfreq(4); m.inverse(square); m.logdet(square); m.trace(square); m.cholesky_solve(square, square)
m.nn.Linear(3, 2, bias=True); m.nn.Conv2d(3, 4, 3, stride=1, padding=1); m.nn.Conv1d(3, 4, 3); m.nn.ConvTranspose2d(3, 4, 3); m.nn.BatchNorm2d(3); m.nn.BatchNorm1d(3); m.nn.LayerNorm(3); m.nn.GroupNorm(1, 3)
m.nn.InstanceNorm2d(3); m.nn.Embedding(5, 3); m.nn.LSTM(3, 4, num_layers=1); m.nn.GRU(3, 4); m.nn.RNN(3, 4); m.nn.LSTMCell(3, 4); m.nn.GRUCell(3, 4); m.nn.MultiheadAttention(4, 2); m.nn.Dropout(0.5)
m.nn.Sequential(m.nn.ReLU(), m.nn.ReLU()); m.nn.ModuleList([m.nn.ReLU()]); m.nn.ModuleDict({"a": m.nn.ReLU()}); m.nn.ParameterList([m.nn.Parameter(m.ones(2))]); m.nn.Parameter(m.ones(2))
m.nn.MaxPool2d(2); m.nn.AvgPool2d(2); m.nn.AdaptiveAvgPool2d(1); m.nn.Softmax(dim=1); m.nn.LeakyReLU(0.1); m.nn.ELU(); m.nn.Flatten(1); m.nn.Unflatten(1, (3, 1)); m.nn.CrossEntropyLoss(weight=m.ones(3))
m.nn.MSELoss(); m.nn.NLLLoss(); m.nn.BCEWithLogitsLoss(); m.nn.Upsample(scale_factor=2); m.nn.PixelShuffle(2); m.nn.ZeroPad2d(1); m.nn.TransformerEncoderLayer(4, 2); m.nn.Identity(); m.nn.Bilinear(2, 2, 3)
m.nn.Linear(3, 2)(x); m.nn.Conv2d(3, 4, 2)(image); m.nn.Embedding(5, 3)(i); m.nn.LayerNorm(3)(x); m.nn.LSTM(3, 4)(x[None]); m.nn.ReLU()(x); m.nn.MSELoss()(x, x); m.nn.CrossEntropyLoss()(x, i[:2])
m.nn.Linear(3, 2).load_state_dict({"weight": m.ones(2, 3), "bias": m.ones(2)}); m.nn.Linear(3, 2).train(True); m.nn.Linear(3, 2).to(m.float64); m.nn.Module().register_buffer("a", x); m.nn.Module().add_module("a", m.nn.ReLU())
m.nn.Module().register_parameter("a", m.nn.Parameter(m.ones(2))); m.nn.Linear(3, 2).apply(len_of); m.nn.Linear(3, 2).register_forward_hook(len_of); m.nn.Linear(3, 2).get_parameter("weight"); m.nn.Linear(3, 2).requires_grad_(True)
m.nn.init.normal_(x, 0.0, 1.0); m.nn.init.uniform_(x); m.nn.init.zeros_(x); m.nn.init.constant_(x, 1.0); m.nn.init.xavier_uniform_(x); m.nn.init.kaiming_normal_(x); m.nn.init.orthogonal_(x); m.nn.init.calculate_gain("relu")
m.nn.utils.clip_grad_norm_([p], 1.0); m.nn.utils.parameters_to_vector([p]); m.nn.utils.vector_to_parameters(m.ones(2), [p]); m.nn.utils.rnn.pad_sequence([v, v])
m.nn.utils.rnn.pack_padded_sequence(x[:, :, None], m.tensor([2, 2, 1])); m.optim.SGD([p], lr=0.1, momentum=0.9); m.optim.Adam([p], lr=0.1, betas=(0.9, 0.99)); m.optim.AdamW([p], lr=0.1); m.optim.RMSprop([p], lr=0.1)
m.optim.lr_scheduler.StepLR(m.optim.SGD([p], lr=0.1), 2); m.optim.lr_scheduler.LambdaLR(m.optim.SGD([p], lr=0.1), len_of); m.optim.SGD([p], lr=0.1).step(); m.optim.SGD([p], lr=0.1).add_param_group({"params": [p2]})
m.autograd.grad((p * p).sum(), p); m.autograd.backward((p * p).sum()); m.autograd.functional.jacobian(square_of, v); m.autograd.gradcheck(square_of, p3); m.func.grad(sum_of)(v); m.func.vmap(square_of)(x)
m.utils.data.TensorDataset(x, x); m.utils.data.DataLoader([1, 2, 3], batch_size=2); m.utils.data.Subset([1, 2, 3], [0]); m.utils.data.random_split([1, 2, 3], [1, 2]); m.utils.data.RandomSampler([1, 2, 3])
m.distributions.Normal(0.0, 1.0); m.distributions.Categorical(v.abs()); m.distributions.Bernoulli(0.5); m.distributions.Normal(0.0, 1.0).log_prob(v); m.distributions.Normal(0.0, 1.0).sample((2,))
m.device("cpu"); m.Generator().manual_seed(0); m.Size([2, 3]); m.amp.autocast("cpu"); m.no_grad(); m.inference_mode(True); m.set_num_threads(1); m.testing.assert_close(x, x); m.nn.functional.prelu(x, m.ones(1))
"""

WRONG: dict[str, Any] = {"a string": "a", "a list of strings": ["a"], "None": None, "an object": object(), "a fraction": 1.5, "a dict": {}, "a tuple of kinds": (1.5, "b"), "a function": len,
                         "a set": {1}, "bytes": b"a"}


def expressions() -> list[str]:
    return [part.strip() for line in EXPRESSIONS.strip().splitlines() for part in line.split(";")]


def names(m: Any) -> dict[str, Any]:
    """What the expressions name, made anew: many of them write."""
    def square_of(t: Any) -> Any:
        return t * t

    def sum_of(t: Any) -> Any:
        return (t * t).sum()

    return {
        "m": m, "x": m.arange(1.0, 7.0).reshape(2, 3), "v": m.arange(1.0, 5.0), "i": m.tensor([0, 2, 1]), "index2": m.tensor([[0, 1, 0]]), "mask": m.tensor([True, False, True, False]),
        "c": m.tensor([1 + 2j]), "array": np.ones(2, np.float32), "image": m.arange(1.0, 49.0).reshape(1, 3, 4, 4), "square": m.tensor([[2.0, 0.5], [0.5, 1.0]]),
        "p": m.nn.Parameter(m.ones(2)), "p2": m.nn.Parameter(m.ones(2)), "p3": m.ones(2, dtype=m.float64, requires_grad=True), "len_of": lambda *a: 1, "square_of": square_of, "sum_of": sum_of}


class Mistake(NamedTuple):
    """An expression with one argument that is of the wrong kind."""

    expression: str
    text: str
    wrong: str

    def attempt(self, m: Any) -> Any:
        return eval(self.text, {**names(m), "wrong": WRONG[self.wrong]})


def mistakes(expression: str) -> Iterator[Mistake]:
    for text in _replaced(expression):
        for kind in WRONG:
            yield Mistake(expression, text, kind)


def _replaced(expression: str) -> Iterator[str]:
    """The expression with each argument of its outermost call, index or operator replaced by the name `wrong`."""
    count = len(_places(ast.parse(expression, mode="eval").body))
    for k in range(count):
        tree = ast.parse(expression, mode="eval")
        holder, field, at = _places(tree.body)[k]
        node = ast.Name("wrong", ast.Load())
        if at is None:
            setattr(holder, field, node)
        else:
            getattr(holder, field)[at] = node
        yield ast.unparse(ast.fix_missing_locations(tree))


def _places(node: Any) -> list[tuple[Any, str, int | None]]:
    if isinstance(node, ast.Call):
        return [(node, "args", k) for k in range(len(node.args))] + [(keyword, "value", None) for keyword in node.keywords]
    if isinstance(node, ast.Subscript):
        return [(node, "slice", None)]
    if isinstance(node, ast.BinOp):
        return [(node, "right", None)]
    return [(node, "comparators", 0)] if isinstance(node, ast.Compare) else []
