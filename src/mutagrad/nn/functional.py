"""The functions that layers are made of, under PyTorch's names. Each room of `ops/` lists its own."""
from __future__ import annotations

from ..ops import activation as _activation
from ..ops import attention as _attention
from ..ops import classes as _classes
from ..ops import conv as _conv
from ..ops import ctc as _ctc
from ..ops import dropout as _dropout
from ..ops import embedding as _embedding
from ..ops import linear as _linear
from ..ops import loss as _loss
from ..ops import margins as _margins
from ..ops import normalize as _normalize
from ..ops import pad as _pad
from ..ops import pool as _pool
from ..ops import resample as _resample
from ..ops.activation import *
from ..ops.attention import *
from ..ops.classes import *
from ..ops.conv import *
from ..ops.ctc import *
from ..ops.dropout import *
from ..ops.embedding import *
from ..ops.linear import *
from ..ops.loss import *
from ..ops.margins import *
from ..ops.normalize import *
from ..ops.pad import *
from ..ops.pool import *
from ..ops.resample import *

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
