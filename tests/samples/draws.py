"""Random numbers have no reference: `tests/ops/test_draws.py` looks at their statistics."""

from .base import elsewhere

elsewhere("bernoulli binomial multinomial normal poisson bernoulli_ cauchy_ exponential_ geometric_ log_normal_ random_")
