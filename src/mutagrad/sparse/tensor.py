"""Tensors of which only some elements are there: the places of these are constants, their values an ordinary tensor.

So a sparse tensor has no history of its own. What is computed with it is computed with its values, which have one, and
its gradient is theirs: sparse, at the same places.

>>> import mutagrad as mg
>>> a = mg.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3., 4., 5.], (2, 3), requires_grad=True)
>>> (a @ mg.ones(3, 1)).sum().backward()
>>> a.grad
tensor(indices=tensor([[0, 1, 1],
                       [2, 0, 2]]),
       values=tensor([1., 1., 1.]),
       size=(2, 3), nnz=3, layout=mutagrad.sparse_coo)
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn, TypeVar

from ..arrays import np
from ..base.device import device
from ..base.errors import BadArgument, BadData, BadValue, GradientError, NotSupported, ShapeError
from ..base.operands import Array
from ..core.backward import RemovableHandle
from ..core.dtypes import CLASS_NAMES, dtype
from ..core.factory import make
from ..core.size import Size
from ..ops.shape.shape import whole_dim
from ..tensors.tensor import Tensor, disabled_torch_function
from .table import enter, refused

S = TypeVar("S", bound="SparseTensor")


def _no_memory(self: Any) -> NoReturn:
    raise NotSupported("this function does not know sparse tensors",
                       why="it reads memory in which all elements lie, and a sparse tensor has none; or it was "
                           "imported by its name before the first sparse tensor was made",
                       fix="x.to_dense(), or call it by its module: mutagrad.matmul(x, y)")


class SparseTensor(Tensor):
    """What all layouts have in common: values with a history, a size, and no memory of all elements.

    >>> import mutagrad as mg
    >>> x = mg.tensor([[0., 3.], [4., 0.]]).to_sparse()
    >>> x.values()
    tensor([3., 4.])
    """

    __slots__ = ()
    __torch_function__: Any = disabled_torch_function  # a layout of Tensor, no class that takes calls over
    _own_layout = True
    _numbers: Tensor
    _size: Size
    _leaf: SparseTensor | None  # as it was when it became a leaf, if it has other places now

    # A dense operation that comes across a sparse tensor asks for its memory first.
    _array = _storage = _offset = property(_no_memory)  # type: ignore[assignment]

    def __new__(cls, *arguments: Any, **settings: Any) -> Any:
        raise BadArgument(f"{cls.__name__}: sparse tensors are made by functions",
                          fix="mutagrad.sparse_coo_tensor(indices, values, size)")

    @classmethod
    def _made(cls: type[S], numbers: Tensor, size: Sequence[int]) -> S:
        enter()
        made = object.__new__(cls)
        made._numbers, made._size, made._leaf = numbers, Size(size), None
        return made

    def as_subclass(self, cls: Any) -> NoReturn:
        raise refused(f"{cls.__name__} of a sparse tensor", "a subclass has memory of its own",
                      "one of its values: p = Parameter(x.values()), then sparse_coo_tensor(x.indices(), p, x.shape)")

    # --------------------------------------------------------------------------------------------- what layouts define

    def _with(self: S, numbers: Tensor) -> S:
        """Return other values at the same places."""
        raise NotImplementedError

    def _places_of_values(self) -> tuple[Array, Tensor]:
        """Return where the elements are, a row for each sparse dimension, and their values, one row for each place."""
        raise NotImplementedError

    def _become(self, other: Any) -> None:
        """Take over the places and values of another one of this layout."""
        raise NotImplementedError

    def _keep_leaf(self) -> None:
        """Keep what reports the gradient, before other places are taken over."""
        if self._leaf is None and self._numbers._storage.leaf is not None:
            self._leaf = self._with(self._numbers)

    def sparse_dim(self) -> int:
        raise NotImplementedError

    def dense_dim(self) -> int:
        raise NotImplementedError

    def _nnz(self) -> int:
        raise NotImplementedError

    def _entries(self: S) -> S:
        """Return the same with each place once, as its gradient is."""
        return self

    # ------------------------------------------------------------------------------------------------------ what it is

    @property
    def shape(self) -> Size:
        return self._size

    def size(self, dim: int | None = None) -> Any:
        return self._size if dim is None else self._size[whole_dim(dim, len(self._size), "size")]

    @property
    def ndim(self) -> int:
        return len(self._size)

    def dim(self) -> int:
        return len(self._size)

    ndimension = dim

    def numel(self) -> int:
        return prod(self._size)

    nelement = numel

    @property
    def dtype(self) -> dtype:
        return self._numbers.dtype

    @property
    def device(self) -> device:
        return self._numbers.device

    @property
    def is_cpu(self) -> bool:
        return True

    is_cuda = is_xla = False

    def element_size(self) -> int:
        return self._numbers.element_size()

    itemsize = property(element_size)

    @property
    def nbytes(self) -> NoReturn:
        raise refused("nbytes", "its parts have memory of their own", "x.indices().nbytes + x.values().nbytes")

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Answer no: its elements do not lie in memory one after the other.

        >>> import mutagrad as mg
        >>> x = mg.tensor([[0., 3.], [4., 0.]]).to_sparse()
        >>> x.coalesce().values().is_contiguous()
        True
        """
        return False

    def stride(self, dim: int | None = None) -> NoReturn:
        raise refused("stride", "its elements do not lie at fixed distances", "x.values().stride()")

    def storage_offset(self) -> NoReturn:
        raise refused("storage_offset", "it has no memory of its own", "x.values().storage_offset()")

    def data_ptr(self) -> NoReturn:
        raise refused("data_ptr", "it has no memory of its own", "x.values().data_ptr()")

    def storage(self) -> NoReturn:
        raise refused("storage", "it has no memory of its own", "x.values().storage()")

    untyped_storage = storage

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:  # type: ignore[override]
        """Return the name of its class in PyTorch's older way; given a type, the tensor in that type.

        >>> import mutagrad as mg
        >>> x = mg.tensor([[0., 3.], [4., 0.]]).to_sparse()
        >>> x.type()
        'torch.sparse.FloatTensor'
        """
        if dtype is not None:
            return self.to(getattr(dtype, "dtype", dtype))
        return f"torch.sparse.{CLASS_NAMES.get(self.dtype, self.dtype.name + 'Tensor')}"

    @property
    def T(self) -> Any:  # type: ignore[override]
        return self.t()

    @property
    def mT(self) -> Any:
        return self.transpose(-2, -1)

    @property
    def H(self) -> Any:
        return self._with(self._numbers.conj()).transpose(-2, -1)

    mH = H

    # -------------------------------------------------------------------------------------------------------- autograd

    @property
    def requires_grad(self) -> bool:
        return self._numbers.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self: S, requires_grad: bool = True) -> S:
        """Make this a leaf, whose `.grad` will be the derivative with respect to its values as they are now.

        >>> import mutagrad as mg
        >>> x = mg.tensor([[0., 3.], [4., 0.]]).to_sparse()
        >>> x.requires_grad_().requires_grad
        True
        """
        if requires_grad and not self.requires_grad:
            self._numbers = self._numbers.detach()
        self._numbers.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return self._numbers.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self._numbers.grad_fn

    @property
    def output_nr(self) -> int:
        return self._numbers.output_nr  # type: ignore[no-any-return]

    @property
    def _version(self) -> int:
        return self._numbers._version

    @property
    def grad(self) -> Any:
        leaf = self if self._leaf is None else self._leaf
        found = leaf._numbers.grad
        return None if found is None else leaf._gradient(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise BadArgument(f"grad: a gradient must be a tensor or None, not {type(value).__name__}")
        leaf = self if self._leaf is None else self._leaf
        leaf._numbers.grad = None if value is None else leaf._seed(value).detach()

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _gradient(self, of_values: Tensor) -> Any:
        """Return the gradient by the elements, given that by the values: where a place is held twice, of either."""
        return self._with(of_values)._first_of_each()

    def _first_of_each(self) -> Any:
        return self

    def _seed(self, gradient: Any) -> Tensor:
        """Return the adjoints of the values, given those of the elements: a sparse tensor, or a dense one."""
        if not isinstance(gradient, Tensor) or gradient.shape != self.shape:
            raise ShapeError(f"backward: Mismatch in shape: the gradient is not of shape {tuple(self.shape)}",
                             fix="y.backward(y.detach())")
        if isinstance(gradient, SparseTensor):
            same, numbers = self._aligned(gradient)
            if same:
                return numbers.reshape(self._numbers.shape)
            gradient = gradient.to_dense()
        places, _ = self._places_of_values()
        picked = gradient[tuple(map(make, np.asarray(places)))] if len(places) else gradient.unsqueeze(0)
        return picked.reshape(self._numbers.shape)

    def _aligned(self, other: SparseTensor) -> tuple[bool, Tensor]:
        """Return whether another tensor has its elements at the same places in the same order, and their values."""
        places, numbers = other._places_of_values()
        mine = self._places_of_values()[0]
        return mine.shape == places.shape and bool((mine == places).all()), numbers

    def detach(self: S) -> S:
        """Return the same values without the history.

        >>> import mutagrad as mg
        >>> x = mg.tensor([[0., 3.], [4., 0.]]).to_sparse()
        >>> x.requires_grad_().detach().requires_grad
        False
        """
        return self._with(self._numbers.detach())

    def detach_(self: S) -> S:
        self._numbers = self._numbers.detach()
        return self

    @property
    def data(self) -> Any:
        """The same values without the history; assigned to, it takes those of another tensor."""
        return self.detach()

    @data.setter
    def data(self, other: Any) -> None:
        if type(other) is not type(self):
            raise BadData(f"data: cannot be set to {type(other).__name__}", fix="x.data = y.data, of the same layout")
        wanted = self.requires_grad
        self._become(other.detach())
        self._leaf = None
        self.requires_grad_(wanted)

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Any = None) -> None:
        """Add the derivative of the sum of its elements, weighed by `gradient`, to `.grad` of the leaves.

        >>> import mutagrad as mg
        >>> x = mg.ones(2, requires_grad=True)
        >>> (x.to_sparse() * 3).sum().backward()
        >>> x.grad
        tensor([3., 3.])
        """
        given = [inputs] if isinstance(inputs, Tensor) else inputs
        inputs = None if given is None else [getattr(x, "_numbers", x) for x in given]
        seed = None if gradient is None else self._seed(gradient)
        self._numbers.backward(seed, retain_graph, create_graph, inputs)

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call `hook` with this tensor's gradient in every sweep; what it returns, if anything, replaces it.

        >>> import mutagrad as mg
        >>> x = mg.ones(2).to_sparse().requires_grad_()
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> x.to_dense().sum().backward()
        >>> x.grad.to_dense()
        tensor([10., 10.])
        """
        def on_values(g: Tensor) -> Tensor | None:
            found = hook(self._gradient(g))
            return None if found is None else self._seed(found)

        return self._numbers.register_hook(on_values)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> RemovableHandle:
        """Call `hook` with this leaf after a sweep has added to its `.grad`.

        >>> import mutagrad as mg
        >>> x = mg.eye(2).to_sparse().requires_grad_()
        >>> handle = x.register_post_accumulate_grad_hook(lambda x: print("there"))
        >>> x.to_dense().sum().backward()
        there
        """
        return self._numbers.register_post_accumulate_grad_hook(lambda _: hook(self))

    def retain_grad(self) -> None:
        self._numbers.retain_grad()

    @property
    def retains_grad(self) -> bool:
        return self._numbers.retains_grad

    # ------------------------------------------------------------------------------------- as Python and NumPy take it

    def item(self) -> Any:
        """Return the only element, as a Python number.

        >>> import mutagrad as mg
        >>> mg.tensor([[2.]]).to_sparse().item()
        2.0
        """
        if self.numel() != 1:
            raise BadValue(f"item: a tensor of shape {tuple(self.shape)} has {self.numel()} elements, not one")
        return self._numbers.sum().to(self.dtype).item()

    def numpy(self, *, force: bool = False) -> NoReturn:
        name = str(self.layout).rpartition(".")[2].replace("sparse_", "")
        raise BadArgument(f"numpy: can't convert {'Sparse' if name == 'coo' else name.upper()} layout tensor to numpy. "
                          "Use Tensor.to_dense() first.", fix="x.to_dense().numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.numpy()

    def tolist(self) -> NoReturn:
        raise refused("tolist", fix="x.to_dense().tolist()")

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __len__(self) -> int:
        if not self._size:
            raise BadArgument("len: a 0-d tensor has no length")
        return self._size[0]

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise BadArgument("Cannot assign to a sparse tensor", why="what is written may be at a place that is not there",
                          fix="x.values()[...] = y, or x.to_dense()")

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, (Tensor, int, float, complex)):
            return NotImplemented
        raise refused("eq", "zeros are equal to zeros, so the result would be dense", "mutagrad.equal(x, y)")

    def __ne__(self, other: Any) -> Any:
        if not isinstance(other, (Tensor, int, float, complex)):
            return NotImplemented
        raise refused("ne", fix="not mutagrad.equal(x, y)")

    def __contains__(self, element: Any) -> NoReturn:
        raise refused("in", fix="element in x.values()")

    def __hash__(self) -> int:
        return id(self)

    # ------------------------------------------------------------------------------------------------- types and copies

    def to(self: S, *targets: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False,
           copy: bool = False, memory_format: Any = None) -> S:
        """Return the tensor in another element type: itself where nothing changes. It can only be on the CPU.

        >>> import mutagrad as mg
        >>> x = mg.tensor([[0., 3.], [4., 0.]]).to_sparse()
        >>> x.to(mg.float64).dtype
        mutagrad.float64
        """
        targets = tuple(t._numbers if isinstance(t, SparseTensor) else t for t in targets)
        numbers = self._numbers.to(*targets, dtype=dtype, device=device)
        if not numbers.is_cpu or numbers.is_meta:
            raise NotSupported(f"to: sparse tensors on {numbers.device} are not supported",
                               why="SciPy computes with them, in the CPU's memory", fix="x.to_dense().to(device)")
        if numbers is self._numbers:
            return self.clone() if copy else self
        return self._with(numbers)

    def cpu(self: S, memory_format: Any = None) -> S:
        return self

    def clone(self: S, *, memory_format: Any = None) -> S:
        """Return a copy with history: gradients pass through.

        >>> import mutagrad as mg
        >>> x = mg.tensor([[0., 3.], [4., 0.]]).to_sparse()
        >>> y = x.clone()
        >>> _ = y.values().zero_()
        >>> x.values()
        tensor([3., 4.])
        """
        return self._with(self._numbers.clone())

    def __deepcopy__(self: S, memo: dict[int, Any]) -> S:
        if id(self) not in memo:
            if not self.is_leaf:
                raise GradientError("deepcopy: only leaves can be copied, this tensor was computed",
                                    fix="x.detach() or x.clone()")
            memo[id(self)] = self._with(self._numbers.detach().clone()).requires_grad_(self.requires_grad)
        return memo[id(self)]  # type: ignore[no-any-return]

    # ------------------------------------------------------------------------------------------------------------- text

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override,unused-ignore]
        parts = [f"{name}={part!r}" for name, part in self._shown()]
        end = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}", f"layout={self.layout}"]
        end += [f"dtype={self.dtype}"] if not self._nnz() and self.dtype.name != "float32" else []
        if not self.is_leaf:
            end.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            end.append("requires_grad=True")
        lines = [text.replace("\n", "\n" + " " * (7 + text.index("=") + 1)) for text in parts]
        return "tensor(" + ",\n       ".join([*lines, ", ".join(end)]) + ")"

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def _shown(self) -> list[tuple[str, Tensor]]:
        """Return its parts with their names."""
        raise NotImplementedError


def bare(values: Tensor) -> Tensor:
    """Return values for a sparse tensor: those that have a history as a view, so that they are a leaf no more."""
    return values.view_as(values) if values.requires_grad else values


def index_of(array: Any) -> Tensor:
    """Return a tensor of indices."""
    return make(np.ascontiguousarray(array, np.int64))  # type: ignore[no-any-return]
