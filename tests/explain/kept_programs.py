"""Programs about flags `inplace`, functions that PyTorch takes for constants, gradients that the program writes, values that stay."""
from __future__ import annotations

FUNCTION = ("class R(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
            "    @staticmethod\n    def backward(ctx, g):\n        {}\n        return g * 2\nR.apply(x).sum().backward()")
HOOK = "y = x * 2\ndef hook(g):\n    {}\n    return g\ny.register_hook(hook)\n{}.backward()"
# The program, what PyTorch makes of it, the finding and its line.
PROGRAMS: dict[str, tuple[str, str, str | None, int]] = {
    # Of two functions of one name, that of nn.functional can write in place.
    "celu in place": ("y = x * 1\ntorch.nn.functional.celu(y, inplace=True)\ny += 1\ny.sum().backward()", "raises", "overwritten_saved_value", 4),
    "threshold in place": ("y = x.exp()\ntorch.nn.functional.threshold(y, 0.1, 0.3, inplace=True)\ny.sum().backward()", "raises", "overwritten_saved_value", 3),
    "rrelu in place": ("y = torch.nn.functional.rrelu(x * 1, inplace=True)\ny += 1\ny.sum().backward()", "raises", "overwritten_saved_value", 3),
    # What PyTorch has no derivative of, and does not say so.
    "a constant": ("(torch.special.bessel_j0(x) + x).sum().backward()", "wrong", "taken_as_constant", 2),
    "nothing but a constant": ("torch.special.bessel_j0(x).sum().backward()", "raises", "no_history", 2),
    "a constant that is not used": ("y = torch.special.bessel_j0(x)\nx.sum().backward()", "accepts", None, 0),
    "a leaf like another": ("y = torch.full_like(x, 2., requires_grad=True)\n(x * y).sum().backward()", "accepts", None, 0),
    "logic in place": ("y = x * 2\ny.logical_and_(torch.ones(3))\ny.sum().backward()", "wrong", "identity_gradient", 3),
    "a power of truth": ("m = torch.tensor([True, False, True])\n(x ** m).sum().backward()", "raises", "boolean_operand", 3),
    "histogram": ("h, e = torch.histogram(x, 2)\n(h.sum() + x.sum()).backward()", "raises", "no_derivative", 2),
    "weights of elements": ("torch.nn.functional.binary_cross_entropy_with_logits(torch.ones(3), torch.ones(3), pos_weight=x).backward()", "raises",
        "not_differentiable", 2),
    # Views that are one of several, and those that are not.
    "tensor_split": ("y = x * 2\na, b = y.tensor_split([1])\na += 1\n(y * y).sum().backward()", "accepts", None, 0),
    "tensor_split read late": ("y = x * 2\na, b = torch.tensor_split(y, [1])\ny += 1\n(a * y.sum()).sum().backward()", "accepts", None, 0),
    # Gradients, of which those of sum() are one number in many places.
    "hook in place": (HOOK.format("g.mul_(2)", "y.sum()"), "raises", "write_to_gradient", 4),
    "hook in place through add": (HOOK.format("g.clamp_(-1, 1)", "(y + 1).sum()"), "raises", "write_to_gradient", 4),
    "hook in place of a product": (HOOK.format("g.mul_(2)", "(y * y).sum()"), "accepts", None, 0),
    "hook of a mean": (HOOK.format("g[0] = 0", "y.mean()"), "accepts", None, 0),
    "hook of one element": (HOOK.format("g[0] = 0", "y.sum()"), "wrong", "write_to_some_of_gradient", 4),
    "hook of a mask": (HOOK.format("g[torch.tensor([True, False, True])] = 0", "y.sum()"), "wrong", "write_to_some_of_gradient", 4),
    "hook of a slice": (HOOK.format("g[:2] = 0", "y.sum()"), "raises", "write_to_gradient", 4),
    "hook of a copy": (HOOK.format("g = g.clone(); g[0] = 0", "y.sum()"), "accepts", None, 0),
    "function in place": (FUNCTION.format("g.mul_(2)"), "raises", "write_to_gradient", 8),
    "function of a mask": (FUNCTION.format("g[torch.tensor([True, False, True])] = 0"), "wrong", "write_to_some_of_gradient", 8),
    "function of a copy": (FUNCTION.format("g = g.clone(); g[0] = 0"), "accepts", None, 0),
    "hook that writes what is kept": ("w = torch.ones(3, requires_grad=True)\nh = x * w\nz = h * w\ndef hook(g):\n    with torch.no_grad():\n        w.mul_(2)\n"
        "h.register_hook(hook)\nz.sum().backward()", "raises", "overwritten_saved_value", 7),
    # Writes that do not count, and change nothing that backward looks at.
    "sign that stays": ("y = torch.relu(x * 2)\nl = y.sum()\ny.data.mul_(3)\nl.backward()", "accepts", None, 0),
    "sign that changes": ("y = torch.relu(x * 2)\nl = y.sum()\ny.data.mul_(-3)\nl.backward()", "wrong", "data_write", 4),
    "clamped within bounds": ("l = (x ** 3).sum()\nx.data.clamp_(-2, 2)\nl.backward()", "accepts", None, 0),
    "clamped": ("l = (x ** 3).sum()\nx.data.clamp_(-0.5, 0.5)\nl.backward()", "wrong", "data_write", 3),
    "max_norm": ("w = torch.full((3, 2), 2., requires_grad=True)\nk = w.clone()\nx.grad = None\n"
        "(torch.nn.functional.embedding(torch.tensor([0, 1]), w, max_norm=0.5).sum() + k.sum() * 0 + (x * 2).sum()).backward()", "accepts", None, 0),
}
# Programs whose values are wrong in PyTorch, if not their gradients.
VALUES: dict[str, tuple[str, str, str | None, int]] = {
    "columns onto the next": ("y = torch.ones(2, 4) * x[0]\ny[:, 1:] += y[:, :3]\ny.sum().backward()", "wrong", "overlapping_copy", 3),
    "columns onto those before": ("y = torch.ones(2, 4) * x[0]\ny[:, :3] += y[:, 1:]\ny.sum().backward()", "accepts", None, 0),
}
