"""Learn to balance a pole on a cart with REINFORCE, many carts at a time.

    python examples/training/policy_gradient.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]

The carts move by the equations of Barto, Sutton and Anderson (1983). An episode ends when the pole leans over by 12
degrees, when the cart leaves the track, or after 200 steps; its return is how long it lasted.
"""
import math

from common import compiled, finish, options, save_plot

import mutagrad as mg
from mutagrad import nn

CARTS, LONGEST = 32, 200
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


class Carts:
    """Carts whose states (place, speed, angle, turning speed) are rows of one tensor that every step changes in place."""

    def __init__(self):
        self.state = mg.empty(CARTS, 4).uniform_(-0.05, 0.05)
        self.upright = mg.ones(CARTS, dtype=mg.bool)

    def push(self, right):
        """One step, pushed to the right where `right` says so and to the left elsewhere; fallen carts stay as they are."""
        place, speed, angle, turning = self.state.unbind(1)
        sine, cosine = angle.sin(), angle.cos()
        push = (FORCE * (2 * right - 1) + POLE * HALF_LENGTH * turning ** 2 * sine) / (CART + POLE)
        turn = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4 / 3 - POLE * cosine ** 2 / (CART + POLE)))
        seconds = SECONDS * self.upright
        place += seconds * speed
        angle += seconds * turning
        speed += seconds * (push - POLE * HALF_LENGTH * turn * cosine / (CART + POLE))
        turning += seconds * turn
        self.upright &= (place.abs() < 2.4) & (angle.abs() < math.radians(12))


def play(policy):
    """One episode of every cart: log-probabilities of what was done, and who was upright then; both (steps, carts)."""
    carts = Carts()
    log_probabilities, upright = mg.zeros(LONGEST, CARTS), mg.zeros(LONGEST, CARTS)

    def move(t):
        upright[t] = carts.upright
        probability = mg.sigmoid(policy(carts.state).squeeze(1))  # of a push to the right; the state moves on below
        right = mg.bernoulli(probability.detach())
        log_probabilities[t] = mg.log(mg.where(right > 0, probability, 1 - probability))
        carts.push(right)

    mg.loop(LONGEST, move)
    return log_probabilities, upright


def returns_to_go(upright, discount=0.98):
    """What each step earned from there on, discounted: summed backwards in place."""
    earned = upright.clone()

    def add(later):
        t = LONGEST - 2 - later
        earned[t] += discount * earned[t + 1]

    mg.loop(LONGEST - 1, add)
    return earned


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=50)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = mg.optim.Adam(policy.parameters(), lr=2e-2)
    lasted = []

    def train():
        log_probabilities, upright = play(policy)
        advantage, moves = returns_to_go(upright), upright.sum()
        advantage -= (advantage * upright).sum() / moves
        advantage /= ((advantage ** 2 * upright).sum() / moves).sqrt() + 1e-6
        optimizer.zero_grad()
        loss = -(log_probabilities * advantage * upright).sum() / moves
        loss.backward()
        optimizer.step()
        return moves

    train = compiled(given, train)

    for step in range(1, given.steps + 1):
        lasted.append(train().item() / CARTS)
        if step % 5 == 0:
            print(f"step {step:3}  an episode lasted {lasted[-1]:.1f} steps")

    def draw(axes):
        axes.plot(lasted)
        axes.axhline(LONGEST, color="gray", linestyle=":")
        axes.set(title="length of an episode", xlabel="step")

    save_plot(given, "policy_gradient", draw)
    finish(given, "mean length of the last episodes", sum(lasted[-5:]) / len(lasted[-5:]), at_least=180)
    return lasted


if __name__ == "__main__":
    main()
