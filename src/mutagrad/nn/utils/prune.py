"""Elements of parameters kept at zero by a mask.

>>> import mutagrad as mg
>>> from mutagrad.nn.utils import prune
>>> layer = prune.custom_from_mask(mg.nn.Linear(2, 1), "weight", mg.tensor([[1., 0.]]))
>>> [name for name, _ in layer.named_parameters()], [name for name, _ in layer.named_buffers()]
(['bias', 'weight_orig'], ['weight_mask'])

The parameter is now `weight_orig`, and `weight` is the product with `weight_mask`, computed before each forward.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ...arrays import np
from ...base.errors import BadArgument, BadSetting, BadValue
from ...core.factory import make
from ...ops.linalg.norms import vector_norm
from ...ops.random.draws import rand, rand_like
from ...ops.shape.shape import cat
from ...tensors.tensor import Tensor
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove"]


class BasePruningMethod(ABC):
    """A hook that multiplies a parameter with its mask; subclasses say which elements go.

    >>> import mutagrad as mg
    >>> isinstance(mg.nn.utils.prune.L1Unstructured(2), mg.nn.utils.prune.BasePruningMethod)
    True
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for tensor t: `default_mask` with further zeros.

        >>> import mutagrad as mg
        >>> mg.nn.utils.prune.L1Unstructured(1).compute_mask(mg.tensor([1., -4.]), mg.ones(2))
        tensor([0., 1.])
        """

    def apply_mask(self, module: Module) -> Any:
        """Return the parameter times its mask.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 2)
        >>> method = mg.nn.utils.prune.L1Unstructured.apply(layer, "weight", 2)
        >>> mg.equal(method.apply_mask(layer), layer.weight)
        True
        """
        original, mask = getattr(module, self._tensor_name + "_orig"), getattr(module, self._tensor_name + "_mask")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *arguments: Any, importance_scores: Tensor | None = None,
              **settings: Any) -> BasePruningMethod:
        """Prunes a parameter of a module, or prunes it further.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 2)
        >>> method = mg.nn.utils.prune.L1Unstructured.apply(layer, "weight", 2)
        >>> (layer.weight == 0).sum()
        tensor(2)
        """
        method = cls(*arguments, **settings)
        method._tensor_name = name
        before = _hook(module, name)
        original = getattr(module, name if before is None else name + "_orig")
        scores = getattr(module, name) if importance_scores is None else importance_scores
        if not isinstance(scores, Tensor):
            raise BadSetting(f"prune: importance_scores must be a tensor, got {type(scores).__name__}",
                             fix="one score for each element")
        if scores.shape != original.shape:
            raise BadSetting(f"prune: importance_scores of shape {tuple(scores.shape)} for a parameter of shape "
                             f"{tuple(original.shape)}", fix="one score for each element")
        if before is not None:
            number, first = before
            del module._forward_pre_hooks[number]
            method = _chained(first, method, name)
            mask = method.compute_mask(scores.detach(), getattr(module, name + "_mask"))
        else:
            mask = method.compute_mask(scores.detach(), original.detach().new_ones(original.shape))
            if isinstance(original, Parameter):
                del module._parameters[name]
                module.register_parameter(name + "_orig", original)
            else:
                delattr(module, name)
                module.register_buffer(name + "_orig", original)
        module.register_buffer(name + "_mask", mask.to(original.dtype))
        method(module, None)
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Any:
        """Return a tensor that belongs to no module, with the elements that go set to zero.

        >>> import mutagrad as mg
        >>> mg.nn.utils.prune.L1Unstructured(1).prune(mg.tensor([1., -4.]))
        tensor([ 0., -4.])
        """
        mask = t.detach().new_ones(t.shape) if default_mask is None else default_mask
        return t * self.compute_mask(t.detach() if importance_scores is None else importance_scores, mask)

    def remove(self, module: Module) -> None:
        """Makes the product with the mask the parameter; elements that were pruned may be trained again.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Linear(2, 2)
        >>> mg.nn.utils.prune.L1Unstructured.apply(layer, "weight", 2).remove(layer)
        >>> [name for name, p in layer.named_parameters()]
        ['bias', 'weight']
        """
        name = self._tensor_name
        original = getattr(module, name + "_orig")
        original.data = self.apply_mask(module).detach()
        for attribute in (name, name + "_mask", name + "_orig"):
            delattr(module, attribute)
        if isinstance(original, Parameter):
            module.register_parameter(name, original)
        else:
            module.register_buffer(name, original)


def _hook(module: Module, name: str) -> Any:
    """The number and the method that prunes the parameter of this name, or None."""
    return next(((number, hook) for number, hook in module._forward_pre_hooks.items()
                 if isinstance(hook, BasePruningMethod) and hook._tensor_name == name), None)


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other: each looks at what the ones before have left.

    >>> import mutagrad as mg
    >>> container = mg.nn.utils.prune.PruningContainer(mg.nn.utils.prune.L1Unstructured(1))
    >>> len(container)
    1
    """

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Puts a method at the end; it prunes what those before it have left.

        >>> import mutagrad as mg
        >>> from mutagrad.nn.utils import prune
        >>> container = prune.PruningContainer(prune.L1Unstructured(1))
        >>> container.add_pruning_method(prune.RandomUnstructured(1))
        >>> len(container)
        2
        """
        if not isinstance(method, BasePruningMethod):
            raise BadArgument(f"PruningContainer: {type(method).__name__} is no pruning method",
                              fix="a subclass of BasePruningMethod")
        name = getattr(self, "_tensor_name", None)
        if name is not None and method._tensor_name != name:
            raise BadValue(f"PruningContainer: prunes {name!r}, and the method {method._tensor_name!r}",
                           fix="one container for each parameter")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Any:
        """Return the mask without what the last method takes of what was left: elements, or channels not all zero.

        >>> import mutagrad as mg
        >>> from mutagrad.nn.utils import prune
        >>> container = prune.PruningContainer(prune.L1Unstructured(1))
        >>> container.compute_mask(mg.tensor([1., 2., 3.]), mg.tensor([0., 1., 1.]))
        tensor([0., 0., 1.])
        """
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim  # type: ignore[attr-defined]
            alive = mask.sum([d for d in range(t.ndim) if d != dim]) != 0
            left = (slice(None),) * dim + (alive,)
        else:
            left = (slice(None),) * t.ndim
        found = mask.clone()
        found[left] = method.compute_mask(t[left], mask[left]).to(found.dtype)
        return found


def _chained(first: BasePruningMethod, last: BasePruningMethod, name: str) -> PruningContainer:
    if not isinstance(first, PruningContainer):
        first = PruningContainer(first)
        first._tensor_name = name
    first.add_pruning_method(last)
    return first  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------- which elements

def _validate_pruning_amount_init(amount: float) -> None:
    """That it is a number of elements, or a share of them."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise BadArgument(f"prune: amount must be a number, got {type(amount).__name__}", fix="amount=0.3")
    if amount < 0 or isinstance(amount, float) and not 0 <= amount <= 1:
        raise BadValue(f"prune: amount={amount} is neither a share between 0 and 1 nor a number of elements",
                       fix="amount=0.3")


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    """That there are as many elements."""
    if isinstance(amount, int) and amount > tensor_size:
        raise BadValue(f"prune: {amount} of {tensor_size} elements cannot be pruned", fix=f"amount={tensor_size}")


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    """How many elements an amount means."""
    _validate_pruning_amount(amount, tensor_size)
    return amount if isinstance(amount, int) else round(amount * tensor_size)


def _lowest(scores: Tensor, count: int) -> Any:
    """The places of the lowest scores."""
    return np.argsort(scores, kind="stable")[:count]


class _ByAmount(BasePruningMethod):
    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _without(self, mask: Tensor, scores: Tensor) -> Any:
        found = mask._array.copy()
        found.reshape(-1)[_lowest(scores.reshape(-1), _compute_nparams_toprune(self.amount, found.size))] = 0
        return make(found)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask.

    >>> import mutagrad as mg
    >>> mg.nn.utils.prune.Identity().prune(mg.ones(2))
    tensor([1., 1.])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(_ByAmount):
    """Elements at random.

    >>> import mutagrad as mg
    >>> (mg.nn.utils.prune.RandomUnstructured(2).prune(mg.ones(4)) == 0).sum()
    tensor(2)
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Any:
        return self._without(default_mask, rand_like(t)._array)


class L1Unstructured(_ByAmount):
    """The elements nearest to zero.

    >>> import mutagrad as mg
    >>> mg.nn.utils.prune.L1Unstructured(2).prune(mg.tensor([1., -4., 3., 2.]))
    tensor([ 0., -4.,  3.,  0.])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Any:
        return self._without(default_mask, np.abs(t._array))


class _ByChannel(_ByAmount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _without_channels(self, t: Tensor, mask: Tensor, scores: Tensor) -> Any:
        if t.ndim < 2:
            raise BadValue(f"prune: whole channels are pruned of at least 2 dimensions, got shape {tuple(t.shape)}",
                           fix="l1_unstructured")
        found = np.moveaxis(mask._array.copy(), self.dim, 0)
        found[_lowest(scores, _compute_nparams_toprune(self.amount, len(found)))] = 0
        return make(np.ascontiguousarray(np.moveaxis(found, 0, self.dim)))


class RandomStructured(_ByChannel):
    """Channels at random.

    >>> import mutagrad as mg
    >>> (mg.nn.utils.prune.RandomStructured(1, dim=0).prune(mg.ones(2, 2)) == 0).sum()
    tensor(2)
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Any:
        return self._without_channels(t, default_mask, rand(t.shape[self.dim])._array)


class LnStructured(_ByChannel):
    """The channels with the smallest norms.

    >>> import mutagrad as mg
    >>> mg.nn.utils.prune.LnStructured(1, n=2, dim=0).prune(mg.tensor([[1., 1.], [3., 4.]]))
    tensor([[0., 0.],
            [3., 4.]])
    """

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Any:
        others = tuple(d for d in range(t.ndim) if d != self.dim % t.ndim)
        return self._without_channels(t, default_mask, vector_norm(t, float(self.n), others)._array)


class CustomFromMask(BasePruningMethod):
    """What a given mask says.

    >>> import mutagrad as mg
    >>> mg.nn.utils.prune.CustomFromMask(mg.tensor([1., 0.])).prune(mg.ones(2))
    tensor([1., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Any:
        return default_mask * self.mask.to(default_mask.dtype)


# ------------------------------------------------------------------------------------------------------------ functions

def identity(module: Module, name: str) -> Module:
    """Prunes nothing, but makes the mask.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.prune.identity(layer, "weight")
    >>> layer.weight_mask
    tensor([[1., 1.],
            [1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prunes a number or a share of the elements, at random.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.prune.random_unstructured(layer, "weight", amount=2)
    >>> (layer.weight == 0).sum()
    tensor(2)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prunes a number or a share of the elements, those nearest to zero.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.prune.l1_unstructured(layer, "weight", amount=2)
    >>> (layer.weight == 0).sum()
    tensor(2)
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prunes a number or a share of the channels, at random.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.prune.random_structured(layer, "weight", amount=1, dim=0)
    >>> (layer.weight == 0).sum()
    tensor(2)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: float, n: float | str, dim: int,
                  importance_scores: Tensor | None = None) -> Module:
    """Prunes a number or a share of the channels, those with the smallest norms.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    >>> (layer.weight == 0).sum()
    tensor(2)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes the elements where a mask is zero.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.prune.custom_from_mask(layer, "weight", mg.eye(2))
    >>> (layer.weight == 0).sum()
    tensor(2)
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Iterable[tuple[Module, str]], pruning_method: type[BasePruningMethod],
                        importance_scores: dict[tuple[Module, str], Tensor] | None = None, **settings: Any) -> None:
    """Prunes a number or a share of the elements of several parameters as if they were one.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> from mutagrad.nn.utils import prune
    >>> prune.global_unstructured([(layer, "weight")], prune.L1Unstructured, amount=2)
    >>> (layer.weight == 0).sum()
    tensor(2)
    """
    pairs, given = list(parameters), importance_scores or {}
    if getattr(pruning_method, "PRUNING_TYPE", None) != "unstructured":
        raise BadArgument("global_unstructured: takes only methods that prune single elements",
                          fix="prune.L1Unstructured")
    tensors = [getattr(module, name) for module, name in pairs]
    scores = cat([given.get(pair, t).detach().reshape(-1) for pair, t in zip(pairs, tensors)])
    masks = [getattr(module, name + "_mask", t.detach().new_ones(t.shape)) for (module, name), t in zip(pairs, tensors)]
    method = pruning_method(**settings)
    container = PruningContainer(method)
    container._tensor_name = "temp"
    mask = container.compute_mask(scores, cat([m.reshape(-1) for m in masks]))
    at = 0
    for (module, name), t in zip(pairs, tensors):
        custom_from_mask(module, name, mask[at:at + t.numel()].reshape(t.shape))
        at += t.numel()


def is_pruned(module: Module) -> bool:
    """Return whether anything of a module, or of one inside, is pruned.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.prune.identity(layer, "weight")
    >>> mg.nn.utils.prune.is_pruned(layer)
    True
    """
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())


def remove(module: Module, name: str) -> Module:
    """Makes the pruned tensor an ordinary parameter again; nothing keeps its zeros at zero then.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(2, 2)
    >>> _ = mg.nn.utils.prune.l1_unstructured(layer, "weight", amount=2)
    >>> _ = mg.nn.utils.prune.remove(layer, "weight")
    >>> [name for name, p in layer.named_parameters()]
    ['bias', 'weight']
    """
    found = _hook(module, name)
    if found is None:
        raise BadValue(f"prune.remove: parameter {name!r} of {type(module).__name__} is not pruned",
                       fix="prune.is_pruned(module)")
    number, method = found
    method.remove(module)
    del module._forward_pre_hooks[number]
    return module
