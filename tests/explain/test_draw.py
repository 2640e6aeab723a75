"""`mutagrad.draw`: what a picture of a graph shows, how it folds, and that it is well-formed."""
from __future__ import annotations

import linecache
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import mutagrad as mg
import mutagrad.nn.functional as F
from mutagrad import nn
from mutagrad.base.errors import BadArgument, BadValue, GradientError
from mutagrad.explain.dot import quoted
from mutagrad.explain.draw import Drawing
from mutagrad.explain.index_text import index_text
from mutagrad.explain.picture import common_name
from mutagrad.nn import module as module_file


def titles(drawing: Drawing, kind: str = "") -> list[str]:
    return [item.title for item in drawing.picture.items if item.kind == kind or not kind]


def item(drawing: Drawing, title: str) -> Any:
    return next(item for item in drawing.picture.items if item.title == title)


def arrows(drawing: Drawing) -> set[tuple[str, str, str]]:
    items = drawing.picture.items
    return {(items[a.source].title, items[a.target].title, a.kind) for a in drawing.picture.arrows}


def texts(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


# --------------------------------------------------------------------------------------------------------------- small

def test_a_partial_write_and_the_writer_before_it_are_marked() -> None:
    x = mg.ones(3, requires_grad=True)
    y = x * 2
    y[0] = 5.
    loss = y.sum()
    drawing = mg.draw(loss)
    assert titles(drawing) == ["x", "mul", "copy", "sum", "loss"]
    assert arrows(drawing) == {("x", "mul", "read"), ("mul", "copy", "kept"), ("copy", "sum", "read"), ("sum", "loss", "read")}
    write = item(drawing, "copy")
    assert write.kind == "part" and ("part", "writes [0] of (3,)") in write.lines
    assert any(kind == "code" and text.endswith("y[0] = 5.") for kind, text in write.lines)
    assert "test_draw.py" in write.tip and "y[0] = 5." in write.tip
    assert item(drawing, "sum").lines[0] == ("shape", "scalar")
    assert repr(drawing).startswith("<graph: 3 writes (1 to a part), 1 leaf; ") and "save" in repr(drawing)


def test_windows_that_are_read_are_labels() -> None:
    x = mg.ones(4, 5, requires_grad=True)
    drawing = mg.draw(x[1:, 0] * x[0, 0])
    assert {label for a in drawing.picture.arrows for label in a.label.split(", [")} == {"[1:, 0]", "0, 0]", ""}


def test_leaves_are_named_by_params_and_by_variables_of_the_caller() -> None:
    layer, scale = nn.Linear(3, 2), mg.ones(2, requires_grad=True)
    x = mg.ones(3)

    def made() -> mg.Tensor:
        return layer(x) * scale

    assert titles(mg.draw(made()), "leaf") == ["layer.weight", "layer.bias", "scale"]
    assert titles(mg.draw(made(), params=layer), "leaf") == ["weight", "bias", "scale"]
    assert titles(mg.draw(made(), params={"S": scale}), "leaf") == ["layer.weight", "layer.bias", "S"]

    def elsewhere() -> Drawing:
        return mg.draw((mg.ones(2, requires_grad=True) * 2).sum())

    assert titles(elsewhere(), "leaf") == ["leaf"], "its tensor is gone"
    assert "gone" in item(elsewhere(), "leaf").tip


def test_several_results_dicts_and_non_scalars() -> None:
    x = mg.ones(3, requires_grad=True)
    a, b = x * 2, x.exp()
    assert titles(mg.draw((a, b)), "output") == ["a", "b"]
    assert titles(mg.draw([a + 1, (b + 1,)]), "output") == ["result 0", "result 1"]
    assert titles(mg.draw({"loss": a, "aux": (b, b), "n": 3}), "output") == ["loss", "aux.0", "aux.1"]
    assert titles(mg.draw((a, mg.ones(3))), "output") == ["a"], "one without a graph has nothing to draw"
    assert titles(mg.draw(x)) == ["x", "x"], "a leaf by itself"


def test_what_has_no_graph_says_so_and_how_to_have_one() -> None:
    x = mg.ones(3, requires_grad=True)
    for tensor in (mg.ones(3), (x * 2).detach()):
        with pytest.raises(GradientError, match="no graph") as caught:
            mg.draw(tensor)
        assert "requires_grad_()" in caught.value.fix
    with pytest.raises(BadArgument, match="not str"):
        mg.draw("loss")
    with pytest.raises(BadArgument, match="params"):
        mg.draw(x * 2, params=[x])  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="cannot be called"):
        mg.draw(x * 2, x)
    for wrong in ({"fold": "loop"}, {"fold": ["chains", "x"]}, {"depth": 0}):
        with pytest.raises(BadValue):
            mg.draw(x * 2, **wrong)  # type: ignore[arg-type]


def test_shapes_are_known_after_backward_where_they_follow_from_inputs() -> None:
    x, w = mg.ones(5, 3, requires_grad=True), mg.ones(4, 3, requires_grad=True)
    y = F.linear(x, w)
    z = (y * y.exp()).sum()
    z.backward()
    drawing = mg.draw(z)
    assert [item(drawing, title).lines[0][1] for title in ("linear", "exp", "mul", "sum")] == ["(5, 4)", "(5, 4)", "(5, 4)", "scalar"]
    assert "has a gradient" in item(drawing, "x").tip


def test_a_shape_that_is_not_known_is_not_guessed() -> None:
    """The constant may have been larger than x: add saves nothing of it."""
    x = mg.ones(3, requires_grad=True)
    drawing = mg.draw((x + mg.ones(4, 3)).exp().sum())
    assert item(drawing, "exp").lines[0] == ("shape", "(4, 3)"), "exp has saved its result"
    assert item(drawing, "add").lines[0] == ("shape", "(4, 3)"), "and what it has read has the same shape"
    assert [kind for kind, _ in item(mg.draw(x + mg.ones(4, 3) + 1), "add").lines] == ["code"], "here nobody knows"


def test_expanded_inputs_have_the_shape_that_was_read() -> None:
    x = mg.ones(1, 3, requires_grad=True)
    drawing = mg.draw((x.expand(2, 3).sin() * x.expand(2, 3)).sum())
    assert item(drawing, "sin").lines[0] == ("shape", "(2, 3)") and item(drawing, "mul").lines[0] == ("shape", "(2, 3)")
    small = mg.draw(x.expand(2, 3).neg().sum(0))
    assert item(small, "neg").lines[0] in (("shape", "(2, 3)"), item(small, "neg").lines[-1]), "known or left out, not (1, 3)"


def test_other_types_functions_and_custom_functions() -> None:
    class Twice(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return 2 * g + 3 * h

    x = mg.ones(3, dtype=mg.complex64, requires_grad=True)
    a, b = Twice.apply(x)
    drawing = mg.draw((a * b).real.sum())
    assert {"Twice", "output", "mul", "sum"} <= set(titles(drawing))
    assert item(drawing, "x").lines == [("shape", "(3,) complex64")]
    q, _ = mg.linalg.qr(mg.eye(3).requires_grad_())
    assert mg.draw(q.sum()).writes >= 2


# ------------------------------------------------------------------------------------------------------------- folding

def test_loops_are_one_box_for_each_line_with_an_arrow_back() -> None:
    W, h = mg.eye(4, requires_grad=True), mg.ones(4)
    for _ in range(50):
        a = W @ h
        h = a.tanh()
    drawing = mg.draw(h, fold="loops")
    assert titles(drawing) == ["W", "matmul ×50", "tanh ×50", "h"] and drawing.folded == ("loops",)
    assert ("tanh ×50", "matmul ×50", "back") in arrows(drawing)
    assert titles(mg.draw(h), "fold") == ["matmul → tanh ×50"], "as a chain it is one box"


def test_chains_and_what_repeats_along_them() -> None:
    x = mg.ones(3, requires_grad=True)
    y = x
    for _ in range(30):
        y = y * x
        y = y.sin().exp()
    drawing = mg.draw(y, fold=("chains", "repeats"))
    assert titles(drawing, "fold") == ["mul → sin → exp ×30"] and drawing.folded == ("chains", "repeats")
    assert ("note", "90 writes") in item(drawing, "mul → sin → exp ×30").lines
    assert titles(mg.draw(y, fold="chains"), "fold") == ["mul → sin → exp"] * 30
    assert len(titles(mg.draw(y, fold=False), "write")) == 90


def test_a_branch_is_no_chain() -> None:
    x = mg.ones(3, requires_grad=True)
    a = x.exp()
    b = a.sin()
    assert titles(mg.draw(a.cos() + b, fold="chains"), "write") == ["exp", "sin", "cos", "add"]
    assert titles(mg.draw((a, b), fold="chains"), "write") == ["exp", "sin"], "a result stays visible"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        return x + F.relu(self.inner(x))


class Net(nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(count))
        self.head = nn.Linear(4, 1)

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x).exp()


def test_modules_are_exact_if_draw_calls_them() -> None:
    net, x = Net(3), mg.ones(2, 4)
    drawing = mg.draw(net, x, depth=1)
    assert [(box.title, len(box.writes)) for box in drawing.boxes] == [("blocks.0", 3), ("blocks.1", 3), ("blocks.2", 3), ("linear_bias", 1), ("exp", 1)]
    assert ("note", "Block · 3 writes") in item(drawing, "blocks.0").lines and ("note", "in head") in item(drawing, "linear_bias").lines
    loss = mg.draw(lambda: F.mse_loss(net(x), mg.zeros(2, 1)), depth=1)
    assert [box.title for box in loss.boxes][:3] == ["blocks.0", "blocks.1", "blocks.2"]
    assert not module_file._global_forward_hooks and not module_file._global_forward_pre_hooks


def test_a_module_that_is_called_twice_is_drawn_twice() -> None:
    block = Block()
    drawing = mg.draw(lambda: block(block(mg.ones(2, 4))), fold="modules", depth=1)
    assert titles(drawing, "fold") == ["Block", "Block (call 2)"]


def test_hooks_are_gone_after_an_error() -> None:
    with pytest.raises(RuntimeError):
        mg.draw(Net(2), mg.ones(2, 5))
    assert not module_file._global_forward_hooks and not module_file._global_forward_pre_hooks


def test_modules_are_told_by_parameters_of_a_graph_that_was_made_before() -> None:
    net = Net(3)
    loss = net(mg.ones(2, 4)).sum()
    drawing = mg.draw(loss, params=net, fold="modules", depth=1)
    assert [(box.title, len(box.writes)) for box in drawing.boxes] == [("blocks", 7), ("relu", 1), ("add", 1), ("linear_bias", 1), ("exp", 1), ("sum", 1)]


def test_many_like_modules_are_one_box() -> None:
    drawing = mg.draw(nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(60))), mg.ones(1, 2), fold=("modules", "repeats"), depth=1)
    assert [box.title for box in drawing.boxes] == ["0 … 59"] and ("note", "Sequential ×60 · 120 writes") in item(drawing, "0 … 59").lines
    assert ("leaf", "120 leaves, 360 elements") in item(drawing, "0 … 59").lines


def test_functions_files_and_stretches_of_lines() -> None:
    x = mg.ones(3, requires_grad=True)

    def first(y: mg.Tensor) -> mg.Tensor:
        return y.sin() * y

    def second(y: mg.Tensor) -> mg.Tensor:
        return y.exp() * y

    y = second(first(x)) + x
    assert titles(mg.draw(y, fold="functions"))[1:] == ["first()", "second()", "add", "y"]
    assert titles(mg.draw(y, fold="files"))[1:] == ["test_draw.py", "y"]
    line = first.__code__.co_firstlineno + 1
    assert titles(mg.draw(y, fold="lines", limit=3))[1:] == [f"line {line}", f"line {line + 3}", "add", "y"]


def program(lines: int) -> mg.Tensor:
    """The result of as many lines, each of its own, that read what was computed shortly before."""
    body = [f"    v.append(v[{(k * 7) % max(1, k - 3)}].sin() + v[-1] * x)" for k in range(1, lines)]
    names: dict[str, Any] = {}
    exec(compile("\n".join(["def run(x):", "    v = [x * 2]", *body, "    return v[-1]"]), "program.py", "exec"), names)
    result: mg.Tensor = names["run"](mg.ones(2, requires_grad=True))
    return result


@pytest.mark.parametrize("lines", [5, 50, 500])
def test_a_picture_is_readable_at_any_size(lines: int) -> None:
    drawing = mg.draw(program(lines))
    assert (1 if lines < 10 else 4) <= len(drawing.boxes) <= 40
    assert len(drawing.svg) < 200_000 and ET.fromstring(drawing.svg).get("viewBox")
    assert sum(len(box.writes) for box in drawing.boxes) == drawing.writes
    assert (f"into {len(drawing.boxes)} boxes" in repr(drawing)) == (lines > 10)


def test_a_hundred_thousand_writes_without_recursion() -> None:
    y, x = mg.zeros(10), mg.ones(10, requires_grad=True)
    for i in range(100_000):
        y[i % 10] = x[i % 10] * y[(i - 1) % 10]
    drawing = mg.draw(y)
    assert titles(drawing) == ["x", "mul ×100,000", "y"] and ("part", "100,000 to parts") in item(drawing, "mul ×100,000").lines
    assert "100,000 writes" in repr(drawing)


def test_more_boxes_than_a_picture_can_hold() -> None:
    x = mg.ones(2, requires_grad=True)
    y = x
    for _ in range(3001):
        y = y.sin()
    with pytest.raises(BadValue, match="3,001 boxes are too many"):
        mg.draw(y, fold=False)


def test_a_leaf_that_many_read_is_drawn_beside_each() -> None:
    x = mg.ones(3, requires_grad=True)
    y = x
    for _ in range(10):
        y = (y * x).sin()
    assert titles(mg.draw(y, fold=False), "leaf") == ["x"] * 10


# ---------------------------------------------------------------------------------------------------------------- files

def small() -> Drawing:
    x = mg.ones(3, requires_grad=True)
    y = x * 2
    y[1:] = x[:-1] * 3 if "<&>\"'" else y  # characters that SVG and DOT must escape
    return mg.draw(y.sum())


def test_svg_is_well_formed_escaped_and_light_or_dark() -> None:
    svg = small().svg
    assert any("<&>" in text for text in texts(svg)) and "<&>" not in svg
    assert "prefers-color-scheme: dark" in svg and 'data-jp-theme-light="false"' in svg and "<script" not in svg
    assert not re.findall(r'(?:href|src)="http|url\(http|@import', svg), "nothing comes from elsewhere"
    assert svg == small().svg, "the same graph gives the same picture"
    assert '\nlabel="' not in svg and "nan" not in re.findall(r' d="([^"]*)"', svg)


def test_every_style_is_inside_the_picture() -> None:
    """A notebook puts the picture into its page, where a rule for all rectangles would be one for the page's."""
    style = re.search(r"<style>(.*?)</style>", small().svg, re.S)
    assert style is not None
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"@media[^{]*\{(.*?\})\}", r"\1", style[1], flags=re.S))
    assert rules and all(".mg-graph" in part for rule in rules for part in rule.split(","))


def test_dot_has_nodes_edges_and_escapes() -> None:
    dot = small().dot
    assert dot.startswith("digraph") and dot.rstrip().endswith("}") and dot.count("{") == dot.count("}")
    assert len(re.findall(r"^  n\d+ \[", dot, re.M)) == 5 and len(re.findall(r"^  n\d+ -> n\d+ ", dot, re.M)) == 5
    assert "style=dashed" in dot and quoted('a"b\\\n') == '"a\\"b\\\\\\n"'
    assert re.sub(r'"(?:[^"\\]|\\.)*"', "", dot).count('"') == 0, "every string ends"


def test_save_writes_what_the_name_says(tmp_path: Path) -> None:
    drawing = small()
    for name, head in (("a.svg", "<svg"), ("a.dot", "digraph"), ("a.gv", "digraph"), ("a.HTML", "<!DOCTYPE html>")):
        drawing.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(head)
    for name in ("a.png", "a"):
        with pytest.raises(BadValue, match="save"):
            drawing.save(str(tmp_path / name))
    assert not (tmp_path / "a.png").exists()


def test_notebooks_show_it() -> None:
    drawing = small()
    assert drawing._repr_svg_() == drawing.svg and drawing.svg in drawing._repr_html_()


def test_drawing_leaves_the_graph_as_it_was() -> None:
    x = mg.ones(3, requires_grad=True)
    y = (x * x).sum()
    mg.draw(y)
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]


def test_the_picture_in_the_documents_is_what_its_program_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = Path(__file__).parents[2] / "docs"
    program = re.search(r"```python\n(# program\.py\n.*?)```", (docs / "looking.md").read_text(encoding="utf-8"), re.S)
    assert program is not None
    monkeypatch.setitem(linecache.cache, "program.py", (len(program[1]), None, program[1].splitlines(True), "program.py"))
    names: dict[str, Any] = {}
    exec(compile(program[1], "program.py", "exec"), names)
    names["drawing"].save(tmp_path / "looking.svg")
    made, shown = ((folder / "looking.svg").read_text(encoding="utf-8") for folder in (tmp_path, docs))
    assert made == shown and len(shown) < 15_000, f"copy {tmp_path}/looking.svg there"


# ---------------------------------------------------------------------------------------------------------------- words

@pytest.mark.parametrize("index", ["0", "1:", ":-1", "1:3, 0", ":, 2", "0, 1:4:2", "2, 3", "::2, ::3", "1:3, 1:3"])
def test_a_window_is_written_as_the_index_that_made_it(index: str) -> None:
    x = mg.ones(4, 6, requires_grad=True)
    part = eval(f"x[{index}]")
    window = (part * 2)._storage.writer.windows[0]
    text = index_text(window, (x._array.shape, x._array.dtype))
    again = eval(f"x{text}")
    assert again.shape == part.shape and again.storage_offset() == part.storage_offset() and again.stride() == part.stride()


def test_windows_that_are_no_slices() -> None:
    x = mg.ones(4, 6, requires_grad=True)
    whole = x._array.shape, x._array.dtype

    def text(part: mg.Tensor) -> str:
        node = (part * 2)._storage.writer
        return index_text(node.windows[0] if node.windows else None, whole)

    assert text(x) == "" and text(x.view(24)) == "" and text(x.T) == "" and text(x.view(24)[2:9]) == "[7 of 24]"
    y = x * 1
    y[mg.tensor([0, 2])] = 3.
    assert index_text(y._storage.writer.written, whole) == "[12 of 24]"
    z = mg.ones(3, dtype=mg.complex64, requires_grad=True) * 1
    node = (z.real * 2)._storage.writer
    assert index_text(node.windows[0], (z._array.shape, z._array.dtype)) == "[part of each number]"


def test_names_in_common() -> None:
    assert common_name(["a.0.w", "a.1.w"]) == "a.*.w" and common_name(["a.w", "a.b.w"]) == "a.*"
    assert common_name(["x", "y", "z"]) == "x … z" and common_name(["leaf", "leaf"]) == "leaf ×2"
