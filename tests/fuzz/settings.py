"""The engine set so that small programs go ways that are meant for large ones."""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from unittest.mock import patch

import mutagrad.core.backward
import mutagrad.core.storage
from mutagrad.arrays import bfloat16, copies, lapack, parallel as large, quotients, running, sizes, slices, threads
from mutagrad.arrays.compiled import library, reductions
from mutagrad.core.factory import CODEGEN_GLOBALS
from mutagrad.core.sweep import Sweep

# Constants of `arrays/sizes.py`, and what stands for them when three elements are many.
LOWERED = {"LARGE": 2, "MIDDLE": 2, "PLENTY": 2, "BLOCK": 3, "PIECE": 3, "SHARED": 2}


@contextmanager
def by_reference():
    """Small values are copied when they are saved; let them be saved as large ones are, and protected, by records most of which
    are filed."""
    with patch.multiple(mutagrad.core.storage, SMALL=-1, FEW=1), patch.dict(CODEGEN_GLOBALS, SMALL=-1):
        yield


@contextmanager
def plainly():
    """Run the sweep that is written for readers, in place of the fast one."""
    with patch.object(mutagrad.core.backward, "SWEEP", Sweep):
        yield


@contextmanager
def in_pieces(seed):
    """Work that large arrays share among threads is cut up for small ones, too, and the spans are done in an order that the seed
    says, one after the other: whatever depends on the order comes out differently, and always does. Yields the sizes of the work."""
    r, seen = random.Random(seed), []

    def in_spans(size, work):
        seen.append(size)
        spans = cut(size)
        order = list(range(len(spans)))
        r.shuffle(order)
        found = {i: work(spans[i]) for i in order}
        return [found[i] for i in range(len(spans))]

    with ExitStack() as stack:
        stack.enter_context(set_everywhere(LOWERED))
        stack.enter_context(everywhere("in_spans", large.in_spans, in_spans))
        for module in (bfloat16, copies, large, quotients, slices):
            stack.enter_context(patch.object(module, "MANY", 2))
        stack.enter_context(patch.multiple(threads, WORTH=0, WORTH_EACH=0, get_num_threads=lambda: 2))
        stack.enter_context(patch.object(library, "WORTH", 2))
        stack.enter_context(patch.multiple(reductions, WORTH=2, PIECE=3, NARROW=2, WIDE=3))
        stack.enter_context(patch.multiple(running, BLOCK=4, WIDE=3))
        stack.enter_context(patch.object(lapack, "PAYS", 2))
        yield seen


@contextmanager
def in_one_piece():
    """Large arrays are worked on as small ones are."""
    with set_everywhere(dict.fromkeys(("LARGE", "MIDDLE", "PLENTY"), 1 << 60)):
        yield


@contextmanager
def set_everywhere(constants):
    with ExitStack() as stack:
        for name, value in constants.items():
            stack.enter_context(everywhere(name, getattr(sizes, name), value))
        yield


@contextmanager
def everywhere(name, old, new):
    """Exchange what a name means in every module that has imported it, and in generated code."""
    spaces = [vars(m) for module, m in list(sys.modules.items()) if module.partition(".")[0] == "mutagrad"]
    with ExitStack() as stack:
        for space in (*spaces, CODEGEN_GLOBALS):
            if space.get(name) is old or isinstance(old, int) and space.get(name) == old:
                stack.enter_context(patch.dict(space, {name: new}))
        yield


def cut(size):
    """Where the cuts are depends on the size alone, as it does with a fixed number of threads."""
    middle = random.Random(size).sample(range(1, size), min(size - 1, 2)) if size > 1 else []
    ends = [0, *sorted(middle), size]
    return [slice(start, stop) for start, stop in pairwise(ends)]

