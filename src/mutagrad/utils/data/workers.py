"""Processes that prepare batches ahead of time.

Each worker has a pipe of its own, and batch after batch is asked of the next worker in turn. So the order of results is
known beforehand, results need not be sorted, and a worker that is killed can leave no lock behind that others wait for.
Whoever waits for a result waits for the end of that process as well.
"""
from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import queue
import random as python_random
import signal
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from ...arrays import np
from ...arrays.threads import set_num_threads
from ...base.errors import CannotPickle, WorkerError
from ...ops.random.generator import manual_seed
from ...tensors.copying import attributes_of
from ...tensors.tensor import Tensor
from .fetch import Recipe

PATIENCE = 5.0  # seconds: between looks at whether the other side lives, and before a process that should end is killed
RESTART, STOP = "restart", "stop"


# ---------------------------------------------------------------------------------------------------------- in a worker

class WorkerInfo(NamedTuple):
    """Which worker this is: its number, how many there are, the seed of its random numbers, its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return what is known of the worker that asks; None in the main process.

    >>> import mutagrad as mg
    >>> mg.utils.data.get_worker_info() is None
    True
    """
    return _info


class Failure(NamedTuple):
    """An exception on its way to the main process."""

    error: BaseException | None
    kind: type[BaseException] | None
    message: str
    trace: str

    def raised(self) -> BaseException:
        """Return the exception as it was, or another of its class with its message, or one that names the class."""
        error = self.error
        if error is None and self.kind is not None:
            error = self.kind.__new__(self.kind)
            error.args = (self.message,)
        error = error or WorkerError(self.message)
        error.__cause__ = RuntimeError(self.trace)
        return error


class Ended(NamedTuple):
    """A worker's stream has no more samples."""


class _Pickler(ForkingPickler):
    """A tensor that is a small part of its storage travels without the rest."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and obj.is_leaf and obj._array.nbytes < obj._storage.buffer.nbytes:
            alone = obj.detach().clone().as_subclass(type(obj)).requires_grad_(obj.requires_grad)
            return *alone.__reduce_ex__(2)[:2], attributes_of(obj)
        return NotImplemented


def _pickled(value: Any) -> bytes:
    target = io.BytesIO()
    _Pickler(target, pickle.HIGHEST_PROTOCOL).dump(value)
    return target.getvalue()


def _sent(batch: Any, number: int) -> bytes:
    try:
        return _pickled(batch)
    except Exception as error:  # of whatever class, in the words of this or that Python
        raise CannotPickle(f"DataLoader: what worker {number} fetched, {type(batch).__name__}, cannot be pickled: "
                           f"{error}", why="it goes to the main process through a pipe",
                           fix="return tensors and plain data, or num_workers=0") from error


def _failure(error: BaseException, number: int) -> bytes:
    """The most faithful form of an exception that survives the journey."""
    name = type(error).__name__
    trace = f"Caught {name} in DataLoader worker process {number}.\nOriginal {traceback.format_exc()}"
    for form in (Failure(error, None, str(error), trace), Failure(None, type(error), str(error), trace)):
        try:
            data = _pickled(form)
            pickle.loads(data)
            return data
        except Exception:  # any class can fail in any way to be pickled
            continue
    return _pickled(Failure(None, None, f"{name} in DataLoader worker process {number}: {error}", trace))


def work(recipe: Recipe, connection: Connection, number: int, count: int, base_seed: int,
         init: Callable[[int], None] | None) -> None:
    """Run in a worker: receive indices, send batches."""
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal: the main one ends others
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that `finally` and atexit run
    set_num_threads(1)
    _seed(base_seed, number)
    _info = WorkerInfo(number, count, base_seed + number, recipe.dataset)
    send, parent = _sender(connection), (os.getppid(), multiprocessing.parent_process())
    fetch = _prepare(recipe, number, init)
    while (task := _receive(connection, parent)) != STOP:
        if task != RESTART:
            send(_answer(recipe, number, fetch, task[0]))
        elif not isinstance(fetch, Broken):
            fetch = _prepare(recipe, number, None)


class Broken(NamedTuple):
    """Stands for the fetching function where making one failed: every batch that is asked for fails likewise."""

    error: Exception

    def __call__(self, task: Any) -> Any:
        raise self.error


def _prepare(recipe: Recipe, number: int, init: Callable[[int], None] | None) -> Any:
    try:
        if init is not None:
            init(number)
        return recipe.fetcher()
    except Exception as error:
        return Broken(error)


def _answer(recipe: Recipe, number: int, fetch: Callable[[Any], Any], task: Any) -> bytes:
    try:
        return _sent(fetch(task), number)
    except StopIteration as error:
        return _pickled(Ended()) if recipe.streams else _failure(error, number)
    except Exception as error:
        return _failure(error, number)


def _seed(base_seed: int, number: int) -> None:
    """Different random numbers in each worker, the same each time that the loader's seed is the same."""
    manual_seed(base_seed + number)
    python_random.seed(base_seed + number)
    np.random.seed(_generate_state(base_seed, number))


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return the seed of NumPy's random numbers in a worker: PyTorch's, which is NumPy's own mixture of these words."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()  # type: ignore[no-any-return]


def _sender(connection: Connection) -> Callable[[bytes], None]:
    """Hands results to a thread that writes them to the pipe: a full one must not keep a worker from its next batch."""
    results: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def deliver() -> None:
        try:
            while True:
                connection.send_bytes(results.get())
        except (BrokenPipeError, OSError):
            os._exit(0)  # nobody reads any more

    threading.Thread(target=deliver, daemon=True).start()
    return results.put


def _receive(connection: Connection, parent: tuple[int, Any]) -> Any:
    """The next task, or STOP when the main process is gone.

    The pipe does not tell, as other workers may still hold its other end.
    """
    try:
        while not connection.poll(PATIENCE):
            if os.getppid() != parent[0] or not parent[1].is_alive():
                return STOP
        return connection.recv()
    except (EOFError, OSError):
        return STOP


# -------------------------------------------------------------------------------------------------- in the main process

class Worker(NamedTuple):
    """The main process's side of a worker. `waiting` holds a mark for each batch that it still owes."""

    process: Any
    connection: Connection
    waiting: list[None]


class Pool:
    """An iterator over batches that workers make."""

    persistent = False

    def __init__(self, recipe: Recipe, indices: Any, seed: int, count: int, prefetch: int, timeout: float,
                 init: Callable[[int], None] | None, context: Any) -> None:
        self._timeout, self._prefetch = timeout, prefetch
        self._workers: list[Worker] = []
        self._close = weakref.finalize(self, end, self._workers, os.getpid())
        try:
            for number in range(count):
                self._workers.append(_start(context, recipe, number, count, seed, init))
        except BaseException:
            self._close()
            raise
        self._begin(indices)

    def restart(self, indices: Any) -> None:
        """Begin another pass over the data with the same workers; what is left of the last one is thrown away."""
        if not self._close.alive:
            raise WorkerError("DataLoader: its workers have ended after a failure", fix="make a new DataLoader")
        while self._owing:
            self._result()
        for worker in self._workers:
            _tell(worker, RESTART)
        self._begin(indices)

    def _begin(self, indices: Any) -> None:
        self._all, self._indices, self._active = indices, iter(indices), deque(range(len(self._workers)))
        self._owing: deque[int] = deque()  # the workers that owe a batch, in the order in which the batches are wanted
        for _ in range(self._prefetch * len(self._workers)):
            self._ask()

    def _ask(self) -> None:
        """Asks the next worker in turn for the next batch."""
        if not self._active:
            return
        try:
            task = next(self._indices)
        except StopIteration:
            return
        number = self._active[0]
        self._active.rotate(-1)
        self._owing.append(number)
        self._workers[number].waiting.append(None)
        _tell(self._workers[number], (task,))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._all)

    def __next__(self) -> Any:
        while self._owing:
            number = self._owing[0]
            found = self._result()
            if isinstance(found, Ended) and number in self._active:
                self._active.remove(number)
            self._ask()
            if isinstance(found, Failure):
                raise found.raised()
            if not isinstance(found, Ended):
                return found
        if not self.persistent:
            self._close()
        raise StopIteration

    def _result(self) -> Any:
        """What the worker sends whose turn it is. If it does not, or the user interrupts, all workers end."""
        number = self._owing[0]
        try:
            data = _wait_for(self._workers[number], number, self._timeout)
        except BaseException:
            self._owing.clear()
            self._close()
            raise
        self._owing.popleft()
        self._workers[number].waiting.pop()
        return pickle.loads(data)


def _start(context: Any, recipe: Recipe, number: int, count: int, seed: int,
           init: Callable[[int], None] | None) -> Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(recipe, theirs, number, count, seed, init), daemon=True,
                              name=f"DataLoader worker {number}")
    try:
        process.start()
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()  # so that the pipe ends with the worker
    return Worker(process, ours, [])


def _tell(worker: Worker, task: Any) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # of a dead one, which is reported when its result is due
        worker.connection.send(task)


def _wait_for(worker: Worker, number: int, timeout: float) -> bytes:
    deadline = time.monotonic() + timeout if timeout else None
    while True:
        patience = PATIENCE if deadline is None else max(min(PATIENCE, deadline - time.monotonic()), 0)
        ready = wait([worker.connection, worker.process.sentinel], patience)
        if worker.connection in ready:
            try:
                return worker.connection.recv_bytes()
            except (EOFError, OSError):  # it died before, or while, it sent
                raise _died(worker, number) from None
        if ready or not worker.process.is_alive():
            raise _died(worker, number)
        if deadline is not None and time.monotonic() >= deadline:
            raise WorkerError(f"DataLoader timed out after {timeout} seconds",
                              why=f"worker {number} (pid {worker.process.pid}) has not sent its batch",
                              fix="a larger timeout, or a dataset that is quicker")


def _died(worker: Worker, number: int) -> WorkerError:
    worker.process.join(PATIENCE)
    code = worker.process.exitcode
    killed = code is not None and code < 0
    how = f"was killed by signal {signal.Signals(-code).name}" if killed else f"exited with code {code}"
    return WorkerError(f"DataLoader worker {number} (pid(s) {worker.process.pid}) exited unexpectedly: it {how}",
                       why="a process that is killed for lack of memory ends so, or one that crashes in a library",
                       fix="num_workers=0 shows what happens in this process")


def end(workers: list[Worker], owner: int) -> None:
    """End processes: an idle one is told to stop, one that works is terminated, one that does not react is killed."""
    if os.getpid() != owner:  # a forked process that has a copy of the iterator
        return
    for worker in workers:
        if worker.waiting:
            worker.process.terminate()
        else:
            _tell(worker, STOP)
    deadline = time.monotonic() + PATIENCE
    for worker in workers:
        worker.process.join(max(deadline - time.monotonic(), 0))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.connection.close()
        worker.process.close()
    workers.clear()
