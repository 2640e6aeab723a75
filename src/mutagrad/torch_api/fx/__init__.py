"""Programs as graphs of calls, which other programs read and rewrite, under PyTorch's names.

>>> import mutagrad as mg
>>> from mutagrad import fx
>>> traced = fx.symbolic_trace(lambda x: mg.sin(x) + 1)
>>> [node.name for node in traced.graph.nodes]
['x', 'sin', 'add', 'output']
>>> traced(mg.zeros(2))
tensor([1., 1.])

A graph runs call by call, so gradients and writes are what they are in the program that was traced.
"""
from __future__ import annotations

from ..unavailable.symbols import (
    FakeTensor as FakeTensor,
    SymBool as SymBool,
    SymFloat as SymFloat,
    SymInt as SymInt,
    get_proxy_mode as get_proxy_mode,
    is_fake as is_fake,
)
from . import (
    _symbolic_trace as _symbolic_trace,
    graph as graph,
    graph_module as graph_module,
    interpreter as interpreter,
    node as node,
    proxy as proxy,
)
from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect",
           "map_arg", "symbolic_trace", "wrap"]
