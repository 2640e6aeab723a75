"""nn.Module itself: each scenario is run with either library and must tell the same story.

A scenario is a function of the library that returns plain data, or raises; then the classes of the errors are compared.
"""
from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import mutagrad as mg

from .compare import attempt, stands_for

torch = pytest.importorskip("torch", reason="make oracle installs it")

pytestmark = pytest.mark.oracle

SCENARIOS = []


def scenario(function: Any) -> Any:
    SCENARIOS.append(function)
    return function


def plain(value: Any) -> Any:
    """Numbers, texts and shapes in place of either library's objects."""
    if isinstance(value, (torch.Tensor, mg.Tensor)):
        kind = "Parameter" if isinstance(value, (torch.nn.Parameter, mg.nn.Parameter)) else "Tensor"
        return kind, str(value.dtype).split(".")[-1], tuple(value.shape), value.requires_grad, [round(v, 5) for v in value.detach().double().reshape(-1).tolist()]
    if isinstance(value, (torch.nn.Module, mg.nn.Module)):
        return repr(value).replace("mutagrad.", "torch.")
    if isinstance(value, dict):
        return [(k, plain(v)) for k, v in value.items()]
    if isinstance(value, (tuple, list)) or type(value).__name__ in ("generator", "dict_keys", "dict_values", "dict_items", "odict_keys", "odict_values", "odict_items"):
        return [plain(v) for v in value]
    return value.replace("mutagrad.", "torch.") if isinstance(value, str) else value


def net(lib: Any) -> Any:
    """Two layers with fixed weights, one of them shared."""
    nn = lib.nn

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 3)
            self.rest = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))
            self.again = self.first
            self.register_buffer("seen", lib.zeros(2))
            self.register_buffer("hidden", lib.ones(1), persistent=False)
            self.scale = nn.Parameter(lib.tensor(2.0))

        def forward(self, x: Any, plus: float = 0.0) -> Any:
            return self.rest(self.first(x)) * self.scale + plus

    made = Net()
    fill(lib, made)
    return made


def fill(lib: Any, module: Any) -> None:
    with lib.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(((lib.arange(p.numel(), dtype=lib.float32) * 7 + i) % 5 - 2).reshape(p.shape) / 4)


# ------------------------------------------------------------------------------------------------------------ what it holds

@scenario
def names(lib: Any) -> Any:
    m = net(lib)
    return [m, [n for n, _ in m.named_modules()], [n for n, _ in m.named_modules(remove_duplicate=False)], [n for n, _ in m.named_children()],
            [n for n, _ in m.named_parameters()], [n for n, _ in m.named_parameters(prefix="p", recurse=False)],
            [n for n, _ in m.named_parameters(remove_duplicate=False)], [n for n, _ in m.named_buffers()], list(m.state_dict()),
            len(list(m.modules())), len(list(m.children())), len(list(m.parameters())), len(list(m.buffers()))]


@scenario
def paths(lib: Any) -> Any:
    m = net(lib)
    m.set_submodule("rest.0", lib.nn.Tanh())
    return [m.get_submodule("rest.1"), m.get_submodule(""), m.get_parameter("rest.1.bias"), m.get_buffer("seen"), m]


for target in ("rest.7", "first.weight", "nothing"):
    @scenario
    def no_submodule(lib: Any, target: str = target) -> Any:
        return net(lib).get_submodule(target)

for target in ("first", "first.nothing", "seen"):
    @scenario
    def no_parameter(lib: Any, target: str = target) -> Any:
        return net(lib).get_parameter(target)


# ------------------------------------------------------------------------------------------------------------- attributes

@scenario
def parameter_then_none(lib: Any) -> Any:
    m = net(lib)
    m.scale = None
    return [m.scale, list(m.state_dict()), "scale" in dict(m.named_parameters())]


@scenario
def parameter_then_tensor(lib: Any) -> Any:
    m = net(lib)
    m.scale = lib.ones(1)


@scenario
def module_then_number(lib: Any) -> Any:
    m = net(lib)
    m.first = 5


@scenario
def module_then_none(lib: Any) -> Any:
    m = net(lib)
    m.first = None
    return [m, list(m.state_dict()), [n for n, _ in m.named_modules()]]


@scenario
def module_then_parameter(lib: Any) -> Any:
    m = net(lib)
    m.first = lib.nn.Parameter(lib.ones(1))
    return [m, list(m.state_dict())]


@scenario
def buffer_then_tensor(lib: Any) -> Any:
    m = net(lib)
    m.seen = lib.ones(3)
    m.hidden = None
    return [m.seen, list(m.state_dict()), [n for n, _ in m.named_buffers()]]


@scenario
def buffer_then_number(lib: Any) -> Any:
    net(lib).seen = 3


@scenario
def plain_attribute_then_parameter(lib: Any) -> Any:
    m = net(lib)
    m.extra = 3
    m.extra = lib.nn.Parameter(lib.ones(2))
    return [m.extra, list(m.state_dict())]


@scenario
def buffer_class(lib: Any) -> Any:
    m = lib.nn.Module()
    m.a, m.b = lib.nn.Buffer(lib.ones(1)), lib.nn.Buffer(lib.ones(2), persistent=False)
    m.c = lib.ones(1)
    return [[n for n, _ in m.named_buffers()], list(m.state_dict())]


@scenario
def deleted(lib: Any) -> Any:
    m = net(lib)
    del m.scale, m.seen, m.rest
    return [m, list(m.state_dict()), hasattr(m, "scale")]


@scenario
def delete_nothing(lib: Any) -> Any:
    del net(lib).nothing


@scenario
def missing_attribute(lib: Any) -> Any:
    return net(lib).nothing


@scenario
def listed(lib: Any) -> Any:
    m = net(lib)
    return [name in dir(m) for name in ("scale", "seen", "first", "forward", "0", "nothing")]


def before_init(lib: Any, assign: Any) -> Any:
    class Early(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            assign(self)

    return Early()


@scenario
def early_parameter(lib: Any) -> Any:
    return before_init(lib, lambda self: setattr(self, "a", lib.nn.Parameter(lib.ones(1))))


@scenario
def early_module(lib: Any) -> Any:
    return before_init(lib, lambda self: setattr(self, "a", lib.nn.ReLU()))


@scenario
def early_buffer(lib: Any) -> Any:
    return before_init(lib, lambda self: self.register_buffer("a", lib.ones(1)))


@scenario
def early_number(lib: Any) -> Any:
    class Early(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.a = 3
            super().__init__()

    return Early().a


for name in ("", "a.b", "forward", 3):
    @scenario
    def bad_parameter_name(lib: Any, name: Any = name) -> Any:
        net(lib).register_parameter(name, lib.nn.Parameter(lib.ones(1)))

    @scenario
    def bad_buffer_name(lib: Any, name: Any = name) -> Any:
        net(lib).register_buffer(name, lib.ones(1))

    @scenario
    def bad_module_name(lib: Any, name: Any = name) -> Any:
        net(lib).add_module(name, lib.nn.ReLU())


@scenario
def register_no_parameter(lib: Any) -> Any:
    net(lib).register_parameter("new", lib.ones(1))


@scenario
def register_computed(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(1))
    net(lib).register_parameter("new", p * 2)


@scenario
def register_no_buffer(lib: Any) -> Any:
    net(lib).register_buffer("new", [1.0])


@scenario
def register_no_module(lib: Any) -> Any:
    net(lib).add_module("new", lib.ones(1))


@scenario
def too_many_arguments(lib: Any) -> Any:
    return lib.nn.Sigmoid(3)


# ---------------------------------------------------------------------------------------------------------------- changes

@scenario
def modes(lib: Any) -> Any:
    m = net(lib)
    texts = [m.eval() is m, [c.training for c in m.modules()], [c.training for c in m.train().modules()]]
    m.rest.eval()
    return [texts, [c.training for c in m.modules()]]


@scenario
def train_with_a_number(lib: Any) -> Any:
    net(lib).train("yes")


@scenario
def applied(lib: Any) -> Any:
    seen: list[str] = []
    m = net(lib)
    return [m.apply(lambda c: seen.append(type(c).__name__)) is m, seen]


@scenario
def gradients_and_zero_grad(lib: Any) -> Any:
    m = net(lib)
    m(lib.ones(4, 2)).sum().backward()
    grads = [p.grad for p in m.parameters()]
    m.zero_grad(set_to_none=False)
    zeros = [p.grad for p in m.parameters()]
    m.zero_grad()
    return [grads, zeros, [p.grad for p in m.parameters()]]


@scenario
def frozen(lib: Any) -> Any:
    m = net(lib)
    m.first.requires_grad_(False)
    m(lib.ones(4, 2)).sum().backward()
    return [[p.requires_grad for p in m.parameters()], [p.grad is None for p in m.parameters()]]


@scenario
def converted(lib: Any) -> Any:
    m = net(lib)
    m.register_buffer("count", lib.tensor([1]))
    before = m.first.weight
    m(lib.ones(1, 2)).sum().backward()
    m.to(lib.float64)
    return [before is m.first.weight, dict(m.named_parameters()), dict(m.named_buffers()), m.first.weight.grad, m.double().float().half().scale.dtype.is_floating_point,
            str(m.to("cpu").scale.dtype).split(".")[-1], m.bfloat16().count]


@scenario
def memory_format(lib: Any) -> Any:
    m = lib.nn.Sequential(lib.nn.Conv2d(2, 3, 2), lib.nn.Linear(2, 2)).to(memory_format=lib.channels_last)
    return [m[0].weight.shape, m[0].weight.is_leaf, m[1].weight.shape, m[0](lib.ones(1, 2, 4, 4)).shape]


@scenario
def tied_weights(lib: Any) -> Any:
    m = lib.nn.Module()
    m.words, m.out = lib.nn.Embedding(5, 3), lib.nn.Linear(3, 5, bias=False)
    m.out.weight = m.words.weight
    fill(lib, m)
    m.out(m.words(lib.tensor([1, 2]))).sum().backward()
    m.to(lib.float64)
    return [len(list(m.parameters())), list(m.state_dict()), m.out.weight is m.words.weight, m.words.weight.grad]


@scenario
def weights_overwritten(lib: Any) -> Any:
    m = lib.nn.Linear(2, 2)
    m.weight.data = lib.ones(2, 2) * 3
    m.weight.data.mul_(2)
    m.bias.data.zero_()
    with lib.no_grad():
        m.weight[0] = 5.0
    return [m(lib.ones(1, 2)), m.weight]


@scenario
def converted_to_integers(lib: Any) -> Any:
    net(lib).to(lib.int64)


@scenario
def copies(lib: Any) -> Any:
    m = net(lib)
    m(lib.ones(1, 2)).sum().backward()
    other = copy.deepcopy(m)
    with lib.no_grad():
        m.scale.fill_(9)
    return [dict(other.named_parameters()), other.first is other.again, other.first.weight is m.first.weight, other.scale.grad, dict(other.named_buffers()),
            list(other.state_dict())]


@scenario
def shallow_copy(lib: Any) -> Any:
    m = lib.nn.Linear(2, 2)
    other = copy.copy(m)
    other.bias = None
    return [other.weight is m.weight, m.bias is None]


@scenario
def pickled(lib: Any) -> Any:
    m = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3), lib.nn.ReLU())
    fill(lib, m)
    other = pickle.loads(pickle.dumps(m))
    return [other, dict(other.state_dict()), other(lib.ones(2, 2))]


# ------------------------------------------------------------------------------------------------------------------ hooks

@scenario
def forward_hooks(lib: Any) -> Any:
    m, seen = net(lib), []
    m.register_forward_pre_hook(lambda mod, args: seen.append(("pre", len(args))))
    m.register_forward_pre_hook(lambda mod, args: (args[0] + 1,), prepend=True)
    handle = m.register_forward_hook(lambda mod, args, out: seen.append(("after", args[0], out)))
    m.register_forward_hook(lambda mod, args, out: out * 2)
    with m.register_forward_hook(lambda mod, args, out: out + 1, prepend=True):
        first = m(lib.ones(1, 2))
    handle.remove()
    handle.remove()
    return [first, m(lib.ones(1, 2)), seen]


@scenario
def forward_hooks_with_kwargs(lib: Any) -> Any:
    m, seen = net(lib), []
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"plus": kwargs["plus"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, kwargs, out: seen.append(sorted(kwargs.items())), with_kwargs=True)
    return [m(lib.ones(1, 2), plus=5.0), seen]


@scenario
def pre_hook_single_value(lib: Any) -> Any:
    m = net(lib)
    m.register_forward_pre_hook(lambda mod, args: args[0] * 3)
    return m(lib.ones(1, 2))


@scenario
def pre_hook_with_kwargs_bad_answer(lib: Any) -> Any:
    m = net(lib)
    m.register_forward_pre_hook(lambda mod, args, kwargs: args, with_kwargs=True)
    return m(lib.ones(1, 2))


@scenario
def always_called(lib: Any) -> Any:
    m, seen = net(lib), []
    m.register_forward_hook(lambda mod, args, out: seen.append(out is None), always_call=True)
    m.register_forward_hook(lambda mod, args, out: seen.append("not"))
    try:
        m(lib.ones(1, 7))
    except RuntimeError:
        seen.append("raised")
    return seen


def backward_story(lib: Any, x_needs: bool, change: bool) -> Any:
    m, seen = net(lib), []

    def watch(name: str) -> Any:
        return lambda mod, *grads: seen.append((name, grads))

    m.register_full_backward_hook(watch("whole"))
    m.first.register_full_backward_hook(watch("first"))
    m.rest.register_full_backward_pre_hook(watch("rest before"))
    m.rest[1].register_full_backward_hook(watch("last"))
    if change:
        m.rest.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 2,))
        m.rest[1].register_full_backward_pre_hook(lambda mod, go: (go[0] * 3,))
    x = lib.ones(1, 2).requires_grad_(x_needs)
    m(x).sum().backward()
    return [seen, x.grad, [p.grad for p in m.parameters()]]


@scenario
def backward_hooks(lib: Any) -> Any:
    return backward_story(lib, True, False)


@scenario
def backward_hooks_of_constants(lib: Any) -> Any:
    return backward_story(lib, False, False)


@scenario
def backward_hooks_that_change(lib: Any) -> Any:
    return backward_story(lib, True, True)


@scenario
def backward_hook_prepended(lib: Any) -> Any:
    m, seen = lib.nn.Linear(2, 2), []
    m.register_full_backward_hook(lambda *a: seen.append(1))
    m.register_full_backward_hook(lambda *a: seen.append(2), prepend=True)
    m.register_full_backward_pre_hook(lambda *a: seen.append(3))
    m.register_full_backward_pre_hook(lambda *a: seen.append(4), prepend=True)
    m(lib.ones(2)).sum().backward()
    return seen


@scenario
def backward_hook_two_inputs(lib: Any) -> Any:
    m, seen = lib.nn.Bilinear(2, 2, 1), []
    fill(lib, m)
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go)))
    a, b = lib.ones(1, 2).requires_grad_(), lib.ones(1, 2)
    m(a, b).sum().backward()
    return [seen, a.grad]


@scenario
def backward_hook_wrong_count(lib: Any) -> Any:
    m = lib.nn.Linear(2, 2)
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    m(lib.ones(1, 2).requires_grad_()).sum().backward()


@scenario
def hooks_of_all_modules(lib: Any) -> Any:
    m, seen = net(lib), []
    where = lib.nn.modules.module
    handles = [where.register_module_forward_pre_hook(lambda mod, args: seen.append(("pre", type(mod).__name__))),
               where.register_module_forward_hook(lambda mod, args, out: seen.append(("after", type(mod).__name__))),
               where.register_module_full_backward_hook(lambda mod, gi, go: seen.append(("backward", type(mod).__name__)))]
    try:
        m(lib.ones(1, 2).requires_grad_()).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    m(lib.ones(1, 2))
    return seen


@scenario
def hook_on_a_copy(lib: Any) -> Any:
    m, seen = lib.nn.ReLU(), []
    m.register_forward_hook(lambda mod, args, out: seen.append(1))
    copy.deepcopy(m)(lib.ones(1))
    return len(seen)


@scenario
def no_forward(lib: Any) -> Any:
    return lib.nn.Module()(lib.ones(1))


# ------------------------------------------------------------------------------------------------------------------ state

@scenario
def round_trip(lib: Any) -> Any:
    m, other = net(lib), net(lib)
    with lib.no_grad():
        for v in other.state_dict().values():
            v.fill_(3)
    answer = other.load_state_dict(m.state_dict())
    return [repr(answer), answer.missing_keys, dict(other.state_dict()), [v.requires_grad for v in m.state_dict(keep_vars=True).values()],
            m.state_dict(prefix="net.").keys()]


def loaded(lib: Any, change: Any, **settings: Any) -> Any:
    m, state = net(lib), OrderedDict(net(lib).state_dict())
    change(state)
    answer = m.load_state_dict(state, **settings)
    return [answer.missing_keys, answer.unexpected_keys, dict(m.state_dict())]


@scenario
def missing_key(lib: Any) -> Any:
    return loaded(lib, lambda s: s.pop("scale"))


@scenario
def unexpected_key(lib: Any) -> Any:
    return loaded(lib, lambda s: s.update({"new.a": lib.ones(1)}))


@scenario
def not_strict(lib: Any) -> Any:
    return loaded(lib, lambda s: (s.pop("scale"), s.pop("rest.1.bias"), s.update({"new.a": lib.ones(1), "first.new": lib.ones(1), "first.weight.x": lib.ones(1)})), strict=False)


@scenario
def wrong_shape(lib: Any) -> Any:
    return loaded(lib, lambda s: s.update({"scale": lib.ones(3)}), strict=False)


@scenario
def scalar_from_one_element(lib: Any) -> Any:
    return loaded(lib, lambda s: s.update({"scale": lib.ones(1)}))


@scenario
def other_type(lib: Any) -> Any:
    return loaded(lib, lambda s: s.update({"scale": lib.tensor(7)}))


@scenario
def no_tensor(lib: Any) -> Any:
    return loaded(lib, lambda s: s.update({"scale": 3.0}))


@scenario
def no_dict(lib: Any) -> Any:
    net(lib).load_state_dict([1, 2])


@scenario
def assigned(lib: Any) -> Any:
    m = net(lib)
    state = {k: v.double() for k, v in net(lib).state_dict().items()}
    m.load_state_dict(state, assign=True)
    return [dict(m.state_dict()), isinstance(m.scale, lib.nn.Parameter), m.first.weight is m.again.weight, m.scale.requires_grad]


@scenario
def assigned_frozen(lib: Any) -> Any:
    m = net(lib).requires_grad_(False)
    m.load_state_dict(net(lib).state_dict(), assign=True)
    return [p.requires_grad for p in m.parameters()]


@scenario
def extra_state(lib: Any) -> Any:
    class Extra(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.note = "new"

        def get_extra_state(self) -> Any:
            return {"note": self.note}

        def set_extra_state(self, state: Any) -> None:
            self.note = state["note"]

    a, b = lib.nn.Sequential(Extra()), lib.nn.Sequential(Extra())
    a[0].note = "old"
    b.load_state_dict(a.state_dict())
    missing = b.load_state_dict({}, strict=False)
    unexpected = lib.nn.Sequential(lib.nn.ReLU()).load_state_dict(a.state_dict(), strict=False)
    return [b[0].note, list(a.state_dict()), missing.missing_keys, unexpected.unexpected_keys]


@scenario
def state_hooks(lib: Any) -> Any:
    m, seen = net(lib), []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: seen.append(("pre", prefix, keep)))
    m.register_state_dict_post_hook(lambda mod, state, prefix, meta: state.update({"added": 1}))
    m.register_load_state_dict_pre_hook(lambda mod, state, prefix, *rest: (seen.append((type(mod).__name__, prefix)), state.pop("added"))[:0] or None)
    m.register_load_state_dict_post_hook(lambda mod, keys: seen.append(list(keys.missing_keys)))
    state = m.state_dict()
    m.load_state_dict(state)
    return [list(state), seen]


@scenario
def metadata(lib: Any) -> Any:
    m = lib.nn.Sequential(lib.nn.BatchNorm1d(2), lib.nn.Linear(2, 2))
    return [(k, dict(v)) for k, v in m.state_dict()._metadata.items()]


@scenario
def old_batch_norm(lib: Any) -> Any:
    m = lib.nn.BatchNorm1d(2)
    m(lib.tensor([[1.0, 2.0], [3.0, 5.0]]))
    state = OrderedDict(m.state_dict())
    del state["num_batches_tracked"]
    other = lib.nn.BatchNorm1d(2)
    other.load_state_dict(state)
    return dict(other.state_dict())


# ------------------------------------------------------------------------------------------------------------- containers

@scenario
def sequential(lib: Any) -> Any:
    nn = lib.nn
    s = nn.Sequential(OrderedDict([("a", nn.ReLU()), ("b", nn.Tanh())]))
    t = nn.Sequential(nn.ReLU(), nn.Linear(2, 2), nn.Tanh())
    t[1] = nn.GELU()
    t.append(nn.Mish()).insert(0, nn.ELU())
    t.extend([nn.SiLU()])
    popped = t.pop(-1)
    del t[0]
    return [s, s.a, s[-1], len(s), s[:1], t, t[1:], popped, s + t, nn.Sequential(nn.ReLU()) * 3, [type(m).__name__ for m in t], nn.Sequential()]


@scenario
def sequential_of_something(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.ReLU(), 5)


@scenario
def sequential_out_of_range(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.ReLU())[3]


@scenario
def sequential_named_deleted(lib: Any) -> Any:
    nn = lib.nn
    s = nn.Sequential(OrderedDict([("a", nn.ReLU()), ("b", nn.Tanh())]))
    del s[0]
    return s


@scenario
def sequential_in_place(lib: Any) -> Any:
    nn = lib.nn
    s = nn.Sequential(nn.ReLU())
    s += nn.Sequential(nn.Tanh())
    s *= 2
    return s


@scenario
def module_list(lib: Any) -> Any:
    nn = lib.nn
    m = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])
    m.append(nn.GELU())
    m += [nn.ELU()]
    m.insert(1, nn.Mish())
    m[0] = nn.SiLU()
    del m[-1]
    return [m, len(m), m[1:3], m + nn.ModuleList([nn.Tanh()]), m.pop(0), nn.Tanh in [type(c) for c in m], list(nn.ModuleList([nn.Linear(1, 1)]).state_dict())]


@scenario
def module_list_of_something(lib: Any) -> Any:
    return lib.nn.ModuleList([lib.ones(1)])


@scenario
def module_list_called(lib: Any) -> Any:
    return lib.nn.ModuleList([lib.nn.ReLU()])(lib.ones(1))


@scenario
def module_dict(lib: Any) -> Any:
    nn = lib.nn
    m = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    m["c"] = nn.GELU()
    m.update([["d", nn.ELU()]])
    popped = m.pop("a")
    del m["b"]
    return [m, popped, len(m), "c" in m, list(m), list(m.keys()), m.values(), m["d"]]


@scenario
def module_dict_missing(lib: Any) -> Any:
    return lib.nn.ModuleDict()["a"]


@scenario
def module_dict_taken_name(lib: Any) -> Any:
    return lib.nn.ModuleDict({"keys": lib.nn.ReLU()})


@scenario
def module_dict_of_something(lib: Any) -> Any:
    return lib.nn.ModuleDict(5)


@scenario
def parameter_list(lib: Any) -> Any:
    nn = lib.nn
    p = nn.ParameterList([nn.Parameter(lib.ones(2)), lib.zeros(1, 2), "text"])
    p.append(lib.ones(1))
    p += [lib.ones(3)]
    p[0] = lib.zeros(2)
    return [p, len(p), p[-1], p[1:3], list(p.state_dict()), list(p.parameters()), len(p)]


@scenario
def parameter_list_out_of_range(lib: Any) -> Any:
    return lib.nn.ParameterList([lib.ones(1)])[2]


@scenario
def parameter_list_of_a_tensor(lib: Any) -> Any:
    return lib.nn.ParameterList().extend(lib.ones(2))


@scenario
def parameter_dict(lib: Any) -> Any:
    nn = lib.nn
    p = nn.ParameterDict({"a": lib.ones(2), "b": 5})
    p["c"] = nn.Parameter(lib.zeros(1))
    p.update({"d": lib.ones(1)})
    return [repr(p), len(p), "a" in p, list(p), p["a"], p.get("x"), p.setdefault("e", lib.ones(1)), p.pop("b"), p.popitem(), list(p.state_dict()), list(p.keys()),
            p.copy().keys(), (p | nn.ParameterDict({"z": lib.ones(1)})).keys(), p.fromkeys(["q"], lib.ones(1)).keys(), list(reversed(p)), p.items()]


@scenario
def parameter_dict_missing(lib: Any) -> Any:
    return lib.nn.ParameterDict()["a"]


@scenario
def parameters(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2), requires_grad=False)
    q = copy.deepcopy(lib.nn.Parameter(lib.ones(2)))
    return [p, q, repr(q), lib.nn.Parameter(), p + 1, p.data, pickle.loads(pickle.dumps(q)), q.clone(), isinstance(q, lib.Tensor), type(q.detach()).__name__,
            type(q * 1).__name__]


@scenario
def integer_parameter(lib: Any) -> Any:
    return lib.nn.Parameter(lib.tensor([1]))


@pytest.mark.parametrize("story", SCENARIOS, ids=[f"{i}-{s.__name__}" for i, s in enumerate(SCENARIOS)])
def test_same_story(story: Any) -> None:
    check_story(story)


def check_story(story: Any) -> None:
    """Both libraries give the same, or refuse alike."""
    expected, refused = attempt(lambda: plain(story(torch)), quiet=True)
    found, error = attempt(lambda: plain(story(mg)))
    if refused is not None:
        assert error is not None and stands_for(refused, error), f"{error!r}, not {refused!r}"
        return
    if error is not None:
        raise error
    assert found == expected
