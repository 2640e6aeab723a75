"""JAX's errors as those that this library knows."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax

from .memory import not_traced

Rule = Callable[..., Any]


def refusing(function: Rule) -> Rule:
    """Return a function that refuses, as this library does, what JAX cannot do without values."""
    @wraps(function)
    def rule(*arguments: Any, **settings: Any) -> Any:
        try:
            return function(*arguments, **settings)
        except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError) as error:
            raise not_traced("a size, a place or a choice depends on values that are not known yet") from error
        except TypeError as error:
            if "shape" not in str(error):
                raise
            raise ValueError(str(error)) from None  # as NumPy says it, whose errors this library knows

    return rule
