"""Settings of a code generator, written as attributes: `torch._inductor.config.coordinate_descent_tuning = True`."""
