"""Datasets, samplers, collation, and loading in the program itself; workers have a file of their own."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import types
from collections import OrderedDict, UserDict, UserList, namedtuple
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.utils import data
from mutagrad.utils.data import DataLoader, TensorDataset

Point = namedtuple("Point", "x y")


def seeded(seed: int = 0) -> mg.Generator:
    return mg.Generator().manual_seed(seed)


class Squares(data.Dataset[Any]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        return index, float(index * index)


class Batched(Squares):
    """Counts how often it was asked for a whole batch."""

    calls = 0

    def __getitems__(self, indices: list[int]) -> list[Any]:
        self.calls += 1
        return [self[i] for i in indices]


class Stream(data.IterableDataset[int]):
    def __init__(self, *items: int) -> None:
        self.items = items

    def __iter__(self) -> Any:
        return iter(self.items)


class SizedStream(Stream):
    announced = 5

    def __len__(self) -> int:
        return self.announced


# ------------------------------------------------------------------------------------------------------------------ datasets

def test_tensor_dataset() -> None:
    x, y = mg.arange(6).reshape(3, 2), mg.tensor([0.0, 1.0, 2.0])
    dataset = TensorDataset(x, y)
    assert len(dataset) == 3 and dataset[-1][0].tolist() == [4, 5] and dataset[1:][1].tolist() == [1.0, 2.0]
    for kind in (AssertionError, RuntimeError):
        with pytest.raises(kind, match=r"\(3, 2\).*\(2,\)"):
            TensorDataset(x, y[:2])
    with pytest.raises(TypeError, match="list"):
        TensorDataset([1, 2])  # type: ignore[arg-type]


def test_stack_dataset() -> None:
    by_place, by_name = data.StackDataset(Squares(3), range(3)), data.StackDataset(a=Batched(3), b=range(3))
    assert by_place[2] == ((2, 4.0), 2) and by_name[1] == {"a": (1, 1.0), "b": 1} and len(by_place) == len(by_name) == 3
    assert by_place.__getitems__([0, 2]) == [((0, 0.0), 0), ((2, 4.0), 2)]
    assert by_name.__getitems__([1]) == [{"a": (1, 1.0), "b": 1}] and by_name.datasets["a"].calls == 1
    for make in (lambda: data.StackDataset(range(2), range(3)), lambda: data.StackDataset(), lambda: data.StackDataset(range(2), b=range(2))):
        with pytest.raises(ValueError):
            make()


def test_concat_chain_and_subset() -> None:
    both = Squares(2) + Squares(3)
    assert isinstance(both, data.ConcatDataset) and len(both) == 5 and both.cumulative_sizes == [2, 5]
    assert [both[i][0] for i in range(5)] == [0, 1, 0, 1, 2] and both[-1] == (2, 4.0) and both[-5] == (0, 0.0)
    for index in (5, -6):
        for kind in (IndexError, ValueError):
            with pytest.raises(kind):
                both[index]
    chain = Stream(1, 2) + Stream(3)
    assert isinstance(chain, data.ChainDataset) and list(chain) == [1, 2, 3]
    assert len(data.ChainDataset([SizedStream(1), SizedStream(2)])) == 10
    for make in (lambda: data.ConcatDataset([]), lambda: data.ConcatDataset([Stream(1)]), lambda: list(data.ChainDataset([Squares(1)]))):
        with pytest.raises(AssertionError):
            make()
    part = data.Subset(Batched(9), [8, 3, 1])
    assert len(part) == 3 and part[1] == (3, 9.0) and part.__getitems__([0, 2]) == [(8, 64.0), (1, 1.0)]
    assert data.Subset(mg.arange(5), [3, 1])[[1, 0]].tolist() == [1, 3]


@pytest.mark.parametrize("lengths, expected", [([3, 7], [3, 7]), ([0.5, 0.5], [5, 5]), ([0.35, 0.35, 0.3], [4, 3, 3]), ([1.0], [10]), ([10, 0], [10, 0])])
def test_random_split(lengths: list[float], expected: list[int]) -> None:
    parts = data.random_split(range(10), lengths, seeded())
    assert [len(p) for p in parts] == expected and sorted(i for p in parts for i in p) == list(range(10))
    again = data.random_split(range(10), lengths, seeded())
    assert [list(p.indices) for p in parts] == [list(p.indices) for p in again]
    assert [list(p.indices) for p in data.random_split(range(10), lengths, seeded(1))] != [list(p.indices) for p in parts]


def test_random_split_with_bad_lengths() -> None:
    for lengths in ([3, 3], [0.5, 0.4], [11, -1], [1.5, -0.5]):
        with pytest.raises(ValueError):
            data.random_split(range(10), lengths)
    with pytest.warns(UserWarning, match="no items"):
        data.random_split(range(1), [0.5, 0.5])


# ------------------------------------------------------------------------------------------------------------------ samplers

def test_samplers() -> None:
    assert list(data.SequentialSampler(range(3))) == [0, 1, 2]
    shuffled = data.RandomSampler(range(100), generator=seeded())
    first, second = list(shuffled), list(shuffled)
    assert sorted(first) == sorted(second) == list(range(100)) and first != second and len(shuffled) == 100
    assert list(data.RandomSampler(range(100), generator=seeded())) == first
    more = data.RandomSampler(range(3), num_samples=8)
    assert len(list(more)) == len(more) == 8 and sorted(list(more)[:3]) == [0, 1, 2]
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=100, generator=seeded()))
    assert len(drawn) == 100 and set(drawn) == {0, 1, 2} and any(sorted(drawn[i:i + 3]) != [0, 1, 2] for i in range(0, 99, 3))
    assert sorted(data.SubsetRandomSampler([7, 8, 9], seeded())) == [7, 8, 9]
    weighted = list(data.WeightedRandomSampler([0.0, 1.0, 3.0], 400, generator=seeded()))
    assert weighted.count(0) == 0 and 60 < weighted.count(1) < 140
    assert sorted(data.WeightedRandomSampler([1, 1, 1], 3, replacement=False)) == [0, 1, 2]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]] and len(data.BatchSampler(range(5), 2, True)) == 2
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]] and len(data.BatchSampler(range(5), 2, False)) == 3


def test_the_default_generator_decides_where_none_is_given() -> None:
    orders = []
    for seed in (1, 1, 2):
        mg.manual_seed(seed)
        orders.append([list(DataLoader(range(20), shuffle=True)), list(data.RandomSampler(range(20)))])
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize("make, kind", [
    (lambda: data.RandomSampler(range(3), replacement=1), TypeError), (lambda: data.RandomSampler(range(3), num_samples=0), ValueError), (lambda: data.RandomSampler([]), ValueError),
    (lambda: data.BatchSampler(range(3), 0, False), ValueError), (lambda: data.BatchSampler(range(3), True, False), ValueError),
    (lambda: data.BatchSampler(range(3), 2, 1), ValueError), (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError),
    (lambda: data.WeightedRandomSampler([1.0], -1), ValueError), (lambda: iter(data.Sampler()), NotImplementedError),
    (lambda: data.Dataset()[0], NotImplementedError), (lambda: data.distributed.DistributedSampler(range(3)), RuntimeError),
    (lambda: data.DistributedSampler(range(3), 2, 2), ValueError)])
def test_bad_samplers(make: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        make()


def test_distributed_sampler() -> None:
    def shares(size: int, **settings: Any) -> list[list[int]]:
        return [list(data.DistributedSampler(range(size), 3, rank, **settings)) for rank in range(3)]

    assert shares(7, shuffle=False) == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    assert shares(7, shuffle=False, drop_last=True) == [[0, 3], [1, 4], [2, 5]]
    assert shares(1, shuffle=False) == [[0], [0], [0]]
    assert sorted(i for share in shares(9) for i in share) == list(range(9)) and shares(9) == shares(9) != shares(9, seed=1)
    sampler = data.DistributedSampler(range(9), 3, 0)
    before = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != before and len(sampler) == 3


# ----------------------------------------------------------------------------------------------------------------- collation

def test_collate() -> None:
    def check(batch: list[Any], expected: Any, dtype: Any) -> None:
        found = data.default_collate(batch)
        assert found.tolist() == expected and found.dtype is dtype

    check([1, 2], [1, 2], mg.int64)
    check([1.5, 2], [1.5, 2.0], mg.float64)
    check([True, False], [True, False], mg.bool)
    check([mg.ones(2), mg.zeros(2)], [[1.0, 1.0], [0.0, 0.0]], mg.float32)
    check([mg.tensor(1), mg.tensor(2)], [1, 2], mg.int64)
    check([np.ones(2, "int8"), np.zeros(2, "int8")], [[1, 1], [0, 0]], mg.int8)
    check([np.float32(1), np.float32(2)], [1.0, 2.0], mg.float32)
    check([np.float64(1), np.float64(2)], [1.0, 2.0], mg.float64)
    check([np.array(1, "uint8"), np.array(2, "uint8")], [1, 2], mg.uint8)
    assert data.default_collate(["a", "b"]) == ["a", "b"] and data.default_collate([b"a"]) == [b"a"]
    pairs = data.default_collate([(1, "a"), (2, "b")])
    assert type(pairs) is list and pairs[0].tolist() == [1, 2] and pairs[1] == ("a", "b")
    point = data.default_collate([Point(1, mg.zeros(1)), Point(2, mg.ones(1))])
    assert type(point) is Point and point.x.tolist() == [1, 2] and point.y.tolist() == [[0.0], [1.0]]
    nested = data.default_collate([OrderedDict(a=[1, {"b": 2.0}]), OrderedDict(a=[3, {"b": 4.0}])])
    assert type(nested) is OrderedDict and nested["a"][1]["b"].tolist() == [2.0, 4.0]
    assert type(data.default_collate([UserDict(a=1)])) is UserDict and type(data.default_collate([UserList([1])])) is UserList
    frozen = data.default_collate([types.MappingProxyType({"a": 1})])
    assert frozen["a"].tolist() == [1]


def test_a_batch_that_cannot_be_made_says_where() -> None:
    with pytest.raises(RuntimeError, match=r"sample\['image'\]\[1\] has shape \(3,\) in the first item of the batch and \(4,\) in item 2"):
        data.default_collate([{"image": [0, mg.zeros(3 + k // 2)]} for k in range(4)])
    with pytest.raises(RuntimeError, match=r"\(2,\).*\(3,\) in item 1"):
        data.default_collate([np.zeros(2), np.zeros(3)])
    with pytest.raises(RuntimeError, match=r"2 entries.*1 in item 1"):
        data.default_collate([[1, 2], [1]])
    with pytest.raises(TypeError, match=r"sample\['a'\] is NoneType"):
        data.default_collate([{"a": None}])
    for bad in (object(), 1j, np.array(["a"]), np.array([None])):
        with pytest.raises(TypeError):
            data.default_collate([bad])
    with pytest.raises(KeyError, match="'b'"):
        data.default_collate([{"b": 1}, {"a": 1}])
    with pytest.raises(TypeError, match="NoneType in item 1"):
        data.default_collate([mg.zeros(1), None])
    with pytest.raises(IndexError, match="empty"):
        data.default_collate([])


def test_convert() -> None:
    found = data.default_convert({"a": np.ones(2), "b": ("text", np.float32(1)), "c": Point(1, [np.zeros(1)]), "d": np.array(["x"])})
    assert found["a"].tolist() == [1.0, 1.0] and found["b"][0] == "text" and found["b"][1].dtype is mg.float32
    assert isinstance(found["c"], Point) and mg.is_tensor(found["c"].y[0]) and isinstance(found["d"], np.ndarray)


# -------------------------------------------------------------------------------------------------------------------- loading

@pytest.mark.smoke
def test_loading() -> None:
    loader = DataLoader(Squares(5), batch_size=2)
    assert [(x.tolist(), y.tolist()) for x, y in loader] == [([0, 1], [0.0, 1.0]), ([2, 3], [4.0, 9.0]), ([4], [16.0])]
    assert len(loader) == 3 and len(list(loader)) == 3
    assert len(DataLoader(Squares(5), 2, drop_last=True)) == len(list(DataLoader(Squares(5), 2, drop_last=True))) == 2
    assert [b.tolist() for b in DataLoader(range(4), batch_sampler=[[3], [0, 1]])] == [[3], [0, 1]]
    assert [b.tolist() for b in DataLoader(range(4), sampler=[2, 0])] == [[2], [0]]
    assert list(DataLoader([np.ones(1), "a"], batch_size=None))[1] == "a" and len(DataLoader(range(4), batch_size=None)) == 4
    assert list(DataLoader(range(4), 2, collate_fn=sum)) == [1, 5]
    batched = Batched(4)
    assert len(list(DataLoader(batched, 2))) == batched.calls == 2


def test_shuffling() -> None:
    def order(generator: Any) -> list[int]:
        return [int(b) for b in DataLoader(range(50), shuffle=True, generator=generator)]

    assert order(seeded()) == order(seeded()) != order(seeded(1)) and sorted(order(None)) == list(range(50))


def test_several_iterators_at_once() -> None:
    loader = DataLoader(range(4), 2)
    pairs = [(a.tolist(), b.tolist()) for a, b in zip(loader, loader)]
    assert pairs == [([0, 1], [0, 1]), ([2, 3], [2, 3])]
    first, second = iter(loader), iter(loader)
    next(first)
    assert next(second).tolist() == [0, 1] and next(first).tolist() == [2, 3]


def test_streams() -> None:
    assert [b.tolist() for b in DataLoader(Stream(1, 2, 3), 2)] == [[1, 2], [3]]
    assert [b.tolist() for b in DataLoader(Stream(1, 2, 3), 2, drop_last=True)] == [[1, 2]]
    assert list(DataLoader(Stream(1, 2, 3), batch_size=None)) == [1, 2, 3]
    with pytest.raises(TypeError):
        len(DataLoader(Stream(1)))
    assert len(DataLoader(SizedStream(1), 2)) == 3 and len(DataLoader(SizedStream(1), None)) == 5
    with pytest.warns(UserWarning, match="announced 3 batches"):
        assert len(list(DataLoader(SizedStream(*range(9)), 2))) == 5


def test_an_error_in_a_dataset_passes_through() -> None:
    class Flaky(Squares):
        def __getitem__(self, index: int) -> Any:
            if index == 1:
                raise KeyError("gone")
            return index

    batches = iter(DataLoader(Flaky(3)))
    assert next(batches).tolist() == [0]
    with pytest.raises(KeyError, match="gone"):
        next(batches)
    assert next(batches).tolist() == [2]


@pytest.mark.parametrize("settings, kind", [
    ({"num_workers": -1}, ValueError), ({"timeout": -1}, ValueError), ({"prefetch_factor": 2}, ValueError), ({"num_workers": 1, "prefetch_factor": 0}, ValueError),
    ({"persistent_workers": True}, ValueError), ({"sampler": [0], "shuffle": True}, ValueError), ({"batch_sampler": [[0]], "batch_size": 2}, ValueError),
    ({"batch_sampler": [[0]], "shuffle": True}, ValueError), ({"batch_sampler": [[0]], "drop_last": True}, ValueError),
    ({"batch_size": None, "drop_last": True}, ValueError), ({"batch_size": 0}, ValueError), ({"multiprocessing_context": "spawn"}, ValueError),
    ({"num_workers": 1, "multiprocessing_context": "magic"}, ValueError), ({"num_workers": 1, "multiprocessing_context": 3}, TypeError),
    ({"generator": 3}, TypeError), ({"batch_size": 2.5}, ValueError)])
def test_bad_settings(settings: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        DataLoader(range(3), **settings)


def test_bad_settings_for_streams() -> None:
    for settings in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}):
        with pytest.raises(ValueError):
            DataLoader(Stream(1), **settings)
    with pytest.raises(AssertionError):
        iter(DataLoader(range(3), timeout=1))


def test_what_a_loader_iterates_over_is_fixed() -> None:
    loader = DataLoader(range(3))
    loader.pin_memory = True
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=name):
            setattr(loader, name, None)


def test_not_in_a_worker() -> None:
    assert data.get_worker_info() is None


def test_training_with_a_loader() -> None:
    random.seed(0)
    x = mg.linspace(-1, 1, 64).reshape(64, 1)
    loader = DataLoader(TensorDataset(x, 3 * x + 1), batch_size=16, shuffle=True, generator=seeded())
    weight, bias = mg.zeros(1, requires_grad=True), mg.zeros(1, requires_grad=True)
    for _ in range(60):
        for inputs, targets in loader:
            loss = ((inputs * weight + bias - targets) ** 2).mean()
            weight.grad = bias.grad = None
            loss.backward()
            with mg.no_grad():
                weight -= 0.3 * weight.grad
                bias -= 0.3 * bias.grad
    assert abs(weight.item() - 3) < 1e-3 and abs(bias.item() - 1) < 1e-3


# ------------------------------------------------------------------------------------------------------------------- progress

class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(data.progress(range(3), desc="epoch 1")) == [0, 1, 2]
    shown = sys.stderr.getvalue()
    assert "epoch 1: 3/3 (100%)" in shown and shown.endswith("\n") and shown.count("\n") == 1
    assert list(data.progress(iter([1]))) == [1]
    monkeypatch.setenv("MUTAGRAD_PROGRESS", "0")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(data.progress([1, 2])) == [1, 2] and sys.stderr.getvalue() == ""


def test_progress_is_quiet_without_a_terminal_and_uses_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert list(data.progress([1, 2])) == [1, 2] and sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=lambda items, desc: [desc, *items]))
    assert list(data.progress([1], desc="d")) == ["d", 1]


def test_loaded_when_first_named() -> None:
    code = "import sys, mutagrad as mg; mg.utils; print('mutagrad.utils.data' in sys.modules, mg.utils.data.DataLoader.__name__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == ["False", "DataLoader"]


# ------------------------------------------------------------------------------------------------------ under PyTorch's paths

class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


def warmest(batch: Any, *, collate_fn_map: Any = None) -> float:
    assert collate_fn_map is not None and mg.Tensor in collate_fn_map
    return max(sample.degrees for sample in batch)


def test_functions_of_ones_own_for_a_class() -> None:
    collate = data._utils.collate
    functions = {**collate.default_collate_fn_map, Celsius: warmest}
    assert collate.collate([Celsius(1.0), Celsius(2.0)], collate_fn_map=functions) == 2.0
    assert collate.collate([{"t": [Celsius(1.0), 5]}, {"t": [Celsius(0.0), 6]}], collate_fn_map=functions)["t"][0] == 1.0
    with pytest.raises(TypeError, match="Celsius"):
        data.default_collate([Celsius(1.0)])
    collate.default_collate_fn_map[Celsius] = warmest
    try:
        assert data.default_collate([(Celsius(1.0), 2)])[0] == 1.0
    finally:
        del collate.default_collate_fn_map[Celsius]
    assert data._utils.worker.get_worker_info() is None and data._utils.pin_memory.pin_memory([1]) == [1]


def test_an_iterator_knows_how_long_it_is() -> None:
    assert len(iter(DataLoader(Squares(5), batch_size=2))) == 3 and len(iter(DataLoader(Squares(5), batch_size=2, num_workers=1))) == 3
    assert len(iter(DataLoader(SizedStream(1, 2, 3)))) == 5 and DataLoader(Squares(5)).multiprocessing_context is None


def test_steps_of_a_stream() -> None:
    wrap = data.datapipes.iter.IterableWrapper
    pipe = wrap(range(6)).filter(lambda x: x != 3).map(lambda x: x * 10).batch(2)
    assert list(pipe) == [[0, 10], [20, 40], [50]] == list(pipe) and len(wrap(range(5)).batch(2)) == 3 and len(wrap(range(5)).batch(2, drop_last=True)) == 2
    assert sorted(wrap(range(9)).shuffle(buffer_size=3)) == list(range(9)) and list(wrap("ab").zip(wrap(range(5)))) == [("a", 0), ("b", 1)]
    assert list(wrap(range(9)).shuffle().set_seed(3)) == list(wrap(range(9)).shuffle().set_seed(3)) != list(range(9))
    assert list(wrap([1]).concat(wrap([2, 3]))) == [1, 2, 3] and next(iter(wrap(range(4)).batch(2).collate())).tolist() == [0, 1]
    assert list(wrap([(1, 2), (3, 4)]).map(lambda x: -x, input_col=1)) == [(1, -2), (3, -4)] and list(wrap([[1, 2]]).map(max, input_col=[0, 1], output_col=-1)) == [[1, 2, 2]]
    assert [x.tolist() for x in DataLoader(wrap(range(4)), batch_size=2)] == [[0, 1], [2, 3]] and isinstance(pipe, data.IterDataPipe)
    source = [1, 2]
    copied = wrap(source)
    first = list(copied)
    assert first == [1, 2] and repr(copied) == "IterableWrapper"
    with pytest.raises(AttributeError):
        pipe.nothing()
    with pytest.raises(ValueError, match="taken"):
        data.functional_datapipe("map")(type("Again", (data.IterDataPipe,), {}))
    keyed = data.datapipes.map.SequenceWrapper(list(range(5))).map(lambda x: x + 1)
    assert keyed[2] == 3 and [list(keyed.batch(2)[k]) for k in range(3)] == [[1, 2], [3, 4], [5]] and keyed.concat(keyed)[6] == 2 and keyed.zip(keyed)[1] == (2, 2)
