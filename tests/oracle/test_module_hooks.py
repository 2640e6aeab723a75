"""What modules call, keep and become: further scenarios that either library must tell alike."""
from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest

from .test_module_semantics import check_story, fill, net

torch = pytest.importorskip("torch", reason="make oracle installs it")

pytestmark = pytest.mark.oracle


def always_called(lib: Any) -> Any:
    m, seen = lib.nn.Identity(), []
    m.register_forward_hook(lambda mod, args, out: seen.append(("first", out)), always_call=True)
    m.register_forward_hook(lambda mod, args, out: 1 / 0)  # type: ignore[arg-type, return-value]
    m.register_forward_hook(lambda mod, args, kwargs, out: seen.append(("last", kwargs, out)), always_call=True, with_kwargs=True)
    try:
        m(1)
    except ZeroDivisionError:
        seen.append("raised")  # type: ignore[arg-type]
    return seen


def tables_of_hooks(lib: Any) -> Any:
    m = lib.nn.Linear(2, 2)
    handles = [m.register_forward_hook(print, with_kwargs=True), m.register_forward_pre_hook(print), m.register_full_backward_hook(print)]
    found = [[len(getattr(m, name)) for name in ("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
                                                 "_forward_pre_hooks_with_kwargs", "_backward_hooks")],
             [handle.id in handle.hooks_dict_ref() for handle in handles], next(iter(m._forward_hooks.values())) is print]
    for handle in pickle.loads(pickle.dumps(handles)):
        handle.remove()
    return [*found, len(m._forward_hooks)]


def old_hooks(lib: Any) -> Any:
    m, seen = lib.nn.Sigmoid(), []
    m.register_backward_hook(lambda mod, gi, go: seen.append((gi, go)))
    m(lib.zeros(2, requires_grad=True)).sum().backward()
    return [seen, m._is_full_backward_hook]


def both_kinds(lib: Any) -> Any:
    m = lib.nn.Sigmoid()
    m.register_backward_hook(print)
    m.register_full_backward_hook(print)


def gradient_for_nobody(lib: Any) -> Any:
    m = lib.nn.Linear(2, 2)
    m.register_full_backward_hook(lambda mod, gi, go: lib.ones(1, 2))
    m(lib.ones(1, 2)).sum().backward()


def registrations(lib: Any) -> Any:
    seen: list[Any] = []
    where = lib.nn.modules.module
    handles = [register(lambda mod, name, value: seen.append((type(mod).__name__, name))) for register in (
        where.register_module_parameter_registration_hook, where.register_module_buffer_registration_hook, where.register_module_module_registration_hook)]
    try:
        made = lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.BatchNorm1d(1, affine=False))
        made.other, made[0].weight = lib.nn.ReLU(), lib.nn.Parameter(lib.ones(1, 1))
        made[1].running_mean = lib.ones(1)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def loading_with_hooks(lib: Any) -> Any:
    m, seen = net(lib), []
    m.rest.register_load_state_dict_pre_hook(lambda mod, state, prefix, *rest: seen.append((prefix, sorted(state))))
    m._register_load_state_dict_pre_hook(lambda state, prefix, metadata, *rest: seen.append((prefix, metadata.get("version"))))
    m.register_load_state_dict_post_hook(lambda mod, keys: keys.unexpected_keys.clear())
    answer = m.load_state_dict(net(lib).state_dict() | {"more": lib.ones(1)})
    return [seen, answer.unexpected_keys]


def extra_state_of_one_side(lib: Any) -> Any:
    class Gives(lib.nn.Module):  # type: ignore[misc]
        def get_extra_state(self) -> Any:
            return 1

    return Gives().load_state_dict(Gives().state_dict())


def targets(lib: Any) -> Any:
    m = lib.nn.Linear(1, 1)
    found = []
    for given in (("cpu",), ("cpu", lib.float64), (lib.float32,), (lib.zeros(1).double(), True), ("cpu", None, True), ("cpu", True), (lib.int64,), ([],), (None, True)):
        try:
            found.append(str(m.to(*given).weight.dtype))
        except TypeError:
            found.append("TypeError")
    return found


def submodules(lib: Any) -> Any:
    m = net(lib)
    m.name = "text"
    found = []
    for path, value, strict in (("first", lib.nn.ReLU(), True), ("rest.2", lib.nn.ReLU(), False), ("rest.9", lib.nn.ReLU(), True), ("", lib.nn.ReLU(), False),
                                ("name", lib.nn.ReLU(), False), ("first", 3, False), ("no.where", lib.nn.ReLU(), False)):
        try:
            m.set_submodule(path, value, strict)
            found.append(repr(m))
        except (ValueError, AttributeError) as error:
            found.append([base for base in (ValueError, AttributeError) if isinstance(error, base)][0].__name__)
    return found


def lazy_parameters(lib: Any) -> Any:
    m = lib.nn.LazyLinear(2).double()
    copied = copy.deepcopy(m)
    found = [repr(copied), str(copied.weight.dtype), copied.weight.requires_grad, copied.has_uninitialized_params()]
    for use in (lambda p: p + p, lambda p: p.sum(), lambda p: lib.zeros_like(p)):
        try:
            use(copied.weight)
        except ValueError:
            found.append("refused")
    copied(lib.ones(1, 3).double())
    return [*found, repr(copied), str(copied.weight.dtype)]


def sparse_rows(lib: Any) -> Any:
    words, bags = lib.nn.Embedding(6, 2, padding_idx=0, sparse=True), lib.nn.EmbeddingBag(4, 2, mode="sum", sparse=True)
    fill(lib, words), fill(lib, bags)
    optimizer = lib.optim.SparseAdam([words.weight, bags.weight], lr=0.1)
    for rows in ([1, 2, 2], [3, 0, 1], [5, 5, 5]):
        optimizer.zero_grad()
        ((words(lib.tensor(rows)) + 1) ** 2).sum().add((bags(lib.tensor([[rows[0] % 4, 1]])) ** 3).sum()).backward()
        optimizer.step()
    return [words.weight, bags.weight, words.weight.grad.to_dense()]


def fused(lib: Any) -> Any:
    conv, norm = lib.nn.Conv2d(1, 2, 2), lib.nn.BatchNorm2d(2)
    fill(lib, conv), fill(lib, norm)
    return [*lib.nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval()).state_dict().values()]


def synchronized(lib: Any) -> Any:
    m = lib.nn.SyncBatchNorm.convert_sync_batchnorm(lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.BatchNorm1d(2, eps=0.5))))
    return [repr(m), list(m.state_dict())]


def prefixes(lib: Any) -> Any:
    state = OrderedDict({"module.a": 1, "b": 2, "moduleless": 3})
    state._metadata = OrderedDict({"": 0, "module": 1, "module.a": 2})  # type: ignore[attr-defined]
    lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return [dict(state), dict(state._metadata)]  # type: ignore[attr-defined]


STORIES = [always_called, tables_of_hooks, old_hooks, both_kinds, gradient_for_nobody, registrations, loading_with_hooks, extra_state_of_one_side, targets,
           submodules, lazy_parameters, sparse_rows, fused, synchronized, prefixes]


@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_same_story(story: Any) -> None:
    check_story(story)
