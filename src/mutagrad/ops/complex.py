"""Complex numbers: their parts, angles and views."""
from __future__ import annotations
