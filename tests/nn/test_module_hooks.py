"""Functions that modules call: around forward and backward, when they get parameters, when their state is saved and loaded."""
from __future__ import annotations

import gc
import pickle
import weakref
from collections import OrderedDict
from copy import deepcopy
from typing import Any

import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn.modules import module as everywhere
from mutagrad.utils.hooks import RemovableHandle


def nothing(*arguments: Any) -> None:
    pass


# ---------------------------------------------------------------------------------------------------------------- tables

def test_tables_hold_the_hooks_themselves_by_number() -> None:
    layer = nn.Linear(2, 2)
    handle = layer.register_forward_hook(nothing, with_kwargs=True, always_call=True)
    assert isinstance(handle, RemovableHandle) and handle.hooks_dict_ref() is layer._forward_hooks
    for table in (layer._forward_hooks, layer._forward_hooks_with_kwargs, layer._forward_hooks_always_called):
        assert list(table) == [handle.id]
    assert layer._forward_hooks[handle.id] is nothing
    handle.remove()
    assert not layer._forward_hooks and not layer._forward_hooks_with_kwargs and not layer._forward_hooks_always_called


def test_a_copied_handle_removes_the_hook_of_the_copy() -> None:
    layer = nn.Linear(2, 2)
    layer.handle = layer.register_forward_pre_hook(nothing)
    for copied in (deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        copied.handle.remove()
        assert not copied._forward_pre_hooks
    assert layer._forward_pre_hooks


def test_a_module_saved_without_a_table_gets_one() -> None:
    layer = nn.Linear(2, 2)
    del layer._state_dict_pre_hooks, layer._load_state_dict_post_hooks
    loaded = pickle.loads(pickle.dumps(layer))
    loaded.load_state_dict(loaded.state_dict())


def test_the_tables_of_all_modules_can_be_replaced() -> None:
    seen: list[str] = []
    everywhere.register_module_forward_hook(lambda *a: seen.append("forward"))
    everywhere._global_forward_hooks = OrderedDict()
    nn.Identity()(1)
    assert not seen


# --------------------------------------------------------------------------------------------------------------- forward

def test_hooks_that_are_always_called_hear_of_errors_anywhere() -> None:
    seen: list[Any] = []
    layer = nn.Identity()
    layer.register_forward_hook(lambda m, a, out: seen.append(out), always_call=True)
    with layer.register_forward_pre_hook(lambda m, a: 1 / 0), pytest.raises(ZeroDivisionError):  # type: ignore[arg-type, return-value]
        layer(1)
    assert seen == [None]


def test_an_error_in_a_hook_that_is_always_called_does_not_hide_the_first() -> None:
    layer = nn.Identity()
    layer.register_forward_hook(lambda m, a, out: [][1], always_call=True)  # type: ignore[misc]
    with layer.register_forward_pre_hook(lambda m, a: 1 / 0), pytest.warns(UserWarning, match="silenced"), pytest.raises(ZeroDivisionError):
        layer(1)


# -------------------------------------------------------------------------------------------------------------- backward

def test_a_dict_of_results_is_seen_by_the_old_hooks_and_warned_of_by_the_new() -> None:
    class Named(nn.Module):
        def forward(self, x: Any) -> Any:
            return {"twice": x * 2}

    seen: list[Any] = []
    old, new = Named(), Named()
    old.register_backward_hook(lambda m, gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    old(mg.ones(2, requires_grad=True))["twice"].sum().backward()
    assert seen == [([2, 2], [1, 1])]
    new.register_full_backward_hook(lambda *a: seen.append("no"))
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors"):
        new(mg.ones(2, requires_grad=True))["twice"].sum().backward()
    assert len(seen) == 1


@pytest.mark.parametrize(("answer", "words"), [(lambda g: g[:-1], "got 0, but expected 1"), (lambda g: g * 2, "got 2, but expected 1")])
def test_wrong_numbers_of_gradients_are_refused(answer: Any, words: str) -> None:
    layer = nn.Sigmoid()
    layer.register_full_backward_hook(lambda m, gi, go: answer(gi))
    with pytest.raises(RuntimeError, match=words):
        layer(mg.ones(2, requires_grad=True)).sum().backward()


def test_a_gradient_for_inputs_that_need_none_is_refused() -> None:
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda m, gi, go: mg.ones(1, 2))
    with pytest.raises(RuntimeError, match="where no input requires gradient"):
        layer(mg.ones(1, 2)).sum().backward()


def test_old_and_new_backward_hooks_do_not_mix() -> None:
    layer = nn.Sigmoid()
    layer.register_full_backward_hook(nothing)
    with pytest.raises(RuntimeError, match="both"):
        layer.register_backward_hook(nothing)


# ---------------------------------------------------------------------------------------------------------- registration

@pytest.mark.parametrize(("register", "held"), [
    (everywhere.register_module_parameter_registration_hook, nn.Module.parameters),
    (everywhere.register_module_buffer_registration_hook, nn.Module.buffers),
    (everywhere.register_module_module_registration_hook, nn.Module.children)])
def test_what_modules_get_is_shown(register: Any, held: Any) -> None:
    def note(module: Any, name: str, value: Any) -> None:
        value.noted = name

    with register(note):
        made = nn.Sequential(nn.BatchNorm1d(2))
    assert all(hasattr(value, "noted") for value in held(made)) and list(held(made))
    assert not any(hasattr(value, "noted") for value in held(nn.Sequential(nn.BatchNorm1d(2))))


def test_what_a_registration_hook_returns_takes_the_place() -> None:
    with everywhere.register_module_buffer_registration_hook(lambda m, name, b: b + 1 if name == "mark" else None):
        module = nn.Module()
        module.register_buffer("mark", mg.zeros(2))
    assert module.mark.tolist() == [1, 1]


# ----------------------------------------------------------------------------------------------------------------- state

def test_hooks_before_loading_see_their_own_part_and_module() -> None:
    seen: list[Any] = []
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].register_load_state_dict_pre_hook(lambda module, state, *rest: seen.append((module, sorted(state))))
    copied = deepcopy(model)
    copied.load_state_dict(model.state_dict())
    assert seen == [(copied[1], ["1.bias", "1.weight"])]


def test_hooks_do_not_keep_a_module_alive() -> None:
    gc.disable()
    try:
        layer = nn.Linear(2, 2)
        layer.register_load_state_dict_pre_hook(nothing)
        seen = weakref.ref(layer)
        del layer
        assert seen() is None
    finally:
        gc.enable()


def test_hooks_after_loading_decide_which_names_are_amiss() -> None:
    layer = nn.Linear(1, 1)
    with layer.register_load_state_dict_post_hook(lambda m, keys: keys.unexpected_keys.clear()):
        layer.load_state_dict({"weight": mg.ones(1, 1), "bias": mg.ones(1), "other": mg.ones(1)})
    with layer.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.append("more")), pytest.raises(RuntimeError, match=r'Missing.*"more"'):
        layer.load_state_dict(layer.state_dict())


def test_the_public_hook_after_saving_returns_nothing() -> None:
    layer = nn.Linear(1, 1)
    layer.register_state_dict_post_hook(lambda m, state, prefix, metadata: state)
    with pytest.raises(RuntimeError, match="must return None"):
        layer.state_dict()


def test_old_arguments_of_state_dict_go_by_place() -> None:
    found: dict[str, Any] = {}
    with pytest.warns(FutureWarning, match="positional"):
        nn.Linear(1, 1).state_dict(found, "layer.")
    assert sorted(found) == ["layer.bias", "layer.weight"]


def test_extra_state_needs_both_sides() -> None:
    class Gives(nn.Module):
        def get_extra_state(self) -> Any:
            return 1

    class Takes(nn.Module):
        def set_extra_state(self, state: Any) -> None:
            self.state = state

    with pytest.raises(RuntimeError, match="Unexpected key"):
        Gives().load_state_dict(Gives().state_dict())
    with pytest.raises(RuntimeError, match="Missing key"):
        Takes().load_state_dict({})
    Takes().load_state_dict(Gives().state_dict())


def test_prefixes_are_taken_off() -> None:
    wrapped = nn.DataParallel(nn.Sequential(nn.BatchNorm1d(2)))
    state = wrapped.state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert "0.weight" in state and state._metadata["0"]["version"] == 2
    wrapped.module.load_state_dict(state)


# ---------------------------------------------------------------------------------------------- loading in a way of its own


class Halved(nn.Linear):
    """Keeps half of its bias, and makes it anew when a state is loaded."""

    half = None

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self.half = self.bias.detach() / 2


@pytest.mark.parametrize("assign", [False, True])
def test_a_class_that_loads_itself_reads_what_was_loaded(assign: bool) -> None:
    model = nn.Sequential(nn.Linear(1, 1), Halved(1, 1))
    model.load_state_dict(model.state_dict() | {"1.bias": mg.tensor([6.])}, assign=assign)
    assert model[1].half == 3


def test_what_a_class_that_loads_itself_has_loaded_is_named_where_the_rest_is_not() -> None:
    model = nn.Sequential(nn.Linear(1, 1), Halved(1, 1))
    before = model[0].bias.detach().clone()
    with pytest.raises(RuntimeError, match=r"size mismatch(.|\n)*nothing was loaded, but into Halved"):
        model.load_state_dict(model.state_dict() | {"0.bias": before + 1, "0.weight": mg.ones(3), "1.bias": mg.tensor([6.])})
    assert model[0].bias == before and model[1].bias == 6 and model[1].half == 3


def test_what_is_assigned_passes_through_the_attributes_of_the_class() -> None:
    seen: list[str] = []

    class Watched(nn.BatchNorm1d):
        def __setattr__(self, name: str, value: Any) -> None:
            seen.append(name)
            super().__setattr__(name, value)

    layer, given = Watched(1), nn.BatchNorm1d(1).state_dict()
    seen.clear()
    layer.load_state_dict(given, assign=True)
    assert set(given) <= set(seen) and layer.running_mean is given["running_mean"]
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.data_ptr() == given["weight"].data_ptr()


def test_a_module_can_be_told_to_load_its_own_part() -> None:
    layer, missing = nn.Linear(1, 1), []
    layer._load_from_state_dict({"a.bias": mg.tensor([6.])}, "a.", {}, True, missing, [], [])
    assert layer.bias == 6 and missing == ["a.weight"]


def test_post_hooks_of_parts_run_before_that_of_the_whole() -> None:
    seen: list[str] = []
    model = nn.Sequential(nn.Sequential(nn.Linear(1, 1)))
    for name, module in model.named_modules():
        module.register_load_state_dict_post_hook(lambda m, keys, name=name: seen.append(name))
    model.load_state_dict(model.state_dict())
    assert seen == ["0.0", "0", ""]
