"""Settings of a code generator, which programs write as attributes: `torch._inductor.config.coordinate_descent_tuning = True`."""
