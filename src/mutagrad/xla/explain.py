"""What a compiled function has become: `compiled.explain()`, to print or to ask."""
from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from typing import Any

from ..arrays.xla.memory import HOST
from ..nn.module import Module

COLLECTIVES = re.compile(r"= .*? (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")


def readable(nbytes: float) -> str:
    """Bytes as people say them."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024 or unit == "GiB":
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    raise AssertionError


class Explanation:
    """The last program of a compiled function. Each line of its text is also an attribute."""

    def __init__(self, compiled: Any) -> None:
        self.eager = compiled.eager  # why it runs as it is, if it does
        self.traces = len(compiled.retraces)
        self.why = list(compiled.retraces)  # each trace's reason
        self.programs = sum(map(len, compiled.programs.values()))
        program = self.program = compiled.last
        if program is None:
            return
        self.runs = program.runs
        self.equations = program.equations
        self.trace_seconds, self.compile_seconds = program.seconds, program.compile_seconds
        memories = program.memories
        read = [*program.donated, *program.kept]
        self.arguments = [memories[k].nbytes for k in read if memories[k].argument is not None]
        self.captured = [memories[k].nbytes for k in read if memories[k].storage is not None]
        self.gradients = [memories[k].nbytes for k in read if memories[k].grad_of is not None]
        self.written = [memories[k].nbytes for k in program.written]
        self.results = len(program.returned)
        self.donated_bytes = sum(memories[k].nbytes for k in program.donated)
        packing = program.packing
        self.packed = 0 if packing is None or packing.arena is None else len(packing.layout.parts)
        self.copied_in = sum(memories[k].nbytes for k in read if memories[k].place is HOST)
        self.copied_out = sum(memories[k].nbytes for k in program.written if memories[k].place is HOST)
        self.could_stay = sum(memories[k].nbytes for k in {*read, *program.written}
                              if memories[k].place is HOST and memories[k].storage is not None)
        self.numbers = sum(table.site.fixed.count(()) for table in program.tables)
        self.guards = [f"{item.name} is " + ("the same" if hasattr(item.value, "_array") else repr(item.value))
                       for item in program.guards.items.values()]
        self.modules = sum(isinstance(m, Module) for m, _ in program.guards.modules.values())

    @property
    def graph_count(self) -> int:
        """How many programs there are. This and the next three are PyTorch's names."""
        return 0 if self.eager is not None else self.programs

    @property
    def break_reasons(self) -> list[str]:
        """Why it is not one program: it is never cut in two, but may run as it is."""
        return [] if self.eager is None else [self.eager]

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        """The size of the last program, in equations of JAX's."""
        return 0 if self.program is None else self.equations

    @cached_property
    def collectives(self) -> dict[str, int]:
        """What devices exchange, and how often, in the compiled program; what is exchanged together counts once."""
        if self.program is None:
            return {}
        return dict(Counter(COLLECTIVES.findall(self.text())))

    def text(self) -> str:
        """The compiled program, in XLA's words."""
        assert self.program is not None
        return self.program.jitted.lower(*self.program.given).compile().as_text()

    def __str__(self) -> str:
        if self.eager is not None:
            return f"runs eagerly: {self.eager}"
        if self.program is None:
            return "not called yet"
        rows = [
            f"{self.runs} runs of the last of {self.programs} programs; traced {self.traces} times",
            f"inputs      {len(self.arguments)} arguments, {readable(sum(self.arguments))}; "
            f"{len(self.captured)} captured tensors, {readable(sum(self.captured))}; "
            f"{len(self.gradients)} gradients; {self.numbers} numbers of Python's",
            f"outputs     {len(self.written)} memories written, {readable(sum(self.written))}; {self.results} results",
            f"donated     {readable(self.donated_bytes)}, updated in place",
            f"copied      {readable(self.copied_in)} from NumPy's memory, {readable(self.copied_out)} back, each run",
            f"program     {self.equations} equations; traced in {self.trace_seconds:.2f} s, "
            f"compiled with the first run in {self.compile_seconds:.2f} s",
            f"guards      {len(self.guards)} values and tensors, {self.modules} modules"]
        if self.packed:
            rows.append(f"packed      {self.packed} memories and gradients are handed over together")
        if any(memory.place.over_mesh for memory in self.program.memories):
            found = ", ".join(f"{n} {name}" for name, n in self.collectives.items())
            rows.append(f"exchanged   {found or 'nothing'} between devices, each run")
        if self.could_stay:
            rows.append(f'advice      x.to("xla") for captured tensors would save copying {readable(self.could_stay)}')
        rows += [f"trace {k + 1}     {why}" for k, why in enumerate(self.why)]
        return "\n".join(rows)

    __repr__ = __str__
