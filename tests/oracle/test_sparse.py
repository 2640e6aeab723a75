"""Sparse tensors beside PyTorch's: its own table of operations over sparse samples, programs, gradients, errors, files.

Gradients of sparse leaves are sparse here, at the same places; PyTorch's are dense for some operations. They are
compared at those places.
"""
from __future__ import annotations

import io
import unittest
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import mutagrad as mg  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
SUPPORTED = [(op, layout) for op in op_db for layout in LAYOUTS
             if (op.supports_sparse if layout == "sparse_coo" else getattr(op, f"supports_{layout}"))]

# What is not computed with sparse tensors, and why.
REFUSED = {
    "masked.sum": "masked reductions take dense tensors", "masked.prod": "masked reductions take dense tensors", "masked.mean": "masked reductions take dense tensors",
    "masked.amax": "masked reductions take dense tensors", "masked.amin": "masked reductions take dense tensors",
}
RANDOM = {"randn_like"}
mg.sparse_coo_tensor((1,))  # from now on public functions look for sparse tensors; taken before, they would not


def ours(x: Any) -> Any:
    """A tensor of PyTorch's, or a setting, as one of ours."""
    if isinstance(x, torch.Tensor):
        d = x.detach()
        if x.layout is torch.strided:
            made = mg.from_numpy(d.numpy().copy())
        elif x.layout is torch.sparse_coo:
            made = mg.sparse_coo_tensor(ours(d._indices()), ours(d._values()), tuple(d.shape), is_coalesced=d.is_coalesced())
        else:
            rows = x.layout in (torch.sparse_csr, torch.sparse_bsr)
            indices = (d.crow_indices(), d.col_indices()) if rows else (d.ccol_indices(), d.row_indices())
            made = mg.sparse_compressed_tensor(*map(ours, indices), ours(d.values()), tuple(d.shape), layout=ours(x.layout))
        return made.requires_grad_() if x.requires_grad else made
    if isinstance(x, (torch.dtype, torch.layout)):
        return getattr(mg, str(x)[6:])
    if isinstance(x, (list, tuple)):
        return type(x)(map(ours, x))
    return {name: ours(value) for name, value in x.items()} if isinstance(x, dict) else "cpu" if isinstance(x, torch.device) else x


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected):
            same(f, e)
    elif isinstance(expected, torch.Tensor):
        assert isinstance(found, mg.Tensor) and found.layout.name == str(expected.layout)[6:] and tuple(found.shape) == tuple(expected.shape)
        assert found.dtype.name == str(expected.dtype)[6:] or found.dtype.name == "bool_"
        np.testing.assert_allclose(found.detach().to_dense().numpy(), expected.detach().to_dense().numpy(), rtol=1e-5, atol=1e-6)
    else:
        assert found == expected


def samples(op: Any, layout: str, dtype: Any) -> Iterator[Any]:
    """PyTorch's sparse samples; where it has none, its dense ones made sparse, with places that are held twice."""
    try:
        found = op.sample_inputs_sparse(getattr(torch, layout), "cpu", dtype, requires_grad=False)
        yield from islice(found, 8 if dtype is torch.float64 else 1)
    except (NotImplementedError, unittest.SkipTest):
        for sample in islice(op.sample_inputs("cpu", dtype, requires_grad=False), 3):
            if sample.input.ndim < 2:
                continue
            block = {"blocksize": (1, 1)} if layout in ("sparse_bsr", "sparse_bsc") else {}
            sample.input = sample.input.to_sparse(layout=getattr(torch, layout), **block)
            if layout == "sparse_coo":
                x = sample.input
                sample.input = torch.sparse_coo_tensor(torch.cat([x.indices()] * 2, 1), torch.cat([x.values()] * 2), x.shape)
            yield sample


def function_of(op: Any) -> Callable[..., Any]:
    found: Any = mg
    for name in op.name.split("."):
        found = getattr(found, name, None) or getattr(mg.Tensor, name)
    return found


@pytest.mark.parametrize("op, layout", SUPPORTED, ids=lambda x: x if isinstance(x, str) else f"{x.name}.{x.variant_test_name}".rstrip("."))
def test_its_own_samples(op: Any, layout: str) -> None:
    function = function_of(op)
    for dtype in (torch.float64, torch.int64, torch.complex128):
        for sample in samples(op, layout, dtype) if dtype in op.dtypes else ():
            try:
                expected = op(sample.input, *sample.args, **sample.kwargs)
            except (RuntimeError, TypeError, ValueError, IndexError):
                continue
            arguments = ours(sample.input), *ours(sample.args)
            if op.name in REFUSED:
                with pytest.raises(NotImplementedError):
                    function(*arguments, **ours(sample.kwargs))
                return
            found = function(*arguments, **ours(sample.kwargs))
            if op.name not in RANDOM:
                same(found, expected)


# ------------------------------------------------------------------------------------------------------------- programs

def s(t: Any, **settings: Any) -> Any:
    return t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], t.tensor([3.0, 4.0, 5.0]), (2, 3), **settings)


def c(t: Any) -> Any:
    return s(t).coalesce()


def u(t: Any) -> Any:
    return t.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], t.tensor([1.0, 4.0, 5.0, 2.0]), (2, 3))


def d(t: Any) -> Any:
    return t.arange(6.0).reshape(2, 3)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "add": lambda t: c(t) + c(t), "add uncoalesced": lambda t: s(t) + u(t), "dense + sparse": lambda t: d(t) + u(t), "sub": lambda t: c(t) - c(t), "dense - sparse": lambda t: d(t) - c(t),
    "mul": lambda t: c(t) * u(t), "mul dense": lambda t: c(t) * d(t), "dense mul": lambda t: d(t) * u(t), "mul row": lambda t: c(t) * d(t)[0], "mul column": lambda t: c(t) * d(t)[:, :1],
    "div": lambda t: c(t) / 2, "div 0-d": lambda t: c(t) / t.tensor(2.0), "floor": lambda t: u(t) // 2, "pow": lambda t: u(t)**2, "neg": lambda t: -u(t), "abs": lambda t: abs(u(t)),
    "sum": lambda t: u(t).sum(), "sum 0": lambda t: u(t).sum(0), "sum keepdim": lambda t: c(t).sum(0, keepdim=True), "sum both": lambda t: c(t).sum((0, 1)), "sparse.sum": lambda t: t.sparse.sum(u(t), 1),
    "sparse.sum all": lambda t: t.sparse.sum(u(t)), "any": lambda t: c(t).any(), "norm": lambda t: u(t).norm(), "norm 1": lambda t: c(t).norm(1), "select": lambda t: c(t)[0], "element": lambda t: c(t)[0, 2],
    "index_select": lambda t: u(t).index_select(1, t.tensor([2, 2, 0])), "narrow_copy": lambda t: c(t).narrow_copy(1, 1, 2), "unbind": lambda t: u(t).unbind(), "None": lambda t: c(t)[None],
    "iteration": lambda t: list(u(t)), "t": lambda t: u(t).t(), "T": lambda t: c(t).T, "transpose": lambda t: c(t).transpose(0, 1), "permute": lambda t: c(t).permute(1, 0), "unsqueeze": lambda t: c(t).unsqueeze(-1),
    "cat": lambda t: t.cat([c(t), u(t)]), "cat 1": lambda t: t.cat([c(t), u(t)], 1), "stack": lambda t: t.stack([c(t), u(t)]), "mm": lambda t: t.mm(u(t), d(t).t()), "mm sparse": lambda t: t.mm(u(t), c(t).t()),
    "dense mm sparse": lambda t: t.mm(d(t).t(), c(t)), "@": lambda t: u(t) @ d(t).t(), "@ sparse": lambda t: c(t) @ c(t).t(), "dense @": lambda t: d(t).t() @ u(t), "@ vector": lambda t: c(t) @ t.ones(3),
    "mv": lambda t: t.mv(c(t), t.ones(3)), "vector @": lambda t: t.ones(2) @ c(t), "sparse.mm": lambda t: t.sparse.mm(u(t), d(t).t()), "sparse.mm sparse": lambda t: t.sparse.mm(c(t), c(t).t()),
    "addmm": lambda t: t.addmm(t.ones(2, 2), c(t), d(t).t(), beta=2, alpha=3), "sparse.addmm": lambda t: t.sparse.addmm(t.ones(2, 2), c(t), d(t).t(), beta=2), "smm": lambda t: t.smm(c(t), d(t).t()),
    "sspaddmm": lambda t: t.sspaddmm(t.eye(2).to_sparse(), c(t), d(t).t()), "hspmm": lambda t: t.hspmm(c(t), d(t).t()), "dsmm": lambda t: t.dsmm(c(t), d(t).t()), "hsmm": lambda t: t.hsmm(c(t), d(t).t()),
    "bmm": lambda t: t.bmm(t.stack([c(t), u(t)]), t.stack([d(t).t(), d(t).t()])), "linear": lambda t: t.nn.functional.linear(c(t), d(t)), "softmax": lambda t: t.sparse.softmax(c(t), 1),
    "log_softmax": lambda t: t.sparse.log_softmax(u(t), 0), "sparse_mask": lambda t: d(t).sparse_mask(c(t)), "mask of sparse": lambda t: c(t).sparse_mask(t.eye(2, 3).to_sparse()), "zeros_like": lambda t: t.zeros_like(c(t)),
    "isnan": lambda t: c(t).isnan(), "double": lambda t: u(t).double(), "long": lambda t: c(t).long(), "bool": lambda t: c(t).bool(), "tensor": lambda t: t.tensor(c(t)), "size": lambda t: (c(t).size(-1), len(c(t)), c(t).numel()),
    "told": lambda t: (u(t).is_coalesced(), u(t)._nnz(), u(t).sparse_dim(), u(t).dense_dim(), u(t).is_sparse, d(t).sparse_dim(), d(t).dense_dim(), u(t).type().replace("mutagrad", "torch"), u(t).element_size()),
    "text": lambda t: repr(u(t) * 1).replace("mutagrad", "torch"), "hybrid": lambda t: d(t).to_sparse(1), "hybrid row": lambda t: d(t).to_sparse(1)[0], "hybrid column": lambda t: d(t).to_sparse(1).select(1, 0),
    "hybrid sum": lambda t: t.sparse.sum(d(t).to_sparse(1), 1), "mul_": lambda t: u(t).mul_(2), "add_": lambda t: c(t).add_(u(t)), "dense add_": lambda t: d(t).add_(c(t)), "sin_": lambda t: c(t).sin_(),
    "zero_": lambda t: c(t).zero_(), "copy_": lambda t: c(t).copy_(u(t)), "t_": lambda t: c(t).t_(), "empty": lambda t: t.sparse_coo_tensor((2, 3)), "no dims": lambda t: t.sparse_coo_tensor(t.zeros(0, 1).long(), t.ones(1), ()),
    "spdiags": lambda t: t.sparse.spdiags(t.arange(6.0).reshape(2, 3), t.tensor([0, -1]), (3, 3)), "FloatTensor": lambda t: t.sparse.FloatTensor(t.tensor([[0], [1]]), t.ones(1), t.Size([2, 2])),
    "segment_reduce": lambda t: t._segment_reduce(t.arange(4.0), "sum", offsets=t.tensor([0, 1, 4])), "pointers": lambda t: t._convert_indices_from_coo_to_csr(t.tensor([0, 0, 2]), 3),
    "rows": lambda t: t._convert_indices_from_csr_to_coo(t.tensor([0, 2, 3]), t.tensor([1, 0, 2])), "coalesced indices": lambda t: u(t).coalesce().indices(),
    "numpy": lambda t: c(t).numpy(), "+ 1": lambda t: c(t) + 1, "sparse + dense": lambda t: c(t) + d(t), "1 /": lambda t: 1 / c(t), "/ dense": lambda t: c(t) / d(t), "pow 0": lambda t: c(t)**0, "exp": lambda t: c(t).exp(),
    "==": lambda t: c(t) == c(t), "max": lambda t: c(t).max(), "mean": lambda t: c(t).mean(), "view": lambda t: c(t).view(6), "reshape": lambda t: c(t).reshape(6), "expand": lambda t: c(t).expand(2, 2, 3), "where": lambda t: t.where(c(t) > 0, c(t), c(t)),
    "cat dense": lambda t: t.cat([c(t), d(t)]), "assign": lambda t: c(t).__setitem__(0, 1), "indices uncoalesced": lambda t: u(t).indices(), "values of dense": lambda t: d(t).values(), "coalesce of dense": lambda t: d(t).coalesce(),
    "copy dense": lambda t: c(t).copy_(d(t)), "copy to dense": lambda t: d(t).copy_(c(t)), "out of range": lambda t: c(t)[7], "wrong sizes": lambda t: c(t) @ d(t), "counts": lambda t: t.sparse_coo_tensor([[0], [0]], [1.0, 2.0]),
    "other sparse_dim": lambda t: c(t).to_sparse(1), "t of hybrid": lambda t: d(t).to_sparse(1).t(), "storage": lambda t: c(t).storage(), "fill_": lambda t: c(t).fill_(1), "crow of coo": lambda t: c(t).crow_indices()}


def outcome(program: Callable[[Any], Any], library: Any) -> tuple[Any, Any]:
    try:
        return program(library), None
    except Exception as error:
        return None, error


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    expected, refusal = outcome(PROGRAMS[name], torch)
    found, error = outcome(PROGRAMS[name], mg)
    if refusal is None:
        assert error is None, error
        same(found, expected)
    else:
        kind = RuntimeError if isinstance(refusal, RuntimeError) else type(refusal)
        assert isinstance(error, kind), f"{refusal!r} and {error!r}"


COMPRESSED = {
    "conversions": lambda t, x: [x.to_sparse(), x.to_dense()], "add": lambda t, x: x + x, "dense": lambda t, x: x + d(t), "mul": lambda t, x: x * x, "mul dense": lambda t, x: x * d(t), "scaled": lambda t, x: 2 * x, "neg": lambda t, x: -x, "sin": lambda t, x: x.sin(),
    "sum": lambda t, x: x.sum(), "rows": lambda t, x: x.sum(1, keepdim=True), "columns": lambda t, x: x.sum(0, keepdim=True), "row": lambda t, x: x[0], "element": lambda t, x: x[1, 2], "t": lambda t, x: x.t(), "mm": lambda t, x: x @ d(t).t(),
    "mm sparse": lambda t, x: x @ x.t(), "dense mm": lambda t, x: d(t).t() @ x, "mv": lambda t, x: x @ t.ones(3), "mean": lambda t, x: t.sparse.mm(x, d(t).t(), "mean"), "amax": lambda t, x: t.sparse.mm(x, d(t).t(), "amax"),
    "addmm": lambda t, x: t.addmm(t.ones(2, 2), x, d(t).t(), beta=2, alpha=3), "addmv": lambda t, x: t.addmv(t.ones(2), x, t.ones(3)), "sampled": lambda t, x: t.sparse.sampled_addmm(x, t.ones(2, 2), d(t), beta=2), "sparse_mask": lambda t, x: d(t).sparse_mask(x),
    "zeros_like": lambda t, x: t.zeros_like(x), "parts": lambda t, x: [x.values(), x.crow_indices(), x.col_indices()], "columns' parts": lambda t, x: [x.ccol_indices(), x.row_indices()], "copy_": lambda t, x: x.clone().copy_(x), "zero_": lambda t, x: x.clone().zero_(),
    "mul_": lambda t, x: x.clone().mul_(2), "double": lambda t, x: x.double(), "numpy": lambda t, x: x.numpy(), "told": lambda t, x: (x.sparse_dim(), x.dense_dim(), x._nnz(), x.is_sparse, x.is_sparse_csr), "coalesce": lambda t, x: x.coalesce(), "stride": lambda t, x: x.stride(),
    "csr": lambda t, x: x.to_sparse_csr(), "csc": lambda t, x: x.to_sparse_csc(), "linear": lambda t, x: t.nn.functional.linear(x, d(t))}


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr"])
@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed(name: str, layout: str) -> None:
    """Where PyTorch refuses a layout, we may compute."""
    def program(t: Any) -> Any:
        return COMPRESSED[name](t, c(t).to_dense().to_sparse(layout=getattr(t, layout), blocksize=(1, 3) if layout == "sparse_bsr" else None))

    expected, refusal = outcome(program, torch)
    found, error = outcome(program, mg)
    if refusal is None:
        assert error is None, error
        same(found, expected)
    elif error is not None and not isinstance(error, mg.errors.MutagradError):
        raise error


LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda t, x: x.sum(), "mm": lambda t, x: (x @ d(t).t()).pow(2).sum(), "to_dense": lambda t, x: (x.to_dense() * d(t)).sum(), "mul": lambda t, x: (x * d(t)).sum(), "square": lambda t, x: (x * x).sum(),
    "add": lambda t, x: (d(t) + x).pow(2).sum(), "values": lambda t, x: (x.coalesce().values()**3).sum(), "sparse.sum": lambda t, x: t.sparse.sum(x, 0).to_dense().pow(2).sum(), "@ itself": lambda t, x: t.sparse.sum(x @ x.t()),
    "t": lambda t, x: (x.t().to_dense() * d(t).t()).sum(), "softmax": lambda t, x: (t.sparse.softmax(x, 1).to_dense() * d(t)).sum(), "pow": lambda t, x: (x**2).sum(), "neg": lambda t, x: (-x).to_dense().pow(2).sum(),
    "sparse.mm": lambda t, x: t.sparse.mm(x, d(t).t()).pow(2).sum(), "addmm": lambda t, x: t.addmm(t.ones(2, 2), x, d(t).t()).pow(2).sum()}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_at_the_places_of_a_leaf(name: str) -> None:
    grads = []
    for t in (torch, mg):
        x = c(t).detach().requires_grad_()
        LOSSES[name](t, x).backward()
        assert x.is_leaf and not isinstance(x.grad, type(None))
        grads.append(x.grad.to_dense().numpy())
    places = c(torch).to_dense().numpy() != 0
    np.testing.assert_allclose(grads[1], np.where(places, grads[0], 0), rtol=1e-5, atol=1e-6)


def test_gradients_through_the_constructors() -> None:
    for name in ("sparse_coo_tensor", "sparse_csr_tensor"):
        grads = []
        for t in (torch, mg):
            values = t.tensor([3.0, 4.0, 5.0], requires_grad=True)
            first = [0, 1, 1] if name == "sparse_coo_tensor" else [0, 1, 3]
            parts = (t.tensor([first, [2, 0, 2]]), values) if name == "sparse_coo_tensor" else (t.tensor(first), t.tensor([2, 0, 2]), values)
            (getattr(t, name)(*parts, (2, 3)) @ d(t).t()).pow(2).sum().backward()
            grads.append(values.grad.numpy())
        np.testing.assert_allclose(grads[1], grads[0], rtol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_pytorchs_load(layout: str) -> None:
    x = torch.tensor([[0, 0, 3.0], [4.0, 0, 5]]).to_sparse(layout=getattr(torch, layout), blocksize=(1, 3) if "_bs" in layout else None)
    for value in ({"a": x, "b": x.double()}, u(torch)):
        file = io.BytesIO()
        torch.save(value, file)
        for safe in (True, False):
            file.seek(0)
            found = mg.load(file, weights_only=safe)
            for one, other in zip(found.values() if isinstance(found, dict) else [found], value.values() if isinstance(value, dict) else [value]):
                same(one, other)
