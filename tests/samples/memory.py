"""`storage` is tested in test_tensor.py."""

from .base import elsewhere

elsewhere("storage untyped_storage")
