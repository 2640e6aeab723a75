"""Where gradients went: why one is None or zero, what PyTorch would do with a program, pictures and tables of it."""
