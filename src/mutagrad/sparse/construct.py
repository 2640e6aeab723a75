"""Sparse tensors made of indices and values, and the conditions that these must meet."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays import np
from ..base.device import check_device, device as Device
from ..base.errors import BadArgument, BadIndex, BadValue, ShapeError
from ..base.layout import layout as Layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ..base.operands import Array
from ..core import dtypes
from ..core.size import sizes
from ..ops.create.create import ElementType, as_tensor, zeros
from ..tensors.tensor import Tensor
from .compressed import BY_ROWS, IN_BLOCKS, Compressed
from .coordinates import Coordinates, _in_order
from .tensor import index_of

FUNCTIONS = """
    sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor
    sparse_bsc_tensor"""



class check_sparse_tensor_invariants:
    """Whether indices are checked in full when a sparse tensor is made: a switch, a block, or a decorator.

    That they lie within the size is always checked; in full means that those of compressed tensors are in order, too.

    >>> import mutagrad as mg
    >>> try:
    ...     with mg.sparse.check_sparse_tensor_invariants():
    ...         mg.sparse_csr_tensor([0, 2], [1, 0], [1., 2.], (1, 2))
    ... except mg.MutagradError as error:
    ...     print(error.what)
    sparse_csr_tensor: the indices of a row or column are not in order, each once
    """

    _on = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted, self._before = enable, []  # type: ignore[var-annotated]

    @staticmethod
    def is_enabled() -> bool:
        """Return whether indices are checked in full.

        >>> import mutagrad as mg
        >>> mg.sparse.check_sparse_tensor_invariants.is_enabled()
        False
        """
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable() -> None:
        """Check indices in full from now on.

        >>> import mutagrad as mg
        >>> mg.sparse.check_sparse_tensor_invariants.enable()
        >>> mg.sparse.check_sparse_tensor_invariants.is_enabled()
        True
        >>> mg.sparse.check_sparse_tensor_invariants.disable()
        """
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable() -> None:
        """Do not check indices in full from now on, which is so unless something else is asked for.

        >>> import mutagrad as mg
        >>> mg.sparse.check_sparse_tensor_invariants.disable()
        >>> mg.sparse.check_sparse_tensor_invariants.is_enabled()
        False
        """
        check_sparse_tensor_invariants._on = False

    def __enter__(self) -> None:
        self._before.append(check_sparse_tensor_invariants._on)
        check_sparse_tensor_invariants._on = self._wanted

    def __exit__(self, *error: Any) -> None:
        check_sparse_tensor_invariants._on = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._wanted):
                return function(*args, **kwargs)

        return checked


def _indices(given: Any, name: str) -> Tensor:
    found = given if isinstance(given, Tensor) else as_tensor(given)
    if found._array.dtype.kind not in "iu" and found._array.size:
        raise BadArgument(f"{name}: indices must be integers, not {found.dtype}", fix="indices.long()")
    found = found.detach()
    return found if found.dtype in (dtypes.int64, dtypes.int32) else found.to(dtypes.int64)


def _values(given: Any, dtype: ElementType | None, requires_grad: bool) -> Tensor:
    found = given if isinstance(given, Tensor) else as_tensor(given)
    found = found if dtype is None else found.to(dtype)
    return found.detach() if requires_grad else found


def _finished(made: Any, requires_grad: bool) -> Any:
    return made.requires_grad_() if requires_grad else made


def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Sequence[int] | None = None, *,
                      dtype: ElementType | None = None, device: Device | str | int | None = None,
                      pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> Any:
    """Make a sparse tensor in coordinates, of indices (a column for each value) and values; or an empty one of a size.

    >>> import mutagrad as mg
    >>> mg.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    check_device(device)
    if values is None:
        return _finished(empty_coo(sizes((indices if size is None else size,)), dtype=dtype), requires_grad)
    places, numbers = _indices(indices, "sparse_coo_tensor"), _values(values, dtype, requires_grad)
    if places.ndim != 2:
        raise ShapeError("sparse_coo_tensor: indices must be a matrix with a row for each dimension, "
                         f"not of shape {tuple(places.shape)}", fix="[[row, row], [column, column]]")
    if places.shape[1] != (numbers.shape[0] if numbers.ndim else 1):
        raise ShapeError("sparse_coo_tensor: indices and values must have same nnz, but got nnz from indices: "
                         f"{places.shape[1]}, nnz from values: {numbers.shape[0] if numbers.ndim else 1}",
                         why="each value has a place")
    numbers = numbers if numbers.ndim else numbers.expand(1)
    places = places.to(dtypes.int64)
    array, given = places._array, None if size is None else sizes((size,))
    found = (*(n + 1 for n in array.max(1, initial=-1).tolist()), *numbers.shape[1:])
    _check_places(array, found, found if given is None else given, numbers)
    if is_coalesced and check_invariants and not _in_order(array, found):
        raise BadIndex("sparse_coo_tensor: cannot set is_coalesced to true if indices correspond to uncoalesced "
                       "COO tensor", fix="is_coalesced=False")
    made = Coordinates.of(places, numbers, found if given is None else given, bool(is_coalesced)
                          or is_coalesced is None and array.shape[1] < 2)
    return _finished(made, requires_grad)


def _check_places(array: Array, found: tuple[int, ...], size: tuple[int, ...], numbers: Tensor) -> None:
    first = len(array)
    if len(size) != len(found) or size[first:] != found[first:]:
        raise ShapeError(f"sparse_coo_tensor: size {size} does not fit {first} sparse dimensions "
                         f"and values of shape {tuple(numbers.shape)}")
    if (array < 0).any() or any(n > m for n, m in zip(found[:first], size)):
        raise BadIndex(f"sparse_coo_tensor: size is inconsistent with indices: a place lies outside of size {size}",
                       fix=f"size={found}")


def empty_coo(size: Sequence[int], dense_dim: int = 0, dtype: ElementType | None = None) -> Coordinates:
    """Return a tensor that is zero everywhere."""
    first = len(size) - dense_dim
    return Coordinates.of(index_of(np.zeros((first, 0))), zeros((0, *size[first:]), dtype=dtype), size, True)


def empty_compressed(size: Sequence[int], wanted: Layout, blocksize: Sequence[int] = (1, 1), dense_dim: int = 0,
                     dtype: ElementType | None = None) -> Compressed:
    """Return a matrix, or a batch of some, that is zero everywhere."""
    if len(size) < 2:
        raise ShapeError("empty: Only batched sparse compressed (non-block) tensors are supported, but got size "
                         f"{size}")
    first = len(size) - 2 - dense_dim
    batch, lines = tuple(size[:first]), size[first + (wanted not in BY_ROWS)]
    inner = tuple(blocksize) if wanted in IN_BLOCKS else ()
    count = lines // (blocksize[wanted not in BY_ROWS] if inner else 1)
    return Compressed.of(index_of(np.zeros((*batch, count + 1))), index_of(np.zeros((*batch, 0))),
                         zeros((*batch, 0, *inner, *size[first + 2:]), dtype=dtype), size, wanted)


def empty_of(size: Sequence[int], wanted: Layout, dtype: ElementType | None = None) -> Any:
    """Return what `zeros(size, layout=wanted)` is.

    >>> import mutagrad as mg
    >>> mg.sparse.empty_of((2, 3), mg.sparse_coo).shape
    mutagrad.Size([2, 3])
    """
    if wanted in IN_BLOCKS:
        raise ShapeError(f"empty: {wanted} has blocks of a size that is not known here",
                         fix="mutagrad.zeros(size).to_sparse_bsr(blocksize)")
    return empty_coo(size, dtype=dtype) if wanted is sparse_coo else empty_compressed(size, wanted, dtype=dtype)


# ---------------------------------------------------------------------------------------------------------- compressed

def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any,
                             size: Sequence[int] | None = None, *, dtype: ElementType | None = None,
                             layout: Layout | None = None, device: Device | str | int | None = None,
                             pin_memory: bool = False, requires_grad: bool = False,
                             check_invariants: bool | None = None) -> Any:
    """Make a sparse matrix of one of the compressed layouts, or a batch of some.

    >>> import mutagrad as mg
    >>> x = mg.sparse_compressed_tensor([0, 1, 2], [1, 0], [3., 4.], layout=mg.sparse_csr)
    >>> x.to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if layout not in _NAMES:
        raise BadArgument(f"sparse_compressed_tensor: layout={layout} is none of the compressed ones",
                          fix="layout=mutagrad.sparse_csr")
    name, wanted = _NAMES[layout], layout
    check_device(device)
    starts, others = _indices(compressed_indices, name), _indices(plain_indices, name)
    numbers = _values(values, dtype, requires_grad)
    batch = starts.ndim - 1
    inner = 2 * (wanted in IN_BLOCKS)
    if batch < 0 or others.ndim != batch + 1 or numbers.ndim < batch + 1 + inner \
            or tuple(numbers.shape[:batch + 1]) != tuple(others.shape) or starts.shape[:-1] != others.shape[:-1]:
        raise ShapeError(f"{name}: indices of shapes {tuple(starts.shape)} and {tuple(others.shape)} do not fit "
                         f"values of shape {tuple(numbers.shape)}", why="each value, or block, has an index")
    if not starts.shape[-1]:
        raise ShapeError(f"{name}: the compressed indices are empty", why="there is one more than rows or columns")
    given = None if size is None else sizes((size,))
    found = _size_of(starts, others, numbers, wanted) if given is None else given
    made = Compressed.of(starts, others, numbers, found, wanted)
    checked = check_sparse_tensor_invariants.is_enabled() if check_invariants is None else check_invariants
    _check_compressed(made, name, checked)
    return _finished(made, requires_grad)


def _size_of(starts: Tensor, others: Tensor, numbers: Tensor, wanted: Layout) -> tuple[int, ...]:
    """Return the smallest size that has these places."""
    batch, inner = starts.ndim - 1, 2 * (wanted in IN_BLOCKS)
    rows, columns = numbers.shape[batch + 1:batch + 3] if inner else (1, 1)
    lines, across = starts.shape[-1] - 1, int(others._array.max(initial=-1)) + 1
    matrix = (lines * rows, across * columns) if wanted in BY_ROWS else (across * rows, lines * columns)
    return (*starts.shape[:-1], *matrix, *numbers.shape[batch + 1 + inner:])


def _check_compressed(x: Compressed, name: str, in_full: bool) -> None:
    starts, others, batch, (rows, columns) = x._starts._array, x._others._array, x.batch_dim(), x.blocksize()
    size = tuple(x.shape)
    dense = tuple(x._numbers.shape[batch + 1 + 2 * (x.layout in IN_BLOCKS):])
    lines = size[batch:batch + 2] if x.layout in BY_ROWS else size[batch + 1:batch - 1 if batch else None:-1]
    block = (rows, columns) if x.layout in BY_ROWS else (columns, rows)
    fits = (len(size) == batch + 2 + len(dense) and size[:batch] == starts.shape[:-1] and size[batch + 2:] == dense
            and not any(n % b for n, b in zip(lines, block)))
    if not fits or starts.shape[-1] != lines[0] // block[0] + 1:
        raise ShapeError(f"{name}: size {size} does not fit indices of shapes {starts.shape} and {others.shape} "
                         f"and values of shape {tuple(x._numbers.shape)}",
                         why="the compressed indices are one more than rows or columns")
    if (starts[..., 0] != 0).any() or (starts[..., -1] != others.shape[-1]).any() or (np.diff(starts) < 0).any():
        raise BadIndex(f"{name}: the compressed indices do not rise from 0 to {others.shape[-1]}, the count of values")
    if (others < 0).any() or (others >= lines[1] // block[1]).any():
        raise BadIndex(f"{name}: an index lies outside of size {size}")
    if in_full and (np.diff(others) <= 0)[_within_lines(starts, others.shape[-1])].any():
        raise BadIndex(f"{name}: the indices of a row or column are not in order, each once", fix="sort them")


def _within_lines(starts: Array, count: int) -> Array:
    """Return of which neighbours among the indices both are of one line."""
    same = np.ones((*starts.shape[:-1], max(count - 1, 0)), bool)
    for batch in np.ndindex(starts.shape[:-1]):
        ends = starts[batch][1:-1]
        same[batch][ends[(ends > 0) & (ends < count)] - 1] = False
    return same


_NAMES = {kind: f"{kind.name}_tensor" for kind in (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)}


def _made(wanted: Layout, starts: Any, others: Any, values: Any, size: Sequence[int] | None,
          settings: dict[str, Any]) -> Any:
    if settings.pop("layout", wanted) is not wanted:
        raise BadValue(f"{_NAMES[wanted]}: makes tensors of layout {wanted}", fix="leave layout out")
    return sparse_compressed_tensor(starts, others, values, size, layout=wanted, **settings)


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Sequence[int] | None = None,
                      **settings: Any) -> Any:
    """Make a sparse matrix of where each row begins, the column of each value, and values; or a batch of some.

    >>> import mutagrad as mg
    >>> mg.sparse_csr_tensor([0, 1, 2], [2, 0], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    return _made(sparse_csr, crow_indices, col_indices, values, size, settings)


def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[int] | None = None,
                      **settings: Any) -> Any:
    """Make a sparse matrix of where each column begins, the row of each value, and values; or a batch of some.

    >>> import mutagrad as mg
    >>> x = mg.sparse_csc_tensor([0, 1, 2], [1, 0], [3., 4.])
    >>> x.to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    return _made(sparse_csc, ccol_indices, row_indices, values, size, settings)


def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Sequence[int] | None = None,
                      **settings: Any) -> Any:
    """Make a sparse matrix of where each row of blocks begins, the column of each block, and blocks of values.

    >>> import mutagrad as mg
    >>> x = mg.sparse_bsr_tensor([0, 1], [0], mg.ones(1, 2, 2), size=(2, 2))
    >>> x.to_dense()
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _made(sparse_bsr, crow_indices, col_indices, values, size, settings)


def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[int] | None = None,
                      **settings: Any) -> Any:
    """Make a sparse matrix of where each column of blocks begins, the row of each block, and blocks of values.

    >>> import mutagrad as mg
    >>> x = mg.sparse_bsc_tensor([0, 1], [0], mg.ones(1, 2, 2), size=(2, 2))
    >>> x.to_dense()
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _made(sparse_bsc, ccol_indices, row_indices, values, size, settings)
