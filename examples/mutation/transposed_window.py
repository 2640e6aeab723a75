"""Write through a view of a view: a transposed window of the grid."""

START = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]


def program(mg, x):
    grid = x * 0.1
    window = grid.T[1:][:, :2]
    window *= window
    window[0] = window[1] - window[0]
    return (grid * x).sum()


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
