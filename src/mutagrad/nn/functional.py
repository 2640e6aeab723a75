"""The functions that layers are made of, under PyTorch's names. Each room of `ops/` lists its own."""
from __future__ import annotations

from ..ops.nn import (
    activation as _activation,
    attention as _attention,
    conv as _conv,
    cross_entropy as _classes,
    ctc as _ctc,
    dropout as _dropout,
    embedding as _embedding,
    linear as _linear,
    loss as _loss,
    margins as _margins,
    normalize as _normalize,
    pad as _pad,
    pool as _pool,
    resample as _resample,
)
from ..ops.nn.activation import *
from ..ops.nn.attention import *
from ..ops.nn.conv import *
from ..ops.nn.cross_entropy import *
from ..ops.nn.ctc import *
from ..ops.nn.dropout import *
from ..ops.nn.embedding import *
from ..ops.nn.linear import *
from ..ops.nn.loss import *
from ..ops.nn.margins import *
from ..ops.nn.normalize import *
from ..ops.nn.pad import *
from ..ops.nn.pool import *
from ..ops.nn.resample import *

__all__: list[str] = []
__all__ += _activation.__all__
__all__ += _attention.__all__
__all__ += _classes.__all__
__all__ += _conv.__all__
__all__ += _ctc.__all__
__all__ += _dropout.__all__
__all__ += _embedding.__all__
__all__ += _linear.__all__
__all__ += _loss.__all__
__all__ += _margins.__all__
__all__ += _normalize.__all__
__all__ += _pad.__all__
__all__ += _pool.__all__
__all__ += _resample.__all__
