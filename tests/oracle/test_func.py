"""torch.func and sparse matrices beside PyTorch's own."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="compares with PyTorch")
pytestmark = pytest.mark.oracle


def flat(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [("dict", k, flat(v)) for k, v in tree.items()]
    if isinstance(tree, (tuple, list)):
        return [(type(tree).__name__, [flat(v) for v in tree])]
    return [(tuple(tree.shape), str(tree.dtype).split(".")[-1], np.round(tree.detach().numpy().astype(float), 4).tolist(), tree.requires_grad)]


def a(lib: Any, *shape: int) -> Any:
    return lib.linspace(0.5, 2.0, int(np.prod(shape))).reshape(shape)


CASES = {
    "grad": lambda t: t.func.grad(lambda x: (x.sin() * x).sum())(a(t, 3)),
    "grad twice": lambda t: t.func.grad(t.func.grad(lambda x: x ** 4))(t.tensor(2.0)),
    "grad argnums": lambda t: t.func.grad(lambda x, y: (x * y * y).sum(), argnums=(0, 1))(a(t, 3), a(t, 3)),
    "grad tuple of one": lambda t: t.func.grad(lambda x: x ** 2, argnums=(0,))(t.tensor(2.0)),
    "grad dict": lambda t: t.func.grad(lambda p, x: (p["w"] * x + p["b"]).sum())({"w": a(t, 3), "b": t.tensor(1.0)}, a(t, 3)),
    "grad aux": lambda t: t.func.grad(lambda x: ((x ** 2).sum(), x + 1), has_aux=True)(a(t, 3)),
    "grad and value": lambda t: t.func.grad_and_value(lambda x: (x ** 2).sum())(a(t, 3)),
    "vjp": lambda t: t.func.vjp(lambda x: x ** 2, a(t, 3))[1](a(t, 3)),
    "vjp two": lambda t: t.func.vjp(lambda x, y: {"p": x * y}, a(t, 3), a(t, 3))[1]({"p": a(t, 3)}),
    "vjp output": lambda t: t.func.vjp(lambda x: x ** 2, a(t, 3))[0],
    "jvp": lambda t: t.func.jvp(lambda x, y: x * y.exp(), (a(t, 3), a(t, 3)), (a(t, 3), t.ones(3))),
    "jacrev": lambda t: t.func.jacrev(lambda x: (x ** 2, x.sum()))(a(t, 2)),
    "jacfwd": lambda t: t.func.jacfwd(lambda x, y: x[:, None] * y, argnums=1)(a(t, 2), a(t, 3)),
    "hessian": lambda t: t.func.hessian(lambda x: (x.prod() + x ** 3).sum())(a(t, 3)),
    "vmap": lambda t: t.vmap(lambda x, y: (x @ y, x), in_dims=(0, None), out_dims=(0, 1))(a(t, 4, 3), a(t, 3)),
    "vmap negative": lambda t: t.func.vmap(lambda x: x.cumsum(0), in_dims=-1, out_dims=-1)(a(t, 2, 3)),
    "vmap of grad": lambda t: t.func.vmap(t.func.grad(lambda x: (x ** 3).sum()))(a(t, 3, 2)),
    "vmap of jacrev": lambda t: t.func.vmap(t.func.jacrev(lambda x: x.sin()))(a(t, 3, 2)),
    "sparse mm": lambda t: t.sparse.mm(t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3)), a(t, 3, 2)),
    "sparse mm by name": lambda t: t.mm(t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3)), a(t, 3, 2)),
    "sparse values": lambda t: t.sparse_coo_tensor([[0, 1, 0], [2, 0, 2]], [1.0, 2.0, 3.0]).coalesce().values(),
    "sparse indices": lambda t: t.sparse_coo_tensor([[0, 1, 0], [2, 0, 2]], [1.0, 2.0, 3.0]).coalesce().indices(),
    "sparse dense": lambda t: t.sparse_coo_tensor([[0, 1, 0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (3, 2)).to_dense(),
    "to sparse": lambda t: t.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse().indices(),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_as_in_pytorch(name: str) -> None:
    assert flat(CASES[name](mg)) == flat(CASES[name](torch))


def test_a_module_called_with_other_parameters() -> None:
    found = []
    for lib in (mg, torch):
        layer = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Tanh(), lib.nn.Linear(3, 1))
        p = {k: a(lib, *v.shape) for k, v in layer.named_parameters()}
        loss = lambda p: lib.func.functional_call(layer, p, a(lib, 4, 2)).pow(3).sum()
        found.append({k: v.numpy() for k, v in lib.func.grad(loss)(p).items()})
    for k in found[0]:
        np.testing.assert_allclose(found[0][k], found[1][k], 1e-4, 1e-4)
