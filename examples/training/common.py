"""What the examples share: their options, the digits, a plot, and the figure that a full run must reach."""
import argparse
from pathlib import Path

import mutagrad as mg

PLOTS = Path(__file__).resolve().parents[1] / "plots"


def options(description, arguments, steps):
    """The command line; `steps` is what a full run takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps, metavar="N", help=f"training steps (default {steps})")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--compile", action="store_true", help="run each step as one compiled program; needs JAX: pip install 'mutagrad[xla]'")
    parser.add_argument("--no-plot", dest="plot", action="store_false")
    parser.add_argument("--out", type=Path, default=PLOTS, metavar="DIR", help="where the plot goes (default examples/plots)")
    given = parser.parse_args(arguments)
    given.full = given.steps >= steps
    mg.manual_seed(given.seed)
    return given


def compiled(given, step):
    """The step itself, or what the compiler makes of it."""
    return mg.compile(step) if given.compile else step


def digits():
    """scikit-learn's 8 x 8 digits with values from 0 to 1: 1,347 images and labels to learn from, 450 to test."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError:
        raise SystemExit("the digits come with scikit-learn: pip install scikit-learn") from None
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    x_train, x_test = (mg.tensor(part, dtype=mg.float32) for part in parts[:2])
    y_train, y_test = (mg.tensor(part) for part in parts[2:])
    return x_train, y_train, x_test, y_test


def batches(size, *tensors):
    """The rows of all tensors in a random order, `size` at a time; a last batch that would be smaller is left out."""
    count = len(tensors[0]) // size
    for rows in mg.randperm(len(tensors[0]))[:count * size].view(count, size):
        yield [t[rows] for t in tensors]


def save_plot(given, name, draw, columns=1):
    """Hands `columns` empty axes to `draw`, and saves what it drew."""
    if not given.plot:
        return
    try:
        import matplotlib
    except ImportError:
        return print("no plot, which needs matplotlib: pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, columns, figsize=(3.6 * columns, 2.8), squeeze=False, layout="constrained")
    draw(*axes[0])
    given.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(given.out / f"{name}.png", dpi=80)
    pyplot.close(figure)
    print(f"plot: {given.out / name}.png")


def tiles(images, rows):
    """Images of shape (n, height, width) side by side in a frame of zeros, as one array."""
    count, height, width = images.shape
    framed = mg.zeros(count, height + 2, width + 2)
    framed[:, 1:-1, 1:-1] = images
    return mg.cat([mg.cat(list(row), 1) for row in framed.view(rows, -1, height + 2, width + 2)]).numpy()


def finish(given, what, figure, at_least=None, at_most=None):
    """Prints the final figure; a full run that missed its goal ends with an error."""
    print(f"{what}: {figure:.4g}")
    missed = at_least is not None and figure < at_least or at_most is not None and figure > at_most
    if given.full and missed:
        raise SystemExit(f"missed the goal: {what} should be {f'at least {at_least}' if at_most is None else f'at most {at_most}'}")
