"""Files changed at random, from single bytes to whole values: each loads or is refused, in little time and memory.

A seed makes some hundred files. To write one that went wrong to the disk:

    PYTHONPATH=tests python -c "from stress.test_hostile_files import cases; open('x.pt', 'wb').write(cases(7)[42])"
"""
from __future__ import annotations

import io
import json
import pickletools
import random
import struct
import zipfile
from argparse import Namespace
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from pickles import (
    EMPTY,
    REBUILD,
    archive,
    call,
    get,
    group,
    keyed,
    listed,
    name,
    number,
    numbers,
    old_archive,
    put,
    storage,
    tensor,
    text,
)

pytest.importorskip("resource", reason="limits of processes")
bounded = pytest.importorskip("bounded", reason="limits of processes")

COUNT = 300  # files of one seed
SEEDS = 8
Draw = random.Random
Program = tuple[bytes, dict[str, bytes]]  # and its storages
Point = namedtuple("Point", "x y")

LIMITS = [0, 1, -1, 2, 63, 64, 65, 255, 256, 1 << 15, 1 << 31, 1 << 32, (1 << 53) + 1, 1 << 59, (1 << 61) - 1, 1 << 62,
          (1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), 1 << 5000]
MADE = ["collections OrderedDict", "collections Counter", "builtins set", "builtins complex", "builtins bytearray",
        "_codecs encode", "torch Size", "torch device", "torch.serialization _get_layout",
        "torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor_v3",
        "torch._utils _rebuild_parameter",
        "torch._utils _rebuild_parameter_with_state", "torch._tensor _rebuild_from_type_v2", "mutagrad.device device",
        "numpy dtype", "numpy._core.multiarray _reconstruct", "numpy._core.multiarray scalar",
        "numpy._core.numeric _frombuffer", "collections deque", "collections defaultdict", "argparse Namespace",
        "torch.nn.parameter Parameter", "mutagrad.files.safe_unpickler rebuilt", "mutagrad.files.safe_unpickler typed_storage"]
NAMED = [*MADE, "torch.nn.parameter Buffer", "torch Tensor", "torch FloatStorage", "torch BoolStorage", "torch float32",
         "torch.storage UntypedStorage", "mutagrad Tensor", "mutagrad.nn.parameter UninitializedParameter",
         "mutagrad.nn.parameter UninitializedBuffer", "mutagrad.core.dtypes bool_", "os system",
         "numpy ndarray", "torch float8_e5m2", "torch complex32", "builtins list"]
TEXTS = ["", "a", "f4", "O", ">", "storage", "cpu", "cuda:0", "0", "1", "2", "conj", "neg", "latin1", "torch.strided", "_metadata",
         "persistent", "weight", "grad", "__class__", "_array", "x" * 300]
MARKS = [b"", b"", b"}" + text("neg") + b"\x88s", b"}" + text("conj") + b"\x88s"]


def laughs(start: bytes, end: bytes) -> bytes:
    """A structure that refers to the level below twice on each of forty levels."""
    return start + b"".join(put(100 + k) + b"0(" + get(100 + k) + get(100 + k) + end for k in range(40))


COLLIDING = [k * ((1 << 61) - 1) for k in range(200)]
HOSTILE = [tensor(size=(1 << 59,), stride=(0,)), tensor(size=(1 << 58, 2), stride=(0, 0)), laughs(b"]", b"l"),
           tensor(size=(1 << 20, 1 << 30), stride=(0, 0)), laughs(b")", b"t"), laughs(b"]", b"t"), text("x" * 3000),
           number(1 << 100_000), numbers(*range(1000)), listed(*[b"N"] * 1000), keyed(*map(number, COLLIDING))]


def named(full: str) -> bytes:
    return name(*full.split())


# ----------------------------------------------------------------------------------------------------------- real files

def saved(value: Any, form: str = "safetensors") -> bytes:
    file = io.BytesIO()
    mg.save(value, file, format=form)
    return file.getvalue()


def decimal(value: float) -> bytes:
    return b"G" + struct.pack(">d", value)


def filled(*items: bytes) -> bytes:
    """A dictionary of keys and values in turn."""
    return b"}(" + b"".join(items) + b"u"


def checkpoint(tail: bytes = b"") -> bytes:
    """The program of a model and its optimizer, as PyTorch pickles them."""
    weight = tensor(tail=tail) + put(2)
    bias = tensor(key="1", count=4, size=(2, 2), stride=(1, 2), tail=tail)
    parameter = call(named("torch._utils _rebuild_parameter"), bias, b"\x88", EMPTY)
    metadata = b"}" + text("_metadata") + EMPTY + b"(" + text("") + filled(text("version"), b"K\x01") + b"us"
    model = EMPTY + put(1) + b"(" + text("weight") + weight + text("bias") + parameter + text("tied") + get(2) + b"u"
    betas = group(decimal(0.9), decimal(0.999))
    settings = filled(text("lr"), decimal(0.1), text("betas"), betas, text("params"), listed(b"K\x00", b"K\x01"))
    state = filled(b"K\x00", tensor(offset=1, size=(2,), stride=(2,), tail=tail), b"K\x01", b"N")
    arguments = group(storage(tail=tail), number(0), numbers(6), numbers(1), b"\x89", EMPTY)
    odd = [call(named("torch Size"), numbers(2, 3)), named("torch bfloat16"), call(named("torch device"), text("cpu")),
           call(named("builtins set"), listed(b"K\x01")),
           call(named("collections Counter"), filled(text("a"), b"K\x02")), b"\x8f(K\x01K\x02\x90",
           call(named("_codecs encode"), text("ab"), text("latin1")), b"(K\x01\x91",
           numbers(1 << 70, -3), tensor(tail=tail, marks=MARKS[2]),
           call(named("torch._tensor _rebuild_from_type_v2"), REBUILD, named("torch Tensor"), arguments,
                keyed(text("tag")))]
    optimizer = filled(text("state"), state, text("param_groups"), listed(settings))
    return filled(text("model"), model + metadata + b"b", text("optimizer"), optimizer, text("odd"), listed(*odd))


@cache
def plain_files() -> list[bytes]:
    """Files of ours as plain data."""
    x, net = mg.arange(12.0), mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.BatchNorm1d(3))
    for parameter in net.parameters():  # the files of a seed are always the same
        parameter.data.fill_(0.5)
    optimizer = mg.optim.Adam(net.parameters())
    net(mg.ones(2, 2)).sum().backward()
    optimizer.step()
    values = [None, True, 2**80, 0.5, float("inf"), "ü", 1j, b"ab", mg.float16, mg.Size([2]), mg.device("cpu")]
    every = {"values": values, "views": [x, x[2:], x.reshape(3, 4).T, x[:1].expand(5)],
             "containers": [(1, (2,)), {1, "a"}, OrderedDict(a=1), deque([1, 2], 3), Point(1, 2)],
             "z": mg.ones(2, dtype=mg.complex128),
             (1, 2): mg.nn.Parameter(mg.ones(2))}
    return [saved(x), saved({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}), saved(every)]


@cache
def programs() -> list[Program]:
    """Pickles, one of ours and others as PyTorch writes them."""
    x, tagged = mg.arange(12.0), mg.ones(3)
    tagged.tag = {"a": [1, 2]}  # type: ignore[attr-defined]
    short = listed(tensor(), EMPTY, numbers(1, 2), tensor(offset=1, size=(2,), stride=(2,)))
    kept = {"array": np.arange(6.0).reshape(2, 3), "number": np.float32(1), "last": deque([1], 3), "history": defaultdict(list, a=[1]), "args": Namespace(lr=0.1)}
    with zipfile.ZipFile(io.BytesIO(saved({"tagged": tagged, "x": [x, x[::2], x.view(mg.int32)], "storage": x.storage(), "kept": kept}, "torch"))) as file:
        ours = file.read("archive/data.pkl")[2:-1], {f"_{k}": file.read(f"archive/data/{k}") for k in (0, 1)}
    return [(checkpoint(), {"_1": bytes(16)}), ours, (short, {})]


OLD = [checkpoint(b"N"), listed(tensor(tail=b"N"), tensor(tail=b"N", key="1", count=4, size=(4,), stride=(1,)))]
STORED = struct.pack("<q", 6) + bytes(24) + struct.pack("<q", 4) + bytes(16)  # what follows them


# -------------------------------------------------------------------------------------------------------------- changes

def change_bytes(data: bytes, r: Draw) -> bytes:
    """Other bytes, fewer, or some of them twice."""
    made = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 5, 20])):
        at, length = r.randrange(len(made) + 1), r.choice([1, 2, 4, 8, 50])
        match r.randrange(6):
            case 0 | 1:
                made[at:at + 1] = bytes([r.randrange(256)])
            case 2:
                made[at:at + 8] = struct.pack("<Q", r.choice(LIMITS) & (1 << 64) - 1)
            case 3:
                del made[at:at + length]
            case 4:
                made[at:at] = made[at:at + length]
            case 5:
                made[at:at] = r.randbytes(length)
    return bytes(made[:r.randrange(len(made) + 1)] if r.random() < 0.1 else made)


def splice(a: bytes, b: bytes, r: Draw) -> bytes:
    return a[:r.randrange(len(a) + 1)] + b[r.randrange(len(b) + 1):]


def change_instructions(program: bytes, r: Draw) -> bytes:
    """Instructions left out, doubled, in another order, with other arguments, or more of them."""
    starts = [position for _, _, position in pickletools.genops(program + b".")]
    made = [program[a:b] for a, b in pairwise(starts)]
    for _ in range(r.choice([1, 1, 2, 4])):
        at, other = r.randrange(len(made)), r.randrange(len(made))
        match r.randrange(8):
            case 0:
                del made[at:at + r.choice([1, 1, 3])]
            case 1:
                made[at:at] = made[other:other + r.choice([1, 5, 30])]
            case 2:
                made[at], made[other] = made[other], made[at]
            case 3:
                made[at] = made[other]
            case 4:
                made[at] = value(r, 2)
            case 5:
                made[at:at] = [r.choice([put, get])(r.randrange(8))]
            case 6:
                made[at:at] = [bytes([r.choice(b"01(t\x85\x86R\x81bsuaeld]})\x8f\x90\x91Q\x93\x94N2.")])]
            case 7:
                made[at:other] = reversed(made[at:other])
        made = made or [b"N"]
    return b"".join(made)


@lru_cache(maxsize=16)
def spans(program: bytes) -> list[tuple[int, int]]:
    """Where each value of a program is made: from its first part to the end of the instruction that makes it."""
    found: list[tuple[int, int]] = []
    stack: list[tuple[int, bool]] = []  # where each thing on it begins, and whether it is a mark
    for (instruction, _, start), (_, _, end) in pairwise(pickletools.genops(program + b".")):
        taken = [(start, False)]
        if pickletools.markobject in instruction.stack_before:
            while stack and not taken[-1][1]:
                taken.append(stack.pop())
        for kind in instruction.stack_before:
            if kind not in (pickletools.markobject, pickletools.stackslice) and stack:
                taken.append(stack.pop())
        first = min(taken)[0]
        stack += [(first, kind is pickletools.markobject) for kind in instruction.stack_after]
        if instruction.stack_after and instruction.name != "MARK":
            found.append((first, end))
    return found


def change_values(program: bytes, r: Draw) -> bytes:
    """A value in the place of another: the program still makes sense, and what it says does not."""
    for _ in range(r.choice([1, 1, 2])):
        start, end = r.choice(spans(program))
        other, last = r.choice(spans(program))
        again = program[other:last]
        new = r.choice([lambda: r.choice(HOSTILE), lambda: value(r, 2), lambda: value(r, 1), lambda: again,
                        lambda: again + put(r.randrange(8)), lambda: get(r.randrange(8))])()
        program = program[:start] + new + program[end:]
    return program


def value(r: Draw, depth: int) -> bytes:
    """Instructions that make something: most of it could be in a checkpoint, in other places and of other sizes."""
    def some(count: int) -> list[bytes]:
        return [value(r, depth - 1) for _ in range(r.randrange(count))]

    if depth <= 0:
        return r.choice([
            lambda: number(r.choice(LIMITS)), lambda: text(r.choice(TEXTS)), lambda: named(r.choice(NAMED)),
            lambda: get(r.randrange(8)), lambda: r.choice([b"N", b"\x88", b")", b"]", b"}"]), lambda: window(r),
            lambda: decimal(r.choice([0.5, float("nan"), float("inf")])), lambda: r.choice(HOSTILE),
            lambda: storage(r.choice(["FloatStorage", "FloatStorage", "IntStorage"]), "0")])()
    return r.choice([
        lambda: call(named(r.choice(MADE)), *some(4)), lambda: call(named(r.choice(MADE)), value(r, depth - 1)),
        lambda: value(r, depth - 1) + value(r, depth - 1) + b"b", lambda: group(*some(4)), lambda: listed(*some(4)),
        lambda: b"\x8f(" + b"".join(some(4)) + b"\x90", lambda: b"(" + b"".join(some(4)) + b"\x91",
        lambda: keyed(*some(4)), lambda: value(r, depth - 1) + put(r.randrange(8)), lambda: group(*some(6)) + b"Q",
        lambda: window(r), lambda: value(r, 0)])()


def window(r: Draw) -> bytes:
    """A tensor of any size and stride over six numbers: half of them endless, the others mostly impossible."""
    rank, endless = r.choice([0, 1, 1, 2, 3, 65]), r.random() < 0.5
    size = [r.choice([1, 2, 1 << 10, 1 << 18] if endless else [0, 1, 2, 3, 6, *LIMITS]) for _ in range(rank)]
    stride = [0 if endless else r.choice([0, 0, 1, 2, -1, *LIMITS]) for _ in range(rank)]
    return tensor(offset=r.choice([0] * 9 + LIMITS), size=size, stride=stride, marks=r.choice(MARKS))


def constructed(r: Draw) -> bytes:
    """A class that may be named, called with what it does not expect."""
    arguments = [r.choice([window(r), value(r, 1), r.choice(HOSTILE)]) for _ in range(r.choice([1, 1, 2, 3]))]
    made = call(named(r.choice(MADE)), *arguments)
    return made + r.choice([b"", b"", window(r) + b"b", r.choice(HOSTILE) + b"b"])


NODES: list[Any] = [None, True, 0.5, "x", "9" * 70, [], {}, {"dict": []}, {"tensor": "t"}, {"tuple": [1]}, {"set": [1]},
                    {"deque": [[1], None]}, {"Size": [2]}, {"float": "nan"}, {"complex": ["1", "2"]}, {"bytes": "YQ=="},
                    {"dtype": "bool"}, {"device": "cpu"}, {"namedtuple": ["P", ["x"], [1]]},
                    [{"dict": [["a", 1]]}, None], {"defaultdict": ["list", {"dict": []}]},
                    {"Namespace": {"dict": [["a", 1]]}}, {"set": COLLIDING}]
KINDS = ["dict", "OrderedDict", "tuple", "set", "deque", "Size", "float", "complex", "bytes", "dtype", "device",
         "namedtuple", "defaultdict", "Namespace", "ndarray", "scalar", "tensor", "_metadata", "shape", "data_offsets",
         "size", "stride", "offset", "of", "requires_grad", "parameter", "__metadata__", "mutagrad"]


def change_tree(node: Any, r: Draw, names: list[str]) -> Any:
    """A part of a description replaced by another, put into something, or left out. `names` are those of arrays."""
    if isinstance(node, (list, dict)) and node and r.random() < 0.8:
        made = dict(node) if isinstance(node, dict) else list(node)
        at = r.choice(list(made)) if isinstance(made, dict) else r.randrange(len(made))
        if r.random() < 0.1:
            del made[at]
        elif isinstance(made, dict) and r.random() < 0.1:
            made[r.choice(KINDS)] = made.pop(at)
        else:
            made[at] = change_tree(made[at], r, names)
        return made
    if isinstance(node, int) and r.random() < 0.7:
        return r.choice([node + 1, node - 1, -node, node * 2, *LIMITS])
    rank = r.choice([1, 2])
    endless = {"tensor": r.choice(names), "dtype": "uint8", "size": [1 << 30] * rank, "stride": [0] * rank, "offset": 0}
    return r.choice([endless, {r.choice(KINDS): endless}, {r.choice(KINDS): [endless, None]}, r.choice(NODES),
                     {r.choice(KINDS): node}, [node, node], r.choice(KINDS), r.choice(LIMITS)])


def change_text(data: bytes, r: Draw) -> bytes:
    """The structure in a file of ours, or the header around it, changed; the length in front is right again."""
    length = int.from_bytes(data[:8], "little")
    header, rest = json.loads(data[8:8 + length]), data[8 + length:]
    names = [key for key, entry in header.items() if key != "__metadata__" and len(set(entry["data_offsets"])) == 2]
    structure = json.loads(header["__metadata__"]["mutagrad"])
    for _ in range(r.choice([1, 1, 2])):
        structure = change_tree(structure, r, names)
    header["__metadata__"]["mutagrad"] = json.dumps(structure)
    made = json.dumps(change_tree(header, r, names) if r.random() < 0.2 else header).encode()
    made = change_bytes(made, r) if r.random() < 0.1 else made
    return struct.pack("<Q", len(made)) + made + rest


# ---------------------------------------------------------------------------------------------------------------- seeds

def zipped(r: Draw, change: Callable[[bytes, Draw], bytes] | None = None) -> bytes:
    program, storages = r.choice(programs())
    return archive(change(program, r) if change else program, **storages)


def old(r: Draw, change: Callable[[bytes, Draw], bytes]) -> bytes:
    return old_archive(change(r.choice(OLD), r), "01", STORED)


WAYS: list[Callable[[Draw], bytes]] = [
    lambda r: change_text(r.choice(plain_files()), r), lambda r: change_text(r.choice(plain_files()), r),
    lambda r: change_bytes(r.choice(plain_files()), r), lambda r: zipped(r, change_values),
    lambda r: zipped(r, change_values), lambda r: zipped(r, change_instructions), lambda r: zipped(r, change_bytes),
    lambda r: archive(constructed(r)), lambda r: archive(constructed(r)), lambda r: archive(value(r, 5)),
    lambda r: archive(listed(*[value(r, 3) + put(k) for k in range(8)])), lambda r: change_bytes(zipped(r), r),
    lambda r: change_bytes(archive(b"N")[-400:], r), lambda r: splice(zipped(r), zipped(r), r),
    lambda r: old(r, change_values), lambda r: old(r, change_instructions),
    lambda r: change_bytes(old_archive(OLD[0], "01", STORED), r),
    lambda r: old_archive(OLD[1], b"\x80\x02" + change_instructions(listed(text("0"), text("1")), r) + b".", STORED),
    lambda r: splice(r.choice(plain_files()), old_archive(r.choice(OLD)), r)]


def cases(seed: int) -> list[bytes]:
    """The files of a seed."""
    r = random.Random(seed)
    return [r.choice(WAYS)(r) for _ in range(COUNT)]


def run(seed: int) -> None:
    """Load the files of a seed; raise if one of them does anything but load or be refused."""
    outcomes = bounded.load_all(cases(seed), mmap=seed % 4 == 3)
    designed = bounded.LOADED, bounded.REFUSED
    wrong = {number: outcome for number, outcome in enumerate(outcomes) if outcome not in designed}
    assert not wrong, f"seed {seed}: {wrong}"
    assert 5 < outcomes.count(bounded.LOADED) < COUNT - 50, "files that are all refused, or all loaded, try nothing"


def test_the_originals_load() -> None:
    files = plain_files() + [archive(program, **storages) for program, storages in programs()]
    files += [old_archive(program, "01", STORED) for program in OLD]
    assert bounded.load_all(files) == [bounded.LOADED] * len(files)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_changed_files(seed: int) -> None:
    run(seed)
