"""Trains a small network of e3nn's on clouds of points, and turns them: what it gives turns with them."""
import torch
from e3nn import o3
from e3nn.nn import Gate

torch.manual_seed(0)
HIDDEN = "4x0e + 2x0e + 2x1o"  # scalars, gates, vectors


class Layer(torch.nn.Module):
    """Features of all pairs' directions, summed over each point's neighbours."""

    def __init__(self, given, result):
        super().__init__()
        self.directions = o3.Irreps.spherical_harmonics(2)
        self.product = o3.FullyConnectedTensorProduct(given, self.directions, result)

    def forward(self, x, pos):
        between = pos[:, None] - pos[None]
        found = o3.spherical_harmonics(self.directions, between, normalize=True, normalization="component")
        near = torch.exp(-between.square().sum(-1, keepdim=True))
        return (self.product(x[None].expand(len(pos), -1, -1), found) * near).sum(1) / len(pos) ** 0.5


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate("4x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
        self.first, self.last = Layer("2x0e", HIDDEN), Layer(self.gate.irreps_out, "1x0e + 1x1o")

    def forward(self, x, pos):
        return self.last(self.gate(self.first(x, pos)), pos)


net, x, pos = Network(), torch.randn(5, 2), torch.randn(5, 3)
goal = torch.cat([x[:, :1], pos - pos.mean(0)], 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (net(x, pos) - goal).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
rotation = o3.rand_matrix()
turned = o3.Irreps("1x0e + 1x1o").D_from_matrix(rotation)
torch.testing.assert_close(net(x, pos @ rotation.T), net(x, pos) @ turned.T, rtol=1e-4, atol=1e-5)
torch.testing.assert_close(torch.tensor(losses)[[0, 9, 19]], torch.tensor([0.418041, 0.345459, 0.315029]), rtol=1e-4, atol=0)
torch.testing.assert_close(net(x, pos)[0], torch.tensor([0.305169, -0.001315, 0.005153, -0.045684]), rtol=1e-3, atol=1e-5)
