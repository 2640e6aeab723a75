"""A tensor's memory as an object, for programs that ask whether two tensors share it or how large it is."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..backends import np
from ..construct import make
from ..device import CPU, device
from ..dtypes import dtype, of_array
from ..errors import BadIndex, NotSupported
from ..storage import memory_of


class TypedStorage:
    """The elements of the whole storage that a tensor is a window on, in the order of memory.

    >>> import mutagrad as mg
    >>> x = mg.arange(6).reshape(2, 3)
    >>> x[1].storage().data_ptr() == x.storage().data_ptr(), len(x[1].storage())
    (True, 6)
    """

    def __init__(self, tensor: Any) -> None:
        self._tensor, self._memory = tensor, memory_of(tensor)
        self._flat = self._memory.buffer.reshape(-1).view(tensor._array.dtype)

    @property
    def dtype(self) -> dtype:
        return of_array(self._flat.dtype)

    @property
    def device(self) -> device:
        return CPU

    is_cuda = is_sparse = False

    def data_ptr(self) -> int:
        return self._flat.__array_interface__["data"][0]  # type: ignore[no-any-return]

    def size(self) -> int:
        return self._flat.size  # type: ignore[no-any-return]

    __len__ = size

    def nbytes(self) -> int:
        return self._flat.nbytes  # type: ignore[no-any-return]

    def element_size(self) -> int:
        return self._flat.itemsize  # type: ignore[no-any-return]

    def is_shared(self) -> bool:
        return False

    def tolist(self) -> list[Any]:
        return self._flat.tolist()  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _place(self, index: int) -> int:
        if not -self.size() <= index < self.size():
            raise BadIndex(f"storage: index {index} is out of range for {self.size()} elements")
        return index

    def __getitem__(self, index: int) -> Any:
        return self._flat[self._place(index)].item()

    def __setitem__(self, index: int, value: Any) -> None:
        raise NotSupported("storage: cannot be written element by element", why="only writes through a tensor are seen by derivatives", fix="x[i] = value")

    def untyped(self) -> TypedStorage:
        return UntypedStorage(self._tensor)

    def __repr__(self) -> str:
        return "\n".join([*(f" {v}" for v in self.tolist()), f"[{type(self).__name__}(dtype={self.dtype}, device=cpu) of size {self.size()}]"])


class UntypedStorage(TypedStorage):
    """The same, byte by byte."""

    def __init__(self, tensor: Any) -> None:
        super().__init__(tensor)
        self._flat = self._flat.view("uint8")

    size = TypedStorage.nbytes
    __len__ = TypedStorage.nbytes

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, read when they are looked at."""
        if shared:
            raise NotSupported("UntypedStorage.from_file: shared=True is not supported", why="writes to the file would not be seen by derivatives",
                               fix="shared=False")
        return cls(make(np.asarray(np.memmap(filename, np.uint8, "c", 0, (nbytes,))) if nbytes else np.empty(0, np.uint8)))

    def __getitem__(self, index: Any) -> Any:
        return UntypedStorage(make(self._flat[index])) if isinstance(index, slice) else super().__getitem__(index)


def storage(x: Any) -> TypedStorage:
    """The whole memory that the tensor is a window on."""
    return TypedStorage(x)


def untyped_storage(x: Any) -> UntypedStorage:
    """The same, byte by byte."""
    return UntypedStorage(x)
