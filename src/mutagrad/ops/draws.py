"""Random numbers of the common distributions."""
from __future__ import annotations
