"""The functions that layers are made of, under PyTorch's names. Each room of `ops/` lists its own."""
from __future__ import annotations

from ..ops import activation, attention, conv, embedding, loss, normalize, pad, pool, resample
from ..ops.activation import *
from ..ops.attention import *
from ..ops.conv import *
from ..ops.embedding import *
from ..ops.loss import *
from ..ops.normalize import *
from ..ops.pad import *
from ..ops.pool import *
from ..ops.resample import *

__all__: list[str] = []
__all__ += activation.__all__
__all__ += attention.__all__
__all__ += conv.__all__
__all__ += embedding.__all__
__all__ += loss.__all__
__all__ += normalize.__all__
__all__ += pad.__all__
__all__ += pool.__all__
__all__ += resample.__all__
