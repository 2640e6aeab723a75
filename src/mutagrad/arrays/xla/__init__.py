"""Memory on XLA's devices (CPU, GPU, TPU), by way of JAX; and the same memory while a step is traced."""
