"""What operations hand back: results with names, results written into `out`, and what the package calls itself in them."""
from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.base import return_types


def eye() -> Any:
    return mg.eye(2)


NAMED = {
    "max": lambda: eye().max(1), "min": lambda: eye().min(1), "sort": lambda: eye().sort(), "topk": lambda: mg.tensor(1.0).topk(1),
    "median": lambda: eye().median(0), "nanmedian": lambda: eye().nanmedian(0), "mode": lambda: eye().mode(), "kthvalue": lambda: eye().kthvalue(1),
    "cummax": lambda: eye().cummax(0), "cummin": lambda: eye().cummin(0), "aminmax": lambda: eye().aminmax(), "frexp": lambda: eye().frexp(),
    "qr": lambda: eye().qr(), "linalg_qr": lambda: mg.linalg.qr(eye()), "svd": lambda: eye().svd(), "linalg_svd": lambda: mg.linalg.svd(eye()),
    "slogdet": lambda: eye().slogdet(), "linalg_slogdet": lambda: mg.linalg.slogdet(eye()), "linalg_eigh": lambda: mg.linalg.eigh(eye()),
    "linalg_eig": lambda: mg.linalg.eig(eye()), "linalg_lu": lambda: mg.linalg.lu(eye()), "linalg_lstsq": lambda: mg.linalg.lstsq(eye(), eye()),
    "histogram": lambda: mg.ones(3).histogram(2), "geqrf": lambda: eye().geqrf(), "linalg_inv_ex": lambda: mg.linalg.inv_ex(eye())}


@pytest.mark.parametrize("name", NAMED)
def test_results_have_the_class_of_their_operation(name: str) -> None:
    found = NAMED[name]()
    assert type(found) is getattr(return_types, name) and isinstance(found, tuple) and found.n_fields == len(found)
    assert all(getattr(found, field) is part for field, part in zip(found._fields, found))
    assert repr(found).startswith(f"mutagrad.return_types.{name}(\n{found._fields[0]}=")


def test_results_can_be_copied_and_made_of_a_sequence() -> None:
    found = mg.tensor([3.0, 5.0]).max(0)
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found)), return_types.max([found.values, found.indices])):
        assert type(other) is return_types.max and other.values == 5.0 and other.indices == 1
    with pytest.raises(TypeError, match="takes 2 results"):
        return_types.max([found.values])


def test_the_package_is_called_torch_where_it_stands_for_torch() -> None:
    def texts() -> list[str]:
        return [str(mg.float32), repr(mg.Size([2])), str(mg.strided), mg.ones(2).type(), repr(mg.ones(2).max(0))]

    before = texts()
    with mg.as_torch():
        inside = texts()
    assert before[:2] == ["mutagrad.float32", "mutagrad.Size([2])"] and inside == [text.replace("mutagrad", "torch") for text in before]
    assert texts() == before


ROOM = {
    "sum": lambda o: mg.sum(mg.ones(2, 3), 0, out=o), "cat": lambda o: mg.cat([mg.ones(2), mg.ones(1)], out=o), "stack": lambda o: mg.stack([mg.ones(2)], out=o),
    "mm": lambda o: mg.mm(mg.ones(2, 3), mg.ones(3, 1), out=o), "matmul": lambda o: mg.matmul(mg.ones(2, 3), mg.ones(3), out=o),
    "cumsum": lambda o: mg.cumsum(mg.ones(2), 0, out=o), "gather": lambda o: mg.gather(mg.ones(2, 2), 0, mg.tensor([[0, 1]]), out=o),
    "index_select": lambda o: mg.index_select(mg.ones(2, 2), 0, mg.tensor([1]), out=o), "take": lambda o: mg.take(mg.ones(3), mg.tensor([0, 2]), out=o),
    "masked_select": lambda o: mg.masked_select(mg.ones(3), mg.tensor([True, False, True]), out=o), "arange": lambda o: mg.arange(3, out=o),
    "linspace": lambda o: mg.linspace(0, 1, 3, out=o), "rand": lambda o: mg.rand(4, out=o), "tril": lambda o: mg.tril(mg.ones(2, 2), out=o),
    "inv": lambda o: mg.linalg.inv(mg.eye(2), out=o), "nonzero": lambda o: mg.nonzero(mg.tensor([0, 1]), out=o),
    "scatter_add": lambda o: mg.scatter_add(mg.ones(2), 0, mg.tensor([0]), mg.ones(1), out=o)}


@pytest.mark.parametrize("name", ROOM)
def test_an_out_without_elements_takes_the_shape_of_the_result(name: str) -> None:
    out = mg.empty(0)
    assert ROOM[name](out) is out and out.numel() and out.is_contiguous()
    other = mg.empty(7, 7)
    with pytest.warns(UserWarning, match="was resized"):
        assert ROOM[name](other) is other and other.shape == out.shape
    with pytest.raises(RuntimeError, match="cannot be written"):
        ROOM[name](mg.empty(7, 7, requires_grad=True))


def test_several_outs_are_checked_before_any_is_written() -> None:
    values, indices = mg.empty(0), mg.empty(0, dtype=mg.int64)
    mg.sort(mg.tensor([3.0, 1.0]), out=(values, indices))
    assert values.tolist() == [1.0, 3.0] and indices.tolist() == [1, 0]
    values = mg.zeros(2)
    with pytest.raises(RuntimeError):
        mg.sort(mg.tensor([3.0, 1.0]), out=(values, mg.empty(5, dtype=mg.bool)))
    assert values.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("size", [2, 400])
@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
def test_in_place_by_one_element(name: str, size: int) -> None:
    """Its own, or another's; in the types that stay."""
    for element in (lambda y: y[0, 1], lambda y: mg.tensor(2.5), lambda y: mg.tensor(3), lambda y: mg.tensor(2.5, dtype=mg.float64)):
        found = []
        for written in (True, False):
            x = (mg.arange(size * size).reshape(size, size) / size + 1.0).requires_grad_()
            factor = mg.tensor(1.5, requires_grad=True)
            y = x * factor
            y = getattr(y, name)(element(y)) if written else getattr(y, name[:-1])(element(y))
            y.mean().backward()
            found.append((y.detach(), x.grad, factor.grad))
        for a, b in zip(*found):
            assert a.dtype is mg.float32 and mg.allclose(a, b, rtol=1e-4)
