"""PyTorch's path to `Chi2`."""
from .gamma import Chi2

__all__ = ["Chi2"]
