"""Operations as few operations of XLA's: what NumPy does in blocks, stripes or steps is one call there.

A kernel means what the operation's own forward means (see `core.op.kernel`), for arrays in XLA's memory. In a recorded
sweep rules run on tensors, and are those that the operation was declared with.
"""
from . import attention, convolution, elementwise, linalg, losses, normalization, pooling, recurrent, reductions

__all__ = ["attention", "convolution", "elementwise", "linalg", "losses", "normalization", "pooling", "recurrent",
           "reductions"]
