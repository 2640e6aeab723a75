"""Programs about functions that `torch.func` and checkpoints call, hooks for saved values, and branches that are not taken."""
from __future__ import annotations

CHECKPOINT = "checkpoint = torch.utils.checkpoint.checkpoint\n"
# The program, what PyTorch makes of it, the finding and its line.
PROGRAMS: dict[str, tuple[str, str, str | None, int]] = {
    "func.grad": ("f = lambda x: (y := x.exp(), y.add_(1))[1].sum()\nx.grad = torch.func.grad(f)(x.detach())", "raises", "overwritten_saved_value", 2),
    "func.grad ok": ("f = lambda x: (y := x.sin(), y.add_(1))[1].sum()\nx.grad = torch.func.grad(f)(x.detach())", "accepts", None, 0),
    "func.grad argument": ("def f(x):\n    x.mul_(2)\n    return (x * x).sum()\nx.grad = torch.func.grad(f)(x.detach())", "raises", "write_to_leaf", 3),
    "func.grad other argument": ("def f(x, b):\n    b.mul_(2)\n    return (x * b).sum()\nx.grad = torch.func.grad(f)(x.detach(), torch.ones(3))", "accepts", None, 0),
    "func.grad captured": ("buf = torch.zeros(3)\ndef f(x):\n    buf.add_(x)\n    return (x * x).sum()\nx.grad = torch.func.grad(f)(x.detach())", "raises", "captured_write", 4),
    "func.grad captured constant": ("n = torch.zeros(())\ndef f(x):\n    n.add_(1)\n    return (x * x).sum()\nx.grad = torch.func.grad(f)(x.detach())", "raises", "captured_write", 4),
    "func.grad view of captured": ("buf = torch.zeros(3)\ndef f(x):\n    v = buf[:2]\n    v.add_(1)\n    return (x * x).sum()\n"
        "x.grad = torch.func.grad(f)(x.detach())", "raises", "captured_write", 5),
    "func.grad own buffer": ("def f(x):\n    y = torch.zeros(3)\n    y[0] = x[1] * 2\n    y[1:] = x[:2]\n    return (y * y).sum()\n"
        "x.grad = torch.func.grad(f)(x.detach())", "accepts", None, 0),
    "jacobian": ("def f(x):\n    y = x.sigmoid()\n    y *= x\n    return y\nx.grad = torch.autograd.functional.jacobian(f, x.detach()).sum(0)", "raises", "overwritten_saved_value", 4),
    "jacobian ok": ("def f(x):\n    y = x.sin()\n    y += x\n    return y\nx.grad = torch.autograd.functional.jacobian(f, x.detach()).sum(0)", "accepts", None, 0),
    "jacobian argument": ("def f(x):\n    x += 1\n    return x\nx.grad = torch.autograd.functional.jacobian(f, x.detach()).sum(0)", "raises", "write_to_leaf", 3),
    "jacobian captured": ("buf = torch.zeros(3)\ndef f(x):\n    buf.add_(1)\n    return x * buf\n"
        "x.grad = torch.autograd.functional.jacobian(f, x.detach()).sum(0)", "accepts", None, 0),
    "hessian": ("def f(x):\n    y = x.exp()\n    y += 1\n    return (y * y).sum()\n"
        "x.grad = torch.autograd.functional.hessian(f, x.detach()).sum(0)", "raises", "overwritten_saved_value", 4),
    "func.jacrev": ("def f(x):\n    y = x.exp()\n    y += 1\n    return y\nx.grad = torch.func.jacrev(f)(x.detach()).sum(0)", "raises", "overwritten_saved_value", 4),
    "func.jacfwd": ("def f(x):\n    y = x.exp()\n    y += 1\n    return y\nx.grad = torch.func.jacfwd(f)(x.detach()).sum(0)", "accepts", None, 0),
    "func.jvp": ("def f(x):\n    y = x.exp()\n    y += 1\n    x.mul_(2)\n    return y * x\n"
        "x.grad = torch.func.jvp(f, (x.detach(),), (torch.ones(3),))[1]", "accepts", None, 0),
    "func.vjp": ("def f(x):\n    y = x.exp()\n    y += 1\n    return y\nout, back = torch.func.vjp(f, x.detach())\n"
        "x.grad, = back(torch.ones(3))", "raises", "overwritten_saved_value", 4),
    "func.hessian": ("def f(x):\n    y = x.exp()\n    y += 1\n    return y.sum()\nx.grad = torch.func.hessian(f)(x.detach()).sum(0)", "raises", "overwritten_saved_value", 4),
    "func.hessian ok": ("def f(x):\n    y = x.sin()\n    y += 1\n    return y.sum()\nx.grad = torch.func.hessian(f)(x.detach()).sum(0)", "accepts", None, 0),
    "nested grad": ("g = torch.func.grad(lambda t: (t ** 3).sum())\ndef f(x):\n    y = g(x)\n    y += 1\n    return (y * y).sum()\n"
        "x.grad = torch.func.grad(f)(x.detach())", "accepts", None, 0),
    "vmap": ("def f(x):\n    y = torch.zeros(3)\n    y[0] = x\n    return y\nx.grad = torch.vmap(f)(x.detach()).sum(1)", "raises", "unmapped_write", 4),
    "vmap new_zeros": ("def f(x):\n    y = x.new_zeros(3)\n    y[0] = x\n    return y\nx.grad = torch.vmap(f)(x.detach()).sum(1)", "accepts", None, 0),
    "vmap own": ("def f(x):\n    y = x * 2\n    y += x\n    return y\nx.grad = torch.vmap(f)(x.detach())", "accepts", None, 0),
    "vmap unmapped": ("def f(x):\n    y = torch.zeros(3)\n    y[0] = 1\n    return y * x\nx.grad = torch.vmap(f)(x.detach()).sum(1)", "accepts", None, 0),
    "vmap item": ("def f(x):\n    return x * 2 if x > 0 else x\nx.grad = torch.vmap(f)(x.detach())", "raises", "value_of_slice", 3),
    "vmap of grad": ("def f(x):\n    y = x.exp()\n    y += 1\n    return y\nx.grad = torch.vmap(torch.func.grad(f))(x.detach())", "raises", "overwritten_saved_value", 4),
    "vmap captured add_": ("acc = torch.zeros(())\ndef f(x):\n    acc.add_(x)\n    return x\nx.grad = torch.vmap(f)(x.detach())", "raises", "unmapped_write", 4),
    "vmap then backward": ("def f(x):\n    y = x.exp()\n    y += 1\n    return y\ntorch.vmap(f)(x).sum().backward()", "raises", "overwritten_saved_value", 4),
    "batch norm twice": ("nn = torch.nn\nbn = nn.BatchNorm1d(1)\na = x[:, None] * torch.tensor([[1.], [2.], [4.]])\nbn.eval()\nl1 = bn(a).sum()\n"
        "bn.train()\nl2 = bn(a).pow(3).sum()\n(l1 + l2).backward()", "wrong", "running_statistics", 8),
    "batch norm train twice": ("nn = torch.nn\nbn = nn.BatchNorm1d(1)\na = x[:, None] * torch.tensor([[1.], [2.], [4.]])\nl1 = bn(a).pow(3).sum()\n"
        "l2 = bn(a * a).pow(3).sum()\n(l1 + l2).backward()", "accepts", None, 0),
    "where nan": ("y = x * torch.tensor([0., 1., 4.])\ntorch.where(y > 0, y.sqrt(), 0.).sum().backward()", "wrong", "nan_of_no_influence", 3),
    "mask nan": ("y = x * torch.tensor([0., 1., 4.])\n(y.sqrt() * (y > 0)).sum().backward()", "wrong", "nan_of_no_influence", 3),
    "where log": ("y = x * torch.tensor([0., 1., 4.])\ntorch.where(y > 0, y.log(), 0.).sum().backward()", "wrong", "nan_of_no_influence", 3),
    "where division": ("y = x * torch.tensor([0., 1., 4.])\ntorch.where(y > 0, 1 / y, 0.).sum().backward()", "wrong", "nan_of_no_influence", 3),
    "where exp": ("y = x * torch.tensor([0., 1., 400.])\ntorch.where(y < 100, y.exp(), 0.).sum().backward()", "wrong", "nan_of_no_influence", 3),
    "where atan2": ("y = x * torch.tensor([0., 1., 4.])\ntorch.where(y > 0, torch.atan2(y, y), 0.).sum().backward()", "accepts", None, 0),
    "where pow": ("y = x * torch.tensor([0., 1., 4.])\ntorch.where(y > 0, y ** 0.5, 0.).sum().backward()", "wrong", "nan_of_no_influence", 3),
    "where acos": ("y = x * torch.tensor([0., 1., .5])\ntorch.where(y < 1, y.acos(), 0.).sum().backward()", "wrong", "nan_of_no_influence", 3),
    "where norm": ("y = x * torch.tensor([0., 1., .5])\ntorch.where(y < 1, y[:1].norm(), 0.).sum().backward()", "accepts", None, 0),
    "retain_grad": ("h = x * 2\nh.retain_grad()\nh *= 3\nh.sum().backward()\nx.grad = h.grad", "accepts", None, 0),
    "retain_grad part": ("h = x * 2\nh.retain_grad()\nh[0] = 3.\n(h * h).sum().backward()\nx.grad = h.grad", "accepts", None, 0),
    "retain_grad old": ("h = x * 2\nh.retain_grad()\nl = (h * 2).sum()\nh += 1\nl.backward()\nx.grad = h.grad", "accepts", None, 0),
    "spectral norm": ("nn = torch.nn\nm = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))\n(m(x * 2).sum() + m(x).sum()).backward()\n"
        "x.grad = None", "accepts", None, 0),
    "spectral norm old": ("nn = torch.nn\nm = nn.utils.spectral_norm(nn.Linear(3, 2))\n(m(x * 2).sum() + m(x).sum()).backward()\nx.grad = None", "accepts", None, 0),
    "hooks clone": ("with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):\n    y = x.exp()\ny.add_(1)\n"
        "y.sum().backward()", "accepts", None, 0),
    "hooks same": ("with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):\n    y = (x * 2).exp()\n    z = y.sin()\ny.add_(1)\n"
        "z.sum().backward()", "wrong", "saved_and_rewritten", 5),
    "hooks same, other elements": ("with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):\n    y = x * 2\n    z = y[:2].sin()\ny[2] = 1.\n"
        "z.sum().backward()", "accepts", None, 0),
    "allow mutation": ("with torch.autograd.graph.allow_mutation_on_saved_tensors():\n    y = x.exp()\n    y.add_(1)\n    y.sum().backward()", "accepts", None, 0),
    "save on cpu": ("with torch.autograd.graph.save_on_cpu():\n    y = x.exp()\ny.add_(1)\ny.sum().backward()", "wrong", "saved_and_rewritten", 4),
    "checkpoint inside": (CHECKPOINT + ("def f(a):\n    b = a.exp()\n    b += 1\n    return b * b\ncheckpoint(f, x * 2, use_reentrant=False).sum().backward()"), "wrong", "saved_and_rewritten", 5),
    "checkpoint inside, last": (CHECKPOINT + ("def f(a):\n    b = a.exp()\n    b += 1\n    return b\ncheckpoint(f, x * 2, use_reentrant=False).sum().backward()"), "accepts", None, 0),
    "checkpoint reentrant inside": (CHECKPOINT + ("def f(a):\n    b = a.exp()\n    b += 1\n    return b * b\ncheckpoint(f, x * 2, use_reentrant=True).sum().backward()"), "raises", "overwritten_saved_value", 5),
    "checkpoint argument after": (CHECKPOINT + ("h = x * 2\ny = checkpoint(torch.sin, h, use_reentrant=False)\nh.add_(1)\ny.sum().backward()"), "raises", "overwritten_saved_value", 5),
    "checkpoint argument after, reentrant": (CHECKPOINT + ("h = x * 2\ny = checkpoint(torch.sin, h, use_reentrant=True)\nh.add_(1)\ny.sum().backward()"), "raises", "overwritten_saved_value", 5),
    "checkpoint argument inside": (CHECKPOINT + ("def f(a):\n    a.mul_(2)\n    return a.sin()\nh = x * 2\ny = checkpoint(f, h, use_reentrant=False)\ny.sum().backward()"), "raises", "overwritten_saved_value", 4),
    "checkpoint fine": (CHECKPOINT + ("def f(a):\n    b = a.sin()\n    b += 1\n    return b * b\ncheckpoint(f, x * 2, use_reentrant=False).sum().backward()"), "accepts", None, 0),
    "checkpoint result after": (CHECKPOINT + ("def f(a):\n    return a.exp()\ny = checkpoint(f, x * 2, use_reentrant=False)\ny += 1\ny.sum().backward()"), "accepts", None, 0),
    "not dirty buffer": ("class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a, n):\n        n.add_(1)\n        return a * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * 2, None\nh = x * 2\n"
        "F.apply(h, torch.zeros(())).sum().backward()", "accepts", None, 0),
}
# Those whose rewrite is mechanical.
REWRITTEN = [
    "func.grad", "func.grad argument", "jacobian", "jacobian argument", "hessian", "func.jacrev", "func.vjp",
    "func.hessian", "vmap", "vmap of grad", "vmap then backward", "where nan", "mask nan", "where log",
    "where division", "where exp", "where pow", "where acos", "hooks same", "save on cpu", "checkpoint inside",
    "checkpoint reentrant inside", "checkpoint argument after", "checkpoint argument after, reentrant",
    "checkpoint argument inside",
]
