"""Doctor's rewrites as text: what changes, what stays as it was written, and what is left alone."""
from __future__ import annotations

import ast
import linecache
from pathlib import Path
from textwrap import dedent

import pytest

import mutagrad as mg
from mutagrad.explain.doctor import edits, fixes
from mutagrad.explain.doctor.clones import clone
from mutagrad.explain.doctor.diagnosis import Diagnosis
from mutagrad.explain.doctor.edits import Edit, Source
from mutagrad.explain.doctor.fixes import propose, rewritten
from mutagrad.explain.doctor.names import Names, Variable

START = "import torch\nx = torch.tensor([1., 2., 3.], requires_grad=True)\n"


def diagnosed(path: Path) -> Diagnosis:
    linecache.checkcache(str(path))
    with mg.as_torch(), Diagnosis() as found:
        exec(compile(path.read_bytes(), str(path), "exec"), {"__name__": "__main__"})
    return found


@pytest.fixture
def fix(tmp_path: Path):
    """Rewrite a program once, and return what follows its beginning."""
    def run(program: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(START + dedent(program), encoding="utf-8", newline="")
        texts = rewritten(diagnosed(path).findings)
        assert set(texts) <= {str(path)}
        text = texts.get(str(path), START + dedent(program))
        ast.parse(text)
        return text
    return lambda program: run(program).removeprefix(START)


# Before and after, of one line each, between a first line that computes y and a last that goes back through z.
LINES = [
    ("z = y * y; y += 1", "z = y.clone() * y.clone(); y += 1"),
    ("z = (y + 1) * (y - 1); y += 1", "z = (y + 1) * (y - 1); y += 1"),
    ("z = torch.sin(y); y += 1", "z = torch.sin(y.clone()); y += 1"),
    ("z = torch.sin(input=y); y += 1", "z = torch.sin(input=y.clone()); y += 1"),
    ("z = torch.sin( y ) ; y += 1", "z = torch.sin( y.clone() ) ; y += 1"),
    ("z = y.sin(); y += 1", "z = y.clone().sin(); y += 1"),
    ("z = y.exp(); z += 1", "z = y.exp().clone(); z += 1"),
    ("z = -y.exp(); y += 1", "z = -y.exp(); y += 1"),
    ("h = y + y; z = h ** 2; h += 1", "h = y + y; z = h.clone() ** 2; h += 1"),
    ("h = y[:2]; z = h ** 2; y[2] = 1", "h = y[:2]; z = h.clone() ** 2; y[2] = 1"),
    ("z = abs(y); y += 1", "z = abs(y.clone()); y += 1"),
    ("z = torch.sin(h := y * 2); h += 1", "z = torch.sin((h := y * 2).clone()); h += 1"),
    ("z = torch.sin((h := y * 2)); h += 1", "z = torch.sin((h := y * 2).clone()); h += 1"),
    ("z = y * 1; list(map(torch.neg_, z))", "z = y * 1; list(map(torch.neg_, (z[i] for i in range(len(z)))))"),
    ("h = y * 1; h.sigmoid_(); h += 1; z = h", "h = y * 1; h.copy_(h.sigmoid()); h += 1; z = h"),
    ("h = y * 1; h[1:].exp_(); h += 1; z = h", "h = y * 1; h[1:].copy_(h[1:].exp()); h += 1; z = h"),
    ("h = y * 1; torch.tanh_(h); h += 1; z = h", "h = y * 1; h.copy_(torch.tanh(h)); h += 1; z = h"),
    ("z = torch.zeros(3); torch.exp(y, out=z)", "z = torch.zeros(3); z.copy_(torch.exp(y))"),
    ("z = torch.zeros(3); torch.mul(y, 2 , out = z)", "z = torch.zeros(3); z.copy_(torch.mul(y, 2 ))"),
    ("z = y * 1; z[1:] += z[:-1]", "z = y * 1; z[1:] += z[:-1].clone()"),
    ("z = y * 1; z[1:].add_(z[:-1], alpha=2)", "z = y * 1; z[1:].add_(z[:-1].clone(), alpha=2)"),
    ("z = y * 1; z[:2] = 1., 2.", "z = y * 1; z[:2] = torch.tensor((1., 2.))"),
    ("z = y * 1; z[:2] = (1., 2.)", "z = y * 1; z[:2] = torch.tensor((1., 2.))"),
    ("z = y * 1; a, b, c = z; a += 1", "z = y * 1; a, b, c = (z[i] for i in range(len(z))); a += 1"),
    ("z = y * 1; a, b = z.split([1, 2]); a += 1", "z = y * 1; a, b = (z[:1], z[1:3]); a += 1"),
    ("z = y * 1; p = z.split(2, dim=0); p[0].zero_()",
     "z = y * 1; p = tuple(z[i:i + 2] for i in range(0, len(z), 2)); p[0].zero_()"),
    ("z = y * 1; z.view(1, 3).unbind(1)[0].zero_()",
     "z = y * 1; tuple(whole[:, i] for whole in [z.view(1, 3)] for i in range(whole.shape[1]))[0].zero_()"),
]


@pytest.mark.parametrize("before, after", LINES, ids=[before for before, _ in LINES])
def test_line(before: str, after: str, fix) -> None:
    assert fix(f"y = x * 2\n{before}  # why\nz.sum().backward()\n") == f"y = x * 2\n{after}  # why\nz.sum().backward()\n"


def test_all_else_stays(fix) -> None:
    program = """
    def f( a,b ):   # odd   spacing
    \t# a comment
    \ty = a.exp()   ;   y += b   # kept
    \treturn y


    '''a string'''
    f( x , 1. ).sum().backward()
    """
    assert fix(program) == dedent(program).replace("a.exp()", "a.exp().clone()")


def test_leaf_keeps_its_name(fix) -> None:
    program = "x[0] = 5.\nloss = (x * x).sum()\nloss.backward()\nprint(x.grad, x)\n"
    copied = "x_copy = x.clone()\nx_copy[0] = 5.\nloss = (x_copy * x_copy).sum()\nloss.backward()\nprint(x.grad, x_copy)\n"
    assert fix(program) == copied


def test_names_that_are_taken_are_not_used(fix) -> None:
    assert "x_copy_ = x.clone()" in fix("x_copy = 1\nx[0] = 5.\nx.sum().backward()\n")


LEFT_ALONE = {
    "the leaf is updated in a loop": """
        for _ in range(2):
            x[0] = 1.
            x.sum().backward()
            with torch.no_grad():
                x -= 0.1 * x.grad
                x.grad = None
        """,
    "the copy would have to be global": """
        def f():
            global x
            x += 1
            return x.sum()
        f().backward()
        """,
    "both the leaf and its values are asked of a list": """
        both = [x]
        x[0] = 1.
        (both[0] * 2).sum().backward()
        print(both[0].grad)
        """,
    "both are asked of what an object holds": """
        class Holder:
            def __init__(self, t):
                self.t = t
        holder = Holder(x)
        x[0] = 1.
        (holder.t * x).sum().backward()
        print(holder.t.grad)
        """,
    "the gradient goes to the leaf, but is that of its values": """
        x[0] = 1.
        (x * x).sum().backward(inputs=[x])
        """,
    "indices of two dimensions": """
        y = torch.zeros(3)
        y[torch.tensor([[0, 0], [1, 2]])] = x[:2] * torch.ones(2, 1)
        y.sum().backward()
        """,
    "an optimizer has the attribute": """
        class Fit:
            def __init__(self):
                self.w = torch.ones(3, requires_grad=True)
                self.optimizer = torch.optim.SGD([self.w], 0.1)
            def clip(self):
                self.w.clamp_(max=0.5)
            def loss(self):
                return (self.w * x).sum()
        fit = Fit()
        fit.clip()
        fit.loss().backward()
        fit.optimizer.step()
        fit.loss().backward()
        """,
    "a parameter's layer hides it": """
        lin = torch.nn.Linear(3, 1)
        out = lin(x)
        torch.optim.SGD(lin.parameters(), 0.1)
        with torch.no_grad():
            lin.weight.mul_(2)
        out.sum().backward()
        """,
    "a layer of PyTorch's reads the parameter": """
        lin = torch.nn.Linear(3, 1)
        lin.weight[0] = 1.
        print(lin.weight)
        lin(x).sum().backward()
        """,
    "a parameter that has another owner": """
        lin = torch.nn.Linear(3, 1)
        w = next(lin.parameters())
        w.mul_(2)
        lin(x).sum().backward()
        """,
    "an initialisation of layers": """
        def initialise(layer):
            layer.weight.fill_(1.)
            print(layer.weight)
        lin = torch.nn.Linear(3, 1).apply(initialise)
        lin(x).sum().backward()
        """,
    "callers read what a function writes": """
        def bump(t):
            t += 1
            return t
        y = torch.ones(3, requires_grad=True)
        loss = bump(x) + bump(y)
        (loss * x * y).sum().backward()
        """,
    "what is kept is hidden in a call of Python's": """
        import math
        y = x * 2
        z = math.prod([y, y])
        y += 1
        z.sum().backward()
        """,
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_left_alone(why: str, fix) -> None:
    assert fix(LEFT_ALONE[why]) == dedent(LEFT_ALONE[why])


# An update of the leaf by its gradient is not part of the program that is differentiated.
UPDATES = {
    "x -= 0.1 * x.grad": "with torch.no_grad():\n    x -= 0.1 * x.grad",
    "x.add_(x.grad, alpha=-0.1)  # a step": "with torch.no_grad():\n    x.add_(x.grad, alpha=-0.1)  # a step",
    "x[1:] += x.grad[1:]": "with torch.no_grad():\n    x[1:] += x.grad[1:]",
    "if True:\n\tx -= x.grad": "if True:\n\twith torch.no_grad():\n\t    x -= x.grad",
}
NO_UPDATES = ["x += 1", "x *= 1 - x.grad", "x -= x * x.grad", "pass; x -= x.grad", "x -= x.grad; pass", "x.copy_(x.grad)"]


@pytest.mark.parametrize("before", UPDATES)
def test_an_update_is_not_recorded(before: str, fix) -> None:
    start, end = "(x * x).sum().backward()\n", "\n(x * x).sum().backward()"
    assert fix(start + before + end) == start + UPDATES[before] + end


@pytest.mark.parametrize("line", NO_UPDATES)
def test_other_writes_are_recorded(line: str, fix) -> None:
    assert "no_grad" not in fix(f"(x * x).sum().backward()\n{line}\n(x * x).sum().backward()")


def test_findings_of_one_file_are_made_together(fix) -> None:
    program = "y = x.exp()\ny += 1\nz = y * y\ny[0] = 2.\nw = torch.zeros(3)\ntorch.cos(x, out=w)\n(z + w).backward()\n"
    assert fix(program) == ("y = x.exp().clone()\ny += 1\nz = y.clone() * y.clone()\ny[0] = 2.\nw = torch.zeros(3)\n"
                            "w.copy_(torch.cos(x))\n(z + w).sum().backward()\n")


def test_nothing_is_done_twice(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(START + "x[0] = 5.\ny = x.exp()\ny += 1\ny.sum().backward()\n")
    for _ in range(2):
        (text,) = rewritten(diagnosed(path).findings).values()
        path.write_text(text)
        if diagnosed(path).findings.verdict == "accepts":
            break
    assert rewritten(diagnosed(path).findings) == {}


def test_a_diff_can_be_applied_by_patch(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(START + "y = x.exp()\ny += 1\ny.sum().backward()")
    found = diagnosed(path).findings
    propose(found)
    (diff,) = [f.diff for f in found if f.torch == "raises"]
    assert [line for line in diff.splitlines() if line[:1] in "-+@"][2:] == [
        "@@ -3 +3 @@", "-y = x.exp()", "+y = x.exp().clone()"]
    assert edits.diff("a.py", "x", "y") == "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n" \
                                           "\\ No newline at end of file\n"


def test_a_slow_loop_gets_a_diff_and_is_not_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(START + "y = torch.zeros(100)\nfor i in range(100):\n    k = i % 3\n    y[i] = x[k] * i  # element\n"
                            "y.sum().backward()\n")
    found = diagnosed(path).findings
    propose(found)
    (diff,) = [f.diff for f in found if f.kind == "quadratic_loop"]
    assert [line[1:] for line in diff.splitlines() if line[0] == "+"][1:] == [
        "y_parts = []", "    y_parts.append(x[k] * i)  # element", "y = torch.stack(y_parts)"]
    assert rewritten(found) == {}


SLOW = {
    "rows are filled with one number": "y = torch.zeros(99, 2)\nfor i in range(99):\n    y[i] = x[0] * i\n",
    "some are left out": "y = torch.zeros(99)\nfor i in range(99):\n    if i == 5: continue\n    y[i] = x[0] * i\n",
    "parts are read": "y = torch.zeros(99)\nfor i in range(99):\n    k = y[i] + 1\n    y[i] = x[0] * k\n",
    "not all are filled": "y = torch.zeros(99)\nfor i in range(90):\n    y[i] = x[0] * i\n",
}


@pytest.mark.parametrize("why", SLOW)
def test_a_slow_loop_is_left_alone(why: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(START + SLOW[why] + "y.sum().backward()\n")
    found = diagnosed(path).findings
    propose(found)
    assert [f.diff for f in found if f.kind == "quadratic_loop"] == [""]


def test_a_name_that_changes_while_it_is_iterated(fix) -> None:
    program = "y = x * 2\nfor row in y:\n    y = y * 1\n    row.mul_(2)\ny.sum().backward()\n"
    assert "for row in (whole[i] for whole in [y] for i in range(len(whole))):" in fix(program)


def test_a_parameter_that_is_mapped_over(fix) -> None:
    program = "def f(t):\n    return list(map(torch.neg_, t))\nf(x * 2)[0].backward()\n"
    assert fix(program) == program.replace("torch.neg_, t", "torch.neg_, (t[i] for i in range(len(t)))")


def test_inside_of_a_string(fix) -> None:
    program = 'y = x * 2\ntext = f"""\n  {(z := y * y)}\n"""\ny += 1\nz.sum().backward()\n'
    assert fix(program) == program.replace("y * y", "y.clone() * y.clone()")


def test_what_is_cloned_is_not_cloned_again() -> None:
    source = Source("f(y.clone(), 1)")
    assert clone(source, source.tree.body[0].value.args[0]) == [] == clone(source, source.tree.body[0].value.args[1])


def test_libraries_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "program.py"
    path.write_text(START + "y = x.exp()\ny += 1\ny.sum().backward()\n")
    found = diagnosed(path).findings
    assert rewritten(found)
    monkeypatch.setattr(fixes, "is_library", lambda path: path.startswith(str(tmp_path)))
    assert not rewritten(found)


# --------------------------------------------------------------------------------------------------- files as they come

@pytest.mark.parametrize("begin, encoding", [("", "utf-8"), ("\ufeff", "utf-8"), ("# -*- coding: latin-1 -*-\r\n", "latin-1")])
def test_bytes_stay(begin: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    text = begin + (START + "y = x.exp()  # é\nx[0] = 1.\ny += 1\n(x + y).sum().backward()").replace("\n", "\r\n")
    path.write_bytes(text.encode(encoding))
    (new,) = rewritten(diagnosed(path).findings).values()
    edits.write(str(path), new)
    expected = text.replace("x.exp()", "x_copy.exp().clone()").replace("x[0]", "x_copy[0]").replace("(x +", "(x_copy +")
    expected = expected.replace("requires_grad=True)\r\n", "requires_grad=True)\r\nx_copy = x.clone()\r\n")
    assert path.read_bytes().decode(encoding) == expected


def test_a_program_without_a_file_is_left_alone() -> None:
    with mg.as_torch(), Diagnosis() as found:
        exec(compile(START + "y = x.exp()\ny += 1\ny.sum().backward()\n", "<string>", "exec"), {})
    propose(found.findings)
    assert rewritten(found.findings) == {} and not any(f.diff for f in found.findings)


def test_a_file_that_is_not_what_was_run_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(START + "y = x.exp()\ny += 1\ny.sum().backward()\n")
    found = diagnosed(path).findings
    for text in ("def broken(:\n", "\n" * 9, START + "\nyyyyyyyyyyyy = 1\n\n\n"):
        path.write_text(text)
        assert rewritten(found) == {}


def test_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "layers_of_a_test.py").write_text("import torch\n\ndef layer(t):\n    return torch.sigmoid(t)\n")
    path = tmp_path / "program.py"
    path.write_text(START + "from layers_of_a_test import layer\ny = layer(x)\ny += 1\ny.backward()\n")
    monkeypatch.syspath_prepend(tmp_path)
    texts = rewritten(diagnosed(path).findings)
    assert texts[str(tmp_path / "layers_of_a_test.py")].endswith("return torch.sigmoid(t).clone()\n")
    assert texts[str(path)].endswith("y.sum().backward()\n")


# ------------------------------------------------------------------------------------------------------------- the parts

def test_edits_at_one_place() -> None:
    assert edits.apply("abc", [Edit(1, 2, "X"), Edit(1, 1, "<"), Edit(3, 3, ">")]) == "a<Xc>"
    assert not edits.compatible([Edit(1, 2, "X")], [Edit(2, 2, "Y")])
    assert edits.compatible([Edit(1, 2, "X")], [Edit(1, 2, "X"), Edit(3, 4, "")])


def test_statements_before_and_after() -> None:
    source = Source("if a:\n    b = 1  # one\n    c = 2; d = 3\n@decorated\ndef f(): return 1\n")
    b, c, d = source.tree.body[0].body
    assert "    b = 1  # one\n    new\n" in edits.apply(source.text, [source.after(b, "new")])
    assert "    c = 2; new; d = 3\n" in edits.apply(source.text, [source.after(c, "new")])
    assert "    c = 2; new; d = 3\n" in edits.apply(source.text, [source.before(d, "new")])
    assert "    new\n    b = 1  # one\n" in edits.apply(source.text, [source.before(b, "new")])
    assert "\nnew\n@decorated\n" in edits.apply(source.text, [source.before(source.tree.body[1], "new")])


def test_scopes() -> None:
    names = Names(ast.parse(dedent("""
        x = 1
        def f(y, z=x):
            def g():
                nonlocal y
                y += x
            x = [x for x in y]
            return x
        class C:
            x = 2
            def m(self):
                return x
        print([(x, last := k) for k in range(3)], last)
        """)))
    module = Variable(names.tree, "x")
    assert len(names.uses(module)) == 3  # the default, in the method, and in the last comprehension
    f = names.tree.body[1]
    assert len(names.uses(Variable(f, "x"))) == 2 and len(names.uses(Variable(f, "y"))) == 2
    assert len(names.bindings(Variable(names.tree, "last"))) == 1
