"""Modules as functions of their parameters, under functorch's names."""
from __future__ import annotations

import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.func import grad, make_functional, make_functional_with_buffers


def test_parameters_are_arguments() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    function, parameters = make_functional(model)
    x = mg.rand(4, 2)
    assert mg.equal(function(parameters, x), model(x)) and [p.shape for p in parameters] == [p.shape for p in model.parameters()]
    slopes = grad(lambda given: function(given, x).sum())(parameters)
    model(x).sum().backward()
    for slope, p in zip(slopes, model.parameters()):
        assert mg.allclose(slope, p.grad)
    assert not any(p.requires_grad for p in make_functional(model, disable_autograd_tracking=True)[1])


def test_buffers_are_arguments() -> None:
    model = nn.BatchNorm1d(2)
    with pytest.raises(ValueError, match="make_functional_with_buffers"):
        make_functional(model)
    function, parameters, buffers = make_functional_with_buffers(model)
    before = [b.clone() for b in model.buffers()]
    function(parameters, buffers, mg.rand(5, 2))
    assert buffers[0].abs().sum() > 0  # what is written is what was given
    assert all(mg.equal(a, b) for a, b in zip(before, model.buffers()))
