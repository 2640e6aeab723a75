"""The CPU as a device: one, always there, never waited for."""
from __future__ import annotations

from .devices import answers

globals().update(answers("cpu"))
