"""Stress: what many threads, signals and misuse do to the library. A module's `run(seed)` is one round, for `fuzz/soak.py`."""
