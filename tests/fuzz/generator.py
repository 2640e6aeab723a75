"""`generate(seed)`: a random mutating program.

It grows statement by statement, and each runs on the mirror at once, so the generator knows the shapes, the aliasing
and the sizes of the values. A statement that raises there, or lets a value grow, is taken back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from . import aliases, hooks, mirror, rooms, scalars  # noqa: F401  which register their kinds of statements
from .asking import ASKING
from .programs import BUFFER, Leaf, Program, Statement
from .statements import KINDS, broadcasts_into

# What NumPy raises where an operation makes no sense for the operands that chance gave it.
REFUSALS = (ValueError, IndexError, AssertionError, *rooms.REFUSALS)
LARGEST_VALUE = 5.0
LARGEST_SIZE = 18
ROOMS_VALUE, ROOMS_SIZE, ROOMS_DIMENSIONS = 50.0, 150, 6
LEAF_SHAPES = [(), (3,), (4,), (5,), (2, 3), (3, 3), (3, 2), (2, 2), (1, 3), (3, 1)]


@dataclass
class Generator:
    """`plain`: no writes at all. `unrecorded`: also writes that opt out of the gradient. `families`: which kinds of statements
    there are beside the core's. `order`: what the program is for."""

    seed: int
    plain: bool = False
    unrecorded: bool = False
    indirect: bool = False
    families: tuple[str, ...] = ()
    order: int = 1
    r: random.Random = field(init=False)

    def __post_init__(self):
        self.r = random.Random(self.seed)
        self.rooms = "rooms" in self.families
        self.leaves = self.make_leaves()
        self.asking = "once"
        if "aliases" in self.families and not self.indirect and self.chance(0.35):
            self.leaves = self.in_one_buffer(self.leaves)
        if "hooks" in self.families and not self.indirect:
            self.asking = self.r.choice(list(ASKING))
        self.statements: list[Statement] = []
        self.names = [leaf.name for leaf in self.leaves]
        self.unused = (letter + (str(n) if n else "") for n in count() for letter in "abcdefghkpqstuvw")
        self.pending: list[str] = []  # handed out to the statement that is being written
        self.probes: list[Leaf] = []  # the same
        self.env = self.replayed()
        if self.indirect:
            self.names = []
            for leaf in self.leaves:
                self.pending = [leaf.name.rstrip("0")]
                self.add("clone of a leaf", f"{self.pending[0]} = {leaf.name}.clone()")

    def make_leaves(self):
        r, leaves, room = self.r, [], 14
        for name in "xyz"[:r.choice([1, 1, 2, 2, 2, 3])]:
            shape = r.choice([s for s in LEAF_SHAPES if np.prod(s) <= room])
            room -= int(np.prod(shape))
            value = np.array([round(r.uniform(-1.2, 1.2), 2) for _ in range(int(np.prod(shape)))]).reshape(shape)
            leaves.append(Leaf(name + "0" * self.indirect, value))
            if not room:
                break
        return tuple(leaves)

    def in_one_buffer(self, leaves):
        """The same leaves as windows of a buffer: side by side, with a gap here and there, some turned."""
        placed, start = [], self.r.choice([0, 1, 2])
        for leaf in leaves:
            shape, size = leaf.value.shape, leaf.value.size
            part = f"flat[{start}:{start + size}]" if shape else f"flat[{start}, ...]"
            if len(shape) == 2:
                part += f".reshape{shape[::-1]}.T" if self.chance(0.4) else f".reshape{shape}"
            placed.append(replace(leaf, window=part))
            start += size + self.r.choice([0, 0, 1])
        assert start <= BUFFER
        return tuple(placed)

    def program(self, statements):
        return Program(self.leaves, tuple(statements), self.indirect, self.seed, self.asking)

    def replayed(self):
        program = self.program(self.statements)
        with mirror.taped(mirror.Tape()), np.errstate(all="ignore"):
            return program.run(mirror, program.start(mirror, program.point)[1])

    # Growing.

    def add(self, kind, source):
        """Run one more statement; take it back if it raises or if a value grows."""
        names, self.pending = self.names + self.pending, []
        probes, self.probes = self.probes, []
        for probe in probes:
            self.env[probe.name] = mirror.tensor(probe.value)
        try:
            with mirror.taped(mirror.Tape()), np.errstate(all="ignore"):
                exec(compile(source, "<statement>", "exec"), self.env)
            assert all(self.fits(self.env[n].a) for n in names)
        except REFUSALS:
            self.env = self.replayed()
            return False
        self.names = names
        self.leaves += tuple(probes)
        self.statements.append(Statement(kind, source))
        return True

    def fits(self, a):
        value, size, dimensions = (ROOMS_VALUE, ROOMS_SIZE, ROOMS_DIMENSIONS) if self.rooms else (LARGEST_VALUE, LARGEST_SIZE, 3)
        return a.size <= size and a.ndim <= dimensions and (not a.size or np.abs(a).max() < value)

    def grow(self, length):
        kinds = [k for k in KINDS if not (self.plain and k.writes) and (self.unrecorded or not k.unrecorded)
                 and k.family in ("core", *self.families)]
        weights = [k.weight for k in kinds]
        for _ in range(10 * length):
            kind = self.r.choices(kinds, weights)[0]
            self.pending, self.probes = [], []
            source = kind.make(self)
            length -= source is not None and self.add(kind.name, source)
            if not length:
                break
        self.add_loss()
        return self.program(self.statements)

    def add_loss(self):
        """A fixed random weight for each element of nearly every variable that is still alive."""
        self.statements.append(Statement("loss", "loss = f64(0.0)"))
        for name in self.names:
            if self.rooms and self.array(name).size and self.chance(0.85):
                self.statements.append(Statement("loss", f"loss = loss + weighed({rooms.real_view(self, name)})"))
            elif not self.rooms and self.array(name).size and self.chance(0.85):
                weights = self.literal(self.shape(name))
                self.statements.append(Statement("loss", f"loss = loss + ({name} * {weights}).sum()"))

    # Choosing.

    def chance(self, p):
        return self.r.random() < p

    def scalar(self):
        return self.r.choice([-1, 1]) * round(self.r.uniform(0.3, 1.4), 2)

    def new(self):
        self.pending.append(next(self.unused))
        return self.pending[-1]

    def new_probe(self, shape):
        """The name of a leaf of zeros."""
        taken = sum(leaf.probe for leaf in self.leaves) + len(self.probes)
        self.probes.append(Leaf(f"probe{taken}", np.zeros(shape), probe=True))
        return self.probes[-1].name

    def array(self, expression):
        with mirror.taped(mirror.Tape()):
            return eval(expression, self.env).a

    def shape(self, expression):
        return self.array(expression).shape

    @property
    def reals(self):
        return [n for n in self.names if self.env[n].a.dtype.kind == "f"]

    def variable(self, fits=lambda a: True):
        """The name of a variable whose array fits, newer ones more often; None where there is none."""
        names = [n for n in self.reals if fits(self.env[n].a)]
        return self.r.choice(names[-4:] if self.chance(0.3) else names) if names else None

    def literal(self, shape):
        if 0 in shape:  # a list cannot say (0, 2)
            return "f64(0.5)"
        values = np.array([self.scalar() for _ in range(int(np.prod(shape)))]).reshape(shape)
        return f"f64({values.tolist()})"

    def window(self, name, steps):
        """`name` seen through a chain of views."""
        expression = name
        for _ in range(steps):
            expression += self.view_step(self.shape(expression))
        return expression

    def view_step(self, shape):
        r, n = self.r, len(shape)
        steps = [f"[{self.basic_index(shape)}]"] * 5 + [f".unsqueeze({r.randrange(n + 1)})"]
        if n:
            dim = r.randrange(n)
            start = r.randrange(shape[dim]) if shape[dim] else 0
            steps += [f".select({dim}, {start})"] if shape[dim] else []
            steps += [f".narrow({dim}, {start}, {r.randint(1, shape[dim] - start)})"] if shape[dim] else []
        if n >= 2:
            steps += [".reshape(-1)", ".flatten()", f".reshape({shape[-1]}, -1)" if shape[-1] else ".flatten()"]
            steps += [".T", ".T", ".diagonal()", f".diagonal({r.choice([-1, 1])})"] if n == 2 else []
            steps += [f".transpose({r.randrange(n)}, {r.randrange(n)})"]
        if n == 3:
            steps += [f".permute({', '.join(map(str, r.sample(range(3), 3)))})"]
        if n == 1 and shape[0] == 4:
            steps += [".view(2, 2)", ".reshape(2, -1)"]
        if 1 in shape:
            steps += [".squeeze()", f".squeeze({shape.index(1)})"] * 2
        return r.choice(steps)

    def basic_index(self, shape):
        r = self.r
        tokens = [self.basic_token(n) for n in shape]
        while tokens and tokens[-1] == ":" and self.chance(0.6):
            tokens.pop()
        if len(shape) >= 2 and tokens and tokens[0] == ":" and len(tokens) == len(shape) and self.chance(0.5):
            tokens[0] = "..."
        if self.chance(0.06):
            tokens.insert(r.randrange(len(tokens) + 1), "None")
        return ", ".join(tokens) or "..."

    def basic_token(self, n):
        r = self.r
        if n <= 1 or self.chance(0.3):
            return ":" if not n or self.chance(0.7) else r.choice(["0", "-1"])
        if self.chance(0.4):
            return str(r.randrange(-n, n))
        start = r.randrange(n - 1)
        return r.choice(["1:", ":-1", "::2", "1::2", f"{start}:{r.randint(start + 1, n)}"])

    def target(self):
        """Something to write to in place: a variable, or a window of one."""
        name = self.variable()
        return name if self.chance(0.4) else self.window(name, self.r.choice([1, 1, 2, 3]))

    def value(self, shape):
        """An expression that broadcasts into `shape`."""
        fits = [n for n in self.reals if broadcasts_into(self.env[n].a.shape, shape)]
        roll = self.r.random()
        if roll < 0.15:
            return str(self.scalar())
        if roll < 0.7 and fits:
            return self.dressed(self.r.choice(fits))
        for _ in range(6):
            expression = self.window(self.variable(), self.r.choice([1, 1, 2]))
            if broadcasts_into(self.shape(expression), shape):
                return self.dressed(expression)
        return self.literal(self.some_suffix(shape))

    def tensor_value(self, shape):
        """An expression of exactly this shape."""
        fits = [n for n in self.reals if self.env[n].a.shape == shape]
        if fits and self.chance(0.7):
            return self.dressed(self.r.choice(fits))
        for _ in range(6):
            expression = self.window(self.variable(), self.r.choice([1, 1, 2]))
            if self.shape(expression) == shape:
                return self.dressed(expression)
        return f"({self.value(shape)} * {self.literal(shape)})"

    def some_suffix(self, shape):
        shape = shape[self.r.choice([0, 0, len(shape)]):]
        return tuple(1 if self.chance(0.2) else n for n in shape)

    def dressed(self, x):
        s = self.scalar()
        return self.r.choice([x, x, x, f"mg.sin({x})", f"({x} * {s})", f"{x}.tanh()", f"({s} - {x})"])

    def mask(self, shape):
        name = self.variable(lambda a: a.shape == shape)
        if name is None or self.chance(0.3):
            bits = np.array([self.chance(0.5) for _ in range(int(np.prod(shape)))], dtype=bool).reshape(shape)
            return f"mg.tensor({bits.tolist()})"
        return f"({name} {self.r.choice('<>')} {round(self.r.uniform(-0.6, 0.6), 2)})"

    def indices(self, n, k=None, unique=False):
        k = k or self.r.randint(1, n if unique else n + 1)
        return self.r.sample(range(n), min(k, n)) if unique else [self.r.randrange(n) for _ in range(k)]


def generate(seed, *, order=1, plain=False, families=()):
    """The program of this seed. Some opt out in places (finite differences of second order could not judge those)."""
    r = random.Random(f"family {seed}")
    opting = 0.4 if "aliases" in families else 0.15
    unrecorded = r.random() < opting and order == 1 and not plain
    g = Generator(seed, plain=plain, indirect=r.random() < 0.4, unrecorded=unrecorded, families=families, order=order)
    return g.grow(r.randint(3, 12))
