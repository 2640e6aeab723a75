"""A tensor's memory as an object, for programs that ask whether two tensors share it or how large it is."""
from __future__ import annotations

import builtins
import operator
import os
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from ..arrays import np
from ..arrays.kinds import address_of
from ..base.device import device
from ..base.errors import BadArgument, BadIndex, BadValue, DTypeError, NotSupported
from ..base.package_name import called
from ..core.dtypes import (
    CLASS_NAMES,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    of_array,
    uint8,
)
from ..core.factory import make, view, whole_memory
from ..core.storage import TensorBase, export_for_good, ledger_of, memory_of

FUNCTIONS = "TypedStorage UntypedStorage"
METHODS = "storage untyped_storage"


class TypedStorage:
    """The elements of the whole storage that a tensor is a window on, in the order of memory.

    >>> import mutagrad as mg
    >>> x = mg.arange(6).reshape(2, 3)
    >>> x[1].storage().data_ptr() == x.storage().data_ptr(), len(x[1].storage())
    (True, 6)
    """

    def __init__(self, tensor: TensorBase) -> None:
        self._tensor, self._memory = tensor, memory_of(tensor)
        self._flat = self._all()

    def _all(self) -> Any:
        """The elements, or those that are left since `resize_`."""
        flat = self._memory.buffer.reshape(-1).view(self._tensor._array.dtype)
        held = getattr(self._memory.ledger, "held", None)
        return flat if held is None else flat.view("uint8")[:held - held % flat.itemsize].view(flat.dtype)

    @property
    def dtype(self) -> dtype:
        """The type of the elements.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.dtype
        mutagrad.float32
        """
        return of_array(self._flat.dtype)

    @property
    def device(self) -> device:
        """Where the memory is.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.device
        device(type='cpu')
        """
        return self._tensor.device  # type: ignore[no-any-return]

    @property
    def is_cuda(self) -> builtins.bool:
        """Whether the memory is a GPU's.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.is_cuda
        False
        """
        return self.device.type == "cuda"

    is_sparse = False

    def data_ptr(self) -> builtins.int:
        """Return the address of the first byte.

        >>> import mutagrad as mg
        >>> x = mg.zeros(3)
        >>> x.storage().data_ptr() == x.data_ptr()
        True
        """
        return address_of(self._flat)

    def size(self) -> builtins.int:
        """Return how many elements there are.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.size()
        3
        """
        return self._flat.size  # type: ignore[no-any-return]

    __len__ = size

    def nbytes(self) -> builtins.int:
        """Return how many bytes there are.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.nbytes()
        12
        """
        return self._flat.nbytes  # type: ignore[no-any-return]

    def element_size(self) -> builtins.int:
        """Return how many bytes an element takes.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.element_size()
        4
        """
        return self._flat.itemsize  # type: ignore[no-any-return]

    def is_shared(self) -> builtins.bool:
        """Return whether other processes see the memory.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.is_shared()
        False
        """
        return False

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.tolist()
        [1.0, 2.0, 3.0]
        """
        return self._flat.tolist()  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _place(self, index: builtins.int) -> builtins.int:
        if not -self.size() <= index < self.size():
            raise BadIndex(f"storage: index {index} is out of range for {self.size()} elements")
        return index

    def __getitem__(self, index: builtins.int) -> Any:
        return self._flat[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.as_tensor(self._flat.dtype)[index if isinstance(index, slice) else self._place(index)] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Write one value everywhere.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.fill_(5.).tolist()
        [5.0, 5.0, 5.0]
        """
        self.as_tensor(self._flat.dtype).fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Write the elements of another storage.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.copy_(mg.zeros(3).storage()).tolist()
        [0.0, 0.0, 0.0]
        """
        self.as_tensor(self._flat.dtype).copy_(source.as_tensor(source._flat.dtype))
        return self

    def resize_(self, size: builtins.int) -> Any:
        """Change the number of elements: what is beyond is undefined until there are as many again.

        So programs give memory back, and ask for it before they write to it. Here it stays, with what it held.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> _ = storage.resize_(2)
        >>> storage.tolist()
        [1.0, 2.0]
        """
        size, had = operator.index(size), self._memory.buffer.nbytes
        item = self._flat.itemsize
        if size < 0:
            raise BadValue(f"storage: cannot have {size} elements", fix="storage.resize_(0)")
        if size * item > had:
            raise NotSupported(f"storage: {size * item} bytes are asked for, and there are {had}",
                               why="tensors are windows on this memory, which does not move",
                               fix="x.resize_(...), for one tensor")
        ledger_of(self._memory).held = size * item
        self.__init__(self._tensor)  # type: ignore[misc]
        return self

    def clone(self) -> TypedStorage:
        """Return a copy with memory of its own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.clone().tolist()
        [1.0, 2.0, 3.0]
        """
        return self.__class__(make(self._flat.copy()))

    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> TypedStorage:
        """Copied together with tensors, it is the memory of their copies."""
        return self.__class__(deepcopy(self.as_tensor(self._flat.dtype), memo))

    def to(self, dtype: Any) -> TypedStorage:
        """Return a copy with the elements converted.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.to("cpu").device
        device(type='cpu')
        """
        return TypedStorage(self.as_tensor(self._flat.dtype).to(dtype, copy=True))

    def bool(self) -> TypedStorage:
        """Return the elements as bool, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.bool().dtype
        mutagrad.bool
        """
        return self.to(bool_)

    def byte(self) -> TypedStorage:
        """Return the elements as uint8, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.byte().dtype
        mutagrad.uint8
        """
        return self.to(uint8)

    def char(self) -> TypedStorage:
        """Return the elements as int8, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.char().dtype
        mutagrad.int8
        """
        return self.to(int8)

    def short(self) -> TypedStorage:
        """Return the elements as int16, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.short().dtype
        mutagrad.int16
        """
        return self.to(int16)

    def int(self) -> TypedStorage:
        """Return the elements as int32, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.int().dtype
        mutagrad.int32
        """
        return self.to(int32)

    def long(self) -> TypedStorage:
        """Return the elements as int64, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.long().dtype
        mutagrad.int64
        """
        return self.to(int64)

    def half(self) -> TypedStorage:
        """Return the elements as float16, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.half().dtype
        mutagrad.float16
        """
        return self.to(float16)

    def bfloat16(self) -> TypedStorage:
        """Return the elements as bfloat16, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.bfloat16().dtype
        mutagrad.bfloat16
        """
        return self.to(bfloat16)

    def float(self) -> TypedStorage:
        """Return the elements as float32, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.float().dtype
        mutagrad.float32
        """
        return self.to(float32)

    def double(self) -> TypedStorage:
        """Return the elements as float64, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.double().dtype
        mutagrad.float64
        """
        return self.to(float64)

    def complex_float(self) -> TypedStorage:
        """Return the elements as complex64, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.complex_float().dtype
        mutagrad.complex64
        """
        return self.to(complex64)

    def complex_double(self) -> TypedStorage:
        """Return the elements as complex128, in a storage of their own.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.complex_double().dtype
        mutagrad.complex128
        """
        return self.to(complex128)

    def cpu(self) -> TypedStorage:
        """Return the elements in the CPU's memory: the storage itself where they are there.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.cpu().device
        device(type='cpu')
        """
        return self

    def type(self) -> str:
        """Return the name of the class that PyTorch has for storages of such elements.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.type()
        'mutagrad.FloatStorage'
        """
        return called(CLASS_NAMES[self.dtype].replace("Tensor", "Storage"))

    @property
    def _cdata(self) -> builtins.int:
        return self.data_ptr()

    def __sizeof__(self) -> builtins.int:
        return object.__sizeof__(self) + self.nbytes()

    def as_tensor(self, dtype: Any) -> Any:
        """Return all of the memory as a vector of elements of an array's type."""
        if dtype != self._flat.dtype and self.__class__ is TypedStorage:
            raise DTypeError(f"storage: elements of {self.dtype.name} cannot be shown as {of_array(dtype).name}",
                             fix="x.untyped_storage()")
        return view(whole_memory(self._memory), (self.nbytes() // dtype.itemsize,), (dtype.itemsize,), 0, dtype)

    def untyped(self) -> TypedStorage:
        """Return the same memory, byte by byte.

        >>> import mutagrad as mg
        >>> storage = mg.tensor([1., 2., 3.]).storage()
        >>> storage.untyped().nbytes()
        12
        """
        return UntypedStorage(self._tensor)

    def __repr__(self) -> str:
        title = called(f"storage.{self.__class__.__name__}")
        last = f"[{title}(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
        return "\n".join([*(f" {v}" for v in self.tolist()), last])


class UntypedStorage(TypedStorage):
    """The same, byte by byte.

    >>> import mutagrad as mg
    >>> mg.tensor([1, 2], dtype=mg.uint8).untyped_storage().tolist()
    [1, 2]
    """

    def __init__(self, tensor: TensorBase) -> None:
        super().__init__(tensor)
        self._flat = self._flat.view("uint8")

    size = TypedStorage.nbytes
    __len__ = TypedStorage.nbytes

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: builtins.bool = False,
                  nbytes: builtins.int = 0) -> UntypedStorage:
        """Return the bytes of a file, read when they are looked at.

        >>> import mutagrad as mg
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(bytes([1, 2, 3, 4]))
        ...     file.flush()
        ...     mg.UntypedStorage.from_file(file.name, False, 4).tolist()
        [1, 2, 3, 4]
        """
        if shared:
            raise NotSupported("UntypedStorage.from_file: shared=True is not supported",
                               why="writes to the file would not be seen by derivatives", fix="shared=False")
        if not isinstance(nbytes, (builtins.int, np.integer)):
            raise BadArgument(f"UntypedStorage.from_file: nbytes is an integer, not {nbytes.__class__.__name__}",
                              fix="nbytes=os.path.getsize(filename)")
        held = os.path.getsize(filename)
        if not 0 <= nbytes <= held:
            raise BadValue(f"UntypedStorage.from_file: {nbytes} bytes are asked for, and {filename} has {held}",
                           fix="nbytes=os.path.getsize(filename)")
        if not nbytes:
            return cls(make(np.empty(0, np.uint8)))
        return cls(make(np.asarray(np.memmap(filename, np.uint8, "c", 0, (nbytes,)))))

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return super().__getitem__(index)
        part = make(self._flat[index])
        for seen in (self._tensor, part):  # from now on either side writes to what the other has saved
            export_for_good(seen)
        return UntypedStorage(part)


def storage(x: TensorBase) -> TypedStorage:
    """Return the whole memory that the tensor is a window on.

    >>> import mutagrad as mg
    >>> mg.tensor([1., 2., 3.])[1:].storage().tolist()
    [1.0, 2.0, 3.0]
    """
    return TypedStorage(x)


def untyped_storage(x: TensorBase) -> UntypedStorage:
    """Return the same, byte by byte.

    >>> import mutagrad as mg
    >>> mg.zeros(3).untyped_storage().nbytes()
    12
    """
    return UntypedStorage(x)
