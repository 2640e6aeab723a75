"""Calls that PyTorch's table of operations lacks, or has in an order of its own: operators, indexing, writes, losses, layers.

OWN has for every public name a list of (args, kwargs). The functions that most programs use have more of them, in every kind of
argument, so that their cases in the table are exact.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="make oracle installs it")
Given = tuple[tuple[Any, ...], dict[str, Any]]
OWN: dict[str, list[Given]] = {}
_values = torch.Generator().manual_seed(0)


def t(*shape: int) -> Any:
    """A tensor of positive numbers below one."""
    return torch.rand(shape, dtype=torch.float64, generator=_values) * 0.8 + 0.1


def transposed(*shape: int) -> Any:
    return t(*reversed(shape)).permute(*reversed(range(len(shape))))


def given(*args: Any, **kwargs: Any) -> Given:
    return args, kwargs


def own(names: str, *made: Given) -> None:
    for name in names.split():
        OWN.setdefault(name, []).extend(made)


def positions(*shape: int, below: int) -> Any:
    return torch.randint(below, shape, generator=_values)


def square(n: int = 3) -> Any:
    """A matrix that can be inverted."""
    return t(n, n) + n * torch.eye(n, dtype=torch.float64)


# -------------------------------------------------------------------------------------------------------------- operators

SHAPES = [(t(3), t(3)), (t(2, 3), t(3)), (t(3), t(2, 3)), (t(2, 3), t(1)), (t(2, 3), t()), (t(), t()), (t(), t(3)), (transposed(2, 3), t(2, 3)), (t(1, 3), t(2, 1))]
PAIRS = [given(x, y) for x, y in SHAPES]
INTO = [given(x, y) for x, y in SHAPES if torch.broadcast_shapes(x.shape, y.shape) == x.shape]
NUMBERS = [given(t(3), n) for n in (0, 1, 2, 3, 0.5, -1, 2.0, 1.0, True)] + [given(t(2, 3), 2)]
own("add sub mul div true_divide pow multiply subtract divide __add__ __sub__ __mul__ __truediv__ __pow__ __rsub__ __radd__ __rmul__ __rtruediv__ __rpow__ rsub "
    "remainder fmod floor_divide __floordiv__ __mod__ __rfloordiv__ __rmod__ float_power atan2 "
    "maximum minimum fmax fmin hypot eq ne lt le gt ge __eq__ __ne__ __lt__ __le__ __gt__ __ge__", *PAIRS, *NUMBERS)
own("add_ sub_ mul_ div_ pow_ __iadd__ __isub__ __imul__ __itruediv__ __ipow__ remainder_ fmod_ floor_divide_ __ifloordiv__ __imod__ float_power_ atan2_ multiply_ divide_ "
    "subtract_ copy_ eq_ lt_ gt_", *INTO, *NUMBERS)
own("add sub add_ sub_", given(t(3), t(3), alpha=2), given(t(3), 1.5, alpha=2))
own("div div_", *(given(t(3), y, rounding_mode=mode) for y in (t(3), 2.0) for mode in (None, "floor", "trunc")))
own("pow __pow__ __rpow__ float_power", *(given(n, t(3)) for n in (0, 1, 2, 2.5, -1.0)))
own("__neg__ __pos__ __abs__ __invert__ neg abs neg_ abs_ sqrt sqrt_ rsqrt rsqrt_ exp exp_ log log_ sin sin_ cos cos_ tan tan_ tanh tanh_ sigmoid sigmoid_ relu relu_ "
    "reciprocal reciprocal_ square square_ log1p log1p_ expm1 expm1_ sign sign_ floor floor_ ceil ceil_ round round_ trunc trunc_ frac frac_ erf erf_ erfinv erfinv_ "
    "asin asin_ acos acos_ atan atan_ sinh sinh_ cosh cosh_ asinh asinh_ atanh atanh_ exp2 exp2_ log2 log2_ log10 log10_ lgamma lgamma_ digamma digamma_ "
    "isnan isinf isfinite logical_not clone detach contiguous zero_ nan_to_num nan_to_num_ "
    "nn.functional.relu nn.functional.gelu nn.functional.silu nn.functional.softplus nn.functional.elu nn.functional.selu nn.functional.leaky_relu "
    "nn.functional.sigmoid nn.functional.tanh nn.functional.logsigmoid nn.functional.hardtanh nn.functional.relu6 nn.functional.mish nn.functional.hardswish "
    "nn.functional.hardsigmoid nn.functional.celu nn.functional.softsign nn.functional.tanhshrink nn.functional.relu_ nn.functional.elu_ nn.functional.leaky_relu_",
    given(t(3)), given(t(2, 3)), given(transposed(2, 3)), given(t()))
own("nn.functional.relu nn.functional.silu nn.functional.elu nn.functional.selu nn.functional.leaky_relu nn.functional.hardtanh nn.functional.relu6 nn.functional.mish "
    "nn.functional.hardswish nn.functional.hardsigmoid nn.functional.celu nn.functional.dropout", given(t(3), inplace=True), given(t(2, 3), inplace=True))
own("to type_as double float", given(t(3)))
OWN["to"] = [given(t(3), torch.float32), given(t(3), torch.float64), given(t(3), dtype=torch.float32), given(t(3), "cpu"), given(t(3), t(3)), given(t(3), torch.float64, copy=True)]
OWN["type_as"] = [given(t(3), t(3)), given(t(3), t(3).float())]
own("requires_grad_", given(t(3)), given(t(3), True))
own("detach_", given(t(3)))
own("fill_", given(t(3), 2.0), given(t(3), t()), given(t(2, 3), t()), given(t(2, 3), 0))

# ------------------------------------------------------------------------------------------------------ products of matrices

PRODUCTS = [(t(3), t(3)), (t(2, 3), t(3)), (t(3), t(3, 2)), (t(2, 3), t(3, 4)), (t(5, 2, 3), t(3, 4)), (t(5, 2, 3), t(3)), (t(5, 2, 3), t(5, 3, 4)), (t(2, 3), t(5, 3, 4)),
            (t(3), t(5, 3, 4)), (t(6, 5, 2, 3), t(6, 5, 3, 2)), (t(6, 5, 2, 3), t(3, 2)), (t(2, 3), transposed(3, 4)), (transposed(2, 3), t(3, 4)), (t(1, 2, 3), t(5, 3, 4)),
            (transposed(5, 2, 3), t(3, 4)), (t(5, 2, 3), transposed(3, 4)), (t(6, 5, 2, 3), t(5, 3, 2)), (t(6, 5, 2, 3), t(3))]


def layouts(*shape: int) -> list[Any]:
    """Tensors of one shape that lie in memory in different ways."""
    last, first = [*shape[:-2], shape[-1], shape[-2]], [shape[1], shape[0], *shape[2:]]
    return [t(*shape), t(*last).mT, t(*first).transpose(0, 1), t(*shape[:-1], 2 * shape[-1])[..., ::2], t(*shape[1:]).expand(*shape)]


PRODUCTS += [pair for shape in ((5, 2, 3), (2, 5, 2, 3)) for x in layouts(*shape) for pair in ((x, t(3, 4)), (x, t(3)), (t(4, 2), x), (t(2), x), (x, x.mT))]
PRODUCTS += [(t(1, 2, 3), t(5, 4, 3).mT), (t(5, 2, 3), t(1, 3, 4)), (t(2, 5, 3).transpose(0, 1), t(1, 3, 4)), (t(1, 1, 2, 3), t(2, 5, 3, 4)), (t(1, 2, 3), t(2, 5, 3, 4)), (t(2, 1, 2, 3), t(1, 5, 3, 4))]
PRODUCTS += [(x, t(2, 1, 3, 2)) for x in layouts(2, 5, 2, 3)] + [(t(5, 4, 2), x) for x in layouts(2, 5, 2, 3)] + [(x, y) for x in layouts(2, 5, 4, 2) for y in layouts(2, 5, 2, 3)]
own("matmul __matmul__ linalg.matmul", *(given(x, y) for x, y in PRODUCTS))
own("__rmatmul__", *(given(y, x) for x, y in PRODUCTS))
own("mm", given(t(2, 3), t(3, 4)), given(transposed(2, 3), t(3, 4)))
own("bmm", given(t(5, 2, 3), t(5, 3, 4)))
own("mv", given(t(2, 3), t(3)))
own("dot inner vdot", given(t(3), t(3)))
own("outer ger", given(t(3), t(2)))
own("addmm", given(t(2, 4), t(2, 3), t(3, 4)), given(t(4), t(2, 3), t(3, 4)), given(t(2, 4), t(2, 3), t(3, 4), beta=0.5, alpha=2), given(t(2, 4), t(2, 3), t(3, 4), beta=0))
LAYERS = [t(3), t(2, 3), t(5, 2, 3), t(6, 5, 2, 3), transposed(2, 3), transposed(5, 2, 3), *layouts(2, 3), *layouts(5, 2, 3), *layouts(2, 5, 2, 3)]
own("nn.functional.linear", *(given(x, t(4, 3), *bias) for x in LAYERS for bias in ((), (t(4),), (None,))), *(given(x, t(3), ) for x in LAYERS[:3]),
    *(given(x, t(4, 3), bias=t(4)) for x in LAYERS))
own("nn.functional.bilinear", given(t(5, 2), t(5, 3), t(4, 2, 3), t(4)), given(t(5, 2), t(5, 3), t(4, 2, 3)))
own("einsum", given("i,i->", t(3), t(3)), given("ij,jk->ik", t(2, 3), t(3, 4)), given("ij,ij->ij", t(2, 3), t(2, 3)), given("bij,bjk->bik", t(5, 2, 3), t(5, 3, 4)), given("ij->ji", t(2, 3)),
    given("ij->i", t(2, 3)), given("ii->i", t(3, 3)), given("ii->", t(3, 3)), given("i,j->ij", t(2), t(3)), given("ij,jk,kl->il", t(2, 3), t(3, 4), t(4, 2)), given("bhqd,bhkd->bhqk", t(2, 2, 3, 4), t(2, 2, 5, 4)),
    given("...ij,...jk->...ik", t(5, 2, 3), t(5, 3, 4)), given("ij,j->i", t(2, 3), t(3)), given("ij,ij->", t(2, 3), t(2, 3)), given("i,i->i", t(3), t(3)), given("ij,kj->ik", t(2, 3), t(4, 3)))
for equation, sizes in {"bqhd,bkhd->bhqk": ((2, 5, 3, 4), (2, 6, 3, 4)), "bhqk,bkhd->bqhd": ((2, 3, 5, 6), (2, 6, 3, 4)), "ij,jk->ki": ((2, 3), (3, 4)), "ji,kj->ik": ((3, 2), (4, 3)), "abc,abd->cd": ((2, 3, 4), (2, 3, 5)),
                        "abc,bad->cd": ((2, 3, 4), (3, 2, 5)), "ij,jk": ((2, 3), (3, 4)), "bi,ij,bj->b": ((2, 3), (3, 4), (2, 4)), "ij,k->ik": ((2, 3), (4,)), "ij,j->ij": ((2, 3), (3,)), "ab,cb->": ((2, 3), (4, 3)),
                        "bij,jk->bik": ((5, 2, 3), (3, 4)), "bij,kj->bki": ((5, 2, 3), (4, 3)), "bnd,bmd->bnm": ((2, 3, 4), (2, 5, 4)), "ijk,kl->jil": ((2, 3, 4), (4, 5)), "abij,cij->abc": ((2, 3, 4, 5), (6, 4, 5)), "ij,ij->i": ((2, 3), (2, 3)),
                        "aij,aji->a": ((2, 3, 4), (2, 4, 3)), "cab,abd->cd": ((4, 2, 3), (2, 3, 5))}.items():
    own("einsum", given(equation, *(t(*size) for size in sizes)), given(equation, *(transposed(*size) for size in sizes)))
own("linalg.multi_dot chain_matmul", given([t(2, 3), t(3, 4)]), given([t(2, 3), t(3, 4), t(4, 2)]))
OWN["chain_matmul"] = [given(t(2, 3), t(3, 4)), given(t(2, 3), t(3, 4), t(4, 2))]
own("tensordot", given(t(2, 3), t(3, 4), dims=1), given(t(2, 3), t(2, 3), dims=2), given(t(2, 3), t(2, 3), dims=([0], [0])))

# ----------------------------------------------------------------------------------------------------- reductions and choice

REDUCED = [given(t(2, 3)), given(t(3)), given(transposed(2, 3)), given(t())]
ALONG = [given(t(2, 3), 1), given(t(2, 3), dim=0), given(t(2, 3), 0, True), given(t(2, 3), dim=1, keepdim=True), given(t(3), 0), given(transposed(2, 3), 1)]
own("sum mean amax amin std var std_mean var_mean nansum nanmean linalg.norm linalg.vector_norm norm", *REDUCED)
own("sum mean amax amin logsumexp nansum nanmean std var prod max min median nanmedian argmax argmin all any count_nonzero", *ALONG[:2] + ALONG[4:])
own("sum mean amax amin logsumexp std var prod max min median mode nanmedian argmax argmin", *(given(*a, **k, **{"keepdim": True}) for a, k in (ALONG[0], ALONG[1])))
own("sum mean amax amin logsumexp", given(t(2, 3), (0, 1)), given(t(2, 3), dim=[0, 1]))
own("prod max min median argmax argmin", *REDUCED)
own("max min", given(t(3), t(3)), given(t(2, 3), t(3)), given(t(3), other=t(3)))
own("std var", given(t(2, 3), 1, correction=0), given(t(2, 3), unbiased=False), given(t(2, 3), dim=1, unbiased=True), given(t(3), correction=0))
own("norm linalg.vector_norm", *(given(x, p) for x in (t(3), t(2, 3)) for p in (0, 1, 2, 3, 2.0, 1.0, float("inf"), -float("inf"))), given(t(2, 3), 2, 1), given(t(2, 3), 1, 1))
own("norm", given(t(2, 3), "fro"), given(t(2, 3), p=2, dim=1), given(t(2, 3), p=1, dim=1), given(t(2, 3), p="fro", dim=(0, 1)), given(t(2, 3), dim=1, keepdim=True), given(t(2, 3), "nuc"))
own("linalg.norm", given(t(2, 3), "fro"), given(t(2, 3), 2), given(t(2, 3), 1), given(t(3), 2), given(t(2, 3), dim=1), given(t(2, 3), 2, 1), given(t(2, 3), "nuc"), given(t(3), 1), given(t(2, 3), float("inf")))
own("cumsum cumprod cummax cummin logcumsumexp cumsum_ cumprod_ softmax log_softmax nn.functional.softmax nn.functional.log_softmax nn.functional.softmin", given(t(2, 3), 1), given(t(3), 0), given(t(2, 3), dim=0))
own("sort argsort msort", given(t(3)), given(t(2, 3)))
own("sort argsort", given(t(2, 3), 0), given(t(2, 3), dim=1, descending=True))
own("topk kthvalue", given(t(5), 2), given(t(2, 5), 2), given(t(2, 5), 2, 1))
CONDITION = t(2, 3) > 0.5
own("where", *(given(CONDITION, x, y) for x in (t(2, 3), t(3), t(), 0.0) for y in (t(2, 3), t(1), 0.0) if isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor)), given(t(2, 3) > 0.5, t(2, 3), other=t(2, 3)))
BOUNDS = [(0.2, 0.5), (0.2,), (None, 0.5), (t(3), t(3)), (t(3),), (None, t(3)), (t(1), t(1)), (t(),)]
own("clamp clip clamp_ clip_", *(given(x, *b) for x in (t(3), t(2, 3)) for b in BOUNDS), given(t(3), min=0.2), given(t(3), max=0.5), given(t(3), min=0.2, max=0.6), given(t(3), min=t(3)), given(t(3), max=t(3)))
own("clamp_min clamp_max clamp_min_ clamp_max_", given(t(3), 0.5), given(t(3), t(3)))
own("lerp lerp_", given(t(3), t(3), 0.5), given(t(3), t(3), t(3)), given(t(2, 3), t(3), t(3)), given(t(3), t(3), weight=0.3), given(t(3), t(3), t()))
own("addcmul addcmul_ addcdiv addcdiv_", given(t(3), t(3), t(3)), given(t(2, 3), t(3), t(3), value=0.5), given(t(3), t(3), t(3), value=2))

# ------------------------------------------------------------------------------------------------------- indices and writes

INDICES = [0, -1, slice(None), slice(0, 2), slice(None, None, 2), None, ..., (0, 1), (slice(None), 0), (..., 0), (None, 0), (0, slice(1, None)), torch.tensor(1), torch.tensor([0, 1]), torch.tensor([[0, 1], [1, 0]]),
           [0, 1], (torch.tensor([0, 1]), torch.tensor([1, 2])), (slice(None), torch.tensor([0, 2])), (torch.tensor([0, 1]), 0), (0, torch.tensor([0, 2])), (torch.tensor([0, 1]), slice(0, 2)), ([0, 1], [1, 2]),
           torch.tensor([True, False]), torch.tensor([[True, False, True], [False, True, False]]), (slice(None), torch.tensor([True, False, True])), (torch.tensor([True, True]), torch.tensor([0, 1])), (None, torch.tensor([0, 1])),
           (torch.tensor([0, 1]), None), (torch.tensor(1), torch.tensor(0)), (torch.tensor([0]), [0]), [True, False], (..., torch.tensor([0, 2]))]
own("__getitem__", *(given(x(2, 3), i) for i in INDICES for x in (t, transposed)), given(t(3), slice(0, 2)), given(t(3), torch.tensor([0, 2])), given(t(3), 1), given(t(4, 2, 3), (slice(None), torch.tensor([0, 1]), slice(0, 2))))
own("__setitem__", *(given(t(2, 3), i, v) for i in INDICES for v in (0.0, t())), *(given(t(2, 3), i, t(2, 3)[i]) for i in INDICES), given(t(3), 0, t()), given(t(3), slice(0, 2), t(2)), given(t(3), torch.tensor([0, 2]), t(2)), given(t(3), 1, 0.0))
own("index_put_ index_put", *(given(t(2, 3), i, t(2), *more) for i in ((torch.tensor([0, 1]), torch.tensor([1, 2])),) for more in ((), (True,), (False,))), given(t(2, 3), (torch.tensor([0]),), t(3)),
    given(t(3), (torch.tensor([True, False, True]),), t(2)), given(t(3), (torch.tensor([0, 0]),), t(2), accumulate=True), given(t(2, 3), (CONDITION,), t()))
own("masked_fill masked_fill_", given(t(2, 3), CONDITION, 0.0), given(t(2, 3), CONDITION, t()), given(t(2, 3), torch.tensor([True, False, True]), 0.0))
own("masked_scatter masked_scatter_", given(t(2, 3), CONDITION, t(2, 3)), given(t(2, 3), torch.tensor([True, False, True]), t(2, 3)))
own("masked_select", given(t(2, 3), CONDITION), given(t(2, 3), torch.tensor([True, False, True])))
own("gather", given(t(2, 3), 1, positions(2, 2, below=3)), given(t(3), 0, positions(2, below=3)), given(t(2, 3), dim=1, index=positions(2, 2, below=3)))
own("take", given(t(2, 3), positions(2, below=6)))
own("index_select", given(t(2, 3), 1, positions(2, below=3)), given(t(3), dim=0, index=positions(2, below=3)))
own("scatter scatter_ scatter_add scatter_add_", given(t(2, 3), 1, positions(2, 2, below=3), t(2, 2)), given(t(3), 0, positions(2, below=3), t(2)))
own("scatter scatter_", given(t(2, 3), 1, positions(2, 2, below=3), 0.5), given(t(3), dim=0, index=positions(2, below=3), src=t(2)), given(t(3), 0, positions(2, below=3), value=1.0))
own("index_add index_add_ index_copy index_copy_", given(t(2, 3), 1, torch.tensor([0, 2]), t(2, 2)), given(t(3), 0, torch.tensor([0, 2]), t(2)))
own("index_fill index_fill_", given(t(2, 3), 1, torch.tensor([0, 2]), 0.5), given(t(2, 3), 1, torch.tensor([0, 2]), t()))
MANY = [[t(3), t(3)], [t(3), t(3), t(3)], [t(3)]]
own("cat concat concatenate stack hstack vstack dstack column_stack", *(given(xs) for xs in MANY))
own("cat concat stack", given([t(2, 3), t(2, 3)], 1), given([t(2, 3), t(2, 3)], dim=-1), given((t(2, 3), t(2, 3)), 1))
own("unbind", given(t(3)), given(t(2, 3)), given(t(2, 3), 1), given(t(2, 3), dim=1))
own("split unsafe_split", given(t(4), 2), given(t(2, 4), 2, 1), given(t(2, 4), 2, dim=1), given(t(4), 4))
own("split", given(t(4), [1, 3]), given(t(2, 4), [1, 3], dim=1))
own("chunk tensor_split unsafe_chunk", given(t(4), 2), given(t(2, 4), 2, 1), given(t(4), 1))

# -------------------------------------------------------------------------------------------------------------------- views

own("view reshape", given(t(2, 3), 6), given(t(2, 3), (3, 2)), given(t(2, 3), -1), given(t(3), 1, 3))
own("reshape", given(transposed(2, 3), 6), given(transposed(2, 3), (6,)))
own("flatten ravel", given(t(2, 3)), given(transposed(2, 3)), given(t(3)), given(transposed(4, 2, 3)))
own("flatten", given(t(4, 2, 3), 1), given(transposed(4, 2, 3), 1), given(t(2, 3), 1), given(t(4, 2, 3), start_dim=1), given(t(4, 3, 2).mT, 1))
own("t", given(t(2, 3)), given(t(3)))
own("transpose swapaxes swapdims movedim", given(t(2, 3), 0, 1))
own("permute", given(t(2, 3), (1, 0)), given(t(2, 3), dims=(1, 0)))
own("squeeze", given(t(1, 3)), given(t(1, 3), 0), given(t(2, 3)))
own("unsqueeze", given(t(3), 0))
own("expand", given(t(1, 3), 2, 3), given(t(3), 2, 3), given(t(3), (2, 3)), given(t(3), 3))
own("expand_as view_as", given(t(3), t(3)))
own("select", given(t(2, 3), 0, 1))
own("narrow", given(t(2, 3), 1, 0, 2))
own("diagonal diag triu tril", given(t(3, 3)))
own("diag", given(t(3)))
own("repeat", given(t(3), 2), given(t(3), 2, 2))
own("flip", given(t(3), (0,)), given(t(2, 3), [0, 1]))
own("roll", given(t(3), 1), given(t(2, 3), 1, 1))
own("unfold", given(t(5), 0, 2, 1))
own("as_strided", given(t(4), (2, 2), (1, 1)), given(t(4), (2,), (1,), 1))

# --------------------------------------------------------------------------------------------------------- losses and layers

REDUCTIONS = [{}, {"reduction": "none"}, {"reduction": "mean"}, {"reduction": "sum"}]
CLASSES = positions(4, below=3)
for settings in REDUCTIONS:
    own("nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss nn.functional.huber_loss nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits "
        "nn.functional.kl_div nn.functional.poisson_nll_loss nn.functional.soft_margin_loss", given(t(4), t(4), **settings), given(t(2, 3), t(2, 3), **settings))
    own("nn.functional.cross_entropy", given(t(4, 3), CLASSES, **settings), given(t(4, 3), t(4, 3), **settings), given(t(4, 3), CLASSES, t(3), **settings), given(t(4, 3), CLASSES, label_smoothing=0.1, **settings),
        given(t(3), torch.tensor(1), **settings), given(t(2, 3, 4), positions(2, 4, below=3), **settings), given(t(4, 3), CLASSES, ignore_index=0, **settings))
    own("nn.functional.nll_loss", given(t(4, 3), CLASSES, **settings), given(t(4, 3), CLASSES, t(3), **settings), given(t(2, 3, 4), positions(2, 4, below=3), **settings), given(t(3), torch.tensor(1), **settings))
    own("nn.functional.cosine_embedding_loss", given(t(4, 3), t(4, 3), torch.ones(4), **settings))
    own("nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits", given(t(4), t(4), t(4), **settings))
    own("nn.functional.gaussian_nll_loss", given(t(4), t(4), t(4), **settings))
own("nn.functional.binary_cross_entropy_with_logits", given(t(4), t(4), pos_weight=t(4)))
own("nn.functional.dropout", *(given(t(4), *a) for a in ((), (0.5,), (0.0,), (1.0,), (0.5, False), (0.0, False))), given(t(4), p=0.5, training=True), given(t(4), p=0.5, training=False), given(t(4), training=False))
own("dropout dropout_", given(t(4), 0.5, True), given(t(4), 0.5, False), given(t(4), 0.0, True))
own("nn.functional.layer_norm", given(t(2, 3), (3,)), given(t(2, 3), (3,), t(3), t(3)), given(t(2, 3), (3,), t(3)), given(t(2, 3), (3,), weight=t(3), bias=t(3)), given(t(4, 2, 3), (2, 3)))
own("nn.functional.rms_norm", given(t(2, 3), (3,)), given(t(2, 3), (3,), t(3)))
own("nn.functional.group_norm", given(t(2, 4, 3), 2), given(t(2, 4, 3), 2, t(4), t(4)))
own("nn.functional.instance_norm", given(t(2, 4, 3)), given(t(2, 4, 3), None, None, t(4), t(4)), given(t(2, 4, 3), t(4), t(4), t(4), t(4)))
for x in (t(4, 3), t(2, 3, 4), t(2, 3, 2, 2)):
    own("nn.functional.batch_norm", given(x, t(3), t(3)), given(x, t(3), t(3), training=True), given(x, t(3), t(3), t(3), t(3), True), given(x, t(3), t(3), t(3), t(3), False),
        given(x, t(3), t(3), weight=t(3), bias=t(3), training=True), given(x, None, None, t(3), t(3), True), given(x, None, None, training=True))
own("nn.functional.embedding", given(positions(4, below=5), t(5, 3)), given(positions(2, 2, below=5), t(5, 3)), given(positions(4, below=5), t(5, 3), padding_idx=0), given(positions(4, below=5), weight=t(5, 3)),
    given(positions(4, below=5), t(5, 3), max_norm=1.0))
own("nn.functional.embedding_bag", *(given(positions(2, 3, below=5), t(5, 3), mode=mode) for mode in ("mean", "sum", "max")), given(positions(4, below=5), t(5, 3), torch.tensor([0, 2])))
for settings in ({}, {"is_causal": True}, {"dropout_p": 0.1}, {"dropout_p": 0.2}, {"dropout_p": 0.5}, {"scale": 0.3}, {"dropout_p": 0.0}):
    own("nn.functional.scaled_dot_product_attention", given(t(2, 3, 4), t(2, 5, 4), t(2, 5, 4), **settings), given(t(2, 2, 3, 4), t(2, 2, 5, 4), t(2, 2, 5, 4), **settings))
for mask in (torch.ones(3, 5, dtype=torch.bool), t(3, 5)):
    own("nn.functional.scaled_dot_product_attention", given(t(2, 3, 4), t(2, 5, 4), t(2, 5, 4), mask), given(t(2, 2, 3, 4), t(2, 2, 5, 4), t(2, 2, 5, 4), attn_mask=mask))
for n in (1, 2, 3):
    image, weight = t(2, 3, *[4] * n), t(4, 3, *[2] * n)
    own(f"nn.functional.conv{n}d conv{n}d", given(image, weight), given(image, weight, t(4)), given(image, weight, bias=t(4), padding=1), given(image, weight, None, 2), given(image[0], weight, t(4)), given(image, weight, padding="same"))
    own(f"nn.functional.conv_transpose{n}d", given(image, t(3, 4, *[2] * n)), given(image, t(3, 4, *[2] * n), t(4)))
    own(f"nn.functional.max_pool{n}d nn.functional.avg_pool{n}d", given(image, 2), given(image[0], 2))
    own(f"nn.functional.adaptive_avg_pool{n}d nn.functional.adaptive_max_pool{n}d", given(image, 2), given(image, 1))
own("nn.functional.normalize", given(t(2, 3)), given(t(2, 3), dim=0))
own("nn.functional.cosine_similarity", given(t(2, 3), t(2, 3)), given(t(3), t(3), dim=0))
own("nn.functional.pad", given(t(2, 3), (1, 1)), given(t(2, 3), (1, 1), "constant", 1.0), *(given(t(1, 2, 3), (1, 1), mode=mode) for mode in ("reflect", "replicate", "circular")))
own("nn.functional.glu", given(t(4)), given(t(2, 4), 1), given(t(4, 2), 0))
own("nn.functional.prelu prelu", given(t(2, 3), t(1)), given(t(2, 3), t(3)))
own("nn.functional.gumbel_softmax", given(t(2, 3)), given(t(2, 3), hard=True))
own("polygamma special.polygamma", *(given(n, t(3)) for n in (0, 1, 2)))
own("normal", given(t(3), t(3)), given(t(3), 1.0), given(0.0, t(3)))
own("bernoulli bernoulli_", given(t(3)))
own("uniform_ normal_ exponential_ random_", given(t(3)))
own("resize_", given(t(4), 2), given(t(4), 4))
own("linalg.inv linalg.det linalg.slogdet linalg.cholesky linalg.qr linalg.svd linalg.eigh inverse det logdet slogdet linalg.matrix_exp matrix_exp", given(square()))
OWN["linalg.cholesky"] = OWN["linalg.eigh"] = [given(torch.eye(3, dtype=torch.float64) * torch.tensor([2.0, 3, 4], dtype=torch.float64))]
own("linalg.solve", given(square(), t(3)), given(square(), t(3, 2)))


def cell(kind: str, inputs: int, hidden: int, gates: int) -> Iterable[Given]:
    """A cell's call with weights, as the modules make it."""
    weights = t(gates * hidden, inputs), t(gates * hidden, hidden), t(gates * hidden), t(gates * hidden)
    state = (t(2, hidden), t(2, hidden)) if kind == "lstm_cell" else t(2, hidden)
    return [given(t(2, inputs), state, *weights)]


for kind, gates in (("lstm_cell", 4), ("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)):
    own(kind, *cell(kind, 3, 2, gates))


def layer(kind: str, gates: int) -> Given:
    """A layer's call over a sequence, as the modules make it."""
    weights = [t(gates * 2, 3), t(gates * 2, 2), t(gates * 2), t(gates * 2)]
    state = (t(1, 4, 2), t(1, 4, 2)) if kind == "lstm" else t(1, 4, 2)
    return given(t(5, 4, 3), state, weights, True, 1, 0.0, True, False, False)


for kind, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
    own(kind, layer(kind, gates))
own("bincount", given(positions(5, below=3)), given(positions(5, below=3), t(5)), given(positions(5, below=3), t(5), 4))

# ----------------------------------------------------------------------------------------- what PyTorch's own table leaves out

own("slice_copy", given(t(2, 3), 1, 0, 2), given(t(3)), given(t(3), start=1))
own("slice_scatter", given(t(2, 3), t(2, 2), 1, 0, 2), given(t(3), t(1), start=2), given(t(3), t(3)))
own("select_copy", given(t(2, 3), 0, 1))
own("split_copy unbind_copy", given(t(4), 2), given(t(2, 4), 2, 1))
own("view_as_real", given(torch.complex(t(3), t(3))))
own("imag", given(torch.complex(t(3), t(3))))
own("fill_diagonal_", given(t(3, 3), 0.0), given(t(3, 3), 1.0, True))
own("linalg.eig linalg.eigvals", given(square()))
own("istft", given(torch.stft(t(16), 4, return_complex=True, window=torch.ones(4, dtype=torch.float64)), 4))
own("polygamma_", given(t(3), 1))
own("frobenius_norm nuclear_norm", given(t(3, 3)), given(t(3, 3), (0, 1)))
own("norm_except_dim", given(t(2, 3)), given(t(2, 3), 2, 1))
own("special.gammainc special.gammaincc", given(t(3), t(3)))
own("logical_and_ logical_or_ logical_xor_ ne_ le_ ge_ greater_ less_ not_equal_ greater_equal_ less_equal_", given(t(3), t(3)))
own("segment_reduce", given(t(4), "sum", lengths=torch.tensor([2, 2])), given(t(4), "mean", lengths=torch.tensor([1, 3])), given(t(4), "max", lengths=torch.tensor([1, 3])))
own("svd_lowrank pca_lowrank", given(t(4, 3), 2))
own("native_dropout", given(t(4), 0.5, True), given(t(4), 0.5, False))
own("conv_tbc nn.functional.conv_tbc", given(t(5, 2, 3), t(2, 3, 4), t(4)))
own("nn.functional.dropout1d nn.functional.dropout2d", given(t(2, 3, 4)), given(t(2, 3, 4), 0.5, False), given(t(2, 3, 4), training=False))
own("nn.functional.dropout2d", given(t(2, 3, 4, 4)), given(t(2, 3, 4, 4), training=False), given(t(2, 3, 4, 4), inplace=True))
own("nn.functional.dropout3d", given(t(2, 3, 2, 2, 2)), given(t(2, 3, 2, 2, 2), training=False), given(t(2, 3, 2, 2, 2), inplace=True))
own("nn.functional.dropout1d", given(t(2, 3, 4), inplace=True))
own("nn.functional.alpha_dropout nn.functional.feature_alpha_dropout feature_dropout feature_alpha_dropout alpha_dropout", given(t(2, 3), 0.5, True), given(t(2, 3), 0.5, False))
own("nn.functional.fold", given(t(1, 4, 4), (3, 3), 2), given(t(4, 4), (3, 3), 2))
own("nn.functional.affine_grid", given(t(1, 2, 3), (1, 1, 2, 2)))
own("nn.functional.upsample", given(t(1, 1, 2, 2), scale_factor=2), given(t(1, 1, 2, 2), (4, 4), mode="bilinear"))
for n in (1, 2, 3):
    own(f"nn.functional.lp_pool{n}d", given(t(1, 2, *[4] * n), 2, 2))
    own(f"nn.functional.max_pool{n}d_with_indices nn.functional.adaptive_max_pool{n}d_with_indices", given(t(1, 2, *[4] * n), 2))
own("max_pool1d_with_indices", given(t(1, 2, 4), 2))
own("nn.functional.ctc_loss ctc_loss", given(t(5, 2, 3).log_softmax(2), torch.tensor([[1, 2], [2, 1]]), torch.tensor([5, 5]), torch.tensor([2, 2])))
