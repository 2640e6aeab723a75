"""Modes that are left at the wrong moment: nothing is left behind, whatever was done to them."""

import gc
import threading

import pytest

import mutagrad as mg
from mutagrad.base.modes import DISPATCHING, NOT_RECORDING, mode
from mutagrad.torch_api.overrides import TorchFunctionMode


class Counting(TorchFunctionMode):
    def __init__(self):
        self.calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


def hooks():
    return mg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)


BLOCKS = {
    "no_grad": mg.no_grad, "enable_grad": mg.enable_grad, "inference_mode": mg.inference_mode, "saved_tensors_hooks": hooks,
    "disable_saved_tensors_hooks": lambda: mg.autograd.graph.disable_saved_tensors_hooks("none here"), "TorchFunctionMode": Counting,
    "autocast": lambda: mg.amp.autocast("cpu", dtype=mg.bfloat16), "profile": mg.profiler.profile, "device": lambda: mg.device("meta"),
    "detect_anomaly": mg.autograd.detect_anomaly, "dual_level": mg.autograd.forward_ad.dual_level,
}


def clean():
    """Ordinary operations work, are recorded, and nobody is asked about them."""
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    now = mode.now
    assert x.grad.tolist() == [2.0, 4.0]
    assert now.recorded and not now.function_modes and now.cast is None and now.device is None and now.dual is None
    assert not now.saved_hooks and not now.saved_hooks_refused and not now.profilers and not now.anomaly and not now.inference
    assert mg.autograd.is_grad_enabled() and (mg.ones(2, 2) @ mg.ones(2, 2)).dtype is mg.float32
    gc.collect()
    return not NOT_RECORDING and not DISPATCHING - {-1}  # which some test before this may have put there: xla/devices.py


def on_another_thread(function):
    found = []

    def run():
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("name", BLOCKS)
def test_left_twice(name):
    block = BLOCKS[name]()
    block.__enter__()
    block.__exit__(None, None, None)
    if name == "profile":  # stop() after stop() is fine in PyTorch
        block.__exit__(None, None, None)
    else:
        with pytest.raises(RuntimeError, match="without having been entered"):
            block.__exit__(None, None, None)
    assert clean()


@pytest.mark.parametrize("name", BLOCKS)
def test_left_on_another_thread(name):
    block = BLOCKS[name]()
    block.__enter__()
    error = on_another_thread(lambda: block.__exit__(None, None, None))
    assert isinstance(error, RuntimeError) and "another thread" in str(error)
    assert clean() and on_another_thread(clean)


@pytest.mark.parametrize("name", BLOCKS)
def test_never_left_by_a_thread_that_ends(name):
    block = BLOCKS[name]()
    on_another_thread(block.__enter__)
    assert clean() and on_another_thread(clean)


@pytest.mark.parametrize("outer", BLOCKS)
@pytest.mark.parametrize("inner", BLOCKS)
def test_left_in_the_wrong_order(outer, inner):
    first, second = BLOCKS[outer](), BLOCKS[inner]()
    first.__enter__()
    try:
        second.__enter__()
    except RuntimeError:  # refused: hooks where they are disabled, one dual level inside another, no_grad in it
        second = None
    first.__exit__(None, None, None)
    if second is not None:
        second.__exit__(None, None, None)
    assert clean()


def test_what_lies_above_a_block_that_is_left_still_holds():
    first, second, third = mg.no_grad(), hooks(), Counting()
    for block in (first, second, third):
        block.__enter__()
    second.__exit__(None, None, None)
    assert not mg.is_grad_enabled() and mode.now.function_modes == (third,) and not mode.now.saved_hooks
    first.__exit__(None, None, None)
    assert mg.is_grad_enabled() and mode.now.function_modes == (third,)
    third.__exit__(None, None, None)
    assert clean()


def test_hooks_left_inside_their_own_callback():
    block = mg.autograd.graph.saved_tensors_hooks(lambda t: block.__exit__(None, None, None) if mode.now.saved_hooks else t, lambda t: mg.ones(2))
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    block.__enter__()
    x * x
    assert clean()


def test_a_mode_left_inside_its_own_callback():
    class Leaving(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            self.__exit__(None, None, None)
            return result

    with pytest.raises(RuntimeError, match="without having been entered"), Leaving():
        mg.ones(2) + 1
    assert clean()


def test_a_mode_that_is_left_in_a_hook_of_a_sweep_stays_left():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y, block = x * x, Counting()
    y.register_hook(lambda g: block.__exit__(None, None, None))
    block.__enter__()
    y.sum().backward()
    assert clean()


def test_an_abandoned_generator_leaves_nothing():
    def steps():
        with mg.no_grad():
            yield 1
            yield 2

    generator = steps()
    next(generator)
    on_another_thread(lambda: generator.close())
    assert clean()


def test_settings_hold_until_the_block_ends_that_has_set_them():
    with mg.no_grad(), mg.autograd.detect_anomaly():
        mg.set_grad_enabled(True)
        assert mg.is_grad_enabled()
    assert mg.is_grad_enabled()
    with mg.no_grad():
        with mg.autograd.detect_anomaly():
            mg.set_grad_enabled(True)
        assert mg.is_grad_enabled()
    with mg.no_grad():
        mg.set_default_device("meta")
    assert mg.ones(2).is_meta
    mg.set_default_device(None)
    assert clean()


def test_a_setting_can_be_taken_back_by_its_object():
    setting = mg.set_grad_enabled(False)
    assert not mg.is_grad_enabled()
    setting.__exit__(None, None, None)
    assert clean()


def test_a_shared_block_on_two_threads_at_once():
    block, inside, go = mg.no_grad(), threading.Event(), threading.Event()
    found = []

    def run():
        with block:
            inside.set()
            go.wait(10)
            found.append(mg.is_grad_enabled())
        found.append(mg.is_grad_enabled())

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait(10)
    with block:
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()
    go.set()
    thread.join()
    assert found == [False, True] and clean()


@pytest.mark.parametrize("wanted", [1, "a", None])
def test_set_grad_enabled_takes_a_bool(wanted):
    with pytest.raises(TypeError, match="set_grad_enabled"):
        mg.set_grad_enabled(wanted)
    clean()
