"""Results that come later: of callbacks and of other threads.

>>> from mutagrad.futures import Future
>>> future = Future()
>>> doubled = future.then(lambda f: 2 * f.value())
>>> future.set_result(3)
>>> doubled.wait()
6
"""
from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """One result, or one exception, that is there when somebody sets it.

    >>> import mutagrad as mg
    >>> future = mg.futures.Future()
    >>> future.set_result(3)
    >>> future.wait()
    3
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Return whether there is a result or an exception.

        >>> import mutagrad as mg
        >>> future = mg.futures.Future()
        >>> future.done()
        False
        """
        return self._future.done()

    def wait(self) -> T:
        """Return the result as soon as it is there; raise the exception if there is one instead.

        >>> import mutagrad as mg
        >>> future = mg.futures.Future()
        >>> future.set_result(3)
        >>> future.wait()
        3
        """
        return self._future.result()

    def value(self) -> T:
        """Return the result, which must be there.

        >>> import mutagrad as mg
        >>> future = mg.futures.Future()
        >>> future.set_result(3)
        >>> future.value()
        3
        """
        return self._future.result(timeout=0)

    def set_result(self, result: T) -> None:
        """Set the result, and call what waits for it.

        >>> import mutagrad as mg
        >>> future = mg.futures.Future()
        >>> future.set_result(3)
        >>> future.value()
        3
        """
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set an exception, which `wait` raises.

        >>> import mutagrad as mg
        >>> future = mg.futures.Future()
        >>> future.set_exception(ValueError("no"))
        >>> future.done()
        True
        """
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Call with this future once it is done, at once if it is.

        >>> import mutagrad as mg
        >>> future = mg.futures.Future()
        >>> future.add_done_callback(lambda done: print(done.value()))
        >>> future.set_result(3)
        3
        """
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """Return a future of what the callback returns.

        >>> import mutagrad as mg
        >>> future = mg.futures.Future()
        >>> doubled = future.then(lambda done: 2 * done.value())
        >>> future.set_result(3)
        >>> doubled.wait()
        6
        """
        following: Future[Any] = Future()

        def finish(done: Future[T]) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(finish)
        return following


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future of the list itself, done when all are.

    >>> import mutagrad as mg
    >>> a, b = mg.futures.Future(), mg.futures.Future()
    >>> both = mg.futures.collect_all([a, b])
    >>> a.set_result(1)
    >>> b.set_result(2)
    >>> [done.value() for done in both.wait()]
    [1, 2]
    """
    all_of: Future[list[Future[Any]]] = Future()
    waiting = list(futures)

    def count(done: Future[Any]) -> None:
        waiting.pop()
        if not waiting:
            all_of.set_result(list(futures))

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        all_of.set_result([])
    return all_of


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Return the results of all, in their order.

    >>> import mutagrad as mg
    >>> a = mg.futures.Future()
    >>> a.set_result(1)
    >>> mg.futures.wait_all([a])
    [1]
    """
    return [future.wait() for future in futures]
