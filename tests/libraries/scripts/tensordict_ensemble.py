"""Trains four networks at once, whose parameters are one TensorDict, and takes data apart and together again."""
import torch
from tensordict import TensorDict, from_module
from tensordict.nn import TensorDictModule, TensorDictSequential

torch.manual_seed(0)
data = TensorDict({"x": torch.randn(32, 3), "more": {"noise": torch.randn(32, 1)}}, batch_size=[32])
data["y"] = data["x"].sum(1, keepdim=True).sin() + 0.1 * data["more", "noise"]
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
parts = [torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)) for _ in range(4)]
params = torch.stack([from_module(part).data.clone() for part in parts]).requires_grad_()


def predict(params, x):
    with params.to_module(net):
        return net(x)


losses = []
for _ in range(30):
    found = torch.vmap(predict, (0, None))(params, data["x"])
    loss = (found - data["y"]).square().mean((1, 2))
    params.zero_grad()
    loss.sum().backward()
    with torch.no_grad():
        params.data.sub_(params.grad, alpha=0.1)
    losses.append(loss.detach())

best = int(losses[-1].argmin())
with params[best].to_module(net):
    chain = TensorDictSequential(TensorDictModule(net, ["x"], ["guess"]),
                                 TensorDictModule(lambda a, b: (a - b).abs(), ["guess", "y"], ["wrong"]))
    wrong = torch.cat([chain(part) for part in data.split(10)])["wrong"]
expected = torch.tensor([[0.553633, 0.472791, 0.429155, 0.590075], [0.202272, 0.183170, 0.209286, 0.233950]])
torch.testing.assert_close(torch.stack([losses[0], losses[-1]]), expected, rtol=1e-4, atol=0)
assert wrong.shape == (32, 1)
torch.testing.assert_close(wrong.mean().detach(), torch.tensor(0.358887), rtol=1e-4, atol=0)
