"""Sequences of different lengths in one tensor: padded to one length, or packed step by step."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...arrays import np
from ...base.errors import BadArgument, BadData, BadValue, NotSupported, ShapeError
from ...base.operands import Array
from ...core.dtypes import float16, float32, float64, int8, int16, int32, int64, uint8
from ...core.factory import make
from ...ops.create.create import full
from ...ops.shape.shape import tensor_argument
from ...tensors.tensor import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence"]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """The elements of all sequences, step by step: `batch_sizes` says how many sequences still go on at each.

    >>> import mutagrad as mg
    >>> from mutagrad.nn.utils.rnn import pack_sequence
    >>> pack_sequence([mg.tensor([1, 2, 3]), mg.tensor([4])]).data
    tensor([1, 4, 2, 3])
    """

    def __new__(cls, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
                unsorted_indices: Tensor | None = None) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise BadArgument("PackedSequence: expects data and batch_sizes",
                                  fix="nn.utils.rnn.pack_sequence(sequences)")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *targets: Any, **settings: Any) -> PackedSequence:
        """Return the same with its data in another type.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.to(mg.float64).data.dtype
        mutagrad.float64
        """
        data = self.data.to(*targets, **settings)
        return self if data is self.data else PackedSequence(data, *self[1:])

    def cpu(self, *targets: Any, **settings: Any) -> PackedSequence:
        """Return the same sequences in the CPU's memory.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.cpu().data.device
        device(type='cpu')
        """
        return self.to(*targets, **settings)

    def cuda(self, *targets: Any, **settings: Any) -> PackedSequence:
        raise NotSupported("cuda: this build computes on the CPU only", fix="packed.cpu(), or leave the device out")

    def double(self) -> PackedSequence:
        """Return the same sequences with elements of type float64.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.double().data.dtype
        mutagrad.float64
        """
        return self.to(dtype=float64)

    def float(self) -> PackedSequence:
        """Return the same sequences with elements of type float32.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.float().data.dtype
        mutagrad.float32
        """
        return self.to(dtype=float32)

    def half(self) -> PackedSequence:
        """Return the same sequences with elements of type float16.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.half().data.dtype
        mutagrad.float16
        """
        return self.to(dtype=float16)

    def long(self) -> PackedSequence:
        """Return the same sequences with elements of type int64.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.long().data.dtype
        mutagrad.int64
        """
        return self.to(dtype=int64)

    def int(self) -> PackedSequence:
        """Return the same sequences with elements of type int32.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.int().data.dtype
        mutagrad.int32
        """
        return self.to(dtype=int32)

    def short(self) -> PackedSequence:
        """Return the same sequences with elements of type int16.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.short().data.dtype
        mutagrad.int16
        """
        return self.to(dtype=int16)

    def char(self) -> PackedSequence:
        """Return the same sequences with elements of type int8.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.char().data.dtype
        mutagrad.int8
        """
        return self.to(dtype=int8)

    def byte(self) -> PackedSequence:
        """Return the same sequences with elements of type uint8.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.byte().data.dtype
        mutagrad.uint8
        """
        return self.to(dtype=uint8)

    @property
    def is_cuda(self) -> bool:
        return False

    def is_pinned(self) -> bool:
        """Return whether the memory is pinned for copies to a GPU.

        >>> import mutagrad as mg
        >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
        >>> packed.is_pinned()
        False
        """
        return False


def invert_permutation(permutation: Tensor | None) -> Any:
    """Return where each position went: `x[p][invert_permutation(p)]` is x.

    >>> import mutagrad as mg
    >>> mg.nn.utils.rnn.invert_permutation(mg.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    return make(np.argsort(tensor_argument(permutation, "invert_permutation")._array, kind="stable"))


def _whole_lengths(lengths: Tensor | Sequence[int], name: str) -> Any:
    found = np.asarray(lengths.detach()._array if isinstance(lengths, Tensor) else lengths)
    if found.ndim != 1 or not found.size:
        raise ShapeError(f"{name}: lengths must be a list of one number for each sequence, got shape {found.shape}",
                         fix="lengths=[3, 2]")
    return found.astype(np.int64)


def _places(lengths: Array) -> tuple[Array, Array, Array]:
    """Of packed elements, the step and the sequence of each; and how many sequences there are at each step."""
    alive = np.arange(lengths.max())[:, None] < lengths
    steps, sequences = np.nonzero(alive)
    return steps, sequences, alive.sum(1)


def pack_padded_sequence(input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Packs the first `lengths` elements of the sequences in a padded tensor.

    >>> import mutagrad as mg
    >>> x = mg.tensor([[1., 2., 3.], [4., 5., 0.]])
    >>> packed = mg.nn.utils.rnn.pack_padded_sequence(x, [3, 2], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1., 4., 2., 5., 3.]), tensor([2, 2, 1]))
    """
    name = "pack_padded_sequence"
    shape = tensor_argument(input, name)._array.shape
    if 0 in shape:
        raise ShapeError(f"{name}: cannot pack empty tensors, got shape {shape}", fix="leave them out")
    counts = _whole_lengths(lengths, name)
    batch, longest = (shape if batch_first else shape[1::-1])[:2] if len(shape) > 1 else (0, 0)
    if len(shape) < 2 or len(counts) != batch:
        raise ShapeError(f"{name}: {len(counts)} lengths for an input of shape {shape}",
                         why=f"it holds {batch} sequences", fix=f"{batch} lengths")
    if counts.min() <= 0:
        raise BadValue(f"{name}: every length must be above 0, got {counts.tolist()}", fix="leave empty sequences out")
    if counts.max() > longest:
        raise ShapeError(f"{name}: a length of {counts.max()} in sequences of {longest} steps",
                         fix=f"lengths up to {longest}")
    order = None
    if not enforce_sorted:
        order = np.argsort(-counts, kind="stable")
        counts = counts[order]
    elif (counts[1:] > counts[:-1]).any():
        raise BadValue(f"{name}: lengths must be sorted in decreasing order, got {counts.tolist()}",
                       fix="You can pass `enforce_sorted=False`")
    steps, sequences, sizes = _places(counts)
    sequences = sequences if order is None else order[sequences]
    index = (sequences, steps) if batch_first else (steps, sequences)
    return PackedSequence(input[tuple(map(make, index))], make(sizes), None if order is None else make(order))


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the sequences in one padded tensor, in the order in which they were packed, and their lengths.

    >>> import mutagrad as mg
    >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
    >>> x, lengths = mg.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    >>> x, lengths
    (tensor([[1., 2.],
            [3., 0.]]), tensor([2, 1]))
    """
    if not isinstance(sequence, tuple) or len(sequence) != 4:
        raise BadArgument(f"pad_packed_sequence: expects a PackedSequence, got {type(sequence).__name__}",
                          fix="pack_padded_sequence(x, lengths)")
    data, batch_sizes, _, unsorted = sequence
    sizes = batch_sizes._array
    longest = len(sizes) if total_length is None else total_length
    if longest < len(sizes):
        raise BadValue("pad_packed_sequence: Expected total_length to be at least the length of the longest sequence "
                       f"in input, got {total_length} for {len(sizes)}", fix=f"total_length={len(sizes)}")
    counts = (np.arange(sizes[0])[:, None] < sizes).sum(1)
    steps, sequences, _ = _places(counts)
    if unsorted is not None:
        sequences = np.argsort(unsorted._array, kind="stable")[sequences]
        counts = counts[unsorted._array]
    index, lead = (steps, sequences), (longest, int(sizes[0]))
    if batch_first:
        index, lead = index[::-1], lead[::-1]
    out = full((*lead, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    out[tuple(map(make, index))] = data
    return out, make(counts)


def pad_sequence(sequences: Tensor | Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Any:
    """Put sequences of different lengths into one tensor, filled up to the longest.

    >>> import mutagrad as mg
    >>> mg.nn.utils.rnn.pad_sequence([mg.ones(3), mg.ones(1)], batch_first=True)
    tensor([[1., 1., 1.],
            [1., 0., 0.]])
    """
    found = _sequences(sequences, "pad_sequence")
    if padding_side not in ("left", "right"):
        raise BadValue(f"pad_sequence: padding_side must be 'left' or 'right', not {padding_side!r}",
                       fix="padding_side='right'")
    rest = found[0].shape[1:]
    if any(s.shape[1:] != rest for s in found):
        raise ShapeError(f"pad_sequence: sequences of shapes {[tuple(s.shape) for s in found]} differ in more than "
                         "their length", fix="the same features in each")
    longest = max(len(s) for s in found)
    out = full((len(found), longest, *rest), padding_value, dtype=found[0].dtype, device=found[0].device)
    for row, s in zip(out, found):
        start = 0 if padding_side == "right" else longest - len(s)
        row[start:start + len(s)] = s
    return out if batch_first else out.transpose(0, 1)


def _sequences(sequences: Tensor | Iterable[Tensor], name: str) -> Sequence[Tensor]:
    if isinstance(sequences, Tensor):
        return list(sequences)
    if not isinstance(sequences, Iterable):
        raise BadData(f"{name}: Expected iterable for input sequences, but got arg of type {type(sequences).__name__}",
                      fix=f"{name}([x, y])")
    found = [tensor_argument(s, name) for s in sequences]
    if not found:
        raise BadValue(f"{name}: the list of sequences is empty", fix="at least one")
    return found


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor | Sequence[int],
                   batch_first: bool = False) -> list[Tensor]:
    """Return the sequences that a padded tensor holds.

    >>> import mutagrad as mg
    >>> x = mg.tensor([[1., 2., 3.], [4., 5., 0.]])
    >>> mg.nn.utils.rnn.unpad_sequence(x, mg.tensor([3, 2]), batch_first=True)
    [tensor([1., 2., 3.]), tensor([4., 5.])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(rows, _whole_lengths(lengths, "unpad_sequence").tolist())]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences.

    >>> import mutagrad as mg
    >>> mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])]).data
    tensor([1., 3., 2.])
    """
    found = _sequences(sequences, "pack_sequence")
    return pack_padded_sequence(pad_sequence(found), [len(s) for s in found], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the list of sequences that were packed.

    >>> import mutagrad as mg
    >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1., 2.]), mg.tensor([3.])])
    >>> mg.nn.utils.rnn.unpack_sequence(packed)
    [tensor([1., 2.]), tensor([3.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
