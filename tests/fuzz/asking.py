"""Ways to ask for the gradient of a program: what `.grad` of a leaf is before the sweeps, and how many there are."""

from __future__ import annotations

BEFORE = 0.5  # what stands in a gradient that was there before


def fresh(library, x):
    x.grad = None
    return lambda: True


def expanded(library, x):
    """One element that seems to be many: it belongs to somebody else, and must stay as it is."""
    one = library.tensor(BEFORE, dtype=library.float64)
    x.grad = one.expand(tuple(x.shape))
    return lambda: x.numel() == 1 or one.item() == BEFORE


def view(library, x):
    """A part of a buffer: what stands around it must stay as it is."""
    buffer = library.full((x.numel() + 2,), BEFORE, dtype=library.float64)
    x.grad = buffer[1:-1].reshape(tuple(x.shape))
    return lambda: buffer[0].item() == buffer[-1].item() == BEFORE


def turned(library, x):
    shape = tuple(x.shape)
    x.grad = library.full(shape[::-1], BEFORE, dtype=library.float64).permute(*range(len(shape))[::-1])
    return lambda: True


def stepped(library, x):
    buffer = library.full((2 * x.numel(),), BEFORE, dtype=library.float64)
    x.grad = buffer[::2].reshape(tuple(x.shape))
    return lambda: (buffer[1::2] == BEFORE).all().item()


# By name: how `.grad` is prepared, what it is then, and the number of sweeps.
ASKING = {
    "once": (fresh, 0.0, 1),
    "twice": (fresh, 0.0, 2),
    "into an expanded tensor": (expanded, BEFORE, 2),
    "into a view": (view, BEFORE, 2),
    "into a transposed view": (turned, BEFORE, 2),
    "into a stepped view": (stepped, BEFORE, 2),
}


def gradients(program, library, loss, leaves, kept, **options):
    """Of each leaf; None where there is none, and of a probe whose gradient the program did not keep."""
    if not loss.requires_grad:  # every leaf was overwritten
        return [None] * len(leaves)
    wanted = [x for x, leaf in zip(leaves, program.leaves) if not leaf.probe]
    if program.indirect:
        return list(library.autograd.grad(loss, wanted, allow_unused=True, **options))
    return filled(program, library, loss, wanted, kept, **options)


def filled(program, library, loss, leaves, kept, **options):
    """What the sweeps have added to `.grad`, for each of them. With a graph there is one only: it is what is looked at."""
    prepare, before, sweeps = ASKING[program.asking]
    sweeps = 1 if options else sweeps
    checks = [prepare(library, x) for x in leaves]
    for gradient in kept.gradients.values():
        gradient.forget()
    for left in reversed(range(sweeps)):
        loss.backward(**options, **({"retain_graph": True} if left else {}))
    assert all(check() for check in checks), f"{program.asking}: somebody else's memory was changed"
    found = iter([None if x.grad is None else x.grad - before if before else x.grad for x in leaves])
    found = [kept.gradients[leaf.name].total() if leaf.name in kept.gradients else None if leaf.probe else next(found) for leaf in program.leaves]
    return [g / sweeps if g is not None and sweeps > 1 else g for g in found]
