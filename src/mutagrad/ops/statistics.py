"""Reductions that few programs use: medians, quantiles, running extremes, covariance."""
from __future__ import annotations
