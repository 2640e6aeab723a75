# `make stubs` writes this file from src/mutagrad/random.py.
# mypy: disable-error-code="misc, override, overload-overlap, assignment"

from mutagrad.ops.random.generator import (Generator as Generator, fork_rng as fork_rng, get_rng_state as get_rng_state,
    initial_seed as initial_seed, manual_seed as manual_seed, seed as seed, set_rng_state as set_rng_state,
    source as source)

