"""Compiling is most of what these tests do: LLVM does not optimise, and what is compiled is in pytest's cache for the next run."""

import os

import pytest

# Loops are compiled one by one, and by one thread: programs are as small as the samples.
QUICKLY = ("--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false "
           "--xla_cpu_parallel_codegen_split_count=1")

os.environ.setdefault("XLA_FLAGS", QUICKLY)
os.environ.setdefault("MUTAGRAD_CACHE", "0")


def pytest_configure(config: pytest.Config) -> None:
    if (kept := getattr(config, "cache", None)) is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(kept.mkdir("programs")))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
