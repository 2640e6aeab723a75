"""A JAX program in which only the loss, an edit distance that fills a table, is written with mutagrad.

    python examples/interop/jax_edit_distance.py [--steps N]

The costs of replacing one letter by another are learned from pairs of words with the number of edits between them that
a person would count. The step is JAX's: `jit`, `vmap` over the pairs, `value_and_grad`.
"""
import argparse

import jax
import jax.numpy as jnp
import numpy as np

import mutagrad as mg
from mutagrad import interop

LETTERS, LENGTH = 4, 5


@interop.jax
def edits(costs, first, second):
    """The least cost of making one word of the other: `costs` to replace letters, 1 to insert or remove one."""
    n, m = len(first), len(second)
    table = mg.zeros(n + 1, m + 1)
    table[:, 0], table[0] = mg.arange(n + 1.0), mg.arange(m + 1.0)
    for i in range(n):
        for j in range(m):
            replaced = table[i, j] + costs[first[i], second[j]]
            changed = mg.minimum(table[i, j + 1], table[i + 1, j]) + 1
            table[i + 1, j + 1] = mg.minimum(replaced, changed)
    return table[n, m]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, metavar="N")
    steps = parser.parse_args(arguments).steps
    random = np.random.default_rng(0)
    first, second = random.integers(LETTERS, size=(2, 16, LENGTH))
    true = 1 - np.eye(LETTERS, dtype=np.float32)
    true[0, 1] = true[1, 0] = 0.2  # these two sound alike
    distances = jax.vmap(edits, (None, 0, 0))
    wanted = distances(true, first, second)

    @jax.jit
    def train(costs):
        loss, gradient = jax.value_and_grad(lambda costs: ((distances(costs, first, second) - wanted) ** 2).mean())(costs)
        return jnp.clip(costs - 0.5 * gradient, 0), loss

    costs, losses = jnp.full((LETTERS, LETTERS), 0.6), []
    for step in range(1, steps + 1):
        costs, loss = train(costs)
        losses.append(loss.item())
        if step % 10 == 0:
            print(f"step {step:3}  squared error {losses[-1]:.4f}")
    print(f"the costs that were learned:\n{np.asarray(costs).round(2)}")
    if steps >= 60 and losses[-1] > 0.05 * losses[0]:
        raise SystemExit("missed the goal: the error should be at most a twentieth of what it was")
    return losses


if __name__ == "__main__":
    main()
