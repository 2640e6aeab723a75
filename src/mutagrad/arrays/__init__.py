"""The only place that names an array library: `np` is the array namespace that everything else is written against."""
from .numpy import np

__all__ = ["np"]
