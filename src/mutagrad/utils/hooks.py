"""What registering a hook gives back."""
from __future__ import annotations

from ..nn.hooks import Handle as RemovableHandle

__all__ = ["RemovableHandle"]
