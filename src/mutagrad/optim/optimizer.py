"""The base of all optimizers: groups of parameters, the state kept for each, hooks, and saving it all."""
from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from math import sqrt
from typing import Any, TypeAlias

from ..arrays import np
from ..arrays.kinds import device_of, host, laid_like
from ..autograd import no_grad
from ..base.errors import BadArgument, BadValue, NotSupported
from ..base.layout import has_own_layout
from ..base.modes import RECORDED, call_with
from ..base.operands import kind_name
from ..core.dtypes import float64, get_default_dtype
from ..core.factory import make
from ..nn.hooks import Handle, Hooks
from ..tensors.tensor import Tensor

Group = dict[str, Any]  # parameters and their settings
State = dict[str, Any]  # what is kept for one parameter
StateDict = dict[str, Any]
ParamsT: TypeAlias = "Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]"
params_t = ParamsT


class _Required:
    """Stands in `defaults` for a setting that every group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
_global_pre_hooks, _global_post_hooks = Hooks(), Hooks()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Calls `hook(optimizer, args, kwargs)` before every step of every optimizer."""
    return _global_pre_hooks.put(hook)


def register_optimizer_step_post_hook(hook: Callable[..., None]) -> Handle:
    """Calls `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return _global_post_hooks.put(hook)


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a class's `step` with the hooks called around it."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self).step is not hooked:  # called by the `step` of a subclass, which has called them
            return step(self, *args, **kwargs)
        self._opt_called = True  # the schedulers ask
        if "_step_pre_hooks" not in self.__dict__:  # an optimizer around another, whose __init__ is its own
            self._make_hooks()
        for hook in chain(_global_pre_hooks.values(), self._step_pre_hooks.values()):
            args, kwargs = _replaced(hook(self, (self, *args), kwargs), args, kwargs)
        result = step(self, *args, **kwargs)
        for hook in chain(self._step_post_hooks.values(), _global_post_hooks.values()):
            hook(self, (self, *args), kwargs)
        return result

    return hooked


def _replaced(answer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if answer is None:
        return args, kwargs
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise BadValue(f"step: a hook must return None or a tuple of (new_args, new_kwargs), but got {answer!r}")
    return answer[0][1:], answer[1]


def evaluated(closure: Callable[[], Any] | None) -> Any:
    """Return what the closure returns, recorded whatever the mode is."""
    if closure is None:
        return None
    return call_with(RECORDED, closure)


def count_tensor(value: float) -> Tensor:
    """Return a number of the state, such as how many steps there were, as a 0-d tensor, as in PyTorch."""
    kind = np.float64 if get_default_dtype() is float64 else np.float32
    return make(np.array(value, kind))  # type: ignore[no-any-return]


class Optimizer:
    """Holds parameters and changes them in `step`, which subclasses define.

    >>> import mutagrad as mg
    >>> class Descent(mg.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     @mg.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * p.grad
    >>> w = mg.tensor([1., 2.], requires_grad=True)
    >>> (w ** 2).sum().backward()
    >>> Descent([w], lr=0.25).step(); w
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    counts: tuple[str, ...] = ("step",)  # numbers of the state; older checkpoints have them as Python's

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "step" in cls.__dict__:
            cls.step = with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[Group] = []
        for group in _groups(params, type(self).__name__):
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        self._step_pre_hooks, self._step_post_hooks = Hooks(), Hooks()
        self._state_pre_hooks, self._state_post_hooks = Hooks(), Hooks()
        self._load_pre_hooks, self._load_post_hooks = Hooks(), Hooks()

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_step_pre_hooks" not in self.__dict__:
            self._make_hooks()
        for group in self.param_groups:
            for name, value in self.defaults.items():  # a checkpoint of an older version may lack settings
                group.setdefault(name, value)
        for kept in self.state.values():
            for name in self.counts if isinstance(kept, dict) else ():
                if isinstance(kept.get(name), (int, float)):
                    kept[name] = count_tensor(kept[name])

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            settings = [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
            lines += ["", f"Parameter Group {i}", *settings]
        return f"{type(self).__name__} (" + "\n".join(lines) + "\n)"

    # ----------------------------------------------------------------------------------------------------------- groups

    def add_param_group(self, param_group: Group) -> None:
        """Adds parameters with settings of their own; what `param_group` does not set has the optimizer's default.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> optimizer.add_param_group({"params": [mg.zeros(3, requires_grad=True)], "lr": 0.5})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.5]
        """
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise BadArgument(f"{name}: param_group must be a dict, but got {type(param_group)}",
                              fix="{'params': [...], 'lr': 0.1}")
        if "params" not in param_group:
            raise BadValue(f"{name}: a parameter group has no 'params', only {sorted(param_group)}",
                           fix="{'params': [...], 'lr': 0.1}")
        params, names = _with_names(param_group["params"], name)
        for p in params:
            self._check_parameter(p, name)
        settings = {**self.defaults, **param_group}
        for key, value in settings.items():
            if value is required:
                raise BadValue(f"{name}: parameter group didn't specify a value of required optimization parameter "
                               f"{key}", fix=f"{{..., {key!r}: value}}")
        check_modes(settings, name)
        self._check_apart(params, names, name)
        param_group.update(params=params, **({"param_names": names} if names else {}))
        for key, value in self.defaults.items():
            param_group.setdefault(key, value)
        self.param_groups.append(param_group)

    def _check_parameter(self, p: Any, name: str) -> None:
        if not isinstance(p, Tensor):
            raise BadArgument(f"{name}: optimizer can only optimize Tensors, but one of the params is "
                              f"{kind_name(p)}", fix="model.parameters(), or a list of tensors")
        if not (p.is_leaf or p.retains_grad):
            raise BadValue(f"{name}: can't optimize a non-leaf Tensor, such as this one of shape {tuple(p.shape)}",
                           why="it was computed from others, which are what has to change",
                           fix="x.detach().requires_grad_()")

    def _check_apart(self, params: list[Tensor], names: list[str], name: str) -> None:
        if len(params) != len(set(params)):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; each is updated as often as "
                          "it occurs", stacklevel=4)
        known = {p for group in self.param_groups for p in group["params"]}
        if known.intersection(params):
            raise BadValue(f"{name}: some parameters appear in more than one parameter group",
                           why="they would be updated twice in each step")
        for group in self.param_groups:
            if ("param_names" in group) != bool(names):
                raise BadValue(f"{name}: all optimizer param groups should be with/without names; "
                               f"cannot add one {'with' if names else 'without'} names",
                               fix="model.named_parameters() for all, or parameters() for all")

    # ------------------------------------------------------------------------------------------------------------ hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Calls `hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs).

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("before"))
        >>> optimizer.step()
        before
        """
        return self._step_pre_hooks.put(hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> Handle:
        """Calls `hook(optimizer, args, kwargs)` after each step.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> handle = optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print("after"))
        >>> optimizer.step()
        after
        """
        return self._step_post_hooks.put(hook)

    def register_state_dict_pre_hook(self, hook: Callable[[Optimizer], None], prepend: bool = False) -> Handle:
        """Calls `hook(optimizer)` before `state_dict`.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> handle = optimizer.register_state_dict_pre_hook(lambda optimizer: print("saving"))
        >>> state = optimizer.state_dict()
        saving
        """
        return self._state_pre_hooks.put(hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[[Optimizer, StateDict], StateDict | None],
                                      prepend: bool = False) -> Handle:
        """Calls `hook(optimizer, state_dict)` after `state_dict`; what it returns, if anything, takes its place.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> handle = optimizer.register_state_dict_post_hook(lambda optimizer, state: {**state, "epoch": 3})
        >>> optimizer.state_dict()["epoch"]
        3
        """
        return self._state_post_hooks.put(hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[[Optimizer, StateDict], StateDict | None],
                                          prepend: bool = False) -> Handle:
        """Calls `hook(optimizer, state_dict)` before loading; what it returns, if anything, is loaded instead.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> handle = optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: print("loading"))
        >>> optimizer.load_state_dict(optimizer.state_dict())
        loading
        """
        return self._load_pre_hooks.put(hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[[Optimizer], None], prepend: bool = False) -> Handle:
        """Calls `hook(optimizer)` after loading.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> handle = optimizer.register_load_state_dict_post_hook(lambda optimizer: print("loaded"))
        >>> optimizer.load_state_dict(optimizer.state_dict())
        loaded
        """
        return self._load_post_hooks.put(hook, prepend)

    # ------------------------------------------------------------------------------------------------------------ state

    def state_dict(self) -> StateDict:
        """Return the state by the parameters' numbers, and the groups with these in their place: PyTorch's format.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> optimizer.state_dict()["param_groups"][0]["lr"]
        0.1
        """
        for hook in self._state_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            start += len(group["params"])
            settings = {key: value for key, value in group.items() if key != "params"}
            groups.append(settings | {"params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        found: StateDict = {"state": state, "param_groups": groups}
        for hook in self._state_post_hooks.values():
            answer = hook(self, found)
            found = found if answer is None else answer
        return found

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Takes over the state and the settings that `state_dict` gave, here or in PyTorch.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> optimizer.load_state_dict(mg.optim.SGD([w], lr=0.5).state_dict())
        >>> optimizer.param_groups[0]["lr"]
        0.5
        """
        state_dict = state_dict.copy()
        for hook in self._load_pre_hooks.values():
            answer = hook(self, state_dict)
            state_dict = state_dict if answer is None else answer
        groups = [{key: _own(value) for key, value in group.items()} for group in state_dict["param_groups"]]
        self._check_loaded(groups)
        numbers = list(chain.from_iterable(group["params"] for group in groups))
        params = dict(zip(numbers, chain.from_iterable(group["params"] for group in self.param_groups)))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, kept in state_dict["state"].items():
            if key in params:
                state[params[key]] = _fitted(kept, params[key], None)
            else:
                state[key] = kept
        for group, loaded in zip(self.param_groups, groups):
            loaded["params"] = group["params"]
            if "param_names" in group:
                loaded.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._load_post_hooks.values():
            hook(self)

    def _check_loaded(self, groups: list[Group]) -> None:
        name = type(self).__name__
        if len(groups) != len(self.param_groups):
            raise BadValue(f"{name}: loaded state dict has a different number of parameter groups: {len(groups)}, not "
                           f"{len(self.param_groups)}",
                           fix="load it into an optimizer that was made with the same groups")
        for i, (group, loaded) in enumerate(zip(self.param_groups, groups)):
            if len(group["params"]) != len(loaded["params"]):
                raise BadValue(f"{name}: loaded state dict contains a parameter group that doesn't match the size of "
                               f"optimizer's group: group {i} has {len(loaded['params'])} parameters, not "
                               f"{len(group['params'])}", fix="load it into an optimizer over the same parameters")
            check_modes(loaded, name)

    # ------------------------------------------------------------------------------------------------------------ steps

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or sets them to zero.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.zero_grad()
        >>> w.grad is None
        True
        """
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    p._grad = p._grad.detach()
                    p._grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters once by their gradients; `closure`, if given, first computes loss and gradients.

        >>> import mutagrad as mg
        >>> w = mg.ones(2, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000, 0.9000])
        """
        raise NotImplementedError(f"{type(self).__name__}: an optimizer must define step()")


def check_modes(settings: dict[str, Any], name: str) -> None:
    """Refuses the settings that ask for what there is not; `foreach` and `fused` are only about speed."""
    if settings.get("capturable"):
        raise NotSupported(f"{name}: capturable=True is not supported",
                           why="there are no CUDA graphs that could capture a step", fix="capturable=False")
    if settings.get("differentiable"):
        raise NotSupported(f"{name}: differentiable=True is not supported", why="a step is not recorded",
                           fix="write the update with recorded operations: "
                               "w = w - lr * mutagrad.autograd.grad(loss, w, create_graph=True)[0]")
    if settings.get("fused") and settings.get("foreach"):
        raise BadValue(f"{name}: `fused` and `foreach` cannot be `True` together.",
                       fix="give neither: they change nothing in the result")


def _groups(params: Any, name: str) -> list[Group]:
    if isinstance(params, Tensor) or not isinstance(params, Iterable):
        raise BadArgument(f"{name}: params argument given to the optimizer should be an iterable of Tensors or dicts, "
                          f"but got {type(params).__name__}", fix="[tensor], or model.parameters()")
    found = list(params)
    if not found:
        raise BadValue(f"{name}: optimizer got an empty parameter list",
                       fix="model.parameters(), of a model that has some")
    return found if isinstance(found[0], dict) else [{"params": found}]


def _with_names(params: Any, name: str) -> tuple[list[Tensor], list[str]]:
    """The parameters of a group, and their names if they came as (name, parameter)."""
    if isinstance(params, Tensor):
        return [params], []
    if isinstance(params, (set, frozenset)):
        raise BadArgument(f"{name}: optimizer parameters need to be organized in ordered collections, but got a set",
                          why="its order changes between runs, and saved state goes by order", fix="a list")
    found = list(params)
    names = [p[0] for p in found if isinstance(p, tuple)]
    if names and len(names) != len(found):
        raise BadValue(f"{name}: all optimizer params should be with/without names. Some param names are missing",
                       fix="model.named_parameters()")
    return [p[1] for p in found] if names else found, names


def _from_elsewhere(value: Any) -> bool:
    """Whether this is another library's tensor, such as PyTorch's."""
    return not isinstance(value, Tensor) and hasattr(value, "__dlpack__") and hasattr(value, "dtype")


def _converted(value: Any) -> Tensor:
    if isinstance(value, np.ndarray):
        return make(np.array(value))  # type: ignore[no-any-return]
    held = value.detach()
    held = held.float() if "bfloat16" in str(value.dtype) else held
    return make(np.array(held.numpy()))  # type: ignore[no-any-return]


def _own(value: Any) -> Any:
    return _converted(value) if _from_elsewhere(value) else deepcopy(value)


def _fitted(value: Any, p: Tensor, key: str | None) -> Any:
    """A loaded value of the state of `p`: tensors in its type and where it is, but for the count of steps."""
    if _from_elsewhere(value):
        value = _converted(value)
    if isinstance(value, Tensor):
        if key == "step":
            return value
        value = value.to(p.dtype) if p.is_floating_point() else value
        if has_own_layout((value,)):
            return value
        if device_of(value._array) is device_of(p._array):
            return value
        return make(laid_like(host(value._array, "a state is loaded"), p._array))
    if isinstance(value, dict):
        return {k: _fitted(v, p, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitted(v, p, None) for v in value)
    return value


# ------------------------------------------------------------------ what optimizers of other libraries are written with

def _get_value(x: Any) -> Any:
    """A number, from a number or a tensor of one element."""
    return x.item() if isinstance(x, Tensor) else x


def _dispatch_sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Tensor) else sqrt(x)


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that is not recorded."""
    return no_grad()(step)  # type: ignore[no-any-return]
