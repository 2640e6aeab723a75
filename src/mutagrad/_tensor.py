"""The Tensor class: a window on a storage, with PyTorch's methods.

Every method is a function of `ops/` under its PyTorch name; nothing is computed here.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from . import printing, rooms
from .backends import np
from .backward import backward, check_separate, register_after, register_hook, retain_grad, retains_grad
from .call import in_place
from .called import called
from .construct import detached, make, results_are
from .device import CPU, check_device, device, names_meta
from .dtypes import (
    CLASS_NAMES,
    FLOAT,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    of_array,
    uint8,
)
from .engine import OUTPUT
from .errors import BadArgument, BadData, BadValue, DTypeError, GradientError, NoDevice, NotSupported, ShapeError
from .graph import Leaf, Node, mode
from .layout import layout, preserve_format, strided
from .op import TABLE
from .ops import create, elementwise, indexing, linalg, reduce, selecting, sorting
from .ops import shape as shapes
from .promote import as_operand, operand_dtype
from .storage import Storage, TensorBase, export, memory_of, new_storage


_new_tuple = tuple.__new__


class Size(tuple[int, ...]):
    """A shape: a tuple with `numel()`."""

    __slots__ = ()

    def __new__(cls, sizes: Any = ()) -> Size:
        return tuple.__new__(cls, shapes.sizes((tuple(sizes),), "Size"))

    def numel(self) -> int:
        return prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return _new_tuple(Size, found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return called(f"Size([{', '.join(map(str, self))}])")


def answers_nothing(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_function__` of classes that take nothing over, such as Parameter."""
    return rooms.part("takeover").untouched(func, args, kwargs)


class Tensor(TensorBase):
    """An array that remembers how it was computed.

    >>> import mutagrad as mg
    >>> x = mg.tensor([1., 2., 3.], requires_grad=True)
    >>> y = x * 2
    >>> y[0] = 5.
    >>> y.sum().backward()
    >>> x.grad
    tensor([0., 2., 2.])
    """

    __slots__ = ()
    __array_priority__ = 1000

    def __new__(cls, *data: Any, device: Any = None) -> Any:
        """PyTorch's oldest constructor: `Tensor(2, 3)` is uninitialised, `Tensor([1, 2])` holds floats."""
        check_device(device)
        if len(data) == 1 and not isinstance(data[0], (int, Size)):
            made = create.tensor(data[0], dtype=None if isinstance(data[0], Tensor) else get_default_dtype())
        else:
            made = create.empty(*data) if data else create.empty(0)
        return made if cls is Tensor else made.as_subclass(cls)

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if cls.__torch_function__ is not answers_nothing:
            rooms.part("takeover").subclassed(cls)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What becomes of functions called with a subclass, unless it says otherwise: results are of the subclass, too."""
        return rooms.part("takeover").inherited(cls, func, types, args, kwargs)

    @staticmethod
    def _from_array(array: Any) -> Tensor:
        return create.from_numpy(array)  # type: ignore[no-any-return]

    def as_subclass(self, cls: type[Tensor]) -> Any:
        """The same window and history as an instance of a subclass."""
        result = object.__new__(cls)
        result._array, result._storage, result._offset, result._grad = self._array, self._storage, self._offset, None
        return result

    @staticmethod
    def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
        """The same memory, without history, as an instance of a subclass: how classes of parameters are written."""
        return data.detach().as_subclass(cls).requires_grad_(require_grad)

    @staticmethod
    def _make_wrapper_subclass(cls: type[Tensor], size: Any, **settings: Any) -> Any:
        raise NotSupported(f"_make_wrapper_subclass: a {cls.__name__} without memory of its own is not supported",
                           why="nothing asks __torch_dispatch__, by which it would compute", fix="data.as_subclass(cls), and __torch_function__")

    def new(self, *data: Any, size: Any = None, device: Any = None) -> Any:
        """PyTorch's oldest constructor, with this tensor's type: `x.new(2, 3)` is uninitialised, `x.new([1, 2])` holds values."""
        check_device(device)
        data = data if size is None else tuple(size)
        if len(data) != 1 or isinstance(data[0], (int, Size)):
            return create.empty(*(data or (0,)), dtype=self.dtype)
        if isinstance(data[0], Tensor) and data[0].dtype is self.dtype:
            return data[0].detach()
        if isinstance(data[0], Tensor):
            raise BadArgument(f"new: expects a tensor of {self.dtype}, got {data[0].dtype}", fix=f"x.new(y.to({self.dtype}))")
        if isinstance(data[0], rooms.load("memory").TypedStorage):
            return data[0].as_tensor(self._array.dtype)
        return create.tensor(data[0], dtype=self.dtype)

    # ------------------------------------------------------------------------------------------------------- what it is

    @property
    def shape(self) -> Size:
        return _new_tuple(Size, self._array.shape)  # whose sizes need no check

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self._array.shape[shapes.whole_dim(dim, self._array.ndim, "size")]

    @property
    def dtype(self) -> dtype:
        return of_array(self._array.dtype)

    @property
    def device(self) -> device:
        return CPU

    @property
    def ndim(self) -> int:
        return self._array.ndim  # type: ignore[no-any-return]

    def dim(self) -> int:
        return self._array.ndim  # type: ignore[no-any-return]

    ndimension = dim

    def numel(self) -> int:
        return self._array.size  # type: ignore[no-any-return]

    nelement = numel

    def element_size(self) -> int:
        return self._array.itemsize  # type: ignore[no-any-return]

    itemsize = property(element_size)

    @property
    def nbytes(self) -> int:
        return self._array.size * self._array.itemsize  # type: ignore[no-any-return]

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in memory row by row, or with the channels last."""
        return shapes.has_format(self, memory_format)

    @property
    def layout(self) -> layout:
        return strided

    def storage_offset(self) -> int:
        return (self._offset or 0) // self._array.itemsize  # type: ignore[no-any-return]

    def data_ptr(self) -> int:
        """The address of the first element: equal where two tensors begin at the same memory."""
        return self._array.__array_interface__["data"][0]  # type: ignore[no-any-return]

    is_cuda = is_sparse = is_quantized = is_meta = is_mps = is_xpu = is_mkldnn = is_nested = False
    is_ipu = is_maia = is_mtia = is_sparse_csr = is_vulkan = is_xla = False
    is_cpu = True
    stride = shapes.stride

    # -------------------------------------------------------------------------------------------------------- autograd

    @property
    def requires_grad(self) -> bool:
        return self._storage.writer is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Makes this a leaf, whose `.grad` will be the derivative with respect to the value it has now."""
        storage = self._storage
        if requires_grad:
            if storage.writer is None:
                if self._array.dtype.kind not in "fcV":
                    raise DTypeError(f"requires_grad: only floating point and complex tensors have gradients, this one is {self.dtype.name}",
                                     why="an integer or boolean cannot change by a little", fix="x.float().requires_grad_()")
                check_separate(self, "requires_grad")
                if self._offset is not None:  # a view of something that needs none gets a history of its own
                    storage = self._storage = new_storage(storage.buffer, storage.root or storage)
                storage.writer = storage.leaf = Leaf(self)
        elif storage.writer is not None:
            if not self.is_leaf:
                raise GradientError("requires_grad: only leaves can stop requiring a gradient, and this tensor was computed",
                                    fix="y = x.detach()")
            storage.writer = storage.leaf = None
        return self

    @property
    def is_leaf(self) -> bool:
        writer = self._storage.writer
        return writer is None or (writer.__class__ is Leaf and writer.tensor() is self)

    @property
    def grad(self) -> Tensor | None:
        return self._grad  # type: ignore[return-value]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise BadArgument(f"grad: a gradient must be a tensor or None, not {type(value).__name__}", fix="x.grad = mutagrad.zeros_like(x)")
        if value is self:
            raise GradientError("grad: a tensor cannot be its own gradient", fix="x.grad = x.detach().clone()")
        if value is not None and (value._array.shape != self._array.shape or value._array.dtype != self._array.dtype):
            raise ShapeError(f"grad: a tensor of type {self.dtype} and shape {self._array.shape} cannot have {value.dtype} of shape {tuple(value.shape)} "
                             "as its gradient", why="the two must agree in shape and type", fix="x.grad = mutagrad.zeros_like(x)")
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def grad_fn(self) -> Any:
        """The latest write to this tensor's storage; for a view of a leaf, a stand-in that leads to the leaf."""
        writer = self._storage.writer
        if self.is_leaf or not isinstance(writer, Node):
            return None if self.is_leaf else ViewOfLeaf(writer)
        return writer[0] if writer.op is OUTPUT and writer[0] is not None else writer

    @property
    def _version(self) -> int:
        return memory_of(self).version

    @property
    def output_nr(self) -> int:
        """Which of the results of its `grad_fn` this is."""
        writer = self._storage.writer
        return writer.saved if isinstance(writer, Node) and writer.op is OUTPUT else 0

    def detach(self) -> Tensor:
        """The same memory without the history: writes are seen in both, gradients do not pass."""
        return detached(self)  # type: ignore[no-any-return]

    def detach_(self) -> Tensor:
        self._storage = new_storage(self._storage.buffer, memory_of(self))
        return self

    @property
    def data(self) -> Tensor:
        return detached(self)  # type: ignore[no-any-return]

    @data.setter
    def data(self, other: Tensor) -> None:
        """Points this tensor at the memory of another; a computed one keeps its history, so gradients pass as if it had these values."""
        if not isinstance(other, Tensor) or of_array(other._array.dtype).category < FLOAT <= of_array(self._array.dtype).category and self.requires_grad:
            raise BadData(f"data: cannot be set to {type(other).__name__}" + (f" of {other.dtype}" if isinstance(other, Tensor) else ""),
                              fix="x.data = y.data, of a floating point type")
        was_leaf, writer = self.requires_grad and self.is_leaf, self._storage.writer
        if writer is not None and not was_leaf and (self._offset is not None or other._offset is not None or self._array.shape != other._array.shape):
            raise NotSupported("data: cannot be set on a tensor that was computed as a view, or to a view, or to another shape",
                               why="its history is that of all the memory it is a window on", fix="x.data.copy_(y), or x.detach() first")
        self._array, self._offset = other._array, other._offset
        self._storage = new_storage(other._storage.buffer, memory_of(other))
        self._storage.writer = writer
        if was_leaf:
            self._storage.writer = self._storage.leaf = Leaf(self)

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Adds the derivative of this tensor (of its sum, if it has several elements) to `.grad` of the leaves.

        >>> import mutagrad as mg
        >>> x = mg.tensor(3., requires_grad=True)
        >>> (x ** 2).backward()
        >>> x.grad
        tensor(6.)
        """
        backward((self,), (gradient,), retain_graph, create_graph, inputs)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Calls `hook` with this tensor's gradient in every sweep; what it returns, if anything, replaces it."""
        return register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Calls `hook` with this leaf after a sweep has added to its `.grad`."""
        return register_after(self, hook)

    def retain_grad(self) -> None:
        """Keeps the gradient of a computed tensor in `.grad`, too."""
        retain_grad(self)

    @property
    def retains_grad(self) -> bool:
        return retains_grad(self)

    def is_inference(self) -> bool:
        return False

    # -------------------------------------------------------------------------------------------------- leaving tensors

    def item(self) -> Any:
        if self._array.size != 1:
            raise BadValue(f"item: a tensor of shape {self._array.shape} has {self._array.size} elements, not one", fix="x.tolist()")
        return self._array.item()

    def tolist(self) -> Any:
        return self._array.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """A NumPy array over the same memory."""
        if self.requires_grad and mode.grad and not force:
            raise GradientError("numpy: this tensor requires a gradient, which NumPy would lose", why="Can't call numpy() on Tensor that requires grad",
                                fix="x.detach().numpy()")
        if self.dtype is bfloat16:
            raise BadArgument("numpy: got a tensor of bfloat16", why="NumPy has no such type", fix="x.float().numpy()")
        return export(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        return array if dtype is None and not copy else np.array(array, dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """NumPy's functions of tensors are ours; those that we lack run on the arrays."""
        function = _by_ufunc().get(ufunc)
        if method == "__call__" and function is not None and not settings:
            return function(*inputs)
        arrays = [x.numpy() if isinstance(x, Tensor) else x for x in inputs]
        target = settings.get("out", ())
        if any(isinstance(x, Tensor) for x in target):
            raise NotSupported(f"numpy.{ufunc.__name__}: out= cannot be a tensor", fix="x.copy_(result)")
        result = getattr(ufunc, method)(*arrays, **settings)
        return result if target or not isinstance(result, (np.ndarray, np.generic)) else make(np.array(result))

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        return self.numpy().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the Python array API standard for tensors, for libraries that compute with any array."""
        return rooms.standard(api_version)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise BadValue(f"bool: the truth of a tensor of shape {self._array.shape} is ambiguous", why=f"it has {self._array.size} elements",
                                fix="x.any() or x.all()")
        return bool(self._array.item())

    def _real_item(self) -> Any:
        value = self.item()
        if not isinstance(value, complex):
            return value
        if value.imag:
            raise BadValue(f"item: {value} is not a real number", fix="x.real or abs(x)")
        return value.real

    def __int__(self) -> int:
        return int(self._real_item())

    def __float__(self) -> float:
        return float(self._real_item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iub" or self._array.size != 1:
            raise BadArgument(f"index: only integer tensors of one element can be an index, not {self.dtype.name} of shape {self._array.shape}",
                              fix="int(x)")
        return int(self._array.item())

    def __len__(self) -> int:
        if not self._array.ndim:
            raise BadArgument("len: a 0-d tensor has no length", fix="x.numel()")
        return int(self._array.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise BadArgument("iteration over a 0-d tensor", fix="x.item()")
        return iter(self.unbind(0))

    def __delitem__(self, key: Any) -> None:
        raise BadArgument("del: elements of a tensor cannot be deleted", fix="mutagrad.cat([x[:i], x[i + 1:]])")

    def __reversed__(self) -> Tensor:
        return shapes.flip(self, 0) if self._array.ndim else self

    def __contains__(self, element: Any) -> bool:
        if not isinstance(element, (Tensor, bool, int, float, complex, np.generic)):
            raise BadData(f"in: a tensor holds numbers, not {type(element).__name__}")
        return bool((self == element)._array.any())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        suffixes = [f"size={tuple(self._array.shape)}"] if printing.size_suffix_needed(self._array) else []
        if printing.dtype_suffix_needed(self._array, get_default_dtype().name):
            suffixes.append(f"dtype={self.dtype}")
        if not self.is_leaf:
            suffixes.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            suffixes.append("requires_grad=True")
        named = type(self).__torch_function__ is not answers_nothing and type(self) is not Tensor
        return printing.format_tensor(self._array, suffixes=suffixes, prefix=f"{type(self).__name__}(" if named else "tensor(")

    def __format__(self, spec: str) -> str:
        return printing.format_scalar(self._array, spec) if not self._array.ndim else object.__format__(self, spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """Tensors that share memory share it in the copy, too."""
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        if not self.is_leaf:
            raise GradientError("deepcopy: this tensor was computed, and a copy of it would have no history", fix="x.detach().clone()")
        root = memory_of(self)
        if id(root) not in memo:
            memo[id(root)] = new_storage(root.buffer.copy())
        copied = _rebuild(type(self), memo[id(root)], self._array.shape, self._array.strides, self._offset, self.requires_grad, self._array.dtype)
        copied._grad = None if self._grad is None else self._grad.__deepcopy__(memo)  # type: ignore[attr-defined]
        if hasattr(self, "__dict__") and self.__dict__:
            copied.__dict__.update(self.__dict__)
        memo[id(self)] = copied
        return copied  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A tensor that was computed comes back without its history, as a leaf."""
        window = self._array.shape, self._array.strides, self._offset
        kind = None if type(self) is Tensor else type(self)  # which is found under another path where this package stands for torch
        return _rebuild, (kind, memory_of(self), *window, self.requires_grad, self._array.dtype), attributes_of(self)

    # ---------------------------------------------------------------------------------------------------- element types

    def to(self, *targets: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Tensor:
        """Another element type (or the same device): itself where nothing changes."""
        for target in targets:
            if isinstance(target, Tensor):
                dtype = target.dtype
            elif isinstance(target, (str, _Device)):
                device = target
            elif not isinstance(target, bool):
                dtype = target
        if device is not None and names_meta(device) and not self.is_meta:
            return rooms.part("meta").blank(self if dtype is None else self.to(dtype))  # type: ignore[no-any-return]
        wanted = self._array.dtype if dtype is None else as_dtype(dtype).array_type
        found = elementwise.cast(self, wanted) if self._array.dtype is not wanted else self.clone() if copy else self
        return found if memory_format is None or memory_format is preserve_format else shapes.contiguous(found, memory_format)  # type: ignore[no-any-return]

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        return called(CLASS_NAMES.get(self.dtype, self.dtype.name + "Tensor")) if dtype is None else self.to(
            get_default_dtype() if dtype is Tensor else as_dtype(dtype))

    def type_as(self, other: Tensor) -> Tensor:
        return self.to(other.dtype)

    def cpu(self) -> Tensor:
        return self

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """The array API standard's name for `to(device)`."""
        return self.to(device=device)

    def cuda(self, *arguments: Any, **settings: Any) -> Tensor:
        raise NoDevice("cuda: this build computes on the CPU only", fix="x.cpu(), or leave the device out")

    def float(self, memory_format: Any = None) -> Tensor:
        return self.to(float32, memory_format=memory_format)

    def bfloat16(self, memory_format: Any = None) -> Tensor:
        return self.to(bfloat16, memory_format=memory_format)

    def double(self, memory_format: Any = None) -> Tensor:
        return self.to(float64, memory_format=memory_format)

    def half(self, memory_format: Any = None) -> Tensor:
        return self.to(float16, memory_format=memory_format)

    def long(self, memory_format: Any = None) -> Tensor:
        return self.to(int64, memory_format=memory_format)

    def int(self, memory_format: Any = None) -> Tensor:
        return self.to(int32, memory_format=memory_format)

    def short(self, memory_format: Any = None) -> Tensor:
        return self.to(int16, memory_format=memory_format)

    def char(self, memory_format: Any = None) -> Tensor:
        return self.to(int8, memory_format=memory_format)

    def byte(self, memory_format: Any = None) -> Tensor:
        return self.to(uint8, memory_format=memory_format)

    def bool(self, memory_format: Any = None) -> Tensor:
        return self.to(bool_, memory_format=memory_format)

    def cfloat(self, memory_format: Any = None) -> Tensor:
        return self.to(complex64, memory_format=memory_format)

    def cdouble(self, memory_format: Any = None) -> Tensor:
        return self.to(complex128, memory_format=memory_format)

    # --------------------------------------------------------------------------------------------------------- operators

    __add__ = elementwise.add_values
    __sub__ = elementwise.sub_values
    __mul__ = elementwise.mul
    __truediv__ = elementwise.div_values
    __floordiv__ = elementwise.floor_divide
    __mod__ = elementwise.remainder
    __pow__ = elementwise.pow
    __matmul__ = linalg.matmul
    __neg__ = elementwise.neg
    __pos__ = elementwise.positive
    __abs__ = elementwise.abs
    __and__ = elementwise.bitwise_and
    __or__ = elementwise.bitwise_or
    __xor__ = elementwise.bitwise_xor
    __invert__ = elementwise.bitwise_not
    __lshift__ = elementwise.bitwise_left_shift
    __rshift__ = elementwise.bitwise_right_shift
    __lt__ = elementwise.lt
    __le__ = elementwise.le
    __gt__ = elementwise.gt
    __ge__ = elementwise.ge
    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem

    def __eq__(self, other: Any) -> Any:
        return NotImplemented if _incomparable(other) else elementwise.eq(self, other)

    def __ne__(self, other: Any) -> Any:
        return NotImplemented if _incomparable(other) else elementwise.ne(self, other)

    __radd__ = elementwise.add_values
    __rmul__ = elementwise.mul

    def __rsub__(self, other: Any) -> Any:
        return elementwise.sub_values(other, self)

    def __rtruediv__(self, other: Any) -> Any:
        return elementwise.div_values(other, self)

    __rdiv__ = __rtruediv__

    def __rfloordiv__(self, other: Any) -> Any:
        return elementwise.floor_divide(other, self)

    def __rmod__(self, other: Any) -> Any:
        return elementwise.remainder(other, self)

    def __rpow__(self, other: Any) -> Any:
        return elementwise.pow(other, self)

    def __rmatmul__(self, other: Any) -> Any:
        return linalg.matmul(create.as_tensor(other), self)

    def __rand__(self, other: Any) -> Any:
        return elementwise.bitwise_and(other, self)

    def __ror__(self, other: Any) -> Any:
        return elementwise.bitwise_or(other, self)

    def __rxor__(self, other: Any) -> Any:
        return elementwise.bitwise_xor(other, self)

    def __rlshift__(self, other: Any) -> Any:
        return elementwise.bitwise_left_shift(other, self)

    def __rrshift__(self, other: Any) -> Any:
        return elementwise.bitwise_right_shift(other, self)

    __iadd__ = elementwise.add_values_
    __isub__ = elementwise.sub_values_
    __imul__ = elementwise.mul_
    __itruediv__ = elementwise.div_values_
    __ifloordiv__ = in_place(elementwise.floor_divide)
    __imod__ = in_place(elementwise.remainder)
    __ipow__ = elementwise.pow_
    __iand__ = in_place(elementwise.bitwise_and)
    __ior__ = in_place(elementwise.bitwise_or)
    __ixor__ = in_place(elementwise.bitwise_xor)
    __ilshift__ = in_place(elementwise.bitwise_left_shift)
    __irshift__ = in_place(elementwise.bitwise_right_shift)

    # ------------------------------------------------------------------------------------------------------- elementwise

    add, sub, mul, div = elementwise.add, elementwise.sub, elementwise.mul, elementwise.div
    subtract, multiply, divide, true_divide = sub, mul, div, div
    pow, neg, abs, sign, sgn = elementwise.pow, elementwise.neg, elementwise.abs, elementwise.sign, elementwise.sgn
    negative, absolute, positive, rsub = neg, abs, elementwise.positive, elementwise.rsub
    remainder, fmod, floor_divide = elementwise.remainder, elementwise.fmod, elementwise.floor_divide
    reciprocal, square, sqrt, rsqrt = elementwise.reciprocal, elementwise.square, elementwise.sqrt, elementwise.rsqrt
    exp, exp2, expm1 = elementwise.exp, elementwise.exp2, elementwise.expm1
    log, log2, log10, log1p = elementwise.log, elementwise.log2, elementwise.log10, elementwise.log1p
    logaddexp, hypot, logit = elementwise.logaddexp, elementwise.hypot, elementwise.logit
    sin, cos, tan = elementwise.sin, elementwise.cos, elementwise.tan
    asin, acos, atan, atan2 = elementwise.asin, elementwise.acos, elementwise.atan, elementwise.atan2
    arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
    sinh, cosh, tanh = elementwise.sinh, elementwise.cosh, elementwise.tanh
    asinh, acosh, atanh = elementwise.asinh, elementwise.acosh, elementwise.atanh
    arcsinh, arccosh, arctanh = asinh, acosh, atanh
    deg2rad, rad2deg, conj = elementwise.deg2rad, elementwise.rad2deg, elementwise.conj
    sigmoid, relu, erf = elementwise.sigmoid, elementwise.relu, elementwise.erf
    floor, ceil, trunc, round, frac = elementwise.floor, elementwise.ceil, elementwise.trunc, elementwise.round, elementwise.frac
    fix = trunc
    clamp, minimum, maximum = elementwise.clamp, elementwise.minimum, elementwise.maximum
    clip, fmin, fmax = clamp, elementwise.fmin, elementwise.fmax
    lerp, addcmul, addcdiv = elementwise.lerp, elementwise.addcmul, elementwise.addcdiv
    eq, ne, lt, le, gt, ge = elementwise.eq, elementwise.ne, elementwise.lt, elementwise.le, elementwise.gt, elementwise.ge
    not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge
    logical_and, logical_or = elementwise.logical_and, elementwise.logical_or
    logical_xor, logical_not = elementwise.logical_xor, elementwise.logical_not
    bitwise_and, bitwise_or = elementwise.bitwise_and, elementwise.bitwise_or
    bitwise_xor, bitwise_not = elementwise.bitwise_xor, elementwise.bitwise_not
    bitwise_left_shift, bitwise_right_shift = elementwise.bitwise_left_shift, elementwise.bitwise_right_shift
    isnan, isinf, isfinite, signbit = elementwise.isnan, elementwise.isinf, elementwise.isfinite, elementwise.signbit
    isclose, allclose, equal = elementwise.isclose, elementwise.allclose, elementwise.equal

    def where(self, condition: Tensor, other: Any) -> Tensor:
        return elementwise.where(condition, self, other)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------------------------------------ elementwise, in place

    add_, sub_, mul_, div_ = elementwise.add_, elementwise.sub_, elementwise.mul_, elementwise.div_
    subtract_, multiply_, divide_, true_divide_ = sub_, mul_, div_, div_
    pow_, clamp_, clip_, round_ = elementwise.pow_, elementwise.clamp_, elementwise.clamp_, elementwise.round_
    lerp_, addcmul_, addcdiv_ = elementwise.lerp_, elementwise.addcmul_, elementwise.addcdiv_
    neg_, abs_, sign_, sgn_ = in_place(neg), in_place(abs), in_place(sign), in_place(sgn)
    negative_, absolute_ = neg_, abs_
    remainder_, fmod_, floor_divide_ = in_place(remainder), in_place(fmod), in_place(floor_divide)
    reciprocal_, square_, sqrt_, rsqrt_ = in_place(reciprocal), in_place(elementwise.square_values), in_place(sqrt), in_place(rsqrt)
    exp_, exp2_, expm1_ = in_place(exp), in_place(exp2), in_place(expm1)
    log_, log2_, log10_, log1p_ = in_place(log), in_place(log2), in_place(log10), in_place(log1p)
    sin_, cos_, tan_ = in_place(sin), in_place(cos), in_place(tan)
    asin_, acos_, atan_, atan2_ = in_place(asin), in_place(acos), in_place(atan), in_place(atan2)
    sinh_, cosh_, tanh_ = in_place(sinh), in_place(cosh), in_place(tanh)
    asinh_, acosh_, atanh_ = in_place(asinh), in_place(acosh), in_place(atanh)
    deg2rad_, rad2deg_, hypot_ = in_place(deg2rad), in_place(rad2deg), in_place(hypot)
    sigmoid_, relu_, erf_ = in_place(sigmoid), in_place(relu), in_place(erf)
    floor_, ceil_, trunc_, frac_ = in_place(floor), in_place(ceil), in_place(trunc), in_place(frac)
    eq_, ne_, lt_, le_, gt_, ge_ = in_place(eq), in_place(ne), in_place(lt), in_place(le), in_place(gt), in_place(ge)
    logical_and_, logical_or_ = in_place(logical_and), in_place(logical_or)
    logical_xor_, logical_not_ = in_place(logical_xor), in_place(logical_not)
    bitwise_and_, bitwise_or_ = in_place(bitwise_and), in_place(bitwise_or)
    bitwise_xor_, bitwise_not_ = in_place(bitwise_xor), in_place(bitwise_not)
    arcsin_, arccos_, arctan_, arctan2_, arcsinh_, arccosh_, arctanh_ = asin_, acos_, atan_, atan2_, asinh_, acosh_, atanh_
    not_equal_, less_, less_equal_, greater_, greater_equal_, fix_ = ne_, lt_, le_, gt_, ge_, trunc_

    def clamp_min(self, min: Any) -> Tensor:
        return elementwise.clamp(self, as_operand(min, "clamp_min"))  # type: ignore[no-any-return]

    def clamp_max(self, max: Any) -> Tensor:
        return elementwise.clamp(self, None, as_operand(max, "clamp_max"))  # type: ignore[no-any-return]

    def clamp_min_(self, min: Any) -> Tensor:
        return elementwise.clamp_(self, as_operand(min, "clamp_min_"))  # type: ignore[no-any-return]

    def clamp_max_(self, max: Any) -> Tensor:
        return elementwise.clamp_(self, None, as_operand(max, "clamp_max_"))  # type: ignore[no-any-return]

    copy_, fill_, zero_ = indexing.copy_, indexing.fill_, indexing.zero_
    uniform_, normal_ = create.uniform_, create.normal_

    # --------------------------------------------------------------------------------------------------------- reductions

    sum, mean, prod, var, std = reduce.sum, reduce.mean, reduce.prod, reduce.var, reduce.std
    max, min, amax, amin, aminmax = reduce.max, reduce.min, reduce.amax, reduce.amin, reduce.aminmax
    argmax, argmin, any, all = reduce.argmax, reduce.argmin, reduce.any, reduce.all
    cumsum, cumprod, logsumexp, norm, dist = reduce.cumsum, reduce.cumprod, reduce.logsumexp, reduce.norm, reduce.dist
    softmax, log_softmax, count_nonzero = reduce.softmax, reduce.log_softmax, reduce.count_nonzero
    sort, argsort, topk = sorting.sort, sorting.argsort, sorting.topk

    def cumsum_(self, dim: Any, *, dtype: Any = None) -> Tensor:
        return self.copy_(self.cumsum(dim, dtype=dtype))  # type: ignore[no-any-return]

    def cumprod_(self, dim: Any, *, dtype: Any = None) -> Tensor:
        return self.copy_(self.cumprod(dim, dtype=dtype))  # type: ignore[no-any-return]

    # ----------------------------------------------------------------------------------------------------------- products

    matmul, mm, bmm, mv, dot, outer = linalg.matmul, linalg.mm, linalg.bmm, linalg.mv, linalg.dot, linalg.outer
    addmm, ger = linalg.addmm, linalg.outer

    # ------------------------------------------------------------------------------------------------------------- shapes

    reshape, flatten, unflatten = shapes.reshape, shapes.flatten, shapes.unflatten
    transpose, permute, movedim, t = shapes.transpose, shapes.permute, shapes.movedim, shapes.t
    swapaxes, swapdims, moveaxis = transpose, transpose, movedim
    squeeze, unsqueeze, expand, expand_as = shapes.squeeze, shapes.unsqueeze, shapes.expand, shapes.expand_as
    broadcast_to, narrow, select = shapes.broadcast_to, shapes.narrow, shapes.select
    chunk, split, unbind = shapes.chunk, shapes.split, shapes.unbind
    diagonal, unfold, as_strided = shapes.diagonal, shapes.unfold, shapes.as_strided
    repeat, tile, flip, roll = shapes.repeat, shapes.tile, shapes.flip, shapes.roll
    contiguous = shapes.contiguous

    def clone(self, *, memory_format: Any = None) -> Tensor:
        """A copy with history: gradients pass through."""
        if memory_format is not None:
            return shapes.copied(self, memory_format=memory_format)  # type: ignore[no-any-return]
        return shapes.clone(self)  # type: ignore[no-any-return]

    def view(self, *shape_or_dtype: Any, size: Any = None, dtype: Any = None) -> Tensor:
        """A view of another shape, or of the same bytes as elements of another type; never a copy."""
        if not shape_or_dtype and (size is not None or dtype is not None):
            shape_or_dtype = (dtype if size is None else size,)
        if len(shape_or_dtype) == 1 and isinstance(shape_or_dtype[0], type(float32)):
            return self if shape_or_dtype[0] is self.dtype else rooms.load("complex").view_as_dtype(self, shape_or_dtype[0])  # type: ignore[no-any-return]
        return shapes.view_as_shape(self, *shape_or_dtype)  # type: ignore[no-any-return]

    def view_as(self, other: Tensor) -> Tensor:
        return shapes.view_as_shape(self, *other._array.shape)  # type: ignore[no-any-return]

    def reshape_as(self, other: Tensor) -> Tensor:
        return shapes.reshape(self, *other._array.shape)  # type: ignore[no-any-return]

    def ravel(self) -> Tensor:
        return shapes.reshape(self, -1)  # type: ignore[no-any-return]

    @property
    def real(self) -> Tensor:
        """The real parts: a view that can be written through."""
        return rooms.load("complex").real(self)  # type: ignore[no-any-return]

    @real.setter
    def real(self, value: Any) -> None:
        self.real.copy_(value)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts: a view that can be written through."""
        return rooms.load("complex").imag(self)  # type: ignore[no-any-return]

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag.copy_(value)

    T = property(shapes.reverse_dims)

    @property
    def mT(self) -> Tensor:
        return shapes.transpose(self, -2, -1)  # type: ignore[no-any-return]

    def squeeze_(self, dim: Any = None) -> Tensor:
        return self._become(shapes.squeeze(self, dim))

    def unsqueeze_(self, dim: Any) -> Tensor:
        return self._become(shapes.unsqueeze(self, dim))

    def t_(self) -> Tensor:
        return self._become(shapes.t(self))

    def transpose_(self, dim0: Any = None, dim1: Any = None, *, axis0: Any = None, axis1: Any = None) -> Tensor:
        return self._become(shapes.transpose(self, dim0, dim1, axis0=axis0, axis1=axis1))

    swapaxes_ = swapdims_ = transpose_

    def _become(self, other: Tensor) -> Tensor:
        """Takes over another window on the same storage: how forms like `squeeze_` change shape in place."""
        self._array, self._offset = other._array, other._offset
        return self

    # ------------------------------------------------------------------------------------------------------------ indexing

    index_put, index_put_, index_select = selecting.index_put, selecting.index_put_, selecting.index_select
    index_add, index_add_, index_copy = selecting.index_add, selecting.index_add_, selecting.index_copy
    index_copy_, index_fill, index_fill_ = selecting.index_copy_, selecting.index_fill, selecting.index_fill_
    gather, scatter, scatter_ = selecting.gather, selecting.scatter, selecting.scatter_
    scatter_add, scatter_add_ = selecting.scatter_add, selecting.scatter_add_
    scatter_reduce, scatter_reduce_ = selecting.scatter_reduce, selecting.scatter_reduce_
    masked_fill, masked_fill_, masked_select = selecting.masked_fill, selecting.masked_fill_, selecting.masked_select
    masked_scatter, masked_scatter_ = selecting.masked_scatter, selecting.masked_scatter_
    take, put, put_, take_along_dim = selecting.take, selecting.put_copy, selecting.put_, selecting.take_along_dim
    nonzero, argwhere = selecting.nonzero, selecting.argwhere

    # ---------------------------------------------------------------------------------------------------------------- new

    new_tensor, new_zeros, new_ones = create.new_tensor, create.new_zeros, create.new_ones
    new_empty, new_full = create.new_empty, create.new_full


_Device = device
_ufuncs: dict[Any, Any] = {}


def _by_ufunc() -> dict[Any, Any]:
    if _ufuncs.get("of") != len(TABLE):  # rooms are loaded when first used
        _ufuncs["of"] = len(TABLE)
        _ufuncs.update({op.forward: op.function for op in TABLE.values() if isinstance(op.forward, np.ufunc)})
        _ufuncs.update({np.matmul: linalg.matmul, np.power: elementwise.pow, np.sign: elementwise.sgn, np.conjugate: elementwise.conj,
                        np.remainder: elementwise.remainder, np.fmod: elementwise.fmod, np.floor_divide: elementwise.floor_divide})
    return _ufuncs


def _incomparable(other: Any) -> bool:
    return not isinstance(other, (Tensor, bool, int, float, complex, np.generic, np.ndarray))


class ViewOfLeaf:
    """The `grad_fn` of a view of a leaf. Views have no node of their own."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf

    def name(self) -> str:
        return "ViewBackward0"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return ((self.leaf, 0),)

    def __repr__(self) -> str:
        return "<ViewBackward0>"


def attributes_of(tensor: Tensor) -> Any:
    """What a pickle keeps beside the elements: attributes that the program has given it, or what its class says."""
    own = getattr(type(tensor), "__getstate__", None)
    return tensor.__dict__ or None if own is getattr(object, "__getstate__", None) else own(tensor)  # type: ignore[misc]


def _rebuild(cls: type[Tensor] | None, storage: Storage, size: Any, strides: Any, offset: int | None, requires_grad: bool, dtype: Any) -> Any:
    made = object.__new__(cls or Tensor)
    made._storage = storage if offset is None and storage.writer is None else new_storage(storage.buffer, storage)
    made._array = storage.buffer if offset is None else np.ndarray(size, np.dtype(dtype.type), storage.buffer, offset, strides)
    made._offset, made._grad = offset, None
    return made.requires_grad_(requires_grad)


results_are(Tensor)
rooms.furnish(Tensor)


def is_tensor(obj: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    return shapes.tensor_argument(input, "is_floating_point").is_floating_point()  # type: ignore[no-any-return]


def is_complex(input: Tensor) -> bool:
    return shapes.tensor_argument(input, "is_complex").is_complex()  # type: ignore[no-any-return]


def numel(input: Tensor) -> int:
    return shapes.tensor_argument(input, "numel").numel()  # type: ignore[no-any-return]


def result_type(tensor: Any, other: Any) -> dtype:
    """The type in which an operation on these two computes."""
    return operand_dtype([as_operand(tensor, "result_type"), as_operand(other, "result_type")])


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a write of one type into the other is allowed."""
    return from_.category <= to.category
