"""Smooth stand-ins for operations that have no derivative: argmax, sorting, rounding, an index that is computed."""
