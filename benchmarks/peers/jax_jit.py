"""JAX under `jax.jit`."""

from peers.jax_programs import table

ROWS = table(compiled=True)
