"""JAX without `jax.jit`: every operation is dispatched by itself."""

from peers.jax_programs import table

ROWS = table(compiled=False)
