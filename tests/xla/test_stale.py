"""Python's part of a step changes between two calls, in every way that Python knows: the program must not be stale."""
from __future__ import annotations

import collections
import contextvars
import dataclasses
import enum
import functools
import gc
import io
import itertools
import math
import operator
import os
import queue
import random
import sys
import time
import types
import weakref
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn

pytest.importorskip("jax")

Change = Callable[[], Any]
CHANGES: list[Callable[[], tuple[Callable[..., Any], Change]]] = []
ADVANCES: list[Callable[[], Callable[..., Any]]] = []
NUMBER = 2.0


def change(case: Callable[[], tuple[Callable[..., Any], Change]]) -> Any:
    """A case gives a step of one tensor, and what changes it between two calls."""
    CHANGES.append(case)
    return case


def advance(case: Callable[[], Callable[..., Any]]) -> Any:
    """A case gives a step that changes Python's state in each call."""
    ADVANCES.append(case)
    return case


@pytest.mark.parametrize("case", CHANGES, ids=lambda f: f.__name__)
def test_what_changes_between_two_calls_is_noticed(case: Callable[[], tuple[Callable[..., Any], Change]]) -> None:
    found = []
    for compiled in (False, True):
        step, changes = case()
        step = mg.compile(step) if compiled else step
        before = [step(mg.ones(1)).item() for _ in range(2)]
        if compiled:
            assert len(step.retraces) == 1
        changes()
        found.append([*before, step(mg.ones(1)).item()])
    assert found[0] == found[1] and found[0][0] != found[0][2]


@pytest.mark.parametrize(("owner", "name", "other"), [
    (nn.functional, "relu", lambda x: x * 5), (mg.Tensor, "tanh", lambda x: x * 7), (math, "tau", 3.0)])
def test_what_is_exchanged_in_a_library_is_noticed(owner: Any, name: str, other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(x: Any) -> Any:
        return nn.functional.relu(x) * math.tau + x.tanh()

    compiled, x = mg.compile(step), mg.ones(1)
    before = compiled(x).item(), compiled(x).item()
    assert len(compiled.retraces) == 1
    monkeypatch.setattr(owner, name, other)
    assert compiled(x).item() == pytest.approx(step(x).item()) != before[0]


def test_the_precision_of_products_is_part_of_a_program() -> None:
    step, x = mg.compile(lambda x: x @ x), mg.ones(2, 2)
    try:
        for precision in ("highest", "high", "highest", "medium"):
            mg.set_float32_matmul_precision(precision)
            assert step(x).tolist() == [[2, 2], [2, 2]]
    finally:
        mg.set_float32_matmul_precision("highest")
    assert len(step.retraces) == 3


def test_what_is_frozen_is_not_taken_for_new() -> None:
    numbers = [[2.0]]
    compiled = mg.compile(lambda x: x * numbers[0][0])
    gc.freeze()
    try:
        assert compiled(mg.ones(1)).item() == 2
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
    numbers[0][0] = 3.0
    assert compiled(mg.ones(1)).item() == 3


@pytest.mark.parametrize("case", ADVANCES, ids=lambda f: f.__name__)
def test_what_a_step_advances_is_never_the_same_again(case: Callable[[], Callable[..., Any]]) -> None:
    step = case()
    expected = [step(mg.ones(1)).item() for _ in range(3)]
    step = mg.compile(case())
    assert [step(mg.ones(1)).item() for _ in range(2)] == expected[:2]
    with pytest.raises(NotImplementedError, match="changes Python's state"):
        step(mg.ones(1))


class Holder:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def setting(owner: Any, name: str, value: Any = 3.0) -> Change:
    return lambda: setattr(owner, name, value)


# -------------------------------------------------------------------------------------------------------------- classes

@change
def a_method() -> Any:
    class Helper:
        def scale(self, x: Any) -> Any:
            return x * 2

    helper = Helper()
    return lambda x: helper.scale(x), setting(Helper, "scale", lambda self, x: x * 3)


@change
def a_method_that_is_overridden_later() -> Any:
    class Base:
        def scale(self, x: Any) -> Any:
            return x * 2

    class Helper(Base):
        pass

    helper = Helper()
    return lambda x: helper.scale(x), setting(Helper, "scale", lambda self, x: x * 3)


@change
def a_method_of_one_object() -> Any:
    class Helper:
        def scale(self, x: Any) -> Any:
            return x * 2

    helper = Helper()
    return lambda x: helper.scale(x), setting(helper, "scale", lambda x: x * 3)


@change
def a_forward() -> Any:
    class Model(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    model = Model()
    return lambda x: model(x), setting(Model, "forward", lambda self, x: x * 3)


@change
def a_helper_of_a_module() -> Any:
    class Model(nn.Module):
        def scale(self, x: Any) -> Any:
            return x * 2

        def forward(self, x: Any) -> Any:
            return self.scale(x)

    model = Model()
    return lambda x: model(x), setting(Model, "scale", lambda self, x: x * 3)


@change
def a_class_attribute_of_a_module() -> Any:
    class Model(nn.Module):
        k = 2.0

        def forward(self, x: Any) -> Any:
            return x * self.k

    model = Model()
    return lambda x: model(x), setting(Model, "k")


@change
def a_private_list_of_a_module() -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self._k = [2.0]

        def forward(self, x: Any) -> Any:
            return x * self._k[0]

    model = Model()
    return lambda x: model(x), lambda: model._k.__setitem__(0, 3.0)


@change
def a_static_method() -> Any:
    class Helper:
        @staticmethod
        def scale(x: Any) -> Any:
            return x * 2

    return lambda x: Helper.scale(x), setting(Helper, "scale", staticmethod(lambda x: x * 3))


@change
def a_property() -> Any:
    class Helper:
        @property
        def k(self) -> float:
            return 2.0

    helper = Helper()
    return lambda x: x * helper.k, setting(Helper, "k", property(lambda self: 3.0))


@change
def a_special_method() -> Any:
    class Helper:
        def __getitem__(self, i: int) -> float:
            return 2.0

    helper = Helper()
    return lambda x: x * helper[0], setting(Helper, "__getitem__", lambda self, i: 3.0)


@change
def the_class_of_an_object() -> Any:
    class A:
        def f(self, x: Any) -> Any:
            return x * 2

    class B:
        def f(self, x: Any) -> Any:
            return x * 3

    a = A()
    return lambda x: a.f(x), setting(a, "__class__", B)


@change
def an_attribute_of_a_metaclass() -> Any:
    class Meta(type):
        k = 2.0

    class A(metaclass=Meta):
        pass

    return lambda x: x * A.k, setting(Meta, "k")


@change
def a_field_of_a_dataclass() -> Any:
    @dataclasses.dataclass
    class Settings:
        k: float = 2.0

    settings = Settings()
    return lambda x: x * sum(dataclasses.asdict(settings).values()), setting(settings, "k")


@change
def a_member_of_an_enum() -> Any:
    class Kind(enum.Enum):
        A, B = 2.0, 3.0

    holder = Holder(kind=Kind.A)
    return lambda x: x * holder.kind.value, setting(holder, "kind", Kind.B)


# --------------------------------------------------------------------------------------------- attributes not there yet

@change
def an_attribute_that_appears() -> Any:
    class Model:
        def step(self, x: Any) -> Any:
            return x * self.cache if hasattr(self, "cache") else x  # type: ignore[attr-defined]

    model = Model()
    return model.step, setting(model, "cache")


@change
def an_attribute_that_appears_on_the_class() -> Any:
    class Model:
        def step(self, x: Any) -> Any:
            return x * self.cache if hasattr(self, "cache") else x  # type: ignore[attr-defined]

    return Model().step, setting(Model, "cache")


@change
def a_default_of_getattr() -> Any:
    holder = Holder(inner=Holder())
    return lambda x: x * getattr(holder.inner, "k", 2.0), setting(holder.inner, "k")


@change
def a_computed_name() -> Any:
    holder = Holder(k0=2.0)

    def step(x: Any) -> Any:
        i = 0
        while hasattr(holder, "k" + str(i)):
            x, i = x * getattr(holder, f"k{i}"), i + 1
        return x

    return step, setting(holder, "k1")


@change
def a_name_in_a_variable() -> Any:
    holder, names = Holder(), ["a", "b"]

    def step(x: Any) -> Any:
        for name in names:
            x = x * getattr(holder, name, 1.0)
        return x

    return step, setting(holder, "b")


@change
def an_attribute_that_is_tried() -> Any:
    holder = Holder()

    def step(x: Any) -> Any:
        try:
            return x * holder.k
        except AttributeError:
            return x

    return step, setting(holder, "k")


@change
def an_attribute_of_a_function() -> Any:
    def helper(x: Any) -> Any:
        return x

    return lambda x: helper(x) * getattr(helper, "k", 2.0), setting(helper, "k")


@change
def all_attributes() -> Any:
    holder = Holder(a=2.0)
    return lambda x: x * sum(vars(holder).values()), setting(holder, "a")


@change
def a_slot() -> Any:
    class Slotted:
        __slots__ = ("k",)

    slotted = Slotted()
    return lambda x: x * getattr(slotted, "k", 2.0), setting(slotted, "k")


@change
def an_attribute_of_a_tensor() -> Any:
    w = mg.ones(1)
    w.scale = 2.0
    return lambda x: x * w * w.scale, setting(w, "scale")


@change
def an_attribute_of_an_optimizer() -> Any:
    optimizer = mg.optim.SGD([mg.ones(1).requires_grad_()], lr=0.1)
    optimizer.scale = 2.0  # type: ignore[attr-defined]
    return lambda x: x * optimizer.scale, setting(optimizer, "scale")  # type: ignore[attr-defined]


@change
def a_learning_rate_that_the_step_reads_itself() -> Any:
    optimizer = mg.optim.SGD([mg.ones(1).requires_grad_()], lr=2.0)
    return lambda x: x * optimizer.param_groups[0]["lr"], lambda: optimizer.param_groups[0].update(lr=3.0)


@change
def a_learning_rate_of_an_optimizer_of_the_users_own() -> Any:
    class Plain(mg.optim.Optimizer):
        def step(self, closure: Any = None) -> Any:
            with mg.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.copy_(-p.grad * group["lr"])

    w = mg.ones(1).requires_grad_()
    optimizer = Plain([w], {"lr": 2.0})

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return w.detach().clone()

    return step, lambda: optimizer.param_groups[0].update(lr=3.0)


def _own(settings: dict[str, Any], factor: Callable[[dict[str, Any], dict[str, Any]], float]) -> tuple[Any, Any, Any]:
    """A step of an optimizer of the user's own, the optimizer and its parameter."""
    class Plain(mg.optim.Optimizer):
        def step(self, closure: Any = None) -> Any:
            with mg.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.copy_(-p.grad * factor(group, self.state[p]))

    w = mg.ones(1).requires_grad_()
    optimizer = Plain([w], settings)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return w.detach().clone()

    return step, optimizer, w


@change
def several_numbers_of_an_optimizer_of_the_users_own() -> Any:
    step, optimizer, _ = _own({"betas": (2.0, 1.0)}, lambda group, state: group["betas"][0])
    return step, lambda: optimizer.param_groups[0].update(betas=(3.0, 1.0))


@change
def containers_of_an_optimizer_of_the_users_own() -> Any:
    step, optimizer, _ = _own({"scales": {"a": [2.0]}}, lambda group, state: group["scales"]["a"][0])
    return step, lambda: optimizer.param_groups[0]["scales"]["a"].__setitem__(0, 3.0)


@change
def state_of_an_optimizer_of_the_users_own() -> Any:
    step, optimizer, w = _own({}, lambda group, state: state.get("k", 2.0))
    return step, lambda: optimizer.state[w].update(k=3.0)


def _descent(hooked: Callable[[Any], Any]) -> tuple[Callable[..., Any], Change]:
    w = mg.ones(1).requires_grad_()
    optimizer = mg.optim.SGD([w], lr=1.0)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return w.detach().clone().sign()

    return step, lambda: hooked(optimizer)(lambda optimizer, arguments, settings: w.data.fill_(7.0).requires_grad or None)


@change
def a_hook_before_the_steps_of_an_optimizer() -> Any:
    return _descent(lambda optimizer: optimizer.register_step_pre_hook)


@change
def a_hook_after_the_steps_of_an_optimizer() -> Any:
    return _descent(lambda optimizer: optimizer.register_step_post_hook)


# ---------------------------------------------------------------------------------------------------- names and modules

@change
def an_environment_variable() -> Any:
    os.environ["MUTAGRAD_TEST"] = "2"
    return lambda x: x * float(os.environ["MUTAGRAD_TEST"]), lambda: os.environ.update(MUTAGRAD_TEST="3")


@change
def an_environment_variable_that_appears() -> Any:
    os.environ.pop("MUTAGRAD_TEST", None)
    return lambda x: x * float(os.getenv("MUTAGRAD_TEST", "2")), lambda: os.environ.update(MUTAGRAD_TEST="3")


@change
def a_global_by_its_name() -> Any:
    globals()["NUMBER"] = 2.0
    return lambda x: x * globals()["NUMBER"], lambda: globals().update(NUMBER=3.0)


@change
def a_global_that_is_asked_for_by_its_name_and_appears() -> Any:
    globals().pop("NOT_THERE", None)
    return lambda x: x * globals().get("NOT_THERE", 2.0), lambda: globals().update(NOT_THERE=3.0)


@change
def a_builtin_that_is_hidden() -> Any:
    globals().pop("abs", None)
    return lambda x: x * abs(-2.0), lambda: globals().update(abs=lambda v: 3.0)


@change
def a_module_imported_inside() -> Any:
    module: Any = types.ModuleType("settings_of_a_test")
    module.k = 2.0
    sys.modules["settings_of_a_test"] = module

    def step(x: Any) -> Any:
        from settings_of_a_test import k
        return x * k

    return step, setting(module, "k")


class Times(nn.Module):
    def __init__(self, k: float, plus: float = 0.0) -> None:
        super().__init__()
        self.k, self.plus = k, plus

    def forward(self, x: Any) -> Any:
        return x * self.k + self.plus


@change
def a_module_taken_out_of_a_sequence() -> Any:
    model = nn.Sequential(Times(2.0), Times(3.0))
    return lambda x: model(x), lambda: model.pop(0)


@change
def a_module_put_into_a_sequence() -> Any:
    model = nn.Sequential(Times(2.0))
    return lambda x: model(x), lambda: model.insert(0, Times(3.0))


@change
def a_module_taken_out_of_a_list() -> Any:
    layers = nn.ModuleList([Times(2.0), Times(3.0)])
    return lambda x: functools.reduce(lambda x, layer: layer(x), layers, x), lambda: layers.__delitem__(slice(1, None))


@change
def the_order_of_modules() -> Any:
    layers = nn.ModuleDict({"a": Times(2.0, 1.0), "b": Times(3.0)})
    return lambda x: functools.reduce(lambda x, layer: layer(x), layers.values(), x), lambda: layers.update({"a": layers.pop("a")})


# ----------------------------------------------------------------------------------------------------------- containers

@change
def keywords_of_a_partial() -> Any:
    partial = functools.partial(lambda x, k: x * k, k=2.0)
    return partial, lambda: partial.keywords.update(k=3.0)


@change
def the_order_of_a_dict() -> Any:
    table = {"a": 2.0, "b": 3.0}
    return lambda x: x * next(iter(table.values())), lambda: table.update(a=table.pop("a"))


@change
def a_chain_of_dicts() -> Any:
    table = {"a": 2.0}
    chain = collections.ChainMap(table)
    return lambda x: x * chain["a"], lambda: table.update(a=3.0)


@change
def a_proxy_of_a_dict() -> Any:
    table = {"a": 2.0}
    proxy = types.MappingProxyType(table)
    return lambda x: x * proxy["a"], lambda: table.update(a=3.0)


@change
def an_attribute_of_a_class_of_dicts() -> Any:
    class Table(dict[str, float]):
        k = 2.0

        def __missing__(self, key: str) -> float:
            return self.k

    table = Table()
    return lambda x: x * table["a"], setting(Table, "k")


@change
def an_attribute_of_a_list() -> Any:
    class Numbers(list[float]):
        k = 2.0

        def total(self) -> float:
            return sum(self) * self.k

    numbers = Numbers([1.0])
    return lambda x: x * numbers.total(), setting(numbers, "k")


@change
def a_function_for_each_class() -> Any:
    @functools.singledispatch
    def scaled(x: Any) -> Any:
        return x * 2

    return lambda x: scaled(x), lambda: scaled.register(mg.Tensor)(lambda x: x * 3)


@change
def an_array_of_pythons() -> Any:
    values = array("d", [2.0])
    return lambda x: x * values[0], lambda: values.__setitem__(0, 3.0)


@change
def bytes_that_change() -> Any:
    values = bytearray(b"\2")
    return lambda x: x * values[0], lambda: values.__setitem__(0, 3)


@change
def an_array_of_objects() -> Any:
    values = np.array([2.0], dtype=object)
    return lambda x: x * values[0], lambda: values.__setitem__(0, 3.0)


@change
def a_context_variable() -> Any:
    variable = contextvars.ContextVar("variable", default=2.0)
    return lambda x: x * variable.get(), lambda: variable.set(3.0)


@change
def a_weak_reference() -> Any:
    holder = Holder(k=2.0)
    reference, keep = weakref.ref(holder), [holder]
    return lambda x: x * reference().k, lambda: setattr(keep[0], "k", 3.0)


@change
def an_attribute_getter() -> Any:
    holder, getter = Holder(a=Holder(b=2.0)), operator.attrgetter("a.b")
    return lambda x: x * getter(holder), setting(holder.a, "b")


@change
def a_cached_function() -> Any:
    holder = Holder(k=2.0)

    @functools.lru_cache
    def number() -> float:
        return holder.k  # type: ignore[attr-defined, no-any-return]

    def changes() -> None:
        holder.k = 3.0  # type: ignore[attr-defined]
        number.cache_clear()

    number()
    return lambda x: x * number(), changes


@change
def deep_in_a_list() -> Any:
    last = Holder(k=2.0, next=None)
    first = last
    for _ in range(30):
        first = Holder(k=1.0, next=first)

    def step(x: Any) -> Any:
        node: Any = first
        while node is not None:
            x, node = x * node.k, node.next
        return x

    return step, setting(last, "k")


def test_a_cached_property_is_computed_once() -> None:
    class Model:
        @functools.cached_property
        def k(self) -> float:
            return 2.0

    model = Model()
    step = mg.compile(lambda x: x * model.k)
    assert [step(mg.ones(1)).item() for _ in range(3)] == [2, 2, 2] and len(step.retraces) == 2
    model.__dict__["k"] = 3.0
    assert step(mg.ones(1)).item() == 3


# ------------------------------------------------------------------------------------------- what is advanced by its use

def _numbers() -> Iterator[float]:
    k = 0.0
    while True:
        k += 1
        yield k


def _first(iterator: Iterator[Any]) -> Any:
    for value in iterator:
        return value


@advance
def a_generator() -> Any:
    numbers = _numbers()
    return lambda x: x * next(numbers)


@advance
def a_generator_in_a_for() -> Any:
    numbers = _numbers()
    return lambda x: x * _first(numbers)


@advance
def a_generator_deep_inside() -> Any:
    holder = Holder(tables=[{"numbers": _numbers()}])
    return lambda x: x * next(holder.tables[0]["numbers"])


@advance
def an_iterator() -> Any:
    numbers = iter([1.0, 2.0, 3.0])
    return lambda x: x * _first(numbers)


@advance
def iterators_of_iterators() -> Any:
    numbers = zip(itertools.count(1), enumerate([4.0, 5.0, 6.0]))
    return lambda x: x * next(numbers)[1][1]


@advance
def a_cycle() -> Any:
    numbers = itertools.cycle([1.0, 2.0])
    return lambda x: x * next(numbers)


@advance
def a_data_loader() -> Any:
    batches = iter(mg.utils.data.DataLoader(mg.utils.data.TensorDataset(mg.arange(1.0, 4.0))))
    return lambda x: x * next(batches)[0]


@advance
def pythons_random_numbers() -> Any:
    random.seed(0)
    return lambda x: x * float(random.randint(1, 1000))


@advance
def a_random_generator() -> Any:
    draw = random.Random(0).random
    return lambda x: x * float(np.float32(draw()))


@advance
def numpys_random_numbers() -> Any:
    np.random.seed(0)
    return lambda x: x * float(np.random.randint(1, 1000))


@advance
def a_random_generator_of_numpys() -> Any:
    generator = np.random.default_rng(0)
    return lambda x: x * float(generator.integers(1, 1000))


@advance
def a_queue() -> Any:
    waiting: queue.Queue[float] = queue.Queue()
    for k in range(3):
        waiting.put(float(k))
    return lambda x: x * waiting.get()


@advance
def a_file() -> Any:
    file = io.StringIO("1\n2\n3\n")
    return lambda x: x * float(file.readline())


def test_a_clock_is_asked_once_and_that_is_said() -> None:
    step = mg.compile(lambda x: x * time.perf_counter())
    with pytest.warns(UserWarning, match=r"perf_counter\(\) is called only while the step is traced"):
        step(mg.ones(1))


def test_a_random_generator_that_is_not_used_may_change() -> None:
    generator, numbers = np.random.default_rng(0), iter(range(9))

    def step(x: Any) -> Any:
        return x * 2 if generator is not None and numbers is not None else x

    compiled = mg.compile(step)
    for _ in range(3):
        compiled(mg.ones(1))
        generator.random()
        next(numbers)
        random.random()
    assert len(compiled.retraces) == 1


# ------------------------------------------------------------------------------------------------------------ arguments

def test_objects_that_say_that_they_are_equal() -> None:
    class Always:
        def __init__(self, k: float) -> None:
            self.k = k

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    step = mg.compile(lambda x, o: x * o.k)
    assert [step(mg.ones(1), Always(k)).item() for k in (2.0, 3.0)] == [2, 3]


@change
def entry_of_a_dict_whose_keys_are_classes_and_functions() -> tuple[Callable[..., Any], Change]:
    scales: dict[Any, float] = {mg.Tensor: 2.0, len: 3.0, abs: 5.0}

    def step(x: Any) -> Any:
        return x * scales[type(x)] * scales[len] * scales[abs]

    return step, lambda: scales.update({len: 4.0})


def test_a_cache_by_class_that_the_step_fills_is_filled_once() -> None:
    known: dict[type, float] = {}

    def step(x: Any) -> Any:
        if type(x) not in known:
            known[type(x)] = 2.0
        return x * known[type(x)]

    compiled = mg.compile(step)
    assert [compiled(mg.ones(1)).item() for _ in range(4)] == [2] * 4 and len(compiled.retraces) == 2


def test_attributes_of_arguments() -> None:
    a, b = mg.ones(1), mg.ones(1)
    a.scale, b.scale = 2.0, 3.0
    step = mg.compile(lambda x: x * x.scale)
    assert [step(x).item() for x in (a, b)] == [2, 3]


@pytest.mark.parametrize("step", [
    lambda row: row * row.storage_offset(),
    lambda row: row.as_strided((2,), (1,), 1) + row[:2],
    lambda row: row.as_strided((2,), (1,), row.storage_offset() + 4).add_(100).sum() + row.mul_(2),
    lambda row: row.mul_(2)], ids=["offset", "absolute", "beyond", "inside"])
def test_where_an_argument_lies_in_its_memory(step: Callable[..., Any]) -> None:
    found = []
    for function in (step, mg.compile(step)):
        base, whole, larger = mg.arange(16.0), mg.arange(8.0), mg.arange(12.0)
        rows = base[0:4], base[4:8], whole[0:4], larger[4:8]
        found.append([function(row).tolist() for row in rows] + [t.tolist() for t in (base, whole, larger)])
    assert found[0] == found[1]


def test_parts_of_a_data_set_are_one_program() -> None:
    data = mg.arange(40.0).reshape(10, 4)
    step = mg.compile(lambda row: row * 2)
    assert [step(row).tolist() for row in data] == (data * 2).tolist() and len(step.retraces) == 1
