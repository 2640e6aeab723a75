"""Writes the .pyi files, by which type checkers know what is generated or loaded lazily. `make stubs` runs it."""
