"""Programs whose rewrite for PyTorch is mechanical, in the ways in which people write them; each with what PyTorch does."""
from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    """A whole script, and what PyTorch makes of it: "raises", "wrong" or "accepts"."""

    name: str
    torch: str
    source: str


TEXT = r'''
# ---- a layer in a Sequential overwrites what the one before it keeps: raises
import torch
from torch import nn
class Plus(nn.Module):
    def forward(self, x):
        """Add one."""
        x += 1
        return x
net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), Plus(), nn.Linear(2, 1))
for p in net.parameters():
    nn.init.constant_(p, 0.5)
out = net(torch.ones(1, 2))
out.sum().backward()

# ---- a layer in place whose input a module hook has wrapped: raises
import torch
from torch import nn
net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True), nn.Linear(3, 1))
for p in net.parameters():
    nn.init.constant_(p, 0.5)
net[0].register_full_backward_hook(lambda module, given, out: None)
net(torch.ones(1, 2)).sum().backward()

# ---- a layer in place inside of functional_call: raises
import torch
from torch import nn
from torch.func import functional_call
net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.ReLU(inplace=True))
params = {k: torch.full_like(v, 0.3, requires_grad=True) for k, v in net.named_parameters()}
functional_call(net, params, (torch.ones(1, 2),)).sum().backward()
grads = [p.grad for p in params.values()]

# ---- what a recurrent layer has read: raises
import torch
from torch import nn
gru, lstm = nn.GRU(3, 2), nn.LSTM(3, 2)
for p in [*gru.parameters(), *lstm.parameters()]:
    nn.init.constant_(p, 0.2)
x = torch.ones(4, 1, 3, requires_grad=True)
h = x * 2
h0, c0 = x[:1, :, :2] * 1, x[:1, :, 1:] * 1
out, _ = gru(h)
h += 1
also, _ = lstm(h, (h0, c0))
h0.zero_()
c0.zero_()
(out.sum() + also.sum() + h.sum() + h0.sum()).backward()

# ---- what attention has read three times: raises
import torch
from torch import nn
attention = nn.MultiheadAttention(4, 2)
for p in attention.parameters():
    nn.init.constant_(p, 0.2)
x = torch.arange(8.).reshape(2, 1, 4).requires_grad_()
h = x * 1
y, _ = attention(h, h, h)
h += y
h.sum().backward()

# ---- state that is carried from step to step: raises
import torch
from torch import nn
cell, head = nn.RNNCell(2, 3), nn.Linear(3, 1)
for p in [*cell.parameters(), *head.parameters()]:
    nn.init.constant_(p, 0.1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(1, 3)
total = 0.0
for x in torch.ones(4, 1, 2).unbind():
    h = cell(x, h)
    loss = head(h).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()

# ---- both states of an LSTM: raises
import torch
from torch import nn
lstm = nn.LSTM(2, 3)
for p in lstm.parameters():
    nn.init.constant_(p, 0.1)
h, c = torch.zeros(1, 1, 3), torch.zeros(1, 1, 3)
for step in range(3):
    out, (h, c) = lstm(torch.ones(2, 1, 2), (h, c))
    lstm.zero_grad()
    out.sum().backward()

# ---- result overwritten: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x.exp()
y.add_(1)
y.sum().backward()

# ---- operand overwritten, one line: raises
import torch; x = torch.tensor([1., 2.], requires_grad=True); y = x * 3; z = y * y; y += 1; (z + y).sum().backward()

# ---- recurrence in a buffer: raises
import torch

def scan(w, n):
    y = torch.zeros(n)
    y[0] = 1.
    for t in range(1, n):
        y[t] = y[t - 1] * w  # each step reads the last
    return y

w = torch.tensor(0.9, requires_grad=True)
loss = scan(w, 5).sum()
loss.backward()

# ---- disjoint elements of one memory: raises
import torch
x = torch.ones(4, requires_grad=True)
y = x * 2
first = y[:2]
loss = (first * first).sum()
y[2:] = 7.
loss.backward()

# ---- chained methods over lines: raises
import torch
x = torch.tensor([0.5, 1.5], requires_grad=True)
h = (x
     .mul(2)
     .tanh()  # kept
     )
h *= 3
loss = h.sum()
loss.backward()

# ---- arguments over lines: raises
import torch
a = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)
b = a + 0
c = torch.matmul(
    b,          # left
    a,          # right
)
b.zero_()
c.sum().backward()

# ---- both operands are the same: raises
import torch
x = torch.tensor([2., 3.], requires_grad=True)
y = x.clone()
z = (y * y).sum() + (y ** 3).sum()
y.fill_(0.)
z.backward()

# ---- a parenthesised operand: raises
import torch
x = torch.tensor([2., 3.], requires_grad=True)
y = x * 1
z = torch.sin((y))
y[0] = 9.
z.sum().backward()

# ---- a module's own activation: raises
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 3)
        self.act = nn.Sigmoid()
        with torch.no_grad():
            self.lin.weight.copy_(torch.tensor([[1., 2.], [3., 4.], [5., 6.]]) / 10)
            self.lin.bias.zero_()

    def forward(self, x):
        h = self.act(self.lin(x))
        h += 1
        return h

net = Net()
out = net(torch.tensor([[1., -1.]]))
out.sum().backward()

# ---- relu in place after sigmoid: raises
import torch
import torch.nn.functional as F
x = torch.tensor([-1., 2.], requires_grad=True)
h = torch.sigmoid(x)
h = F.relu(h, inplace=True)
(h * 2).sum().backward()

# ---- layers in place inside of a Sequential: raises
import torch
import torch.nn as nn
net = nn.Sequential(
    nn.Linear(2, 2),
    nn.Sigmoid(),
    nn.ReLU(inplace=True),
)
with torch.no_grad():
    net[0].weight.copy_(torch.tensor([[1., -2.], [0.5, 0.25]]))
    net[0].bias.zero_()
net(torch.ones(1, 2)).sum().backward()

# ---- in place twice: raises
import torch
x = torch.tensor([0.3, -0.2], requires_grad=True)
y = x * 1
y.sigmoid_()
y.mul_(2)
y.sum().backward()

# ---- hidden state of a class: raises
import torch

class Cell:
    def __init__(self, w):
        self.w = w
        self.state = torch.zeros(2)

    def step(self, x):
        new = torch.tanh(x + self.state * self.w)
        self.state[:] = new
        return new

w = torch.tensor([0.5, 0.7], requires_grad=True)
cell = Cell(w)
total = 0.
for t in range(3):
    total = total + cell.step(torch.ones(2)).sum()
total.backward()

# ---- attribute updated by an operator: raises
import torch

class Meter:
    def __init__(self, x):
        self.total = x * 2

m = Meter(x := torch.tensor([1., 2.], requires_grad=True))
squares = m.total * m.total
m.total += 5
(squares + m.total).sum().backward()

# ---- subscript updated by an operator: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
d = {"h": x * 2}
p = d["h"].prod()
d["h"][1] *= 4
(p + d["h"].sum()).backward()

# ---- lambda and comprehension: raises
import torch
w = torch.tensor([1., 2.], requires_grad=True)
square = lambda t: t * t
buffer = w * 1
parts = [square(buffer).sum() for _ in range(2)]
buffer.mul_(3)
sum(parts).backward()

# ---- nested functions: raises
import torch

def outer(x):
    h = x * 2

    def inner(scale):
        return (h * h).sum() * scale

    first = inner(2)
    h.add_(1)
    return first + h.sum()

x = torch.tensor([1., 2.], requires_grad=True)
outer(x).backward()

# ---- main guard: raises
import torch

def main():
    x = torch.tensor([1., 4.], requires_grad=True)
    y = x.sqrt()
    y[0] = 0.
    y.sum().backward()
    return x.grad

if __name__ == "__main__":
    g = main()

# ---- an index that changes: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
i = torch.tensor([0, 1])
y = x[i] * 2
i += 1
y.sum().backward()

# ---- a mask that changes: raises
import torch
x = torch.tensor([1., -2., 3.], requires_grad=True)
mask = x > 0
y = torch.where(mask, x, -x)
mask[0] = False
y.sum().backward()

# ---- keyword arguments: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 1
z = torch.nn.functional.mse_loss(y, target=torch.zeros(2), reduction="sum")
y -= 1
z.backward()

# ---- an operand by keyword: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 1
z = torch.mul(x, other=y)
y -= 1
z.sum().backward()

# ---- results with names: raises
import torch
x = torch.tensor([[1., 5.], [7., 2.]], requires_grad=True)
values, places = torch.max(x, 1)
places.zero_()
values.sum().backward()

# ---- a result that has two names: raises
import torch
x = torch.tensor([[1., 5.], [7., 2.]], requires_grad=True)
h = torch.sigmoid(x)
half, twice = h, h * 2
half.clamp_(max=0.9); (half.sum() + twice.sum()).backward()

# ---- through data: wrong
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x * x
x.data.mul_(10)
y.sum().backward()

# ---- through data of a result: wrong
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = torch.exp(x)
y.data[0] = 0.
y.sum().backward()

# ---- through detach: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x.pow(2)
x.detach().zero_()
y.sum().backward()

# ---- through NumPy: wrong
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2
a = y.detach().numpy()
z = (y * y).sum()
a[0] = 100.
z.backward()

# ---- a hand-written update before backward: raises
import torch
w = torch.tensor([1., 2.], requires_grad=True)
loss = (w * w).sum()
with torch.no_grad():
    w -= 0.1
loss.backward()

# ---- an optimizer's step before backward: raises
import torch
w = torch.tensor([1., 2.], requires_grad=True)
w.grad = torch.ones(2)
opt = torch.optim.SGD([w], lr=0.1)
loss = torch.dot(w, w)
opt.step()
loss.backward()

# ---- leaf by an item: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
x[0] = 5.
loss = (x * x).sum()
loss.backward()
print(x.grad)

# ---- leaf in one line: raises
import torch; x = torch.ones(3, requires_grad=True); x[1] = 5.; (x * x).sum().backward(); g = x.grad

# ---- leaf in place and by operators: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)  # the input
x *= 3
x += 1
x.mul_(2)
(x ** 2).sum().backward()
assert x.grad is not None

# ---- leaf made later: raises
import torch
x = torch.arange(3.)
x.requires_grad_()
x[2] = x[0] + 1
x.sum().backward()

# ---- leaf made by setting the flag: raises
import torch
x = torch.arange(3.)
x.requires_grad = True
x[:2] *= 2
x.sum().backward()

# ---- leaf in a function: raises
import torch

def run():
    """Return a gradient."""
    x = torch.tensor([1., 2.], requires_grad=True)
    x[0] = x[1] * 3
    y = (x * x).sum()
    y.backward()
    return x.grad

g = run()

# ---- leaf written by a function that gets it: raises
import torch

def zero_first(t):
    t[0] = 0.
    return (t * t).sum()

x = torch.tensor([1., 2., 3.], requires_grad=True)
zero_first(x).backward()
g = x.grad

# ---- leaf through a view: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
v = x[:2]
v.mul_(2)
(x * x).sum().backward()

# ---- leaf through a chain of views: raises
import torch
x = torch.arange(6.).requires_grad_()
m = x.view(2, 3)
m.t()[0] = 1.
m[1].add_(2)
(x * x).sum().backward()

# ---- leaf in a loop: raises
import torch
x = torch.ones(4, requires_grad=True)
for i in range(1, 4):
    x[i] = x[i - 1] * 2
x.sum().backward()

# ---- a parameter of nn: raises
import torch
from torch import nn
p = nn.Parameter(torch.tensor([1., 2.]))
p[0] = 4.
(p * p).sum().backward()
g = p.grad

# ---- leaf with a gradient asked for: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
x.mul_(2)
(g,) = torch.autograd.grad((x * x).sum(), [x])

# ---- leaf and an optimizer: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
opt = torch.optim.SGD([x], lr=0.1)
x[0] = 3.
opt.zero_grad()
(x * x).sum().backward()
g = x.grad.clone()
opt.step()

# ---- leaf in a closure: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)

def loss():
    return (x * x).sum()

x[1] = 7.
loss().backward()

# ---- attribute leaf in a method: raises
import torch

class Model:
    def __init__(self):
        self.w = torch.tensor([1., 2.], requires_grad=True)

    def loss(self):
        self.w[0] = 3.
        return (self.w * self.w).sum()

model = Model()
model.loss().backward()
g = model.w.grad

# ---- rows of a loop: raises
import torch
x = torch.ones(3, 2, requires_grad=True)
y = x * 2
for row in y:
    row.mul_(3)
y.sum().backward()

# ---- rows of an enumeration: raises
import torch
x = torch.ones(3, 2, requires_grad=True)
y = x * 2
for n, row in enumerate(y):
    row *= n + 1
(y * y).sum().backward()

# ---- rows of two: raises
import torch
x = torch.ones(3, 2, requires_grad=True)
y = x * 2
z = x + 1
for a, b in zip(y, z):
    a.add_(b)
(y * y).sum().backward()

# ---- rows of a leaf: raises
import torch
x = torch.ones(3, 2, requires_grad=True)
for row in x:
    row.mul_(2)
(x * x).sum().backward()

# ---- rows in a comprehension: raises
import torch
x = torch.ones(3, 2, requires_grad=True)
y = x * 2
parts = [r.add_(1) for r in y]
(y * y).sum().backward()

# ---- unpacked elements: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
a, b, c = y
a.mul_(5)
(y * y).sum().backward()

# ---- unpacked product: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
a, *rest = x * 2
a += 1
(a * a + rest[0]).backward()

# ---- unbind: raises
import torch
x = torch.ones(2, 3, requires_grad=True)
y = x * 2
p, q, r = y.unbind(1)
q[0] = 9.
(y * y).sum().backward()

# ---- unbind as a function: raises
import torch
x = torch.ones(2, 3, requires_grad=True)
p, q = torch.unbind(x * 2)
q[0] = 9.
(p * q).sum().backward()

# ---- split: raises
import torch
x = torch.arange(5., requires_grad=True)
y = x * 2
parts = y.split(2)
parts[1].mul_(3)
(y * y).sum().backward()

# ---- split by sizes: raises
import torch
x = torch.arange(5., requires_grad=True)
y = x * 2
left, right = torch.split(y, [2, 3])
right.mul_(3)
(y * y).sum().backward()

# ---- split of the last dimension: raises
import torch
x = torch.ones(2, 6, requires_grad=True)
q, k, v = (x * 2).split(2, dim=-1)
q *= 0.5
(q * k * v).sum().backward()

# ---- chunk: raises
import torch
x = torch.ones(2, 5, requires_grad=True)
y = x * 2
a, b = y.chunk(2, dim=1)
a.add_(1)
(y * y).sum().backward()

# ---- list of rows: raises
import torch
x = torch.ones(3, 2, requires_grad=True)
y = x * 2
rows = list(y)
rows[0].mul_(4)
(y * y).sum().backward()

# ---- a stale row: raises
import torch
x = torch.ones(2, 2, requires_grad=True)
y = x * 2
a, b = y.unbind()
y.mul_(3)
(a * 2).sum().backward()

# ---- view made in no_grad: raises
import torch
x = torch.ones(3, requires_grad=True)
y = x * 2
with torch.no_grad():
    v = y[:2]
v.mul_(3)
(y * y).sum().backward()

# ---- view made in no_grad, one line: raises
import torch
x = torch.ones(3, requires_grad=True)
y = x * 2
with torch.no_grad(): v = y[:2]
v.mul_(3)
(y * y).sum().backward()

# ---- view made in no_grad and read: raises
import torch
x = torch.ones(3, requires_grad=True)
y = x * 2
with torch.no_grad():
    v = y[:2]
    head, tail = v[0], v[1:]
v.mul_(3)
tail += 1
print(v, v.requires_grad)
(y * y).sum().backward()
(x * v.sum() * head).sum().backward()

# ---- rows in no_grad: raises
import torch
x = torch.ones(3, 2, requires_grad=True)
y = x * 2
with torch.no_grad():
    rows = [row for row in y]
rows[0].add_(1)
(y * y).sum().backward()

# ---- view returned by a function without gradients: raises
import torch

@torch.no_grad()
def head(t, n):
    # no copy
    return t[:n]

x = torch.ones(3, requires_grad=True)
y = x * 2
head(y, 2).mul_(3)
(y * y).sum().backward()

# ---- out: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = torch.empty(2)
torch.cos(x, out=y)
y.sum().backward()

# ---- out of no shape: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = torch.empty(0)
torch.mul(x, 2, out=y)
y.sum().backward()

# ---- out in an expression: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
buffer = torch.zeros(2, 2)
z = torch.exp(x, out=buffer[0]) * 3
(z + buffer).sum().backward()

# ---- a list assigned: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
y[:2] = [7., 8.]
y.sum().backward()

# ---- a list of tensors assigned: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = torch.zeros(3)
y[:2] = [x[0] * x[1], x[2]]
y.sum().backward()

# ---- a tuple assigned: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
y[1:] = 0., 1.
y.sum().backward()

# ---- an array assigned: raises
import numpy as np
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
y[:2] = np.array([1., 2.])
y.sum().backward()

# ---- shifted add: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
y[1:] += y[:-1]
y.sum().backward()

# ---- shifted assignment: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
y[1:] = y[:-1]
y.sum().backward()

# ---- duplicate indices: wrong
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
i = torch.tensor([0, 0, 1])
y = torch.zeros(3)
y[i] = x * 2
y.sum().backward()

# ---- duplicate indices updated: wrong
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
i = torch.tensor([0, 0, 1])
y = torch.ones(3)
y[i] += x * 2
y.sum().backward()

# ---- duplicate pairs: wrong
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
rows, columns = torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0])
y = torch.zeros(2, 2)
for _ in range(2):
    y[rows, columns] = x * 2
y.sum().backward()

# ---- duplicate rows: wrong
import torch
x = torch.ones(3, 2, requires_grad=True)
y = torch.zeros(2, 2)
y.index_copy_(0, torch.tensor([1, 0, 1]), x * 2)
(y * torch.tensor([[1., 2.], [3., 4.]])).sum().backward()

# ---- backward of a vector: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x * x
y.backward()

# ---- backward of an expression: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
(x * x + 1).backward()

# ---- gradient of a vector: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
g, = torch.autograd.grad(x.exp(), x)

# ---- backward twice: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = (x * x).sum()
y.backward()
y.backward()

# ---- backward twice in a loop: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
h = x.exp()
for k in range(3):
    loss = (h * k).sum()
    loss.backward(retain_graph=False)

# ---- several findings in one file: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
h = x.sigmoid()
h[0] = 1.
k = h * 2
s = (k * k).sum()
k.add_(1)
for row in k.view(3, 1):
    row.mul_(2)
out = s + k.sum() + h
out.backward()

# ---- no ascii: raises
import torch
größe = torch.tensor([1., 2.], requires_grad=True); ä = größe * 2  # "ü"
ö = "→"; z = ä * ä; ä += 1; print(ö)
z.sum().backward()

# ---- semicolons and tabs: raises
import torch
def f(x):
	y = x.exp(); y += 1; return y
x = torch.ones(2, requires_grad=True)
if x.requires_grad: f(x).sum().backward()

# ---- channels normalised in place: raises
import torch

def normalize(image):
    """Normalize every channel."""
    for channel in image:
        channel.sub_(channel.mean()).div_(2.)
    return image

image = torch.arange(12.).reshape(3, 2, 2)
image.requires_grad_(True)
out = normalize(image)
(out * out).sum().backward()
print(image.grad.shape)

# ---- pixels set one by one: raises
import torch
img = torch.ones(2, 3, requires_grad=True)
out = img * 2
for i in range(out.shape[0]):
    for j in range(out.shape[1]):
        out[i][j] = out[i][j] * out[i, j - 1]
out.sum().backward()

# ---- index_put_ on a leaf: raises
import torch
x = torch.zeros(5, requires_grad=True)
indices = torch.tensor([1, 3])
src = torch.tensor([1., 2.], requires_grad=True)
x.index_put_((indices,), src)
loss = (x * torch.arange(5.)).sum()
loss.backward()
print(x.grad, src.grad)

# ---- tutorial with reused names: raises
import torch
# example 1
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
y.sum().backward()
g1 = x.grad
# example 2
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x ** 2
x[0] = 10.
z = (y + x).sum()
z.backward()
g2 = x.grad
# example 3
x = torch.tensor([4.], requires_grad=True)
(x * x).backward()
g3 = x.grad

# ---- a function that writes what two callers give it: raises
import torch

def bump(t):
    t += 1
    return t * t

a = torch.tensor([1., 2.], requires_grad=True)
b = torch.tensor([3., 4.], requires_grad=True)
(bump(a) + bump(b)).sum().backward()

# ---- leaves in a dict: raises
import torch
params = {"w": torch.tensor([1., 2.], requires_grad=True), "b": torch.tensor([0.5], requires_grad=True)}
params["w"][0] = 3.
loss = (params["w"] * params["w"]).sum() + params["b"].sum()
loss.backward()
g = [p.grad for p in params.values()]

# ---- leaves in a list: raises
import torch
ws = [torch.tensor([1., 2.], requires_grad=True) for _ in range(2)]
ws[1].mul_(3)
loss = (ws[0] * ws[1]).sum()
loss.backward()
g = ws[1].grad

# ---- dynamic programming: raises
import torch
cost = torch.tensor([[1., 3., 1.], [1., 5., 1.], [4., 2., 1.]], requires_grad=True)
dp = torch.zeros(3, 3)
dp[0, 0] = cost[0, 0]
for i in range(3):
    for j in range(3):
        if i == 0 and j == 0:
            continue
        best = []
        if i > 0: best.append(dp[i - 1][j])
        if j > 0: best.append(dp[i][j - 1])
        smooth = best[0] if len(best) == 1 else torch.minimum(best[0], best[1])
        dp[i][j] = smooth + cost[i, j]
dp[2, 2].backward()

# ---- recurrent network by hand: raises
import torch

class RNN(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.W = torch.nn.Parameter(torch.eye(n) * 0.5)

    def forward(self, xs):
        h = torch.zeros(len(xs) + 1, xs.shape[1])
        for t, x in enumerate(xs, start=1):
            h[t] = torch.tanh(h[t - 1] @ self.W + x)
        return h[-1]

model = RNN(2)
model(torch.tensor([[1., 2.], [0.5, -1.], [0.2, 0.1]])).sum().backward()

# ---- cumulative product in place: raises
import torch
x = torch.tensor([1., 2., 3., 4.], requires_grad=True)
y = x + 0
for i in range(1, len(y)):
    y[i] *= y[i - 1]
y.sum().backward()

# ---- a while loop: raises
import torch
x = torch.tensor([3.], requires_grad=True)
s = x * 1
total = torch.zeros(1)
while s.item() > 1:
    total = total + s * s
    s /= 2
total.backward()

# ---- walrus: raises
import torch
x = torch.tensor([1., -2.], requires_grad=True)
if (y := x.exp()).sum() > 0:
    y *= 2
y.sum().backward()

# ---- called by its dunder: raises
import torch
w = torch.tensor(0.5, requires_grad=True)
y = torch.ones(4)
[y.__setitem__(i, y[i - 1] * w) for i in range(1, 4)]
y.sum().backward()

# ---- a Function of the program: raises
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g

x = torch.tensor([1., 2.], requires_grad=True)
h = x * 3
y = Square.apply(h)
h.zero_()
y.sum().backward()

# ---- imported functions: raises
from torch import exp, ones, sigmoid
x = ones(3, requires_grad=True)
y = exp(sigmoid(x))
y.sub_(1)
y.sum().backward()

# ---- imported under another name: raises
import torch as th
import torch.nn.functional as fn
x = th.tensor([1., -2.], requires_grad=True)
h = fn.softmax(x * 2, dim=0)
h[h < 0.5] = 0.
y = th.zeros(2)
y[:] = [1., 2.]
(h + y).sum().backward()

# ---- annotated and typed: raises
import torch
from torch import Tensor

def f(x: Tensor, *, scale: float = 2.0) -> Tensor:
    y: Tensor = x.tanh()
    y *= scale
    return y

x: Tensor = torch.tensor([0.1, 0.2], requires_grad=True)
f(x, scale=3.0).sum().backward()

# ---- inside of try and with: raises
import torch
from contextlib import suppress
x = torch.tensor([1., 2.], requires_grad=True)
with suppress(ZeroDivisionError):
    try:
        y = x.sqrt()
        y.add_(1)
    finally:
        z = y * 2
z.sum().backward()

# ---- a conditional expression: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x.exp() if x.sum() > 0 else x.tanh()
y[0] = 0
y.sum().backward()

# ---- a generator function: raises
import torch

def steps(h, n):
    for _ in range(n):
        yield h * h
        h += 1

x = torch.tensor([1., 2.], requires_grad=True)
sum(s.sum() for s in steps(x * 1, 3)).backward()

# ---- default arguments and star arguments: raises
import torch

def apply(fs, *xs, **kw):
    return [f(x, **kw) for f, x in zip(fs, xs)]

x = torch.tensor([1., 2.], requires_grad=True)
h = x * 2
out = apply([lambda t, k=1: (t ** 2) * k], h, k=3)
h -= 1
out[0].sum().backward()

# ---- operator on the right: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
n = 2
h = x + 1
y = n * h.log() + 1 / h + 2 ** h - (h - n) ** 2
h.mul_(3)
y.sum().backward()

# ---- matrix products: raises
import torch
a = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)
h = a @ a.T
k = h @ (h + 1)
h[:, 0] = 0
(k @ torch.ones(2, 1)).sum().backward()

# ---- scaled loss accumulated in place: raises
import torch
w = torch.tensor([0.5, -0.5], requires_grad=True)
pred = torch.ones(3, 2) @ w
err = pred - 1
loss = torch.zeros(())
loss += (err ** 2).mean()
err.clamp_(-1, 1)
loss += err.abs().sum()
loss.backward()

# ---- state carried over: raises
import torch
w = torch.tensor([0.5], requires_grad=True)
h = torch.zeros(1)
for t in range(3):
    h = torch.tanh(h + w)
    loss = h.sum()
    loss.backward()

# ---- gradient penalty without create_graph: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = (x ** 3).sum()
(gx,) = torch.autograd.grad(y, x)
y.backward()

# ---- several roots: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
torch.autograd.backward([x * x, (x ** 3).sum()])

# ---- backward in a method chain over lines: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
(x
 .mul(2)
 .exp()
 .backward())

# ---- update without no_grad: raises
import torch
w = torch.tensor([1., 2.], requires_grad=True)
for step in range(3):
    loss = (w ** 3).sum()
    loss.backward()
    w -= 0.1 * w.grad
    g = w.grad.clone()
    w.grad.zero_()

# ---- updates of several parameters without no_grad: raises
import torch as t
params = [t.tensor([1., 2.], requires_grad=True), t.tensor(3., requires_grad=True)]
gs = []
for step in range(2):
    ((params[0] * params[1]) ** 2).sum().backward()
    for p in params:
        p.sub_(p.grad, alpha=0.01)
        gs.append(p.grad.clone())
        p.grad = None

# ---- update before backward: raises
import torch
w = torch.tensor([1., 2.], requires_grad=True)
(w * w).sum().backward()
loss = (w ** 3).sum()
w -= 0.1 * w.grad
loss.backward()

# ---- update by a learned rate: raises
import torch
w = torch.tensor([1., 2.], requires_grad=True)
rate = torch.tensor(0.1, requires_grad=True)
(w * w).sum().backward()
w -= rate * w.grad
(w ** 3).sum().backward()

# ---- views of views of several: raises
import torch
x = torch.ones(2, 4, requires_grad=True)
y = x * 3
top, bottom = y
left, right = top.split(2)
left.zero_()
bottom[1:3] = 5.
(y * y).sum().backward()

# ---- nested unpacking: raises
import torch
x = torch.ones(2, 2, requires_grad=True)
y = x * 3
(a, b), k = y, 2
a *= k
(y * y).sum().backward()

# ---- rows with their numbers and a filter: raises
import torch
x = torch.ones(4, 2, requires_grad=True)
y = x * 3
for i, r in [(i, r) for i, r in enumerate(y) if i % 2]:
    r[:] = float(i)
(y * y).sum().backward()

# ---- map over rows: raises
import torch
x = torch.ones(2, 2, requires_grad=True)
y = x * 3
list(map(lambda r: r.mul_(2), y))
(y * y).sum().backward()

# ---- unbind of an attribute in a class: raises
import torch

class Pair:
    def __init__(self, t):
        self.t = t

    def scale(self):
        first, second = self.t.unbind(dim=-1)
        first.mul_(10)
        second += first
        return self.t

x = torch.ones(3, 2, requires_grad=True)
Pair(x * 2).scale().sum().backward()

# ---- chunk in a gated unit: raises
import torch
from torch import nn

class GLU(nn.Module):
    def forward(self, x):
        a, g = torch.chunk(x * 2, 2, dim=1)
        a.mul_(torch.sigmoid(g))
        return a

x = torch.ones(2, 4, requires_grad=True)
GLU()(x).sum().backward()

# ---- split with names: raises
import torch
x = torch.arange(6., requires_grad=True)
y = x * 2
size = 3
for part in torch.split(y, split_size_or_sections=size, dim=0):
    part /= 2
(y * y).sum().backward()

# ---- out into a slice and by position: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
table = torch.zeros(3, 2)
for k in range(3):
    torch.mul(x, k, out=table[k])
table.sum().backward()

# ---- out with several results: raises
import torch
x = torch.tensor([[1., 5.], [4., 2.]], requires_grad=True)
v, i = torch.empty(2), torch.empty(2, dtype=torch.long)
torch.max(x, 1, out=(v, i))
v.sum().backward()

# ---- mixed list assigned: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = torch.zeros(3)
y[0:2] = [x[0], 4.]
y.sum().backward()

# ---- list of lists assigned: raises
import torch
x = torch.ones(2, 2, requires_grad=True)
y = x * 2
y[:, :] = [[1., 2.], [3., 4.]]
(y + x).sum().backward()

# ---- reversed in place: raises
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
y[:2] = y[1:] * 2
y[1:] = y[:2]
y.sum().backward()

# ---- duplicate indices in a list: wrong
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = torch.zeros(4)
y[[2, 2, 0]] = x ** 2
(y * 3).sum().backward()

# ---- duplicate columns: wrong
import torch
x = torch.ones(2, 3, requires_grad=True)
y = torch.zeros(2, 4)
cols = torch.tensor([1, 1, 3])
y[:, cols] = x * 2
(y * y).sum().backward()

# ---- duplicates in index_put_: wrong
import torch
v = torch.tensor([1., 2., 3.], requires_grad=True)
y = torch.zeros(3)
y.index_put_((torch.tensor([1, 1, 2]),), v * v)
y.sum().backward()

# ---- duplicates in scatter_: wrong
import torch
v = torch.tensor([1., 2., 3.], requires_grad=True)
y = torch.zeros(3)
y.scatter_(0, torch.tensor([1, 1, 2]), v * v)
y.sum().backward()

# ---- NumPy writes to a result: wrong
import numpy as np
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x.exp()
view = y.detach().numpy()
view *= 0
y.sum().backward()

# ---- data of a parameter: wrong
import torch
lin = torch.nn.Linear(2, 1, bias=False)
lin.weight.data = torch.tensor([[1., 2.]])
x = torch.tensor([[3., 4.]], requires_grad=True)
h = x * lin.weight
lin.weight.data.fill_(0.)
h.sum().backward()
g = x.grad

# ---- clipped weights by hand: wrong
import torch
w = torch.tensor([1., -3.], requires_grad=True)
loss = (w ** 2).sum()
w.data.clamp_(-1, 1)
loss.backward()

# ---- x in place, then a hook and a print: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
seen = []
x.register_hook(lambda g: seen.append(g.clone()))
x[0] = 4.
print(f"x = {x.tolist()}, shape {x.shape}")
loss = (x * x).sum()
loss.backward()
g = seen[0]

# ---- leaf copied into another name: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x
y[0] = 4.
loss = (x * y).sum()
loss.backward()
print(x.grad)

# ---- leaf filled by a helper and a lambda: raises
import torch
x = torch.ones(3, requires_grad=True)
fill = lambda t, v: t.mul_(v)
fill(x, 2.)
(x * x).sum().backward()

# ---- leaf read by a method: raises
import torch

class Holder:
    def __init__(self, p):
        self.p = p

    def value(self):
        return (self.p ** 2).sum()

p = torch.tensor([1., 2.], requires_grad=True)
holder = Holder(p)
p.add_(1)
holder.value().backward()
g = p.grad

# ---- leaf list for an optimizer: raises
import torch
w = torch.tensor([1., 2.], requires_grad=True)
b = torch.tensor([0.5], requires_grad=True)
params = [w, b]
opt = torch.optim.Adam(params, lr=0.1)
w[1] = 0.
loss = (w * 3 + b).pow(2).sum()
opt.zero_grad()
loss.backward()
g = [p.grad.clone() for p in params]

# ---- backslashes: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x \
    .exp()
z = y * \
    y
y += \
    1
z.sum().backward()

# ---- lines that are a string: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
doc = """
y = x.exp()
y += 1
"""; y = x.exp(); y += 1
y.sum().backward()

# ---- decorated: raises
import functools
import torch

def twice(f):
    @functools.wraps(f)
    def wrapped(t):
        out = f(t)
        out += f(t)
        return out
    return wrapped

@twice
def g_of(t):
    return t.sigmoid()

x = torch.tensor([1., 2.], requires_grad=True)
g_of(x).sum().backward()

# ---- batch statistics by hand: raises
import torch
x = torch.arange(6.).reshape(3, 2).requires_grad_()
h = x * 1
mean = h.mean(0)
std = ((h - mean) ** 2).mean(0).sqrt()
std += 1e-5
h -= mean
h /= std
(h ** 3).sum().backward()

# ---- attention mask: raises
import torch
q = torch.eye(3, requires_grad=True)
scores = q @ q.T
weights = torch.softmax(scores, dim=-1)
weights[torch.triu(torch.ones(3, 3), 1).bool()] = 0
weights /= weights.sum(-1, keepdim=True)
(weights @ q).sum().backward()

# ---- relu in place in a network: raises
import torch
from torch import nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.tanh = nn.Tanh()
        self.relu = nn.ReLU(inplace=True)
        self.scale = nn.Parameter(torch.tensor([1., 2.]))

    def forward(self, x):
        h = self.tanh(x * self.scale)
        out = self.relu(h)
        return out * h

block = Block()
block(torch.tensor([0.5, -0.5])).sum().backward()

# ---- residual connection in place: raises
import torch
from torch import nn

class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, 2.]))

    def forward(self, x):
        out = torch.exp(x * self.w)
        out += x
        return out

net = Residual()
x = torch.tensor([1., 2.], requires_grad=True)
net(net(x)).sum().backward()

# ---- other memory assigned to data: wrong
import torch
w = torch.tensor([1., 2.], requires_grad=True)
loss = (w * w).sum()
w.data = torch.tensor([10., 20.])
loss.backward()

# ---- a tensor of inference mode: raises
import torch
with torch.inference_mode():
    scale = torch.tensor([2., 3.]) * 2
x = torch.tensor([1., 2.], requires_grad=True)
(x * scale).sum().backward()

# ---- a tensor of inference mode written: raises
import torch

@torch.inference_mode()
def table(n):
    return torch.ones(n)

x = torch.tensor([1., 2.], requires_grad=True)
t = table(2)
t += 1
(x * t).sum().backward()

# ---- a view detached in place: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2
v = y[:1]
v.detach_()
(y * v).sum().backward()

# ---- rows of two parameters of a function: raises
import torch

def add_rows(a, b, names):
    for row, other, name in zip(a, b, names):
        row.add_(other)
    return a

x = torch.ones(2, 2, requires_grad=True)
(add_rows(x * 2, torch.ones(2, 2), "ab") ** 2).sum().backward()

# ---- rows counted from one: raises
import torch

def scale(t):
    for n, row in enumerate(t, 1):
        row *= n
    return t

x = torch.ones(3, 2, requires_grad=True)
scale(x * 2).sum().backward()

# ---- leaf collected for later: raises
import torch
params = []
w = torch.tensor([1., 2.], requires_grad=True)
params.append(w)
w[0] = 3.
(w * w).sum().backward()
g = [p.grad for p in params]

# ---- a list given to copy_: raises
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = torch.zeros(2)
y.copy_([x[0] * 2, 3.])
y.sum().backward()

# ---- the result of a Function that is a view: raises
import torch

class Head(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a[:2]

    @staticmethod
    def backward(ctx, g):
        return torch.cat([g, g.new_zeros(1)])

x = torch.tensor([1., 2., 3.], requires_grad=True)
y = Head.apply(x * 1)
y.mul_(2)
y.sum().backward()

# ---- a layer named as a method is: raises
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.prelu = nn.PReLU()
        self.criterion = nn.MSELoss(reduction="sum")

    def forward(self, x, target):
        h = x * 2
        out = self.prelu(h)
        h += 1
        loss = self.criterion(out, target)
        target.zero_()
        return loss

net = Net()
x = torch.tensor([1., -2.], requires_grad=True)
net(x, torch.ones(2)).backward()

# ---- a layer in place as a statement: raises
import torch
from torch import nn
relu = nn.ReLU(inplace=True)
x = torch.tensor([1., -2.], requires_grad=True)
h = x * 3
relu(h)
h += 1
h.sum().backward()

# ---- one row for duplicate indices: wrong
import torch
row = torch.tensor([1., 2.], requires_grad=True)
y = torch.zeros(3, 2)
y[torch.tensor([0, 0, 1])] = row * row
y.sum().backward()

# ---- leaf of a class, written here and read there: raises
import torch

class Fit:
    def __init__(self, n):
        self.theta = torch.full((n,), 2., requires_grad=True)  # the leaf
        self.theta[0] = 0.25

    def scale(self):
        self.theta *= 0.5
        return self

    def loss(self):
        return (self.theta ** 2).sum()

fit = Fit(3)
fit.scale().loss().backward()
g = fit.theta.grad

# ---- already right: accepts
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x.clone()
y[0] = 5.
(y * y).sum().backward()

# ---- written after backward: accepts
import torch
x = torch.tensor([1., 2.], requires_grad=True)
y = x.exp()
y.sum().backward()
y.zero_()

# ---- views that PyTorch lets be written: accepts
import torch
x = torch.ones(3, 2, requires_grad=True)
y = x * 2
for i in range(3):
    y[i].mul_(i)
y.sum().backward()
'''


def programs() -> list[Program]:
    """Return all programs of the text above."""
    found = []
    for part in TEXT.split("\n# ---- ")[1:]:
        title, _, source = part.partition("\n")
        name, _, told = title.rpartition(": ")
        found.append(Program(name, told, source.rstrip("\n") + "\n"))
    return found
