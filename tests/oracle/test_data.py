"""Datasets, samplers and loaders against PyTorch's: what comes out, in which types, and what is refused."""
from __future__ import annotations

import warnings
from collections import OrderedDict, UserDict, UserList, namedtuple
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

Point = namedtuple("Point", "x y")


def plain(value: Any) -> Any:
    """A batch without tensors, for comparing: their types by name."""
    if isinstance(value, (mg.Tensor, torch.Tensor)):
        return "tensor", str(value.dtype).split(".")[1], value.tolist()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__, [plain(v) for v in value]
    if isinstance(value, (list, tuple, UserList)):
        return type(value).__name__, [plain(v) for v in value]
    if isinstance(value, (dict, UserDict)):
        return type(value).__name__, [(k, plain(v)) for k, v in value.items()]
    return value


def outcome(call: Any) -> Any:
    """What a call gives, or the class of its error."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            return plain(call()), len([w for w in caught if issubclass(w.category, UserWarning) and "suggested max" not in str(w.message)])
    except Exception as error:
        return type(error)


def compare(call: Any) -> None:
    """`call(library, its utils.data)` gives the same in both, or raises an error that the same `except` catches."""
    theirs = outcome(lambda: call(torch, torch.utils.data))
    if isinstance(theirs, type):
        with pytest.raises(theirs):
            call(mg, mg.utils.data)
    else:
        assert outcome(lambda: call(mg, mg.utils.data)) == theirs


def stream(data: Any, items: Any) -> Any:
    class Stream(data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            info = data.get_worker_info()
            return iter(items if info is None else items[info.id::info.num_workers])

    return Stream()


@pytest.mark.parametrize("batch", [
    lambda t: [1, 2], lambda t: [1.5, 2.0], lambda t: [True, False], lambda t: ["a", "b"], lambda t: [b"a"], lambda t: [None], lambda t: [1j], lambda t: [object()], lambda t: [],
    lambda t: [t.ones(2), t.zeros(2)], lambda t: [t.tensor(1), t.tensor(2)], lambda t: [t.ones(2), t.ones(3)], lambda t: [t.zeros(0), t.zeros(0)],
    lambda t: [np.ones(2, "float32")], lambda t: [np.float32(1), np.float32(2)], lambda t: [np.int16(1)], lambda t: [np.float64(2)], lambda t: [np.bool_(True)], lambda t: [np.array("a")],
    lambda t: [np.array([None])], lambda t: [np.ones(2), np.ones(3)], lambda t: [np.str_("a")],
    lambda t: [(1, "a"), (2, "b")], lambda t: [[1, (2, 3.0)], [4, (5, 6.0)]], lambda t: [[1], [1, 2]], lambda t: [(), ()], lambda t: [{}, {}],
    lambda t: [{"a": 1, "b": [t.ones(1)]}, {"a": 2, "b": [t.zeros(1)]}], lambda t: [{"a": 1}, {"b": 1}], lambda t: [{"a": 1}, {"a": 1, "b": 2}],
    lambda t: [OrderedDict(b=1, a=2)], lambda t: [UserDict(a=1)], lambda t: [UserList([1, 2])], lambda t: [Point(1, t.ones(1)), Point(2, t.ones(1))], lambda t: [range(2), range(2)],
    lambda t: [t.ones(1), 2], lambda t: [1, 2.5], lambda t: [{"a": None}]])
def test_collate(batch: Any) -> None:
    compare(lambda library, data: data.default_collate(batch(library)))


@pytest.mark.parametrize("value", [1, "a", None, [1, np.ones(2)], (1, np.float32(2)), {"a": np.arange(2)}, Point(1, np.ones(1)), [np.array("a").item()], b"x", UserList([np.ones(1)])])
def test_convert(value: Any) -> None:
    compare(lambda library, data: data.default_convert(value))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("settings", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}, {"sampler": [4, 2, 0], "batch_size": 2},
                                      {"batch_sampler": [[0, 1], [5]]}, {"batch_size": 20}, {"batch_size": 20, "drop_last": True}, {"collate_fn": sum, "batch_size": 4}])
def test_loading(settings: dict[str, Any], workers: int) -> None:
    compare(lambda library, data: list(data.DataLoader(range(10), num_workers=workers, **settings)))
    if not workers:
        compare(lambda library, data: len(data.DataLoader(range(10), **settings)))


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("settings", [{"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_streams(settings: dict[str, Any], workers: int) -> None:
    compare(lambda library, data: list(data.DataLoader(stream(data, list(range(17))), num_workers=workers, **settings)))


@pytest.mark.parametrize("settings", [
    {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"num_workers": 1, "prefetch_factor": -1}, {"persistent_workers": True}, {"sampler": [0], "shuffle": True},
    {"batch_sampler": [[0]], "batch_size": 2}, {"batch_sampler": [[0]], "shuffle": True}, {"batch_sampler": [[0]], "drop_last": True}, {"batch_size": None, "drop_last": True},
    {"batch_size": 0}, {"batch_size": -1}, {"batch_size": 2.5}, {"multiprocessing_context": "spawn"}, {"num_workers": 1, "multiprocessing_context": "magic"},
    {"num_workers": 1, "multiprocessing_context": 3}, {"timeout": 1}, {"batch_sampler": [[0]], "sampler": [1]}, {"generator": 3, "shuffle": True}])
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    compare(lambda library, data: list(data.DataLoader(range(3), **settings)))


def test_datasets() -> None:
    for call in (
        lambda t, d: d.TensorDataset(t.arange(4), t.ones(4, 2))[1], lambda t, d: d.TensorDataset(t.arange(4), t.ones(4, 2))[1:3], lambda t, d: d.TensorDataset(t.arange(4), t.ones(3)),
        lambda t, d: len(d.TensorDataset(t.arange(4))), lambda t, d: d.StackDataset(range(3), [5, 6, 7])[1], lambda t, d: d.StackDataset(a=range(3), b=[5, 6, 7])[1],
        lambda t, d: d.StackDataset(range(3), [5]), lambda t, d: d.StackDataset(), lambda t, d: d.StackDataset(range(3), b=range(3)),
        lambda t, d: [d.ConcatDataset([range(3), range(5, 7)])[i] for i in (0, 3, -1, -5)], lambda t, d: d.ConcatDataset([range(3)])[-4], lambda t, d: d.ConcatDataset([range(3)])[3],
        lambda t, d: d.ConcatDataset([]), lambda t, d: d.ConcatDataset([range(3), range(4)]).cumulative_sizes, lambda t, d: d.ConcatDataset([stream(d, [1])]),
        lambda t, d: list(d.ChainDataset([stream(d, [1]), stream(d, [2, 3])])), lambda t, d: list(stream(d, [1]) + stream(d, [2])), lambda t, d: d.Subset(range(9), [3, 1])[1],
        lambda t, d: d.Subset(t.arange(9), [3, 1])[[0, 1]], lambda t, d: d.Subset(range(9), [3, 1]).__getitems__([1]), lambda t, d: d.Dataset()[0],
        lambda t, d: list(d.ChainDataset([range(3)])),
    ):
        compare(call)


@pytest.mark.parametrize("size", [0, 1, 7, 10])
@pytest.mark.parametrize("lengths", [[0.5, 0.5], [0.3, 0.3, 0.4], [1.0], [10], [3, 4], [0.9, 0.2], [1.5, -0.5], [0.5, 0.4], [7, 0], [0.1] * 10])
def test_random_split(size: int, lengths: list[Any]) -> None:
    def call(library: Any, data: Any) -> Any:
        parts = data.random_split(range(size), lengths, generator=library.Generator().manual_seed(0))
        return [len(p) for p in parts], sorted(i for p in parts for i in p.indices)

    compare(call)


def test_samplers() -> None:
    for call in (
        lambda t, d: list(d.SequentialSampler(range(4))), lambda t, d: sorted(d.RandomSampler(range(4))), lambda t, d: len(list(d.RandomSampler(range(4), num_samples=9))),
        lambda t, d: sorted(list(d.RandomSampler(range(4), num_samples=9))[:8]), lambda t, d: len(list(d.RandomSampler(range(4), replacement=True, num_samples=70))),
        lambda t, d: d.RandomSampler(range(4), replacement=1), lambda t, d: d.RandomSampler(range(4), num_samples=0), lambda t, d: d.RandomSampler(range(4), num_samples=1.5),
        lambda t, d: sorted(d.SubsetRandomSampler([5, 3])), lambda t, d: sorted(d.WeightedRandomSampler([1, 1, 0, 1], 3, False)), lambda t, d: d.WeightedRandomSampler([[1.0]], 1),
        lambda t, d: d.WeightedRandomSampler([1.0], 0), lambda t, d: d.WeightedRandomSampler([1.0], 1, 1), lambda t, d: list(d.BatchSampler(range(5), 2, False)),
        lambda t, d: list(d.BatchSampler(range(5), 2, True)), lambda t, d: len(d.BatchSampler(range(5), 2, True)), lambda t, d: d.BatchSampler(range(5), 0, True),
        lambda t, d: d.BatchSampler(range(5), 2, 1), lambda t, d: [list(d.DistributedSampler(range(7), 3, r, shuffle=False)) for r in range(3)],
        lambda t, d: [list(d.DistributedSampler(range(7), 3, r, shuffle=False, drop_last=True)) for r in range(3)], lambda t, d: d.DistributedSampler(range(7), 3, 3),
        lambda t, d: [list(d.distributed.DistributedSampler(range(1), 5, r, shuffle=False)) for r in range(5)],
        lambda t, d: sorted(i for r in range(2) for i in d.DistributedSampler(range(6), 2, r)), lambda t, d: list(d.RandomSampler([])),
    ):
        compare(call)


def test_the_public_names() -> None:
    missing = {n for n in torch.utils.data.__all__ if not hasattr(mg.utils.data, n)}
    assert missing <= {"_DatasetKind", "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe", "guaranteed_datapipes_determinism",
                       "non_deterministic", "runtime_validation", "runtime_validation_disabled"}
