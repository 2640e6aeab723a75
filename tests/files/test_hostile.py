"""Files that were made to do harm: whatever they say, loading one takes time and memory in proportion to its length."""
from __future__ import annotations

import io
import json
import random
import struct
import time
import zipfile
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.base.errors import BadFile
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

HUGE = 1 << 59
MANY = 10_000  # uses of one thing in a file, so that anything quadratic takes too long
LONG = "a" * 500_000
MODULUS = (1 << 61) - 1  # of Python's hashes of numbers
ONCE = b"0"  # takes what was made from the stack again; it is in the memo


def safetensors(header: Any, data: bytes = b"") -> bytes:
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + data


def described(structure: Any) -> bytes:
    """A file of ours with one array of four floats and this structure."""
    description = structure if isinstance(structure, str) else json.dumps(structure)
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    return safetensors({"__metadata__": {"mutagrad": description}, "t": entry}, bytes(16))


# ------------------------------------------------------------------------------------------------------ what is endless

def laughs(start: bytes, level: Callable[[bytes], bytes], depth: int = 60) -> bytes:
    """A structure that refers to the level below twice on each level: 2**60 things to print, hash or compare."""
    return start + b"".join(put(k) + ONCE + level(get(k)) for k in range(depth))


LAUGHS = {"lists": laughs(b"]", lambda inner: b"(" + inner + inner + b"l"),
          "tuples": laughs(b")", lambda inner: b"(" + inner + inner + b"t"),
          "dicts": laughs(b"}", lambda inner: b"(" + text("a") + inner + text("b") + inner + b"d")}
TENSORS = {"expanded": tensor(size=(HUGE,), stride=(0,)), "rows": tensor(size=(HUGE >> 2, 2), stride=(0, 0)),
           "endless": tensor(size=(1 << 20, 1 << 40), stride=(0, 0))}
VALUES = LAUGHS | TENSORS | {
    "storage": storage(), "number": number(1 << 40), "digits": number(1 << 100_000), "negative": number(-5),
    "list of rows": listed(TENSORS["rows"], TENSORS["rows"]), "list of lists": listed(LAUGHS["lists"]),
    "text": text("9" * 1000), "class": name("torch", "Size")}
SIZE, SET = name("torch", "Size"), name("builtins", "set")
ORDERED, COUNTER = name("collections", "OrderedDict"), name("collections", "Counter")
ENCODE, BYTEARRAY, PARAMETER = (name("_codecs", "encode"), name("builtins", "bytearray"),
                                name("torch._utils", "_rebuild_parameter"))
OF_TYPE, OURS = name("torch._tensor", "_rebuild_from_type_v2"), name("mutagrad.files.safe_unpickler", "rebuilt")
LAYOUT = name("torch.serialization", "_get_layout")
CLASSES = {"Size": SIZE, "OrderedDict": ORDERED, "Counter": COUNTER, "set": SET, "encode": ENCODE,
           "bytearray": BYTEARRAY, "parameter": PARAMETER, "of_type": OF_TYPE, "ours": OURS, "layout": LAYOUT,
           "tensor": REBUILD, "device": name("torch", "device"), "complex": name("builtins", "complex"),
           "typed": name("mutagrad.files.safe_unpickler", "typed_storage"), "v3": name("torch._utils", "_rebuild_tensor_v3"),
           "with_state": name("torch._utils", "_rebuild_parameter_with_state")}
FLOATS, PLAIN_TENSOR = name("torch", "FloatStorage"), name("mutagrad", "Tensor")
TENSOR_ARGUMENTS = group(storage(), number(0), numbers(6), numbers(1), b"\x89", EMPTY)


def everywhere(value: bytes) -> dict[str, bytes]:
    """A value in every place of a pickle where another is expected."""
    return {
        "size": call(SIZE, value), "layout": call(LAYOUT, value), "marks": tensor(marks=value),
        "class": call(OF_TYPE, REBUILD, value, TENSOR_ARGUMENTS, b"N"),
        "offset": call(REBUILD, storage(), value, numbers(1), numbers(1), b"\x89", EMPTY),
        "sizes": call(REBUILD, storage(), number(0), value, value, b"\x89", EMPTY),
        "dtype": call(OURS, PLAIN_TENSOR, storage(), value, number(0), numbers(1), numbers(1), b"\x89"),
        "key": keyed(value), "member": b"\x8f(" + value + b"\x90", "frozen": b"(" + value + b"\x91",
        "persistent": value + b"Q", "storage": group(text("storage"), value, text("0"), text("cpu"), number(6)) + b"Q",
        "place": group(text("storage"), FLOATS, text("0"), value, number(6)) + b"Q",
        "kind": group(value, FLOATS, text("0"), text("cpu"), number(6)) + b"Q", "global": value + value + b"\x93",
        "state": EMPTY + value + b"b", "attributes": tensor() + value + b"b", "function": value + b")R",
        "arguments": SIZE + value + b"R", "encoding": call(ENCODE, text("a"), value),
        "state of a parameter": call(PARAMETER, tensor(), b"\x88", EMPTY) + value + b"b"}


def everywhere_in_old(value: bytes) -> dict[str, bytes]:
    program = tensor(tail=b"N")
    return {"a name": old_archive(program, b"\x80\x02](" + value + b"e."), "part": old_archive(tensor(tail=value)),
            "names": old_archive(program, b"\x80\x02" + value + b"."), "magic": b"\x80\x02" + value + b".",
            "persistent": old_archive(value + b"Q")}


def misplaced() -> dict[str, bytes]:
    made = {}
    for what, value in VALUES.items():
        made |= {f"{what} as {where}": archive(program) for where, program in everywhere(value).items()}
        made |= {f"first format: {what} as {where}": data for where, data in everywhere_in_old(value).items()}
        made |= {f"{kind}({what})": archive(call(function, value)) for kind, function in CLASSES.items()}
        made |= {f"{kind}({what}, {what})": archive(call(function, value, value)) for kind, function in CLASSES.items()}
    return made


WINDOW = {"tensor": "t", "dtype": "float32", "size": [HUGE], "stride": [0], "offset": 0}
ROWS = {**WINDOW, "size": [HUGE >> 2, 2], "stride": [0, 0]}


def misplaced_in_text() -> dict[str, bytes]:
    kinds = ("tuple", "set", "Size", "deque", "dict", "OrderedDict", "complex", "Namespace", "bytes", "float", "device",
             "dtype", "namedtuple", "defaultdict", "ndarray", "scalar")
    nodes = {"expanded": WINDOW, "rows": ROWS, "[expanded]": [WINDOW], "[rows, None]": [ROWS, None],
             "[None, rows]": [None, ROWS], "three rows": [ROWS, ROWS, ROWS], "[text, rows]": ["list", ROWS],
             "digits": "9" * 1_000_000, "lists": json.loads("[" * 90 + "]" * 90)}
    return {f"text: {kind} of {what}": described({kind: node}) for kind in kinds for what, node in nodes.items()}


def marked() -> dict[str, bytes]:
    """Negatives and conjugates are computed, and not for every place of an expanded tensor."""
    windows = {"expanded": (numbers(HUGE), numbers(0)), "overlapping": (numbers(2, 2, HUGE >> 2), numbers(1, 1, 0))}
    cells = storage(), storage("ComplexFloatStorage", count=3)
    return {f"{mark} {what} {k}": archive(call(REBUILD, cell, number(0), *window, b"\x89", EMPTY, marks(mark)))
            for mark in ("neg", "conj") for k, cell in enumerate(cells) for what, window in windows.items()}


def marks(mark: str) -> bytes:
    return b"}" + text(mark) + b"\x88s"


# -------------------------------------------------------------------------------------- one long thing, used many times

def reused(function: bytes, *arguments: bytes) -> bytes:
    """One function called again and again with the same arguments."""
    made = function + put(0) + ONCE + group(*arguments) + put(1) + ONCE
    return archive(made + b"](" + (get(0) + get(1) + b"R") * MANY + b"e")


def keys_again(*keys: bytes) -> bytes:
    """The same keys set again and again."""
    made = b"".join(key + put(k) + ONCE for k, key in enumerate(keys))
    return archive(made + b"}" + b"".join(get(k) + b"Ns" for k in range(len(keys))) * MANY)


def frozen(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"\x91"


def repeated() -> dict[str, bytes]:
    counted = [number(k) for k in range(20_000)]
    states = b"}(" + b"".join(text(f"a{k}") + b"N" for k in range(20_000)) + b"u"
    many_names = b"".join(text(f"{k}" + "x" * 2000) + put(k) + ONCE for k in range(100))
    cell, name_ = storage(count=500_000), "a" * 60_000
    negative = group(cell, number(0), numbers(500_000), numbers(1), b"\x89", EMPTY, marks("neg"))
    return {
        "long text": keys_again(text(LONG), text(LONG)), "long tuples": keys_again(group(*[b"K\x01"] * 50_000)),
        "long numbers": keys_again(number(1 << 2_000_000)),
        "long frozen sets": keys_again(frozen(*counted), frozen(*counted)),
        "a long shape": reused(SIZE, numbers(*[1] * 50_000)), "sets": reused(SET, listed(*counted)),
        "dictionaries": reused(ORDERED, listed(*[group(number(k), b"N") for k in range(20_000)])),
        "dictionaries of long keys": reused(ORDERED, listed(group(text(LONG), b"N"), group(text(LONG), b"N"))),
        "counters": reused(COUNTER, keyed(*counted)), "bytes": reused(ENCODE, text(LONG), text("latin1")),
        "arrays of bytes": reused(BYTEARRAY, text(LONG), text("latin1")),
        "states": archive(states + put(1) + ONCE + tensor() + (get(1) + b"b") * MANY),
        "a long name of a storage": archive(storage(key=LONG)[:-1] + put(0) + ONCE + b"](" +
                                            (get(0) + b"Q") * MANY + b"e"),
        "a long name of an entry": archive(storage(key=name_)[:-1] + put(0) + ONCE + b"](" +
                                           (get(0) + b"Q") * MANY + b"e", **{"_" + name_: bytes(24)}),
        "a long name of a class": archive(text("collections" + LONG) + put(0) + ONCE + b"](" +
                                          (get(0) + get(0) + b"\x93") * MANY + b"e"),
        "many long names": archive(many_names + b"](" + b"".join(get(i) + get(j) + b"\x93" for i in range(100)
                                                                 for j in range(100)) + b"e"),
        "negatives": archive(REBUILD + put(1) + ONCE + negative + put(2) + ONCE + b"](" +
                             (get(1) + get(2) + b"R") * MANY + b"e", _0=bytes(2_000_000))}


# ---------------------------------------------------------------------------------------------- keys that have one hash

@cache
def colliding_pairs(count: int) -> list[tuple[int, int]]:
    """Different pairs of numbers with one hash: each of its steps can be undone, so the first decides the second."""
    first_factor, second_factor, start = 11400714785074694791, 14029467366897019727, 2870177450012600261
    source, found, mask = random.Random(0), [], (1 << 64) - 1

    def rotated(value: int, by: int) -> int:
        return (value << by | value >> (64 - by)) & mask

    def after(lane: int, before: int = start) -> int:
        return rotated((before + lane * second_factor) & mask, 31) * first_factor & mask

    inverse = pow(second_factor, -1, 1 << 64)
    back = rotated(after(12345, after(54321)) * pow(first_factor, -1, 1 << 64) & mask, 33)
    while len(found) < count:
        first = source.randrange(1, 1 << 60)
        second = (back - after(first)) * inverse & mask
        if second < MODULUS:
            found.append((first, second))
    return found


def colliding() -> dict[str, bytes]:
    integers, pairs = [k * MODULUS for k in range(1, MANY)], colliding_pairs(MANY)
    written = [number(k) for k in integers]
    return {
        "numbers": archive(keyed(*written)), "a set": archive(b"\x8f(" + b"".join(written) + b"\x90"),
        "a frozen set": archive(frozen(*written)), "set()": archive(call(SET, listed(*written))),
        "OrderedDict()": archive(call(ORDERED, listed(*[group(k, b"N") for k in written]))),
        "pairs": archive(keyed(*[numbers(*pair) for pair in pairs])),
        "text: numbers": described({"dict": [[k, None] for k in integers]}),
        "text: a set": described({"set": integers}),
        "text: pairs": described({"OrderedDict": [[{"tuple": list(pair)}, None] for pair in pairs]}),
        "text: named tuples": described({"set": [{"namedtuple": ["P", ["x", "y"], list(pair)]} for pair in pairs]})}


# ----------------------------------------------------------------------------------------- numbers and lengths that lie

def zip_of(*entries: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as made:
        for entry in entries:
            made.writestr(*entry)
    return target.getvalue()


def lying_archive(field: int, value: int) -> bytes:
    """An archive whose end says something else of its directory: field 4 the entries, 5 the size, 6 the place."""
    data = archive(tensor())
    end = data.rindex(b"PK\x05\x06")
    fields = list(struct.unpack("<4s4H2LH", data[end:end + 22]))
    fields[field] = value
    return data[:end] + struct.pack("<4s4H2LH", *fields)


def lying() -> dict[str, bytes]:
    lengths = {"X": 4, "B": 4, "T": 4, "\x8b": 4, "\x8d": 8, "\x8e": 8, "\x95": 8, "\x96": 8}
    big = {4: b"\xff\xff\xff\x7f", 8: b"\xff" * 5 + bytes(3)}
    programs = {f"length after {code!r}": code.encode("latin1") + big[size] for code, size in lengths.items()} | {
        "digits": b"I" + b"9" * 2_000_000 + b"\n", "long digits": b"L" + b"9" * 2_000_000 + b"L\n",
        "a huge size": call(SIZE, group(number(1 << 100_000))), "many sizes": call(SIZE, numbers(*[HUGE] * 50_000)),
        "a device": call(CLASSES["device"], text("cuda:" + "9" * 2_000_000)),
        "a huge storage": tensor(tail=b"N", count=HUGE)}
    storages = listed(*[tensor(tail=b"N", key=str(k), count=40, size=(1,), stride=(1,)) for k in range(2000)])
    places = [(0, HUGE), (-16, 0), (HUGE, HUGE + 16), (16, 32), (0.0, 16.0), (None, 16), ("0", "16"), (0, 10**4000),
              (0, 16, 32), (True, 17)]
    shapes = {"many": [HUGE] * 100_000, "long": [10**4000] * 100, "negative": [-4], "float": [4.0],
              "nan": [float("nan")]}
    array = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    many_arrays = {f"t{k}": {"dtype": "U8", "shape": [100_000], "data_offsets": [0, 100_000]} for k in range(1000)}
    return {
        **{what: archive(program) for what, program in programs.items()},
        **{f"first format: {what}": old_archive(program) for what, program in programs.items()},
        "first format: many storages": old_archive(storages, map(str, range(2000))),
        **{f"directory {field, value}": lying_archive(field, value) for field in (4, 5, 6) for value in (0, 65000)},
        **{f"directory {field} huge": lying_archive(field, 0xFFFFFFF0) for field in (5, 6)},
        "a name twice": zip_of(("a/data.pkl", b"N."), ("a/b", b""), ("a/c", b"")).replace(b"a/c", b"a/b"),
        "compressed": archive(tensor(), compression=zipfile.ZIP_DEFLATED),
        "a bomb": zip_of(("a/data.pkl", b"\x80\x02" + b"N0" * 5_000_000 + b"N."), compression=zipfile.ZIP_DEFLATED),
        **{f"header of {size}": struct.pack("<Q", size) + b"{}" for size in (3, 1 << 40, 1 << 63, (1 << 64) - 1)},
        **{f"place {str(p)[:40]}": safetensors({"t": array | {"data_offsets": p}}, bytes(16)) for p in places},
        **{f"shape: {what}": safetensors({"t": array | {"shape": n}}, bytes(16)) for what, n in shapes.items()},
        "window of many sizes": described({**WINDOW, "size": [HUGE] * 100_000, "stride": [0] * 100_000}),
        "arrays that overlap": safetensors(many_arrays, bytes(100_000)),
        "a hole": safetensors({"t": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}}, bytes(8)),
        "many classes": described([{"namedtuple": [f"P{k}", ["x"], [1]]} for k in range(20_000)]),
        "many fields": described({"namedtuple": ["P", [f"x{k}" for k in range(100_000)], list(range(100_000))]})}


def deep(depth: int) -> dict[str, bytes]:
    """What lies in itself, deeper than any stack."""
    tuples = b")" + b"\x85" * depth
    parameters = b"".join(put(1) + ONCE + get(0) + get(1) + b"\x85R" for _ in range(depth // 20))
    return {
        "text": described("[" * depth), "closed text": described("[" * depth + "]" * depth),
        "objects": described('{"tuple":' * depth), "header": safetensors(b'{"a":' * depth),
        "marks": archive(b"(" * depth),
        "keys": archive(b"}" + tuples + b"Ns"), "members": archive(b"\x8f(" + tuples + b"\x90"),
        "frozen sets": archive(b"(" * depth + b"N" + b"\x91" * depth),
        "parameters": archive(PARAMETER + put(0) + ONCE + tensor() + parameters)}


PLAUSIBLE = {"place": misplaced, "text": misplaced_in_text, "mark": marked}  # some of these make sense
HOSTILE = {"reuse": repeated, "hash": colliding, "lie": lying, "deep": lambda: deep(2000),
           "deeper": lambda: deep(100_000)}
HARMLESS = {"negatives", "parameters", "directory (4, 0)", "directory (4, 65000)"}  # which nobody reads again


# ------------------------------------------------------------------------------------------------------------ odd files

def nested_tensors(count: int) -> bytes:
    """Each an attribute of the next."""
    level = ONCE + get(1) + get(2) + b"R}" + text("a") + get(0) + b"sb" + put(0)
    return REBUILD + put(1) + ONCE + TENSOR_ARGUMENTS + put(2) + b"0N" + put(0) + level * count


def odd() -> dict[str, bytes]:
    """Files that are strange and do no harm."""
    depth = 100_000
    draw = random.Random(0)
    return {
        **{what: archive(program) for what, program in (LAUGHS | TENSORS).items()}, "text: expanded": described(WINDOW),
        "many expanded": reused(REBUILD, storage(), number(0), numbers(HUGE), numbers(0), b"\x89", EMPTY),
        "deep lists": archive(b"]" * depth + b"a" * (depth - 1)), "deep tuples": archive(b")" + b"\x85" * depth),
        "deep dicts": archive(b"}K\x01" * depth + b"N" + b"s" * depth), "deep tensors": archive(nested_tensors(5000)),
        "deep ordered": archive((EMPTY + b"K\x01") * 20_000 + b"N" + b"s" * 20_000), "one key": keys_again(b"K\x01"),
        "a pair as key of many": archive(listed(*[keyed(numbers(1, k % 3)) for k in range(MANY)])),
        "keys of 128 bits": archive(keyed(*[number(draw.getrandbits(128)) for _ in range(MANY)])),
        "pairs of pairs": described({"dict": [[{"tuple": [k, {"tuple": [k, "x"]}]}, k] for k in range(MANY)]}),
        "fractions": archive(keyed(*[b"G" + struct.pack(">d", k / 8) for k in range(MANY)])),
        "negative and expanded": marked()["neg expanded 0"]}


def outcomes(files: dict[str, bytes], **settings: Any) -> dict[str, str]:
    return dict(zip(files, bounded.load_all(list(files.values()), **settings)))


@pytest.mark.parametrize("kind", PLAUSIBLE)
def test_odd_values_take_little_time_and_memory(kind: str) -> None:
    found = outcomes(PLAUSIBLE[kind]())
    assert not {what: how for what, how in found.items() if how not in (bounded.REFUSED, bounded.LOADED)}


@pytest.mark.parametrize("kind, limit", [*((kind, 1000) for kind in HOSTILE), ("deeper", 1_000_000)])
def test_hostile_files_are_refused_at_once(kind: str, limit: int) -> None:
    found = outcomes(HOSTILE[kind](), recursion=limit)
    assert not {what: how for what, how in found.items() if how != bounded.REFUSED and what not in HARMLESS}
    assert not {what: how for what, how in found.items() if how != bounded.LOADED and what in HARMLESS}


def probed(start: int, bits: int, count: int) -> list[int]:
    """The first places that a dictionary of 2**bits places looks at for a number."""
    at, rest, found = start & (1 << bits) - 1, start, {}  # type: ignore[var-annotated]
    while len(found) < count:
        found[at] = None
        rest >>= 5
        at = (at * 5 + rest + 1) & (1 << bits) - 1
    return list(found)


def test_numbers_chosen_to_meet_in_a_dictionary_take_bounded_time() -> None:
    bits, key = 18, 1 << 60 | 12345
    places = probed(key, bits, int(0.55 * (1 << bits)))
    keys = [*places, *[key] * 60_000]  # as many comparisons as places for each of the last: minutes, if nobody stops it
    file = archive(b"}(" + b"".join(number(k) + b"N" for k in keys) + b"u")
    began = time.thread_time()
    with pytest.raises(BadFile, match="out of proportion"):
        mg.load(io.BytesIO(file))
    assert time.thread_time() - began < 1 + 2e-5 * len(file)


def test_a_pickle_cannot_choose_the_numbers_of_its_parts() -> None:
    with pytest.raises(BadFile, match="beyond all that it has"):
        mg.load(io.BytesIO(archive(b"]" + b"".join(b"p%d\n" % (k * ((1 << 61) - 1)) for k in range(1, 2000)))))


def test_odd_files_load() -> None:
    assert set(outcomes(odd()).values()) == {bounded.LOADED}


@pytest.mark.parametrize("expanded", [(6,), (4, 6), (2, 3, 4)])
def test_negatives_are_the_same_wherever_they_lie(expanded: tuple[int, ...]) -> None:
    parts = [tensor(size=(6,), stride=(1,)), tensor(size=(6,), stride=(1,), marks=marks("neg")),
             tensor(size=expanded, stride=(0,) * len(expanded), marks=marks("neg"))]
    found = mg.load(io.BytesIO(archive(listed(*parts))))
    assert found[0].tolist() == [0, 1, 2, 3, 4, 5] and found[1].tolist() == [0, -1, -2, -3, -4, -5]
    assert found[2].shape == expanded and not found[2].any()
    found[1][0] = 7.0  # tensors with the same marks share memory, as they did; others have their own
    assert found[2].flatten()[0].item() == 7.0 and found[0][0].item() == 0.0


def test_marks_that_are_off_change_nothing() -> None:
    off = b"}" + text("conj") + b"\x89s"
    x, y = mg.load(io.BytesIO(archive(listed(tensor(), tensor(marks=off)))))
    x[0, 0] = 7.0
    assert y[0, 0].item() == 7.0


def test_loading_in_the_name_of_pytorch() -> None:
    with mg.as_torch() as torch:
        assert torch.load is mg.load and torch.serialization.load is mg.load
        for data in (archive(call(ORDERED, TENSORS["rows"])), described({"tuple": WINDOW})):
            with pytest.raises(BadFile):
                torch.load(io.BytesIO(data))
        file = io.BytesIO()
        torch.save({"x": torch.arange(3), "y": torch.ones(2)[::2]}, file)
        assert mg.load(io.BytesIO(file.getvalue()))["y"].tolist() == [1]
