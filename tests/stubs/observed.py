"""What functions and methods really return: the types of the results of calling them.

The samples of the operations are called, and then the calls below, for what has no sample. Types are full names, as in
`tuple[mutagrad.tensors.tensor.Tensor, ...]`; `names.py` makes them short.
"""
from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import mutagrad as mg
from mutagrad.base.layout import ANSWERING
from mutagrad.base.return_types import Results
from samples import SAMPLES, named

from .names import TENSOR

# Settings that turn the result into a tuple.
FLAGS = ("as_tuple", "return_indices", "return_inverse", "return_counts")

# One call for each function or method that has no sample. `x` are positive numbers, `i` integers, `c` complex numbers,
# `s`, `r` and `k` sparse matrices, by coordinates, rows and columns.
CALLS = re.split(r"  |\n", """
mg.arange(3)  mg.as_tensor(x)  mg.asarray(x)  mg.empty(2)  mg.empty_like(x)  mg.empty_permuted((2, 3), (0, 1))
mg.empty_strided((2,), (1,))  mg.eye(2)  mg.from_dlpack(x)  mg.from_numpy(x.numpy())
mg.frombuffer(bytearray(8), dtype=mg.float32)  mg.full((2,), 1.0)  mg.full_like(x, 2)  mg.linspace(0, 1, 3)
mg.logspace(0, 1, 3)  mg.ones(2)  mg.ones_like(x)  mg.rand(2)  mg.rand_like(x)  mg.randint(3, (2,))
mg.randint_like(x, 3)  mg.randn(2)  mg.randn_like(x)  mg.randperm(3)  mg.scalar_tensor(1)  mg.tensor(1)  mg.zeros(2)
mg.zeros_like(x)  mg.bartlett_window(3)  mg.blackman_window(3)  mg.hamming_window(3)  mg.hann_window(3)
mg.kaiser_window(3)  mg.sparse_coo_tensor(i[:1], x[0])  mg.get_rng_state()  mg.bernoulli(x / 3)  mg.binomial(x, x / 3)
mg.multinomial(x, 1)  mg.normal(x, x)  mg.poisson(x)  mg.native_dropout(x, 0.5, True)
mg.native_dropout_backward(x, x, 1.0)  mg.alpha_dropout(x)  mg.dropout(x)  mg.feature_alpha_dropout(x)
mg.feature_dropout(x, 0.5, True)  mg.rrelu(x)  mg.nn.functional.dropout1d(x)  mg.nn.functional.dropout2d(x)
mg.nn.functional.dropout3d(x[None])  mg.nn.functional.gumbel_softmax(x, dim=0)
mg.batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
mg.instance_norm(x[None], None, None, None, None, True, 0.1, 1e-5)
mg.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
mg._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5)
mg._batch_norm_with_update(x, None, None, x[0].clone(), x[0].clone(), 0.1, 1e-5)
mg.native_layer_norm(x, (4,), None, None, 1e-5)  mg._softmax_backward_data(x, x, 0, mg.float32)
mg.binary_cross_entropy_with_logits(x, x)  mg.cosine_embedding_loss(x, x, mg.ones(4))  mg.hinge_embedding_loss(x, x)
mg.kl_div(x, x)  mg.margin_ranking_loss(x, x, x)  mg.poisson_nll_loss(x, x, True, False, 1e-8, 1)
mg.triplet_margin_loss(x, x, x)  mg.ctc_loss(x[:, None], mg.tensor([[1]]), mg.tensor([4]), mg.tensor([1]))
mg.embedding(x, i)  mg.conv_tbc(x[None], x[None], x[0])
mg.convolution(x[None], x[None], None, (1,), (0,), (1,), False, (0,), 1)  mg.adaptive_max_pool1d(x, 2)
mg.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 255)  mg.fake_quantize_per_channel_affine(x, x[0], i[0] * 0, 0, 0, 255)
mg.frobenius_norm(x, (0, 1))  mg.nuclear_norm(x)  mg.norm_except_dim(x)
mg.segment_reduce(x, "sum", lengths=mg.tensor([4]))  mg.float_power(x, 2)  mg.cholesky(x @ x.T + mg.eye(4))  mg.geqrf(x)
mg.svd(x)  mg.svd_lowrank(x, 2)  mg.pca_lowrank(x, 2)  mg.lu_unpack(*mg.linalg.lu_factor(x))
mg.histogramdd(x, (2, 2, 2, 2))  mg.complex(x, x)  mg.polar(x, x)  mg.real(c)  mg.imag(c)  mg.view_as_real(c)
mg.view_as_complex(x[:, :2].clone())  mg.broadcast_shapes((2,), (1,))  mg.get_device(x)  mg.spmm(x.to_sparse(), x)
mg.polygamma(1, x)  mg.stft(mg.ones(20), 4, return_complex=True)  mg.linalg.cholesky(x @ x.T + mg.eye(4))
mg.linalg.cholesky_ex(x @ x.T + mg.eye(4))  mg.linalg.eig(x)  mg.linalg.eigh(x)  mg.linalg.ldl_factor(x)
mg.linalg.ldl_factor_ex(x)  mg.linalg.ldl_solve(x, i[0, :4] + 1, x)  mg.linalg.lu(x)  mg.linalg.svd(x)
mg.linalg.eigvals(x)  mg.linalg.eigvalsh(x)  x.bool()  x.byte()  x.cdouble()  x.cfloat()  x.char()  x.double()
x.float()  x.half()  x.int()  x.long()  x.short()  x.contiguous()  x.to(mg.float64)  x.to_device("cpu")  x.to_dense()
x.type_as(x)  x.new(2)  x.new_empty(2)  x.new_empty_strided((2,), (1,))  x.__add__(1)  x.__sub__(1)  x.__truediv__(1)
x.__radd__(1)  x.__rsub__(1)  x.__rdiv__(1)  x.__rtruediv__(1)  x.__rfloordiv__(1)  x.__rmod__(1)  x.__rpow__(1)
x.__rmatmul__(x)  i.__rand__(1)  i.__ror__(1)  i.__rxor__(1)  i.__rlshift__(1)  i.__rrshift__(1)  x.__eq__(1)
x.__ne__(1)  x.__reversed__()  x.__deepcopy__({})  x.__array__()  x.bfloat16()  x.resize(16)  mg.range(0, 3)
mg.fft.fftfreq(3)  mg.fft.rfftfreq(3)  mg.max_pool1d(x, 2, return_indices=True)
mg.max_pool3d(x[None, None].repeat(1, 4, 1, 1), 2, return_indices=True)  mg.nn.functional.adaptive_max_pool1d(x, 2)
mg.nn.functional.adaptive_max_pool1d(x, 2, return_indices=True)  mg.nn.functional.adaptive_max_pool2d(x[None], 2)
mg.nn.functional.adaptive_max_pool3d(x[None, None], 2)
mg.nn.functional.adaptive_max_pool3d(x[None, None], 2, return_indices=True)
mg.nn.functional.fractional_max_pool2d(x[None], 2, 2)
mg.nn.functional.fractional_max_pool2d(x[None], 2, 2, return_indices=True)
mg.nn.functional.fractional_max_pool2d_with_indices(x[None], 2, 2)
mg.nn.functional.fractional_max_pool3d(x[None, None].repeat(1, 4, 1, 1), 2, 2)
mg.nn.functional.fractional_max_pool3d(x[None, None].repeat(1, 4, 1, 1), 2, 2, return_indices=True)
mg.nn.functional.fractional_max_pool3d_with_indices(x[None, None].repeat(1, 4, 1, 1), 2, 2)
mg.nn.functional.multi_head_attention_forward(x[:, None], x[:, None], x[:, None], 4, 2, x.repeat(3, 1), None, None,\
 None, False, 0.0, x, None, need_weights=False)
x.new_full((2,), 1)  x.new_ones(2)  x.new_tensor(1)  x.new_zeros(2)  x.numpy()  x.expand(4, 4)  x.sum_to_size(1, 4)
x.storage_type()  x.to_sparse_coo()  x.to_sparse_csr()  x.to_sparse_csc()  x.to_sparse_bsr((1, 1))  x.to_sparse_bsc((1, 1))
s.coalesce()  s.is_coalesced()  s.indices()  s._indices()  s.values()  s._values()  s._nnz()  s.sparse_dim()
s.dense_dim()  s._dimI()  s._dimV()  s._coalesced_(True)  s.smm(x)  s.sspaddmm(s, x)  s.sparse_mask(s)
r.crow_indices()  r.col_indices()  k.ccol_indices()  k.row_indices()  s.sparse_resize_((5, 5), 2, 0)
s.sparse_resize_and_clear_((5, 5), 2, 0)  s.resize_as_sparse_(s)  mg.smm(s, x)  mg.dsmm(s, x)  mg.hsmm(s, x)
mg.hspmm(s, x)  mg.sspaddmm(s, s, x)  mg.sparse_compressed_tensor([0, 1], [0], [1.0], layout=mg.sparse_csr)
mg.sparse_csr_tensor([0, 1], [0], [1.0])  mg.sparse_csc_tensor([0, 1], [0], [1.0])
mg.sparse_bsr_tensor([0, 1], [0], [[[1.0]]])  mg.sparse_bsc_tensor([0, 1], [0], [[[1.0]]])
""".strip())


class Observation(NamedTuple):
    """The types of the results of a function: usually, and where one of FLAGS is set."""

    usual: set[str]
    flagged: set[str]


class Table(NamedTuple):
    """What was seen: of functions, and of the fields of named tuples."""

    functions: dict[Any, Observation]
    fields: dict[type, set[tuple[str, ...]]]


def type_name(value: Any) -> str:
    """Return the type of a value as an annotation with full names."""
    if isinstance(value, mg.Tensor):
        return TENSOR
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return "numpy.typing.NDArray[typing.Any]"
    kind = type(value)
    if kind in (tuple, list) and value:
        return sequence_name(kind.__name__, [type_name(v) for v in value])
    return f"{kind.__module__}.{kind.__qualname__}"


def sequence_name(kind: str, elements: list[str]) -> str:
    """Elements of one type may be any number; of several types, they are counted."""
    if len(set(elements)) == 1:
        return f"builtins.{kind}[{elements[0]}{', ...' if kind == 'tuple' else ''}]"
    return f"builtins.tuple[{', '.join(elements)}]" if kind == "tuple" else "builtins.list[typing.Any]"


def sampled() -> Iterator[tuple[Any, bool, Callable[[], Any]]]:
    """Yield each function or method, whether a flag is set, and a call of it that a sample makes."""
    for sample in SAMPLES:
        for form, call in sample.forms(mg).items():
            function = named(mg, sample.name) if form == "function" else getattr(mg.Tensor, sample.name)
            if inspect.isfunction(function):
                arguments, settings = sample.bind([mg.tensor(a) for a in sample.arrays()], mg.tensor)
                flagged = any(settings.get(flag) for flag in FLAGS)
                yield function, flagged, lambda c=call, a=arguments, s=settings: c(*a, **s)


def listed() -> Iterator[tuple[Any, bool, Callable[[], Any]]]:
    """The same of the calls in CALLS."""
    for text in CALLS:
        numbers = mg.arange(1.0, 17.0).reshape(4, 4)
        names = {"mg": mg, "x": numbers / 16 + mg.eye(4), "i": numbers.long() % 4, "c": mg.complex(numbers, numbers)}
        names |= {"s": names["x"].to_sparse(), "r": names["x"].to_sparse_csr(), "k": names["x"].to_sparse_csc()}
        name = text.partition("(")[0]
        function = named(mg, name[3:]) if name.startswith("mg.") else getattr(mg.Tensor, name[2:])
        yield function, any(f"{flag}=True" in text for flag in FLAGS), lambda t=text, n=names: eval(t, n)


def observe() -> Table:
    """Make all calls."""
    table = Table({}, {})
    state = mg.get_rng_state()
    ANSWERING.append(lambda *call: None)  # or the first sparse tensor would have public functions wrapped
    for calls in (sampled(), listed()):
        for function, flagged, call in calls:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what is deprecated
                result = call()
            table.functions.setdefault(function, Observation(set(), set()))[flagged].add(type_name(result))
            if isinstance(result, Results):
                table.fields.setdefault(type(result), set()).add(tuple(map(type_name, result)))
    mg.set_rng_state(state)
    ANSWERING.clear()
    return table


def takes_numbers(function: Any, place: int) -> bool:
    """Whether a number may stand at `place` (0 or 1), where the other operand is a tensor."""
    for one in (mg.ones(2), mg.ones(2, dtype=mg.int64)):
        operands = [one, one]
        operands[place] = 1 if one.dtype is mg.int64 else 1.0
        try:
            function(*operands)
        except (TypeError, ValueError, RuntimeError, AttributeError):
            continue
        return True
    return False
