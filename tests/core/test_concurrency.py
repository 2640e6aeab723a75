"""Threads of the user's that share memory: writes on one while a sweep runs on another."""

import threading

import numpy as np

import mutagrad as mg


def test_writes_while_another_thread_sweeps():
    """A saved value that is being read by a rule on one thread is moved aside on another, and both get what is theirs."""
    rounds, n = 60, 50_000
    weights = mg.arange(1.0, n + 1, dtype=mg.float64)
    failures = []

    for _ in range(rounds):
        x = mg.ones(n, dtype=mg.float64, requires_grad=True)
        factors = [weights.clone() for _ in range(6)]
        y = x
        for f in factors:
            y = y * f.sqrt() * f / f
        ready = threading.Barrier(2)

        def sweep(y=y, x=x, ready=ready):
            try:
                ready.wait()
                y.sum().backward()
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=sweep)
        thread.start()
        ready.wait()
        for f in factors:
            f.mul_(-1)
            f[::2] = 7.0
        thread.join()
        assert not failures
        expected = weights.numpy() ** 3
        assert np.allclose(x.grad.numpy(), expected)


def test_values_saved_and_written_by_several_threads_over_one_memory():
    n, size = 4, 64
    buffer = mg.zeros(n, size)
    failures = []

    def work(k):
        try:
            for step in range(150):
                x = mg.full((size,), float(step + 1), requires_grad=True)
                buffer[k] = x.detach()
                row = buffer[k]
                y = x * row
                buffer[k] = -1.0
                y.sum().backward()
                assert x.grad.tolist() == [step + 1.0] * size
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
