"""One of many: positions, one-hot rows, draws, and values that take the gradient of others."""
from __future__ import annotations

import pytest

import mutagrad as mg
from mutagrad import relax
from tools import leaf, same

SCORES = mg.tensor([0.5, 2.0, -1.0])


def test_a_straight_through_value_is_exact_and_its_gradient_the_soft_ones() -> None:
    x = mg.rand(1000, requires_grad=True)
    hard, soft = (x > 0.5).float() * 0.1, (3 * x).sigmoid()
    out = relax.straight_through(hard, soft)
    assert mg.equal(out, hard) and out.requires_grad and not mg.equal(soft, hard)
    (out * mg.arange(1000.0)).sum().backward()
    through, x.grad = x.grad, None
    ((3 * x).sigmoid() * mg.arange(1000.0)).sum().backward()
    assert mg.equal(through, x.grad)


def test_straight_through_takes_integers_and_refuses_other_shapes() -> None:
    out = relax.straight_through(mg.tensor([1, 0]), mg.tensor([0.9, 0.2], dtype=mg.float64))
    assert out.dtype == mg.float64 and out.tolist() == [1, 0]
    with pytest.raises(RuntimeError, match=r"shapes \(1,\) and \(2,\) differ"):
        relax.straight_through(mg.ones(1), mg.ones(2))
    with pytest.raises(TypeError, match="expects a tensor"):
        relax.straight_through(1.0, mg.ones(2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expects a floating point tensor"):
        relax.straight_through(mg.ones(2), mg.tensor([1, 2]))


def test_straight_through_twice() -> None:
    x = leaf(0.3, 0.9, dtype=mg.float64)
    first = mg.autograd.grad((relax.straight_through(x.round(), x ** 3) * x).sum(), x, create_graph=True)[0]
    same(first, (x.round() + 3 * x ** 3).detach())
    same(mg.autograd.grad(first.sum(), x)[0], (3 * x ** 2 + 3 * x ** 2 + 6 * x ** 2).detach())


def test_a_hard_one_hot_row_is_hot_once() -> None:
    x = leaf(1.0, 1.0, 0.0)
    out = relax.one_hot(x, hard=True, temperature=0.5)
    assert out.tolist() == [1, 0, 0]
    (out * mg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad[0] < 0 < x.grad[1]


def test_a_masked_score_is_never_chosen() -> None:
    x = leaf(1.0, float("-inf"), 2.0)
    relax.argmax(x, temperature=0.5).backward()
    assert x.grad[1] == 0 and x.grad.isfinite().all() and relax.one_hot(x)[1] == 0


def test_equal_peaks_give_the_mean_position() -> None:
    assert relax.argmax(mg.tensor([5.0, 0.0, 0.0, 5.0]), temperature=1e-3).item() == 1.5


def test_coordinates_of_a_peak_between_the_pixels() -> None:
    rows, columns = mg.arange(9.0)[:, None], mg.arange(12.0)
    at = leaf(3.3, 6.8)
    image = -((rows - at[0]) ** 2 + (columns - at[1]) ** 2)
    found = relax.argmax(mg.stack([image, image.roll(1, 0)]), (1, 2))
    same(found, [[3.3, 6.8], [4.3, 6.8]], 1e-2)
    found[0, 0].backward()
    same(at.grad, [1, 0], 3e-2)


def test_shapes_of_positions() -> None:
    x = mg.rand(2, 3, 4)
    assert relax.argmax(x).shape == () and relax.argmax(x, (0, 2)).shape == (3, 2) and relax.argmax(x, (2, 0), True).shape == (1, 3, 1, 2)
    assert relax.argmax(x, 1, True).shape == (2, 1, 4) and relax.argmin(x, (1,)).shape == (2, 4, 1) and relax.argmax(x, None, True).shape == (1, 1, 1)
    assert mg.allclose(relax.argmax(x, (2, 0)), relax.argmax(x, (0, 2)).flip(-1))


def test_draws_come_up_as_often_as_they_should() -> None:
    mg.manual_seed(0)
    logits = SCORES.expand(20000, 3)
    drawn = relax.gumbel_softmax(logits, hard=True, temperature=0.3)
    assert mg.equal(drawn.sum(1), mg.ones(20000)) and bool(((drawn == 0) | (drawn == 1)).all())
    same(drawn.mean(0), SCORES.softmax(0), 0.02)
    bits = relax.bernoulli(logits, hard=True, temperature=0.3)
    assert bool(((bits == 0) | (bits == 1)).all())
    same(bits.mean(0), SCORES.sigmoid(), 0.02)


def test_a_draw_follows_its_generator_and_its_dim() -> None:
    x = mg.zeros(3, 5)
    for draw in (relax.gumbel_softmax, relax.bernoulli):
        a, b, c = (draw(x, generator=mg.Generator().manual_seed(s)) for s in (1, 1, 2))  # type: ignore[operator]
        assert mg.equal(a, b) and not mg.equal(a, c)
    same(relax.gumbel_softmax(x, 0).sum(0), mg.ones(5)), same(relax.gumbel_softmax(x, 1).sum(1), mg.ones(3))


def test_a_draw_is_pytorchs() -> None:
    x = mg.randn(4, 3)
    mine, known = relax.gumbel_softmax(x, 0, temperature=0.7, generator=mg.Generator().manual_seed(5)), mg.nn.functional.gumbel_softmax(x, 0.7, dim=0, generator=mg.Generator().manual_seed(5))
    same(mine, known, 1e-5)


def test_a_draw_is_pulled_towards_what_pays() -> None:
    mg.manual_seed(0)
    logits = mg.zeros(3, requires_grad=True)
    optimizer, pay = mg.optim.Adam([logits], 0.1), mg.tensor([0.0, 1.0, 0.2])
    for _ in range(200):
        optimizer.zero_grad()
        (-relax.gumbel_softmax(logits.expand(16, 3), hard=True, temperature=0.5) @ pay).mean().backward()
        optimizer.step()
    assert logits.softmax(0)[1] > 0.9
