"""Compiling is most of what these tests do: XLA takes half the time where LLVM does not optimise. Nothing is kept on disk."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
os.environ.setdefault("MUTAGRAD_CACHE", "0")
