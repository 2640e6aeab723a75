"""Cost by counting, not by clock: what a sweep does must grow with what the program touched, and with nothing else."""
import gc
import math
import sys
import tracemalloc
import weakref

import pytest

import mutagrad as mg
from mutagrad.core.evidence import SWEEPS
from mutagrad.utils.checkpoint import checkpoint


def cost(program, n):
    """What building, sweeping and protecting cost, for a program of size n."""
    before = mg.stats()
    program(n)
    return mg.stats() - before


def grows_linearly(program, sizes=(200, 400, 800)):
    """Each count is an affine function of n: second differences vanish (up to what is constant in n)."""
    small, middle, large = (cost(program, n) for n in sizes)
    for name, a, b, c in zip(small._fields, small, middle, large):
        slope = (b - a) / (sizes[1] - sizes[0])
        assert c <= b + slope * (sizes[2] - sizes[1]) * 1.01 + 64, f"{name}: {a}, {b}, {c} for n = {sizes}"
    return small, middle, large


def element_writes(n):
    x = mg.ones(n, requires_grad=True)
    y = x.clone()
    for i in range(1, n):
        y[i] = y[i] * 0.5 + y[i - 1]
    y.sum().backward()


def writes_from_names(n):
    x = mg.ones(n, requires_grad=True)
    y = x.clone()
    for i in range(n):
        value = y[i] * 2
        y[i] = value
    y.sum().backward()


def constant_writes(n):
    x = mg.ones(n, requires_grad=True)
    y = x * 2
    for i in range(n):
        y[i] = 1.0
    y.sum().backward()


def writes_of_a_mask(n):
    x = mg.ones(n, requires_grad=True)
    y = x * 2
    for i in range(0, n - 1, 2):
        y[[i, i + 1]] = y[[i + 1, i]]
    y.sum().backward()


def writes_into_a_leaf(n):
    x = mg.ones(n, requires_grad=True)
    for i in range(1, n):
        x[i] += x[i - 1]
    x.sum().backward()


def a_leaf_and_the_whole_written_in_turn(n):
    flat = mg.ones(2 * n)
    leaf, factor = flat[:n].requires_grad_(), mg.tensor(1.5, requires_grad=True)
    for i in range(n):
        leaf[i].mul_(factor)
        flat[n + i].add_(leaf[i])
    flat.sum().backward()


def writes_for_all_slices(n):
    def f(x):
        y = mg.zeros(n)
        for i in range(1, n):
            y[i] = y[i - 1] * 0.5 + x
        return y.sum()

    mg.func.vmap(mg.func.grad(f))(mg.ones(3))


def element_reads(n):
    x = mg.ones(n, requires_grad=True)
    s = mg.zeros(())
    for i in range(n):
        s = s + x[i]
    s.backward()


def reads_only_of_what_was_written(n):
    x = mg.ones(n, requires_grad=True)
    y, s = mg.zeros(n), mg.zeros(())
    for i in range(n):
        y[i] = x[i] * 2
        s = s + y[i]
    s.backward()


def table_by_cells(n):
    x = mg.ones(n, requires_grad=True)
    table = mg.zeros(n, 2)
    for i in range(1, n):
        table[i, 0] = table[i - 1, 1] + x[i]
        table[i, 1] = mg.maximum(table[i - 1, 0], table[i, 0])
    table[-1, -1].backward()


def recurrence_over_rows(n):
    w = mg.eye(50, requires_grad=True)
    h = mg.zeros(n, 50)
    h[0] = 1.0
    for t in range(1, n):
        h[t] = mg.tanh(h[t - 1] @ w)
    h.sum().backward()


def views_alive_and_written(n):
    x = mg.ones(n, requires_grad=True)
    y = x * 2
    views = [y[i] for i in range(n)]
    for view in views:
        view.mul_(0.5)
    y.sum().backward()


def a_chain_of_nodes(n):
    x = mg.ones(2, requires_grad=True)
    y = x
    for _ in range(n):
        y = y + 1.0
    y.sum().backward()


def regions(n, call, shape=(50,)):
    x = mg.ones(n, *shape, requires_grad=True)
    total = mg.zeros(())
    for i in range(n):
        total = total + call(x, i)
    total.backward()
    assert x.grad.numel() == x.numel()


def checkpointed_rows(n):
    regions(n, lambda x, i: checkpoint(lambda row: (row * row).sum(), x[i]))


def checkpointed_columns(n):
    x = mg.ones(40, n, requires_grad=True)
    sum(checkpoint(lambda column: (column * column).sum(), x[:, i]) for i in range(n)).backward()


def checkpointed_rows_from_elsewhere(n):
    regions(n, lambda x, i: checkpoint(lambda: (x[i] * x[i]).sum()))


def checkpointed_picks(n):
    regions(n, lambda x, i: checkpoint(lambda: x[[i]].exp().sum()))


def checkpointed_elements(n):
    regions(n, lambda x, i: checkpoint(lambda: x[i] * x[i]), ())


def checkpointed_rows_with_hooks(n):
    def region(row):
        square = row * row
        square.register_hook(lambda g: g * 2)
        return square.sum()

    def call(x, i):
        result = checkpoint(region, x[i])
        result.register_hook(lambda g: g * 3)
        return result

    regions(n, call)


def checkpointed_writes(n):
    x, h = mg.ones(n, 50, requires_grad=True), mg.zeros(n, 50)
    for i in range(n):
        h[i] = checkpoint(lambda row: row.sin() * row, x[i])
    h.sum().backward()


CHECKPOINTS = [checkpointed_rows, checkpointed_columns, checkpointed_rows_from_elsewhere, checkpointed_picks,
               checkpointed_elements, checkpointed_rows_with_hooks, checkpointed_writes]


@pytest.mark.parametrize("program", CHECKPOINTS, ids=lambda p: p.__name__)
def test_checkpoints_are_linear(program):
    grows_linearly(program, (100, 200, 400))


@pytest.mark.parametrize("program", [element_writes, a_leaf_and_the_whole_written_in_turn, writes_for_all_slices, writes_from_names, constant_writes, writes_of_a_mask, writes_into_a_leaf, element_reads,
                                     reads_only_of_what_was_written, table_by_cells, recurrence_over_rows, views_alive_and_written, a_chain_of_nodes], ids=lambda p: p.__name__)
def test_linear(program):
    grows_linearly(program)


@pytest.mark.parametrize("program, most", [(views_alive_and_written, 1000), (element_writes, 1000), (a_chain_of_nodes, 300)], ids=["views", "writes", "nodes"])
def test_memory_is_linear(program, most):
    """The most that is held at a time, in bytes for each view, write or node; benchmarks/scale.py measures it at full size."""
    def peak(n):
        gc.collect()
        tracemalloc.start()
        try:
            program(n)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    program(10)
    small, large = peak(1000) / 1000, peak(4000) / 4000
    assert large <= min(1.3 * small, most)


# What is asked of one row among many. Each row has more than 32 elements: smaller values are saved by copy.


def a_hook_on_each_row(n):
    x = mg.ones(n, 40, requires_grad=True)
    y = x * 2
    for i in range(n):
        y[i].register_hook(lambda g: g * 2)
    y.sum().backward()


def double_in_place(g):
    g.mul_(2)


def a_hook_on_each_row_of_a_leaf(n):
    x = mg.ones(n, 40, requires_grad=True)
    for i in range(n):
        x[i].register_hook(double_in_place)
    (x * x).sum().backward()


def retain_grad_of_each_row(n):
    x = mg.ones(n, 40, requires_grad=True)
    y = x * 2
    rows = [y[i] for i in range(n)]
    for row in rows:
        row.retain_grad()
    y.sum().backward()


def retain_grad_of_each_row_as_it_is_written(n):
    x, h, rows = mg.ones(n, 40, requires_grad=True), mg.zeros(n, 40), []
    for i in range(n):
        h[i] = x[i] * 2
        rows.append(h[i])
        rows[-1].retain_grad()
    h.sum().backward()


def hooks_added_and_removed(n):
    x = mg.ones(n, 40, requires_grad=True)
    y = x * 2
    for handle in [y[i].register_hook(lambda g: g) for i in range(n)]:
        handle.remove()
    y.sum().backward()


def grad_of_each_chunk(n):
    x = mg.ones(n, 40, requires_grad=True)
    mg.autograd.grad((x * x).sum(), x.chunk(n))


def grad_of_each_chunk_with_graph(n):
    x = mg.ones(n, 40, requires_grad=True)
    mg.autograd.grad((x * x).sum(), x.chunk(n), create_graph=True)


def backward_to_each_row(n):
    x = mg.ones(n, 40, requires_grad=True)
    y = x * 2
    (y * y).sum().backward(inputs=list(y))


def leaves_that_are_rows_of_one_buffer(n):
    flat = mg.ones(n, 40)
    leaves = [flat[i].requires_grad_() for i in range(n)]
    sum((p * p).sum() for p in leaves).backward()


def leaves_that_are_written_and_updated(n):
    flat = mg.ones(n, 40)
    leaves = [flat[i].requires_grad_() for i in range(n)]
    for p in leaves:
        p[0] = p[1] * 2
    sum((p[:20] * p[20:]).sum() for p in leaves).backward()
    with mg.no_grad():
        for p in leaves:
            p.sub_(p.grad)


def leaves_that_are_columns_of_one_buffer(n):
    flat = mg.ones(40, n)
    leaves = [flat[:, i].requires_grad_() for i in range(n)]
    sum((p * p).sum() for p in leaves).backward()


def parameters_over_a_vector(n):
    parameters = [mg.nn.Parameter(mg.zeros(40)) for _ in range(n)]
    mg.nn.utils.vector_to_parameters(mg.ones(40 * n), parameters)
    sum((p * p).sum() for p in parameters).backward()


def a_loop_over_columns(n):
    x = mg.ones(40, n, requires_grad=True)
    y = x.clone()
    for j in range(1, n):
        y[:, j] = y[:, j] * y[:, j - 1]
    y.sum().backward()


def a_loop_over_columns_of_a_vector(n):
    x = mg.ones(40 * n, requires_grad=True)
    y = x.clone().view(40, n)
    for j in range(1, n):
        y[:, j] = y[:, j] * y[:, j - 1]
        y[:, j].mul_(2)
    y.sum().backward()


def a_loop_over_the_middle_dimension(n):
    x = mg.ones(3, n, 20, requires_grad=True)
    y = x.clone()
    for j in range(1, n):
        y[:, j] = y[:, j] * y[:, j - 1]
    y.sum().backward()


def a_function_of_each_row(n):
    class Square(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return 2 * g * x

    x = mg.ones(n, 40, requires_grad=True)
    sum(Square.apply(x[i]).sum() for i in range(n)).backward()


@pytest.mark.parametrize("program", [
    a_hook_on_each_row, a_hook_on_each_row_of_a_leaf, retain_grad_of_each_row, retain_grad_of_each_row_as_it_is_written, hooks_added_and_removed,
    grad_of_each_chunk, grad_of_each_chunk_with_graph, backward_to_each_row, leaves_that_are_rows_of_one_buffer, leaves_that_are_written_and_updated,
    leaves_that_are_columns_of_one_buffer, parameters_over_a_vector, a_loop_over_columns, a_loop_over_columns_of_a_vector, a_loop_over_the_middle_dimension,
    a_function_of_each_row], ids=lambda p: p.__name__)
def test_rows_and_columns_are_linear(program):
    grows_linearly(program, (50, 100, 200))


@pytest.mark.parametrize("program", [a_hook_on_each_row, hooks_added_and_removed, retain_grad_of_each_row], ids=lambda p: p.__name__)
def test_hooks_take_calls_in_proportion_to_their_number(program):
    """What happens in Python, counted as calls of functions and steps of loops."""
    def calls(n):
        count = 0

        def counting(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(counting)
        try:
            program(n)
        finally:
            sys.setprofile(None)
        return count

    program(10)
    small, middle, large = calls(50), calls(100), calls(200)
    assert large - middle <= 2.1 * (middle - small)


def test_second_order_is_linear():
    """In double backward newer nodes read older versions; each must not get a buffer of its own."""
    def twice(n):
        x = mg.full((n,), 0.1, requires_grad=True)
        y = x.clone()
        for i in range(1, n):
            y[i] = mg.sin(y[i]) * y[i - 1]
        g, = mg.autograd.grad(y.sum(), x, create_graph=True)
        (g * g).sum().backward()

    grows_linearly(twice, (100, 200, 400))


def test_a_buffer_is_not_copied_down_a_chain_of_writes():
    n = 500
    assert cost(element_writes, n).allocated <= 3 * 4 * n  # float32; a few whole buffers, not one a write


def test_a_kv_cache_copies_nothing():
    """K[:t+1] is saved at every step and K[t+1] written at the next: no write meets a saved value."""
    steps, width = 60, 64
    keys, values, queries = (mg.randn(steps, width, requires_grad=True) for _ in range(3))
    cache_k, cache_v, outs = mg.zeros(steps, width), mg.zeros(steps, width), []
    before = mg.stats()
    for t in range(steps):
        cache_k[t], cache_v[t] = keys[t], values[t]
        attention = mg.softmax(queries[t] @ cache_k[: t + 1].T, 0)
        outs.append(attention @ cache_v[: t + 1])
    mg.stack(outs).sum().backward()
    assert (mg.stats() - before).protected == 0
    assert keys.grad.abs().sum() > 0 and values.grad.abs().sum() > 0


def test_protection_copies_at_most_what_was_read():
    x = mg.ones(1000, requires_grad=True)
    y, w = x * 1, mg.ones(1000)
    before = mg.stats()
    for _ in range(20):
        z = y * w  # reads y and w: 8,000 bytes, of which w's rule needs nothing and y's needs w
        w += 1
        y = z
    assert 0 < (mg.stats() - before).protected <= 20 * 4000
    y.sum().backward()
    assert x.grad[0].item() == pytest.approx(math.factorial(20), rel=1e-5)


def test_writes_beside_saved_windows_copy_nothing():
    x = mg.ones(100, 64, requires_grad=True).clone()
    before = mg.stats()
    squares = [(x[i] * x[i]).sum() for i in range(0, 100, 2)]
    columns = x[:, 1::2]
    for i in range(1, 100, 2):
        x[i] = 0.0
    assert (mg.stats() - before).protected == 0
    del squares, columns


def test_interleaved_columns_do_not_overlap():
    x = mg.ones(64, 64, requires_grad=True).clone()
    before = mg.stats()
    s = (x[:, 0::2] ** 3).sum()
    x[:, 1::2] = 0.0
    assert (mg.stats() - before).protected == 0
    x[:, 2] = 0.0
    assert (mg.stats() - before).protected == 64 * 32 * 4
    s.backward()


def test_a_reused_buffer_forgets_its_past():
    x = mg.ones(10, requires_grad=True)
    buffer = mg.zeros(10)
    for _ in range(1000):
        buffer.copy_(x * 2)
        buffer.mul_(buffer)
    before = mg.stats()
    buffer.sum().backward()
    assert (mg.stats() - before).nodes <= 6
    assert x.grad.tolist() == [8.0] * 10


def test_a_reused_buffer_frees_its_past():
    x = mg.ones(10, requires_grad=True)
    buffer = mg.zeros(10)
    buffer.copy_(x * 2)
    first = weakref.ref(buffer._storage.writer)
    buffer[...] = x * 3
    assert first() is None


def test_the_cycle_collector_has_one_object_for_each_write():
    n = 1000
    x = mg.ones(n, requires_grad=True)
    y = x.clone()
    gc.collect()
    before = len(gc.get_objects())
    for i in range(1, n):
        y[i] = y[i] * x[i] + y[i - 1]  # two nodes: the sum is the write
    gc.collect()
    assert len(gc.get_objects()) - before <= 2 * n + 50


def test_a_million_nodes():
    x = mg.ones(2, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    del y


def test_nothing_is_kept_alive():
    gc.collect()
    gc.disable()
    try:
        x = mg.ones(100, requires_grad=True)
        y = x * 2
        y[3] = (y[1:4] * x[:3]).sum()
        z = mg.sin(y).sum()
        z.backward(retain_graph=True)
        g, = mg.autograd.grad(z, x, create_graph=True)
        g.sum().backward()
        alive = [weakref.ref(t) for t in (y, z, g, y._storage.writer, z._storage.writer, g._storage.writer)]
        x.grad = None
        del y, z, g
        SWEEPS.clear()  # the latest few, if small, are remembered for `why`
        assert [r() for r in alive] == [None] * len(alive)
    finally:
        gc.enable()


def test_steps_of_training_do_not_grow():
    w = mg.randn(64, 64, requires_grad=True)
    x = mg.randn(32, 64)

    def step():
        h = mg.tanh(x @ w)
        h[:, 0] = 0.0
        (h * h).mean().backward()
        with mg.no_grad():
            w.sub_(w.grad * 0.1)
        w.grad = None

    tracemalloc.start()
    for _ in range(20):
        step()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(200):
        step()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000


def test_a_leaf_that_is_saved_again_and_again_is_copied_once():
    x, w = mg.ones(5, requires_grad=True), mg.full((5,), 2.0, requires_grad=True)
    a, b = x * w, x * x * w
    assert a.grad_fn.saved[0] is b.grad_fn.saved[0]
    with mg.no_grad():
        w += 1
    c = x * w
    w.detach().numpy()[:] = 7.0  # NumPy's writes are not seen: from now on every save is a copy of its own
    d, e = x * w, x * w
    assert d.grad_fn.saved[0] is not e.grad_fn.saved[0]
    (a + c * 10 + d * 100).sum().backward()
    assert x.grad.tolist() == [2 + 30 + 700] * 5


@pytest.mark.parametrize("parts", [
    lambda y, i: (y[i, ::2], y[i, 1::2]), lambda y, i: (y[i].view(40, 2)[:, 0], y[i].view(40, 2)[:, 1]), lambda y, i: (y[i, :40], y[i, 40:]),
    lambda y, i: (y[i, :40].flip(0), y[i, 40:])], ids=["stepped", "columns of a row", "halves", "copied"])
def test_one_part_of_each_row_is_saved_and_the_other_written(parts):
    def program(n):
        y, kept = mg.ones(n, 80, requires_grad=True) * 1, []
        for i in range(n):
            saved, written = parts(y, i)
            kept.append(saved.sin())
            written.zero_()

    grows_linearly(program)


@pytest.mark.parametrize("part", [lambda w, i: w[:, i], lambda w, i: w[i], lambda w, i: w[i, ::2], lambda w, i: w[i].view(8, 10).t()],
                         ids=["columns", "rows", "stepped rows", "transposed"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_leaves_that_are_parts_of_one_buffer_and_written(part, create_graph):
    def program(n):
        w = mg.zeros(80, n).t().contiguous() if part(mg.zeros(80, 80), 0).stride(0) < 80 else mg.zeros(80, n)
        leaves = [part(w, i).requires_grad_() for i in range(n)]
        for leaf in leaves:
            leaf.mul_(2)
        w.sum().backward(create_graph=create_graph)
        assert leaves[-1].grad.flatten()[0] == 2

    grows_linearly(program, (100, 200, 400))


def test_grad_hands_over_what_the_sweep_has_made() -> None:
    x, y = mg.ones(100, 100, requires_grad=True), mg.rand(100, 100)
    before = mg.stats()
    found, = mg.autograd.grad((x * y).sum(), x)
    assert (mg.stats() - before).allocated == 0 and bool((found == y).all())


def test_what_grad_hands_over_is_nobody_elses() -> None:
    x, seed, seen = mg.ones(100, 100, requires_grad=True), mg.ones(100, 100), []
    y = x.exp()
    y.register_hook(seen.append)
    for_y, for_x, again = mg.autograd.grad(y * 1, [y, x, x], seed)
    for_y.zero_(), for_x.zero_()
    assert seed.sum() == seen[0].sum() == 10_000 and again.sum() > 10_000
