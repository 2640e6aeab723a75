"""Small programs with what PyTorch 2.13 does with each, recorded from it in torch_rules.json.

    PYTHONPATH=tests .venv-oracle/bin/python -m oracle.torch_rules        # records them anew

They go through PyTorch's rules for leaves, saved values, views (of leaves, several of one call, made in no_grad), version counters,
`.data`, NumPy, custom Functions, expanded targets, and the autograd API. PROGRAMS has each as a complete script. Outcomes:
"accepts" with the gradient, "wrong" with the gradient and the true one by finite differences, "raises" with class, first
line of the message and the line of the program that raised.
"""
from __future__ import annotations

import contextlib
import io
import json
import re
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).with_name("torch_rules.json")
START = "[1.0, 2.0, 3.0]"
STEP = 1e-6
HEAD = f"import torch\n\nx = torch.tensor({START}, dtype=torch.float64, requires_grad=True)\n"

# A program after "# name: what it shows". What it lacks is added: the leaf at its head, backward of y.sum() and print(x.grad) at its end.
TEXT = Path(__file__).with_name("torch_rules.txt").read_text(encoding="utf-8")
# Where the gradient is meant to leave something out: nothing there is wrong.
MEANT = {"backward_of_detached", "backward_in_no_grad_result", "optimizer_step_between", "grad_accumulated_in_place", "hook_write", "item_write", "numpy_of_requires_grad", "buffer_reused",
         "second_derivative", "leaf_set_requires_grad_after_write", "out_no_grad", "to_other", "batch_norm_twice", "embedding_max_norm", "leaf_data_assigned_other_type"}
# What raises the version of a tensor, and by how much: a statement on `a`, which is computed from x.
VERSIONS = """
a.add_(1); a.mul_(2); a.zero_(); a.fill_(3); a.copy_(x); a[0] = 1.0; a[:] = 1.0; a[a > 1] = 0.0; a[[0, 1]] = 0.0; a += 1; a[0:2] += 1; a[0].add_(1); a.masked_fill_(a > 1, 0.0)
a.index_put_((torch.tensor([0]),), x[0]); a.scatter_(0, torch.tensor([0]), 1.0); a.clamp_(min=1); a.relu_(); a.detach().add_(1); a.data.add_(1); a.view(3, 1).add_(1); a.detach().numpy()[0] = 5
a.data = torch.zeros(3, dtype=torch.float64); a.set_(torch.zeros(3, dtype=torch.float64)); a.detach().resize_(3); a.t_(); a.unsqueeze_(0); a.squeeze_(); a.requires_grad_(); a.detach_(); a.uniform_()
a.index_fill_(0, torch.tensor([0]), 1.0); torch.nn.functional.dropout(a, inplace=True); torch.nn.functional.relu(a, inplace=True); torch.mul(x.detach(), 2, out=a.detach()); a.share_memory_(); a.swapaxes_(0, 0)
a.clone().add_(1); a.contiguous().add_(1); a.to(torch.float64).add_(1); a.to(torch.float32).add_(1); a.expand(2, 3); a.lerp_(x, 0.5); a.pow_(2); a.cumsum_(0); torch._foreach_add_([a.detach()], 1.0); a.sigmoid_().tanh_()
"""


def programs() -> dict[str, str]:
    """Every program by name, complete."""
    parts = re.split(r"^# (\w+): (.*)\n", TEXT, flags=re.M)[1:]
    return {name: complete(shows, body) for name, shows, body in zip(parts[::3], parts[1::3], parts[2::3])}


def complete(shows: str, body: str) -> str:
    head = HEAD if not body.startswith("x = ") else "import torch\n\n"
    tail = "" if ".backward(" in body else "y.sum().backward()\n"
    return f'"""{shows[0].upper()}{shows[1:]}."""\n{head}{body}{tail}print(x.grad)\n'


PROGRAMS = programs()


# -------------------------------------------------------------------------------------------------- asking PyTorch

def execute(name: str, source: str) -> dict[str, Any]:
    """Runs a program quietly and returns its names."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        exec(compile(source, f"{name}.py", "exec"), names)
    return names


def outcome(name: str) -> dict[str, Any]:
    """What PyTorch does with a program, as the record has it."""
    try:
        found = execute(name, PROGRAMS[name])["x"].grad
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == f"{name}.py"]
        return {"outcome": "raises", "class": type(error).__name__, "message": str(error).splitlines()[0], "line": lines[-1]}
    gradient = None if found is None else rounded(found.numpy())
    true = rounded(differences(name)) if name not in MEANT else gradient
    if true == gradient:
        return {"outcome": "accepts", "grad": gradient}
    return {"outcome": "wrong", "grad": gradient, "true": true}


def rounded(values: Any) -> list[Any]:
    """As JSON has it: without the noise of finite differences."""
    return [float(np.round(v, 5)) + 0.0 if np.isfinite(v) else None for v in values.tolist()]


def differences(name: str) -> Any:
    """The true gradient: central differences of the sum of all that backward was called on."""
    start = np.array(json.loads(START))
    return np.array([(losses(name, start + e) - losses(name, start - e)) / (2 * STEP) for e in STEP * np.eye(start.size)])


def losses(name: str, start: Any) -> float:
    import torch

    seen, original = [], torch.Tensor.backward

    def backward(self: Any, gradient: Any = None, **settings: Any) -> None:
        seen.append(float((self * (1 if gradient is None else gradient)).sum()))
        original(self, gradient, **settings)

    torch.Tensor.backward = backward
    try:
        execute(name, PROGRAMS[name].replace(START, str(start.tolist()), 1))
    finally:
        torch.Tensor.backward = original
    return sum(seen)


def version_steps(statement: str) -> int | str:
    """By how much a statement raises the version of `a`, or the error that it raises."""
    names = execute("version", HEAD + "a = x * 1\n")
    before = names["a"]._version
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(statement, names)
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return int(names["a"]._version - before)


def statements() -> list[str]:
    return [s.strip() for s in VERSIONS.replace("\n", ";").split(";") if s.strip()]


def record() -> dict[str, Any]:
    import torch

    return {"torch": torch.__version__.partition("+")[0], "programs": {name: outcome(name) for name in PROGRAMS}, "versions": {s: version_steps(s) for s in statements()}}


def recorded() -> dict[str, Any]:
    """What was recorded."""
    return json.loads(RECORD.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def text(found: dict[str, Any]) -> str:
    """The file: a line for each program."""
    parts = (f'"{part}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found[part].items()) + "\n}" for part in ("programs", "versions"))
    return f'{{"torch": "{found["torch"]}",\n' + ",\n".join(parts) + "}\n"


def main() -> None:
    RECORD.write_text(text(record()), encoding="utf-8")
    print(f"{len(PROGRAMS)} programs and {len(statements())} statements, recorded in {RECORD}")


if __name__ == "__main__":
    main()
