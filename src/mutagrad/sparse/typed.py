"""PyTorch's oldest constructors: `sparse.FloatTensor(indices, values, size)`."""
from __future__ import annotations

from typing import Any

from ..base.docstrings import with_example
from ..core import dtypes
from .construct import empty_coo, sparse_coo_tensor
from .coordinates import Coordinates


class _Typed(type):
    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Coordinates) and instance.dtype is cls.dtype

    def __call__(cls, *given: Any, **settings: Any) -> Any:
        if len(given) in (2, 3) and not isinstance(given[0], int):
            return sparse_coo_tensor(*given, dtype=None if given[1].dtype == cls.dtype else cls.dtype)
        shape = tuple(given[0]) if len(given) == 1 and not isinstance(given[0], int) else given or (0,)
        return empty_coo(shape, dtype=cls.dtype)


def _typed(of: dtypes.dtype) -> Any:
    name = dtypes.CLASS_NAMES[of]
    doc = with_example(f"Sparse tensors of {of.name}.", ">>> indices, values = mg.tensor([[0], [1]]), mg.tensor([3.])",
                       f">>> mg.sparse.{name}(indices, values, (2, 2)).dtype", f"{of}")
    return _Typed(name, (), {"dtype": of, "__module__": "mutagrad.sparse", "__doc__": doc})


FloatTensor, DoubleTensor = _typed(dtypes.float32), _typed(dtypes.float64)
HalfTensor, BFloat16Tensor = _typed(dtypes.float16), _typed(dtypes.bfloat16)
ByteTensor, CharTensor, ShortTensor = _typed(dtypes.uint8), _typed(dtypes.int8), _typed(dtypes.int16)
IntTensor, LongTensor = _typed(dtypes.int32), _typed(dtypes.int64)
