"""The modes that look for nan in a sweep, under PyTorch's path."""
from __future__ import annotations

from .modes import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
