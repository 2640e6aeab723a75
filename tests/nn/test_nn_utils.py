"""Clipping, vectors of parameters and parametrizations. (The oracle compares them with PyTorch's.)"""
from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn.utils import parametrizations, parametrize


@pytest.fixture(autouse=True)
def seeded() -> None:
    mg.manual_seed(0)


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).mT


class Counting(nn.Module):
    calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * 2

    def right_inverse(self, x: Any) -> Any:
        return x / 2


# -------------------------------------------------------------------------------------------------------------- gradients

def test_clipping_by_norm() -> None:
    p, q, r = (mg.zeros(n, requires_grad=True) for n in (1, 2, 3))
    p.grad, q.grad = mg.tensor([3.0]), mg.tensor([0.0, 4.0])
    assert nn.utils.clip_grad_norm_([p, q, r], 10.0).item() == 5.0
    assert p.grad.item() == 3.0
    assert nn.utils.clip_grad_norm_([p, q, r], 1.0).item() == 5.0
    np.testing.assert_allclose([p.grad.item(), q.grad[1].item()], [0.6, 0.8], rtol=1e-5)
    assert r.grad is None
    with pytest.warns(UserWarning, match="empty generator"):
        nn.utils.clip_grad_norm_((p for p in ()), 1.0)
    with pytest.warns(FutureWarning):
        nn.utils.clip_grad_norm([p], 1.0)
    with pytest.raises(TypeError):
        nn.utils.clip_grad_norm_(3, 1.0)
    with pytest.raises(TypeError):
        nn.utils.clip_grad_norm_([[1.0]], 1.0)


def test_clipping_is_not_recorded() -> None:
    p = mg.ones(2, requires_grad=True)
    g, = mg.autograd.grad((p ** 3).sum(), p, create_graph=True)
    p.grad = g.detach().clone()
    nn.utils.clip_grad_value_(p, 2.0)
    assert p.grad.tolist() == [2.0, 2.0] and not p.grad.requires_grad


def test_a_vector_of_parameters_is_differentiable() -> None:
    layer = nn.Linear(2, 2)
    (nn.utils.parameters_to_vector(layer.parameters()) ** 2).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), 2 * layer.weight.detach().numpy())
    with pytest.raises(RuntimeError, match="6 elements"):
        nn.utils.vector_to_parameters(mg.ones(5), layer.parameters())
    nn.utils.vector_to_parameters(mg.arange(6.0), layer.parameters())
    assert layer.bias.tolist() == [4.0, 5.0]


# ---------------------------------------------------------------------------------------------------------- parametrizations

def test_a_parametrized_weight_is_trained_through_its_original() -> None:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    layer(mg.randn(2, 3)).sum().backward()
    grad = layer.parametrizations.weight.original.grad
    assert (grad.tril(-1) == 0).all() and (grad.triu() != 0).any()
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = mg.ones(3, 3)


def test_cached() -> None:
    layer = nn.Linear(2, 2)
    counting = Counting()
    parametrize.register_parametrization(layer, "weight", counting)
    before = counting.calls
    with parametrize.cached(), parametrize.cached():
        assert layer.weight is layer.weight
    assert counting.calls == before + 1
    assert layer.weight is not layer.weight


def test_assigning_goes_through_the_inverse() -> None:
    layer = nn.Linear(2, 2)
    value = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Counting())
    np.testing.assert_allclose(layer.weight.detach().numpy(), value.numpy())
    layer.weight = mg.ones(2, 2)
    assert layer.parametrizations.weight.original.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_removing_from_a_copy_leaves_the_first_alone() -> None:
    first = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Counting())
    second = copy.deepcopy(first)
    assert type(first).__name__ == type(second).__name__ == "ParametrizedLinear"
    assert (first.weight == second.weight).all()
    parametrize.remove_parametrizations(second, "weight")
    assert type(second) is nn.Linear and isinstance(second.weight, nn.Parameter)
    assert parametrize.is_parametrized(first, "weight") and (first.weight == second.weight).all()


def test_a_parametrized_module_is_not_pickled() -> None:
    with pytest.raises(NotImplementedError, match="pickled"):
        pickle.dumps(parametrize.register_parametrization(nn.Linear(2, 2), "weight", Counting()))


def test_shapes_may_change_only_if_unsafe() -> None:
    class Twice(nn.Module):
        def forward(self, x: Any) -> Any:
            return mg.cat([x, x])

    layer = nn.Linear(2, 2, bias=False)
    with pytest.raises(ValueError, match=r"(?s)may not change the shape.*unsafe"):
        parametrize.register_parametrization(layer, "weight", Twice())
    assert isinstance(layer.weight, nn.Parameter), "nothing was changed"
    parametrize.register_parametrization(layer, "weight", Twice(), unsafe=True)
    assert layer(mg.ones(2)).shape == (4,)
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(layer, "nothing", Twice())


def test_a_parametrized_buffer() -> None:
    norm = nn.BatchNorm1d(2)
    parametrize.register_parametrization(norm, "running_mean", Counting())
    assert "parametrizations.running_mean.original" in norm.state_dict()
    assert not any("running_mean" in name for name, _ in norm.named_parameters())


def test_lengths_of_weight_norm_are_the_gradient_of_lengths() -> None:
    layer = parametrizations.weight_norm(nn.Linear(3, 2, dtype=mg.float64))
    g, v = layer.parametrizations.weight.original0, layer.parametrizations.weight.original1
    weight = layer.weight
    (weight ** 2).sum().backward()
    np.testing.assert_allclose(g.grad.numpy(), 2 * g.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(v.grad.numpy(), 0, atol=1e-12)


def test_spectral_norm_moves_in_training_only() -> None:
    layer = parametrizations.spectral_norm(nn.Linear(4, 3))
    layer.eval()
    u = layer.parametrizations.weight[0]._u.clone()
    assert (layer.weight == layer.weight).all() and (layer.parametrizations.weight[0]._u == u).all()
    with mg.no_grad():
        layer.parametrizations.weight.original.copy_(mg.randn(3, 4))
    layer.train()
    layer(mg.randn(2, 4))
    assert not (layer.parametrizations.weight[0]._u == u).all()


def test_two_forwards_of_spectral_norm_before_one_backward() -> None:
    """The power iteration writes over the vectors that the first forward saved; each has the values that it had."""
    layer = nn.utils.spectral_norm(nn.Linear(40, 40, dtype=mg.float64))
    x = mg.randn(2, 40, dtype=mg.float64)
    layer.eval()
    layer(x).sum().backward()
    expected = layer.weight_orig.grad.clone()
    layer.zero_grad()
    first = layer(x).sum()
    layer.train()
    layer(x)
    first.backward()
    assert (layer.weight_orig.grad == expected).all()


def test_orthogonal_weights_stay_orthogonal() -> None:
    layer = parametrizations.orthogonal(nn.Linear(5, 3, dtype=mg.float64))
    for _ in range(5):
        layer(mg.randn(4, 5, dtype=mg.float64)).pow(2).sum().backward()
        with mg.no_grad():
            layer.parametrizations.weight.original.sub_(0.1 * layer.parametrizations.weight.original.grad)
        layer.zero_grad()
    np.testing.assert_allclose((layer.weight @ layer.weight.T).detach().numpy(), np.eye(3), atol=1e-12)


def test_stateless_and_skip_init() -> None:
    layer = nn.utils.skip_init(nn.Linear, 2, 1)
    assert nn.utils.stateless.functional_call(layer, {"weight": mg.ones(1, 2), "bias": mg.zeros(1)}, (mg.ones(2),)).item() == 2


def test_pruning_at_random_and_its_errors() -> None:
    prune = nn.utils.prune
    layer = prune.random_unstructured(nn.Linear(5, 4), "weight", 0.5)
    assert layer.weight_mask.sum().item() == 10
    assert prune.random_structured(nn.Linear(5, 4), "weight", 2, 0).weight_mask.sum(1).sort().values.tolist() == [0, 0, 5, 5]
    layer(mg.ones(5)).sum().backward()
    assert ((layer.weight_orig.grad != 0) == (layer.weight_mask == 1)).all()
    with pytest.raises(ValueError, match="share"):
        prune.l1_unstructured(nn.Linear(2, 2), "weight", 1.5)
    with pytest.raises(ValueError, match="cannot be pruned"):
        prune.l1_unstructured(nn.Linear(2, 2), "weight", 5)
    with pytest.raises(ValueError, match="not pruned"):
        prune.remove(nn.Linear(2, 2), "weight")
    with pytest.raises(ValueError, match="at least 2"):
        prune.ln_structured(nn.Linear(2, 2), "bias", 1, 2, 0)


@pytest.mark.parametrize(("layer", "norm", "shape"), [
    (nn.Conv2d(2, 3, 2, bias=False), nn.BatchNorm2d(3), (1, 2, 4, 4)), (nn.ConvTranspose1d(2, 3, 2), nn.BatchNorm1d(3, affine=False), (1, 2, 4)),
    (nn.Linear(2, 3), nn.BatchNorm1d(3), (4, 2))])
def test_batch_normalization_is_taken_into_the_layer(layer: Any, norm: Any, shape: tuple[int, ...]) -> None:
    norm.running_mean.normal_()
    norm.running_var.uniform_(1, 2)
    x = mg.randn(shape)
    with pytest.raises(ValueError, match="evaluation"):
        nn.utils.fuse_conv_bn_eval(layer.train(), norm)
    layer.eval(), norm.eval()
    made = nn.utils.fuse_linear_bn_eval(layer, norm) if type(layer) is nn.Linear else nn.utils.fuse_conv_bn_eval(layer, norm, "Transpose" in repr(layer))
    assert mg.allclose(made(x), norm(layer(x)), atol=1e-5) and made is not layer


def test_gradients_of_convolutions_as_functions() -> None:
    x, w = mg.randn(2, 2, 5, requires_grad=True), mg.randn(4, 1, 3, requires_grad=True)
    out = nn.functional.conv1d(x, w, stride=2, groups=2)
    g = mg.randn(out.shape)
    of_input, of_weight = mg.autograd.grad(out, (x, w), g)
    assert mg.allclose(of_input, nn.grad.conv1d_input(x.shape, w, g, 2, groups=2)) and mg.allclose(of_weight, nn.grad.conv1d_weight(x, w.shape, g, 2, groups=2))


@pytest.mark.parametrize(("forward", "right_inverse", "words"), [
    (lambda s, x: 2, None, "must return a tensor"), (lambda s, x: x.bool(), None, "may not change the dtype"),
    (lambda s, x: x, lambda s, x: None, "Tensor or a Sequence of"), (lambda s, x, y: x, lambda s, x: (x, None), "element 1 of the sequence with type"),
    (lambda s, x: x, lambda s, x: x.bool(), "outputs one tensor, it may not change the dtype")])
def test_bad_parametrizations(forward: Any, right_inverse: Any, words: str) -> None:
    made = type("Made", (nn.Module,), {"forward": forward} | ({"right_inverse": right_inverse} if right_inverse else {}))()
    layer = nn.Linear(2, 2)
    before = layer.weight.tolist()
    with pytest.raises(ValueError, match=words):
        parametrize.register_parametrization(layer, "weight", made)
    assert layer.weight.tolist() == before and not parametrize.is_parametrized(layer)


def test_spectral_norm_takes_states_of_its_first_form() -> None:
    layer, x = nn.utils.spectral_norm(nn.Linear(3, 5)), mg.randn(2, 3)
    layer(x)
    state = copy.deepcopy(layer.state_dict())
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    expected = layer.eval()(x)
    del state["weight_v"], state._metadata[""]["spectral_norm"]
    state["weight"] = layer.weight.detach().clone()
    fresh = nn.utils.spectral_norm(nn.Linear(3, 5)).eval()
    fresh.load_state_dict(state)
    assert mg.allclose(fresh(x), expected, atol=1e-5)
    plain = nn.utils.remove_spectral_norm(fresh)
    assert not plain._state_dict_hooks and not plain._load_state_dict_pre_hooks and sorted(plain.state_dict()) == ["bias", "weight"]


def test_computed_weights_come_back_from_a_pickle_as_leaves() -> None:
    layer = nn.utils.prune.l1_unstructured(nn.Linear(4, 2), "weight", 0.5)
    loaded = pickle.loads(pickle.dumps(layer))
    x = mg.randn(1, 4)
    assert loaded.weight.is_leaf and loaded.weight.requires_grad and mg.equal(loaded(x), layer(x)) and not loaded.weight.is_leaf
