"""`mutagrad.draw(loss)`: the graph that a result was recorded as, as a picture.

>>> import mutagrad as mg
>>> x = mg.ones(3, requires_grad=True)
>>> y = x * 2
>>> y[0] = 5.
>>> mg.draw(y.sum())
<graph: 3 writes (1 to a part), 1 leaf; .save("graph.svg") writes it, a notebook shows it>
"""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html import escape
from typing import Any

from ..base.errors import BadArgument, BadValue, GradientError
from ..base.provenance import user_frame
from ..base.pytree import tree_leaves
from ..core.graph import Leaf
from ..nn.module import Module
from ..tensors.tensor import Tensor
from .dot import dot
from .folding import WAYS, Boxes, Folding, fold as folded
from .module_paths import CallRecorder, common_depth, paths_by_calls, paths_by_parameters
from .picture import picture
from .recorded import Recorded
from .svg import svg

MOST_BOXES = 3000


def draw(result: Any, *inputs: Any, params: Module | Mapping[str, Tensor] | None = None,
         fold: bool | str | Sequence[str] = True, depth: int | None = None, limit: int = 40) -> Drawing:
    """Return a picture of the graph of a tensor, or of a tuple, list or dict of them: `.svg`, `.dot`, `.save(path)`.

    A function or module is called with the inputs, and what it returns is drawn; then modules are known exactly:
    `draw(model, x)`, `draw(lambda: loss_function(model(x), y))`. For a graph that was made before, `params` (a module,
    or names and tensors) says what leaves are called and where modules are; variables of the caller are found without.

    More than `limit` boxes are folded, first by modules, then chains and what repeats along them, loops, functions,
    stretches of lines. `fold` names ways in place of that ("modules", "loops", ...), or is False; `depth` is that of
    the modules to show.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True)
    >>> mg.draw((x * 2).sum()).dot.splitlines()[0]
    'digraph mutagrad {'
    """
    frame = user_frame()
    variables = {**frame.f_globals, **frame.f_locals}
    calls = CallRecorder()
    if callable(result) and not isinstance(result, Tensor):
        with calls:
            result = result(*inputs)
    elif inputs:
        raise BadArgument(f"draw: {type(result).__name__} cannot be called with inputs",
                          fix="draw(model, *inputs), or draw(loss)")
    graph = Recorded(_outputs(result, variables))
    names = _leaf_names(params, variables)
    folding = _folding(graph, calls, names, fold, depth, limit)
    boxes, ways = folded(graph, folding)
    if len(boxes) > MOST_BOXES:
        raise BadValue(f"draw: {len(boxes):,} boxes are too many for a picture", fix="fold=True, or a larger fold=...")
    return Drawing(boxes, ways, names)


# ---------------------------------------------------------------------------------------------------------- arguments

def _outputs(result: Any, variables: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the tensors to draw, by name."""
    if isinstance(result, Mapping):
        named = {f"{key}.{i}" if value is not t else str(key): t for key, value in result.items()
                 for i, t in enumerate(tree_leaves(value)) if isinstance(t, Tensor)}
    else:
        tensors = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
        named = {_variable(t, variables) or (f"result {i}" if len(tensors) > 1 else "result"): t
                 for i, t in enumerate(tensors)}
    if not named:
        raise BadArgument("draw: expected a tensor, several, or a function that returns some, "
                          f"not {type(result).__name__}", fix="draw(loss)")
    recorded = {name: t for name, t in named.items() if t._storage.writer is not None}
    if not recorded:
        raise GradientError(
            "draw: the tensor has no graph" if len(named) == 1 else "draw: none of the tensors has a graph",
            why="nothing that it was computed from requires grad, or it was computed in no_grad() or detached",
            fix="x.requires_grad_() before computing; draw the tensor itself, not .detach(), .data or .item() of it")
    return recorded


def _variable(tensor: Tensor, variables: Mapping[str, Any]) -> str | None:
    return next((name for name, value in variables.items() if value is tensor and not name.startswith("_")), None)


def _leaf_names(params: Module | Mapping[str, Tensor] | None, variables: Mapping[str, Any]) -> dict[Leaf, str]:
    """Return what leaves are called: in `params`, else in variables of the caller or in modules that are among them."""
    if params is not None and not isinstance(params, (Module, Mapping)):
        raise BadArgument(f"draw: params must be a module or a dict of tensors, not {type(params).__name__}",
                          fix="params=model")
    shown = {name: value for name, value in variables.items() if not name.startswith("_")}
    found = {f"{name}.{path}": p for name, value in shown.items() if isinstance(value, Module)
             for path, p in value.named_parameters()}
    given = dict(params.named_parameters()) if isinstance(params, Module) else dict(params or {})
    names: dict[Leaf, str] = {}
    for name, value in [*given.items(), *found.items(), *shown.items()]:
        if isinstance(value, Tensor) and value._storage.leaf is not None:
            names.setdefault(value._storage.leaf, str(name))
    return names


def _folding(graph: Recorded, calls: CallRecorder, names: Mapping[Leaf, str], fold: bool | str | Sequence[str],
             depth: int | None, limit: int) -> Folding:
    ways = None if fold is True else [] if fold is False else [fold] if isinstance(fold, str) else list(fold)
    wrong = [way for way in ways or () if way not in WAYS]
    if wrong:
        raise BadValue(f"draw: fold={wrong[0]!r} is no way to fold", fix=f"True, False, or some of {', '.join(WAYS)}")
    if depth is not None and depth < 1:
        raise BadValue(f"draw: depth must be at least 1, not {depth}", fix="depth=1 shows the outermost modules")
    paths = paths_by_calls(graph, calls.calls) if calls.calls else paths_by_parameters(graph, names)
    common = common_depth(paths)
    kinds = {call.path[common:]: call.kind for call in calls.calls}
    return Folding([path[common:] for path in paths], kinds, ways, depth, limit)


# ------------------------------------------------------------------------------------------------------------- result

class Drawing:
    """A graph as a picture: notebooks show it, `save` writes it; `boxes` is what is drawn, `folded` how."""

    def __init__(self, boxes: Boxes, ways: Sequence[str], names: Mapping[Leaf, str]) -> None:
        self.boxes, self.folded = list(boxes), tuple(ways)
        self.writes, self.leaves = len(boxes.graph.writes), len(boxes.graph.leaves)
        self.parts = sum(node.written is not None for node in boxes.graph.writes)
        self.picture = picture(boxes, names)

    @property
    def caption(self) -> str:
        parts = f" ({self.parts:,} to {'a part' if self.parts == 1 else 'parts'})" if self.parts else ""
        counted = f"{_count(self.writes, 'write', 'writes')}{parts}, {_count(self.leaves, 'leaf', 'leaves')}"
        return counted + (f", folded by {', '.join(self.folded)} into {_count(len(self.boxes), 'box', 'boxes')}"
                          if self.folded else "")

    @cached_property
    def svg(self) -> str:
        return svg(self.picture, self.caption)

    @cached_property
    def dot(self) -> str:
        return dot(self.picture, self.caption)

    @property
    def html(self) -> str:
        return ('<!DOCTYPE html>\n<html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
                f"<title>{escape(self.caption)}</title></head>\n<body>\n{self.svg}</body></html>\n")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, as what its name ends with: .svg, .dot (or .gv) or .html."""
        kind = os.path.splitext(os.fspath(path))[1].lower()
        made: dict[str, Callable[[], str]] = {
            ".svg": lambda: self.svg, ".html": lambda: self.html, ".dot": lambda: self.dot, ".gv": lambda: self.dot}
        if kind not in made:
            raise BadValue(f"save: cannot write a picture as {kind or 'a file without an ending'}",
                           fix='"graph.svg", "graph.html" or "graph.dot"')
        with open(path, "w", encoding="utf-8") as file:
            file.write(made[kind]())

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow: auto; max-height: 900px">{self.svg}</div>'

    def __repr__(self) -> str:
        return f'<graph: {self.caption}; .save("graph.svg") writes it, a notebook shows it>'


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
