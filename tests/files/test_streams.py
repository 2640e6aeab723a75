"""Writing files: all bytes or an error, in no more memory than they are in, under their name once they are complete."""
from __future__ import annotations

import errno
import importlib.util
import io
import os
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.base.errors import BadFile
from mutagrad.files import streams
from pickles import archive, tensor
from tools import Broken

LARGE = 6_000_000  # bytes
short_floats = pytest.mark.skipif(importlib.util.find_spec("ml_dtypes") is None, reason="bfloat16 needs ml_dtypes")


class Thing:
    """An object that is pickled."""

    def __init__(self, value: Any) -> None:
        self.value = value


def written(value: Any) -> bytes:
    file = io.BytesIO()
    mg.save(value, file)
    return file.getvalue()


# ------------------------------------------------------------------------------------------------------------ all of it

class Slow(io.RawIOBase):
    """A file that takes at most a thousand bytes at a time; or none, and answers something."""

    def __init__(self, answer: Any = ...) -> None:
        self.held, self.answer = bytearray(), answer

    def write(self, data: Any) -> Any:
        if self.answer is not ...:
            return self.answer
        self.held += data[:1000]
        return min(len(data), 1000)


class Foreign:
    """A file of somebody else's, which keeps what it is given and does not say how much that was."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def write(self, data: Any) -> None:
        self.parts.append(data)


@pytest.mark.parametrize("value", [
    mg.arange(100_000), {"x": mg.arange(60_000).reshape(3, -1).T}, Thing(mg.arange(100_000))])
def test_a_file_without_a_buffer_gets_all_of_it(value: Any, tmp_path: Any) -> None:
    slow = Slow()
    mg.save(value, slow)
    assert slow.held == written(value)
    with open(tmp_path / "x", "wb", buffering=0) as file:
        mg.save(value, file)
    assert (tmp_path / "x").read_bytes() == written(value)
    for answer, kind in ((0, errno.EIO), (None, errno.EAGAIN), (-1, errno.EIO)):
        with pytest.raises(OSError, match="bytes left to write") as found:
            mg.save(value, Slow(answer))
        assert found.value.errno == kind


@pytest.mark.parametrize("form", ["torch", "safetensors"])
def test_a_file_is_told_when_all_is_written(form: str) -> None:
    class Upload:
        def __init__(self) -> None:
            self.parts: list[bytes] = []
            self.flushed: list[int] = []

        def write(self, data: bytes) -> None:
            self.parts.append(data)

        def flush(self) -> None:
            self.flushed.append(len(self.parts))

    file = Upload()
    mg.save(mg.ones(3), file, format=form)
    assert file.flushed == [len(file.parts)] and mg.load(io.BytesIO(b"".join(file.parts))).tolist() == [1, 1, 1]


def test_a_file_may_keep_what_it_is_given() -> None:
    x, file = mg.arange(600_000), Foreign()
    expected = written(x)
    mg.save(x, file)
    x.zero_()
    assert b"".join(file.parts) == expected


def test_the_same_object_is_the_same_file(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"x": Thing(mg.arange(3)), "y": mg.ones(2)}
    first = written(value)
    monkeypatch.setattr("time.time", lambda: 1e9)
    assert written(value) == first


@pytest.mark.parametrize("make", [
    lambda: mg.arange(300_000).reshape(300, 1000).T, lambda: mg.arange(300_000)[::-1], lambda: mg.arange(300_000)[3],
    lambda: mg.arange(24).reshape(2, 3, 4)[:, ::2, 1:], lambda: mg.arange(6.0).expand(2, 6), lambda: mg.zeros(3, 0).T,
    lambda: mg.arange(300_000).to(mg.complex64).reshape(2, -1).T.real,
    pytest.param(lambda: mg.arange(400_000.0).bfloat16()[::2], marks=short_floats)])
def test_elements_are_written_in_order(make: Any) -> None:
    x = make()
    found = mg.load(io.BytesIO(written({"x": x})))["x"]
    assert found.dtype is x.dtype and found.shape == x.shape and mg.equal(found, x)


# --------------------------------------------------------------------------------------------------------------- memory

def peak(work: Any) -> int:
    """The most memory that this takes at any time, beyond what there was, in bytes."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = work()
        del kept
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [
    lambda: mg.zeros(LARGE // 4), lambda: mg.zeros(LARGE // 4).reshape(1000, -1).T, lambda: np.zeros(LARGE // 8),
    lambda: mg.zeros(LARGE // 16, dtype=mg.complex128)[::-1], lambda: mg.nn.Parameter(mg.zeros(LARGE // 4)),
    pytest.param(lambda: mg.zeros(LARGE, dtype=mg.bfloat16)[1::2], marks=short_floats),
    lambda: mg.zeros(3, 1000).expand(LARGE // 12_000, 3, 1000), lambda: [mg.zeros(LARGE // 4)[1:]] * 2,
    lambda: Thing(mg.zeros(LARGE // 4)), lambda: Thing([mg.zeros(LARGE // 4)[::-2], mg.ones(LARGE // 4)])])
@pytest.mark.parametrize("form", ["torch", "safetensors"])
def test_saving_takes_no_second_copy(make: Any, form: str, tmp_path: Any) -> None:
    value = make()
    mg.save(Thing(mg.ones(1)), tmp_path / "x")  # imports what it needs
    if form == "torch" and isinstance(value, np.ndarray) or form == "safetensors" and isinstance(value, Thing):
        return  # an array is pickled whole, by NumPy itself; objects are no plain data
    assert peak(lambda: mg.save(value, tmp_path / "x", format=form)) < LARGE // 2
    expanded = form == "torch" and isinstance(value, mg.Tensor) and 0 in value.stride()  # is saved as what is in memory
    assert (os.path.getsize(tmp_path / "x") > LARGE * 0.9) is not expanded
    with open(os.devnull, "wb", buffering=0) as nowhere:
        assert peak(lambda: mg.save(value, nowhere, format=form)) < LARGE // 2


@pytest.mark.parametrize("wrap", [lambda x: x, Thing])
def test_loading_takes_no_second_copy(wrap: Any, tmp_path: Any) -> None:
    mg.save(wrap(mg.zeros(LARGE // 4)), tmp_path / "x")
    mg.load(tmp_path / "x", weights_only=False)
    assert peak(lambda: mg.load(tmp_path / "x", weights_only=False)) < LARGE * 1.5


# ------------------------------------------------------------------------------------------------------------ leftovers

KILLED = """
    import os, signal, sys, mutagrad as mg
    from mutagrad.files import streams

    def half(file, data):
        file.write(data[:len(data) // 2])
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    streams.write_all = half
    mg.save(mg.ones(100_000), sys.argv[1])
"""


def test_what_a_killed_saver_left_is_removed_by_the_next(tmp_path: Any) -> None:
    for name in ("x", "other"):
        mg.save(mg.zeros(3), tmp_path / name)
    for name in ("x", "other", "x"):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / name)], timeout=60)
        assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 4  # the third has removed what the first left
    (tmp_path / f".x-{0:016x}-{0:016x}.partial").touch()  # for another name that begins alike
    mg.save(mg.ones(3), tmp_path / "x")
    partial = sorted(name for name in os.listdir(tmp_path) if name.endswith(".partial"))
    assert [name[:7] for name in partial] == [".other-", ".x-0000"] and mg.load(tmp_path / "x").tolist() == [1, 1, 1]


def test_the_longest_name(tmp_path: Any) -> None:
    mg.save(mg.ones(3), tmp_path / ("x" * 255))
    assert mg.load(tmp_path / ("x" * 255)).shape == (3,)


def test_savers_of_one_name_leave_each_other_alone(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, arrived, go_on = streams.write_all, threading.Event(), threading.Event()

    def write(file: Any, data: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            arrived.set()
            assert go_on.wait(60)
        plain(file, data)

    monkeypatch.setattr(streams, "write_all", write)
    other = threading.Thread(target=mg.save, args=(mg.ones(3), tmp_path / "x"))
    other.start()
    assert arrived.wait(60)
    mg.save(mg.zeros(3), tmp_path / "x")
    assert mg.load(tmp_path / "x").tolist() == [0, 0, 0] and len(os.listdir(tmp_path)) == 2
    go_on.set()
    other.join()
    assert mg.load(tmp_path / "x").tolist() == [1, 1, 1] and os.listdir(tmp_path) == ["x"]


def test_a_file_taken_for_a_leftover_is_made_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another saver can see it in the moment before it is locked."""
    fcntl, taken = pytest.importorskip("fcntl"), []
    plain = fcntl.flock

    def flock(file: Any, how: int) -> None:
        if not taken:
            taken.extend(name for name in os.listdir(tmp_path) if name.endswith(".partial"))
            os.unlink(tmp_path / taken[0])
        plain(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    mg.save(mg.ones(2), tmp_path / "x")
    assert taken and mg.load(tmp_path / "x").tolist() == [1, 1] and os.listdir(tmp_path) == ["x"]


# ---------------------------------------------------------------------------------------------------------------- paths

DAMAGED = [b"", b"hello", b"PK", archive(b"cos\nsystem\n(tR"), archive(tensor(place="cuda")), b"\x80\x02N.",
           struct.pack("<Q", 5) + b"{", struct.pack("<Q", 11) + b'{"t": null}', archive(b"\x80")]


def test_errors_of_saving_name_the_path(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder")
    os.symlink("folder", "link")
    for path in ("link/none/x", Path("link/none/x")):
        with pytest.raises(FileNotFoundError) as missing:
            mg.save(mg.ones(1), path)
        assert missing.value.filename == "link/none/x" and str(missing.value).endswith("'link/none/x'")

    def full(*names: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", names[0], None, names[1])

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"No space left on device: 'link/x'$"):
        mg.save(mg.ones(1), "link/x")
    assert os.listdir("folder") == []


@pytest.mark.parametrize("data", DAMAGED)
def test_errors_of_loading_name_the_path(data: bytes, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").write_bytes(data)
    for path in ("x", Path("x"), Path("../") / tmp_path.name / "x"):
        for trusted in {None, data.startswith(b"\x80")}:
            with pytest.raises((BadFile, NotImplementedError), match=rf"^load: {path}: ") as found:
                mg.load(path, weights_only=None if not trusted else False)
            assert found.value.args == (found.value.what,) and found.value.what.count("load: ") == 1
    with open("x", "rb") as file, pytest.raises((BadFile, NotImplementedError), match=r"^load: x: "):
        mg.load(file)


def test_errors_of_the_disk_name_the_path(tmp_path: Any) -> None:
    broken = Broken(written({"x": mg.ones(100)}))
    broken.name = "x.pt"  # type: ignore[attr-defined]
    with pytest.raises(OSError, match=r"Input/output error: 'x.pt'"):
        mg.load(broken)
    (tmp_path / "x").write_bytes(b"hello")
    with pytest.raises(BadFile, match=r"^load: .*/x: "):
        mg.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x")


def test_a_pipe_can_be_read_and_written(tmp_path: Any) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=mg.save, args=(mg.arange(50_000), tmp_path / "pipe"))
    writer.start()
    found = mg.load(tmp_path / "pipe")
    writer.join()
    assert mg.equal(found, mg.arange(50_000))
