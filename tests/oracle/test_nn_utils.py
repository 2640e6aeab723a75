"""Clipping, vectors of parameters and parametrizations, beside PyTorch's."""
from __future__ import annotations

import copy
import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from oracle.compare import ours, torch
from oracle.test_rnn import close, compare, draw

pytestmark = pytest.mark.oracle
import_module("torch.nn.utils.prune")  # which PyTorch does not load by itself
LIBRARIES = (mg, torch)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def load(mine: Any, theirs: Any) -> None:
    """PyTorch's state into ours, and the same names and text."""
    state = theirs.state_dict()
    assert list(mine.state_dict()) == list(state)
    mine.load_state_dict({name: ours(value) for name, value in state.items()})
    assert repr(mine) == repr(theirs)


# -------------------------------------------------------------------------------------------------------------- gradients

def with_gradients(factor: float = 1.0) -> tuple[list[Any], list[Any]]:
    theirs = [draw(3, 2).requires_grad_(), draw(4).float().requires_grad_(), draw(2).requires_grad_()]
    for p in theirs[:2]:
        p.grad = torch.randn_like(p) * factor
    mine = [ours(p.detach()).requires_grad_() for p in theirs]
    for a, b in zip(mine, theirs):
        a.grad = None if b.grad is None else ours(b.grad)
    return mine, theirs


@pytest.mark.parametrize("norm_type", [2.0, 1, 3, float("inf"), "inf"])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_grad_norm(norm_type: Any, max_norm: float) -> None:
    mine, theirs = with_gradients()
    found, expected = (lib.nn.utils.clip_grad_norm_(ps, max_norm, norm_type) for lib, ps in ((mg, mine), (torch, theirs)))
    close(found, expected, "norm", 1e-6)
    for a, b in zip(mine[:2], theirs):
        close(a.grad, b.grad, "gradient", 1e-6)
    assert mine[2].grad is None


def test_total_norm_and_clipping_by_it() -> None:
    mine, theirs = with_gradients()
    for lib, ps in ((mg, mine), (torch, theirs)):
        total = lib.nn.utils.get_total_norm([p.grad for p in ps if p.grad is not None])
        lib.nn.utils.clip_grads_with_norm_(ps, 0.1, total)
    for a, b in zip(mine[:2], theirs):
        close(a.grad, b.grad, "gradient", 1e-6)
    assert mg.nn.utils.get_total_norm([]).item() == torch.nn.utils.get_total_norm([]).item()


@pytest.mark.parametrize("factor", [float("inf"), float("nan")])
def test_gradients_that_are_not_finite(factor: float) -> None:
    for lib, ps in zip(LIBRARIES, with_gradients(factor)):
        with pytest.raises(RuntimeError):
            lib.nn.utils.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True)
        lib.nn.utils.clip_grad_norm_(ps, 1.0)
        assert bool(ps[0].grad.isnan().all())


def test_clip_grad_value() -> None:
    mine, theirs = with_gradients(3.0)
    for lib, ps in ((mg, mine), (torch, theirs)):
        lib.nn.utils.clip_grad_value_(iter(ps), 0.7)
    for a, b in zip(mine[:2], theirs):
        close(a.grad, b.grad, "gradient", 1e-6)


def test_parameters_as_a_vector() -> None:
    theirs, mine = torch.nn.Linear(3, 2), mg.nn.Linear(3, 2)
    load(mine, theirs)
    vectors = [lib.nn.utils.parameters_to_vector(layer.parameters()) for lib, layer in ((mg, mine), (torch, theirs))]
    close(*vectors, "vector", 1e-7)
    for lib, layer, vector in zip(LIBRARIES, (mine, theirs), vectors):
        lib.nn.utils.vector_to_parameters(vector.detach() * 2, layer.parameters())
    for a, b in zip(mine.parameters(), theirs.parameters()):
        close(a, b, "parameter", 1e-7)


# ---------------------------------------------------------------------------------------------------------- parametrizations

LAYERS = {"Linear": ((4, 3), (5, 4)), "Conv2d": ((2, 3, 2), (1, 2, 4, 4)), "ConvTranspose2d": ((2, 3, 2), (1, 2, 3, 3)), "Embedding": ((4, 3), None)}


def made(kind: str) -> list[Any]:
    return [getattr(lib.nn, kind)(*LAYERS[kind][0], dtype=lib.float64) for lib in LIBRARIES]


def compare_layers(kind: str, mine: Any, theirs: Any) -> None:
    shape = LAYERS[kind][1]
    if shape is None:
        compare(mine, theirs, [], lambda layer, lib, _: layer(lib.tensor([0, 2, 2])))
    else:
        compare(mine, theirs, [draw(*shape)], lambda layer, _, xs: layer(xs[0]))


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(kind: str, dim: int | None) -> None:
    mine, theirs = made(kind)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        lib.nn.utils.parametrizations.weight_norm(layer, dim=dim)
    load(mine, theirs)
    compare_layers(kind, mine, theirs)
    mine.weight = mine.weight.detach() * 2
    theirs.weight = theirs.weight.detach() * 2
    load(copy.deepcopy(mine), theirs)
    close(mine.weight, theirs.weight, "assigned", 1e-12)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        lib.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    load(mine, theirs)
    assert type(mine) is getattr(mg.nn, kind)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("dim", [0, None])
def test_former_weight_norm(kind: str, dim: int | None) -> None:
    mine, theirs = made(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lib, layer in zip(LIBRARIES, (mine, theirs)):
            lib.nn.utils.weight_norm(layer, dim=dim)
    load(mine, theirs)
    compare_layers(kind, mine, theirs)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        lib.nn.utils.remove_weight_norm(layer)
    load(mine, theirs)
    with pytest.raises(ValueError, match="not found"):
        mg.nn.utils.remove_weight_norm(mine)


def test_state_of_the_former_weight_norm_loads() -> None:
    former, new = torch.nn.Linear(3, 2), mg.nn.Linear(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.nn.utils.weight_norm(former)
    mg.nn.utils.parametrizations.weight_norm(new)
    new.load_state_dict({name: ours(value) for name, value in former.state_dict().items()})
    close(new.weight, former.weight, "weight", 1e-6)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("form", ["parametrization", "hook"])
@pytest.mark.parametrize("training", [True, False])
def test_spectral_norm(kind: str, form: str, training: bool) -> None:
    mine, theirs = made(kind)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        utils = lib.nn.utils
        (utils.spectral_norm if form == "hook" else utils.parametrizations.spectral_norm)(layer, n_power_iterations=2)
        layer.train(training)
    load(mine, theirs)
    compare_layers(kind, mine, theirs)
    load(mine, theirs)  # the vectors have moved alike
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        if form == "hook":
            lib.nn.utils.remove_spectral_norm(layer)
        else:
            lib.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    load(mine, theirs)


def test_spectral_norm_follows_the_largest_singular_value() -> None:
    layer = mg.nn.utils.parametrizations.spectral_norm(mg.nn.Linear(6, 5, dtype=mg.float64))
    for _ in range(200):
        weight = layer.weight
    assert np.linalg.norm(weight.detach().numpy(), 2) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize("which", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(shape: tuple[int, int], which: str | None, trivial: bool) -> None:
    mine, theirs = mg.nn.Linear(*shape, dtype=mg.float64), torch.nn.Linear(*shape, dtype=torch.float64)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        lib.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=which, use_trivialization=trivial)
    load(mine, theirs)
    compare(mine, theirs, [draw(2, shape[0])], lambda layer, _, xs: layer(xs[0]))
    w = mine.weight.detach().numpy()
    np.testing.assert_allclose(w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w, np.eye(min(w.shape)), atol=1e-12)


def test_assigning_an_orthogonal_matrix() -> None:
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 3)))[0]
    for settings in ({}, {"use_trivialization": False}):
        layer = mg.nn.utils.parametrizations.orthogonal(mg.nn.Linear(3, 5, dtype=mg.float64), orthogonal_map="householder", **settings)
        layer.weight = mg.tensor(q)
        np.testing.assert_allclose(layer.weight.detach().numpy(), q, atol=1e-12)


def halves(lib: Any) -> Any:
    class Halves(lib.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return x / 2

        def right_inverse(self, x: Any) -> Any:
            return x * 2

    return Halves()


def test_several_parametrizations() -> None:
    mine, theirs = made("Linear")
    load(mine, theirs)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        parametrize = lib.nn.utils.parametrize
        parametrize.register_parametrization(layer, "weight", halves(lib))
        parametrize.register_parametrization(layer, "weight", halves(lib))
        parametrize.register_parametrization(layer, "bias", halves(lib))
        assert parametrize.is_parametrized(layer)
        assert parametrize.is_parametrized(layer, "bias")
        assert parametrize.type_before_parametrizations(layer) is lib.nn.Linear
    load(mine, theirs)
    compare_layers("Linear", mine, theirs)
    for leave in (True, False):
        for lib, layer in zip(LIBRARIES, (mine, theirs)):
            lib.nn.utils.parametrize.remove_parametrizations(layer, "weight" if leave else "bias", leave)
        load(mine, theirs)


def test_transferring_parametrizations() -> None:
    results = []
    mine, theirs = made("Linear")
    load(mine, theirs)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        lib.nn.utils.parametrize.register_parametrization(layer, "weight", halves(lib))
        results.append(lib.nn.utils.parametrize.transfer_parametrizations_and_params(layer, lib.nn.Linear(4, 3, dtype=lib.float64)))
    close(results[0].weight, results[1].weight, "weight", 1e-12)
    assert repr(results[0]) == repr(results[1])


def shapes(lib: Any) -> Any:
    class Wider(lib.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return lib.cat([x, x])

    return Wider()


ERRORS = [
    lambda lib: lib.nn.utils.parametrize.register_parametrization(lib.nn.Linear(2, 2), "weights", halves(lib)),
    lambda lib: lib.nn.utils.parametrize.register_parametrization(lib.nn.Linear(2, 2), "weight", shapes(lib)),
    lambda lib: lib.nn.utils.parametrize.remove_parametrizations(lib.nn.Linear(2, 2), "weight"),
    lambda lib: lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(2, 2), "bias"),
    lambda lib: lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(2, 2), orthogonal_map="qr"),
    lambda lib: lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(2, 2), n_power_iterations=0),
    lambda lib: lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(2, 2), dim=2),
    lambda lib: lib.nn.utils.spectral_norm(lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2))),
    lambda lib: lib.nn.utils.remove_spectral_norm(lib.nn.Linear(2, 2)),
    lambda lib: lib.nn.utils.vector_to_parameters([1.0], lib.nn.Linear(2, 2).parameters()),
    lambda lib: lib.nn.utils.rnn.pad_sequence([]),
    lambda lib: lib.nn.utils.rnn.pad_sequence([lib.zeros(2)], padding_side="up"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    with pytest.raises(Exception) as expected:
        ERRORS[number](torch)
    with pytest.raises(mg.errors.MutagradError) as found:
        ERRORS[number](mg)
    assert isinstance(found.value, expected.type), (found.value, expected.value)


def test_assigning_to_what_cannot_be_inverted() -> None:
    class Square(mg.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * x

    layer = mg.nn.utils.parametrize.register_parametrization(mg.nn.Linear(2, 2), "weight", Square())
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = mg.ones(2, 2)


def test_weight_norm_of_a_recurrent_layer() -> None:
    mine, theirs = (lib.nn.LSTM(3, 4, dtype=lib.float64) for lib in LIBRARIES)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        lib.nn.utils.parametrizations.weight_norm(layer, "weight_hh_l0")
    load(mine, theirs)
    compare(mine, theirs, [draw(5, 2, 3)], lambda layer, _, xs: layer(xs[0]))


# ----------------------------------------------------------------------------------------------------------------- pruning

PRUNED = {
    "l1": lambda lib, layer: lib.nn.utils.prune.l1_unstructured(layer, "weight", 0.4),
    "l1 twice": lambda lib, layer: lib.nn.utils.prune.l1_unstructured(lib.nn.utils.prune.l1_unstructured(layer, "weight", 3), "weight", 0.5),
    "ln": lambda lib, layer: lib.nn.utils.prune.ln_structured(layer, "weight", 1, 2, 0),
    "ln twice": lambda lib, layer: lib.nn.utils.prune.ln_structured(lib.nn.utils.prune.ln_structured(layer, "weight", 1, 1, 1), "weight", 0.4, 2, 0),
    "l1 then ln": lambda lib, layer: lib.nn.utils.prune.ln_structured(lib.nn.utils.prune.l1_unstructured(layer, "weight", 3), "weight", 1, 2, 0),
    "identity": lambda lib, layer: lib.nn.utils.prune.identity(layer, "bias"),
    "mask": lambda lib, layer: lib.nn.utils.prune.custom_from_mask(layer, "bias", lib.tensor([1, 0, 1])),
    "global": lambda lib, layer: lib.nn.utils.prune.global_unstructured([(layer, "weight"), (layer, "bias")], lib.nn.utils.prune.L1Unstructured, amount=0.3),
}


@pytest.mark.parametrize("case", PRUNED)
@pytest.mark.parametrize("kind", ["Linear", "Conv2d"])
def test_pruning(case: str, kind: str) -> None:
    mine, theirs = made(kind)
    load(mine, theirs)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        PRUNED[case](lib, layer)
        assert lib.nn.utils.prune.is_pruned(layer)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    for name, value in theirs.state_dict().items():
        close(mine.state_dict()[name], value, name, 1e-12)
    compare_layers(kind, mine, theirs)
    for lib, layer in zip(LIBRARIES, (mine, theirs)):
        for name in [n.removesuffix("_mask") for n, _ in layer.named_buffers()]:
            lib.nn.utils.prune.remove(layer, name)
        assert not lib.nn.utils.prune.is_pruned(layer)
    for name, value in theirs.state_dict().items():
        close(mine.state_dict()[name], value, name, 1e-12)
