"""Custom functions that programs apply, in terms of any library with PyTorch's API. The mirror runs their forwards only."""

from __future__ import annotations

# Ways to look at a tensor. `flat` copies where the elements do not lie one after the other.
VIEWS = {
    "rows": lambda t: t[1:],
    "step": lambda t: t[::2],
    "last": lambda t: t[..., -1],
    "flat": lambda t: t.reshape(-1),
    "turned": lambda t: t.T,
    "wrapped": lambda t: t.unsqueeze(0),
    "all": lambda t: t[...],
    "itself": lambda t: t,
}


def functions_of(library):
    """By name."""
    return {f.__name__: f for f in (*plain(library), *viewing(library), *saving(library))}


def plain(library):
    class ScaledSin(library.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return library.sin(x * k)

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * ctx.k * library.cos(x * ctx.k), None

    class InPlaceTanh(library.autograd.Function):
        @staticmethod
        def forward(ctx, y):
            y.tanh_()
            ctx.mark_dirty(y)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            out, = ctx.saved_tensors
            return g * (1 - out * out)

    class AddSquare(library.autograd.Function):
        """y += x * x, where the two do not overlap."""

        @staticmethod
        def forward(ctx, y, x):
            ctx.save_for_backward(x)
            ctx.mark_dirty(y)
            return y.add_(x * x)

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g, 2 * g * x

    class SinCos(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return library.sin(x), library.cos(x)

        @staticmethod
        def backward(ctx, g_sin, g_cos):
            x, = ctx.saved_tensors
            return g_sin * library.cos(x) - g_cos * library.sin(x)

    return ScaledSin, InPlaceTanh, AddSquare, SinCos


def viewing(library):
    """Functions whose results are views: of an input, of something on the way, of each other."""

    def shaped(g, shape):
        """The gradient of a result, which has the result's shape."""
        assert tuple(g.shape) == tuple(shape), f"a gradient of shape {tuple(g.shape)} for a result of shape {tuple(shape)}"
        return g

    def put_back(g, shape, how):
        """The gradient of what was looked at: zeros but for what was seen."""
        whole = library.zeros(tuple(shape), dtype=library.float64)
        seen = VIEWS[how](whole)
        seen.add_(shaped(g, seen.shape))
        return whole

    class Look(library.autograd.Function):
        """A view of the input."""

        @staticmethod
        def forward(ctx, x, how):
            ctx.shape, ctx.how = x.shape, how
            return VIEWS[how](x if getattr(x, "requires_grad", True) else x[...])  # a constant would be returned as it is

        @staticmethod
        def backward(ctx, g):
            return put_back(g, ctx.shape, ctx.how), None

    class LookAtSin(library.autograd.Function):
        """A view of something that nobody else sees."""

        @staticmethod
        def forward(ctx, x, how):
            ctx.save_for_backward(x)
            ctx.how = how
            return VIEWS[how](library.sin(x))

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return put_back(g, x.shape, ctx.how) * library.cos(x), None

    class Widen(library.autograd.Function):
        """The input, or its sine, repeated without being copied."""

        @staticmethod
        def forward(ctx, x, times, bare):
            ctx.save_for_backward(x)
            ctx.bare, ctx.wide = bare, (times, *x.shape)
            return (x if bare else library.sin(x)).expand(*ctx.wide)

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            g = shaped(g, ctx.wide).sum(0)
            return g if ctx.bare else g * library.cos(x), None, None

    class TwoViews(library.autograd.Function):
        """Results that lie in the same memory."""

        @staticmethod
        def forward(ctx, x, first, second):
            ctx.save_for_backward(x)
            ctx.how = first, second
            y = library.sin(x)
            return VIEWS[first](y), VIEWS[second](y)

        @staticmethod
        def backward(ctx, *gs):
            x, = ctx.saved_tensors
            first, second = (put_back(g, x.shape, how) for g, how in zip(gs, ctx.how))
            return (first + second) * library.cos(x), None, None

    class WithItself(library.autograd.Function):
        """The input unchanged, and a result."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x, x * x

        @staticmethod
        def backward(ctx, g, g_square):
            x, = ctx.saved_tensors
            return g + 2 * x * g_square

    class ScalePart(library.autograd.Function):
        """Writes to a view of the input."""

        @staticmethod
        def forward(ctx, x, how, k):
            ctx.mark_dirty(x)
            ctx.how, ctx.k = how, k
            VIEWS[how](x).mul_(k)
            return x

        @staticmethod
        def backward(ctx, g):
            g = g.clone()
            VIEWS[ctx.how](g).mul_(ctx.k)
            return g, None, None

    return Look, LookAtSin, Widen, TwoViews, WithItself, ScalePart


def saving(library):
    """Functions that do more with what they save than to read it."""

    class SquareOfView(library.autograd.Function):
        """Saves a view of its input, and computes with it when it is differentiated."""

        @staticmethod
        def forward(ctx, x, how):
            seen = VIEWS[how](x)
            ctx.save_for_backward(seen)
            ctx.shape, ctx.how = x.shape, how
            return seen * seen

        @staticmethod
        def backward(ctx, g):
            seen, = ctx.saved_tensors
            whole = library.zeros(tuple(ctx.shape), dtype=library.float64)
            VIEWS[ctx.how](whole).add_(2 * seen * g)
            return whole, None

    class Spoiling(library.autograd.Function):
        """The product; overwrites what it saved when it has been differentiated."""

        @staticmethod
        def forward(ctx, x, y, how):
            out = x * y
            ctx.save_for_backward(x, y, out)
            ctx.how = how
            return out

        @staticmethod
        def backward(ctx, g):
            x, y, out = ctx.saved_tensors
            answers = g * y, g * x, None
            for t in (x, y, out):
                SPOIL[ctx.how](library, t)
            return answers

    class Adjoint(library.autograd.Function):
        """`function()`, which reads w; differentiated by running it once more, as adjoint methods for equations do."""

        @staticmethod
        def forward(ctx, function, w):
            ctx.save_for_backward(w)
            ctx.function = function
            return function().clone()

        @staticmethod
        def backward(ctx, g):
            w, = ctx.saved_tensors
            with library.enable_grad():
                found, = library.autograd.grad(ctx.function(), [w], [g], allow_unused=True, create_graph=library.is_grad_enabled())
            return None, library.zeros_like(w) if found is None else found

    return SquareOfView, Spoiling, Adjoint


def under_no_grad(library, t):
    with library.no_grad():
        t.mul_(3.0)


def through_numpy(library, t):
    array = t.detach().numpy()
    if array.flags.writeable:
        array[...] = 7.0


# Ways to overwrite a saved value that was asked for: what others see must stay as it is.
SPOIL = {
    "zero": lambda library, t: t.zero_(),
    "no_grad": under_no_grad,
    "data": lambda library, t: t.data.mul_(-2.0),
    "part": lambda library, t: t.reshape(-1)[:1].fill_(5.0),
    "numpy": through_numpy,
}


def spoil(library, y, how):
    """Overwrites what the operation that made y has saved. Refusing is as good as leaving everybody else's values alone."""
    saved = [getattr(y.grad_fn, name, None) for name in ("_saved_self", "_saved_other", "_saved_result")]
    for t in (*saved, *(getattr(y.grad_fn, "saved_tensors", None) or ())):
        if isinstance(t, library.Tensor):
            try:
                SPOIL[how](library, t)
            except RuntimeError:
                continue
