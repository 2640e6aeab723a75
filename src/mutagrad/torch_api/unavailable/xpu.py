"""What a program asks about Intel's GPUs: there are none here."""
from __future__ import annotations

from .devices import answers

globals().update(answers("xpu"))
