"""Utilities under PyTorch's paths."""
from __future__ import annotations

import gc
import io
import sys
from importlib import import_module
from typing import Any

import pytest

import mutagrad as mg
from mutagrad import utils


def test_how_long_something_takes() -> None:
    timer = utils.benchmark.Timer("  total = x + 1\n  total", setup="y = 2", globals={"x": 1}, label="sum", sub_label="small")
    once, several = timer.timeit(50), timer.repeat(3, 10)
    assert once.number_per_run == 50 and len(once.times) == 1 and once.mean == once.median and len(several.times) == 3 and several.iqr >= 0
    seen: list[Any] = []
    ranged = timer.blocked_autorange(lambda number, taken: seen.append(number), min_run_time=0.001)
    assert sum(ranged.raw_times) >= 0.001 and len(seen) == len(ranged.times) and "sum: small" in repr(ranged) and "Median" in repr(ranged)
    assert timer.adaptive_autorange(min_run_time=0.0001, max_run_time=0.0002).median > 0
    with pytest.raises(ValueError, match="language"):
        utils.benchmark.Timer("1;", language="cpp")


def test_what_the_machine_is() -> None:
    text = utils.collect_env.get_pretty_env_info()
    assert text.count("\n") >= 17 and mg.__version__ in text and sys.version.split()[0] in text and "numpy==" in text


def test_keys_that_are_not_kept_alive() -> None:
    names = utils.weak.WeakTensorKeyDictionary()
    x, y = mg.ones(2), mg.ones(2)
    names[x], names[y] = "x", "y"
    assert names[x] == "x" and list(names.values()) == ["x", "y"] and mg.ones(2) not in names and 3 not in names and any(key is y for key in names)
    del names[y], x
    gc.collect()
    assert len(names) == 0
    assert utils.weak.WeakIdRef(y) == utils.weak.WeakIdRef(y) != utils.weak.WeakIdRef(mg.ones(2))


def test_tensors_in_a_row_and_over_a_storage() -> None:
    parts = [mg.ones(2, 3), mg.zeros(4)]
    flat = mg._utils._flatten_dense_tensors(parts)
    again = mg._utils._unflatten_dense_tensors(flat, parts)
    assert flat.shape == (10,) and [t.shape for t in again] == [(2, 3), (4,)] and mg.equal(again[0], parts[0])
    x = mg.arange(6.0)
    view = mg._utils._rebuild_tensor(x.storage(), 1, (2, 2), (2, 1))
    assert view.tolist() == [[1, 2], [3, 4]] and view.data_ptr() == x[1:].data_ptr()
    assert mg._utils._rebuild_tensor_v2(x.storage(), 0, (6,), (1,), True, None).requires_grad
    with pytest.raises(NotImplementedError):
        mg._utils._rebuild_tensor_v2(x.storage(), 0, (6,), (1,), True, {1: print})


def test_what_pickles_of_pytorch_are_made_of() -> None:
    x, file = mg.arange(6.0), io.BytesIO()
    mg.save(x.storage(), file)
    storage = mg.storage._load_from_bytes(file.getvalue())
    assert isinstance(storage, mg.storage.TypedStorage) and storage.tolist() == x.tolist()
    made = mg._utils._rebuild_parameter(mg._utils._rebuild_tensor_v2(storage, 2, (2,), (1,), False, None), True, {})
    assert type(made) is mg.nn.Parameter and made.tolist() == [2, 3] and made.requires_grad
    again = mg._utils._rebuild_parameter_with_state(made.detach(), False, None, {"mark": 3})
    assert again.mark == 3 and not again.requires_grad and again.data_ptr() == made.data_ptr()
    with pytest.raises(NotImplementedError, match="hooks"):
        mg._utils._rebuild_parameter(made, True, {1: print})


def test_an_exception_from_elsewhere() -> None:
    try:
        raise KeyError("gone")
    except KeyError:
        found = mg._utils.ExceptionWrapper(sys.exc_info(), "in a thread")
    with pytest.raises(KeyError, match="in a thread"):
        found.reraise()


def test_names_that_optimizers_are_written_with() -> None:
    module: Any = import_module("mutagrad.optim.optimizer")
    assert module._get_value(mg.tensor(2.0)) == 2.0 == module._get_value(2.0) and module._dispatch_sqrt(4.0) == 2.0 and module._dispatch_sqrt(mg.tensor(4.0)).item() == 2
    assert not module._use_grad_for_differentiable(mg.is_grad_enabled)() and mg.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING
    assert issubclass(mg.serialization.SourceChangeWarning, Warning) and mg.serialization.default_restore_location(3, "cpu") == 3
    with pytest.raises(RuntimeError):
        mg.serialization.default_restore_location(3, "cuda:0")
