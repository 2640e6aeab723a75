"""Device tensors and compiled steps, by way of JAX and XLA. Nothing here is loaded until it is used."""
