"""Small programs whose gradient is None, zero or strange, each with the cause that `why` must name and the line of it.

The line is the one that ends in `#!`. `answer` is what the program asks.
"""
from __future__ import annotations

from typing import NamedTuple

START = """\
import mutagrad as mg
import mutagrad.nn.functional as F
from mutagrad import nn
"""


class Case(NamedTuple):
    cause: str
    name: str
    source: str


def _cases() -> list[Case]:
    found = []
    for block in PROGRAMS.split("\n=== ")[1:]:
        head, _, source = block.partition("\n")
        cause, _, name = head.partition(" | ")
        found.append(Case(cause.strip(), name.strip(), START + source.rstrip() + "\n"))
    return found


PROGRAMS = """
=== not_reached | cut off for numbers that are only shown
x = mg.tensor([1., 2., 3.], requires_grad=True)
w = mg.ones(3, requires_grad=True)
shown = x.detach()
total = float(shown.sum()) + x.mean().item()
with mg.no_grad():
    accuracy = (x > 1).float().mean()
(w * 2).sum().backward()  #!
answer = mg.why(x)

=== zero | masked by a product, with an unnamed loss
x = mg.tensor([1., 2., 3.], requires_grad=True)
mask = mg.zeros(3)
(x * mask).sum().backward()  #!
answer = mg.why(x)

=== dead | a dead relu
x = mg.tensor([-1., -2.], requires_grad=True)
h = x * 3
y = h.relu()  #!
y.sum().backward()
answer = mg.why(x)

=== dead | a dead relu in one line
w = mg.tensor([-1., -2.], requires_grad=True)
mg.relu(w).sum().backward()  #!
answer = w.why()

=== dead | relu, then squares: the relu is to blame
x = mg.tensor([-1., -2.], requires_grad=True)
r = F.relu(x - 1)  #!
(r * r).sum().backward()
answer = mg.why(x)

=== zero | the product before a relu of zero is to blame
x = mg.tensor([1., 2.], requires_grad=True)
p = x * 0  #!
p.relu().sum().backward()
answer = mg.why(x)

=== zero | where takes the other value
x = mg.tensor([1., 2.], requires_grad=True)
c = mg.tensor([False, False])
y = mg.where(c, x, mg.zeros(2))  #!
y.sum().backward()
answer = mg.why(x)

=== zero | clamp outside of its range
x = mg.tensor([5., 6.], requires_grad=True)
x.clamp(0., 1.).sum().backward()  #!
answer = mg.why(x)

=== zero | a weight of zero behind a layer
x = mg.ones(3, requires_grad=True)
w = mg.zeros(2, 3)
loss = (w @ x).sum()  #!
loss.backward()
answer = mg.why(x)

=== zero | one element masked
x = mg.tensor([1., 2., 3.], requires_grad=True)
mask = mg.tensor([1., 0., 1.])
(x * mask).sum().backward()  #!
answer = mg.why(x[1])

=== no_derivative | rounded
x = mg.tensor([1.2, 2.7], requires_grad=True)
y = x.round()  #!
(y * 2).sum().backward()
answer = mg.why(x)

=== no_derivative | floor in one line
x = mg.tensor([1.2, 2.7], requires_grad=True)
((x * 2).floor() ** 2).sum().backward()  #!
answer = mg.why(x)

=== no_derivative | sign
x = mg.tensor([1.2, -2.7], requires_grad=True)
mg.sign(x).sum().backward()  #!
answer = mg.why(x)

=== no_derivative | argmax and a table
x = mg.tensor([1., 3., 2.], requires_grad=True)
table = mg.tensor([1., 2., 3.], requires_grad=True)
i = x.argmax()  #!
table[i].backward()
answer = mg.why(x)

=== no_derivative | a comparison as a mask
x = mg.tensor([1., -3., 2.], requires_grad=True)
w = mg.tensor([1., 2., 3.], requires_grad=True)
gate = (x > 0).float()  #!
(gate * w).sum().backward()
answer = mg.why(x)

=== no_derivative | a comparison of something unnamed, in the loss itself
x = mg.tensor([1., -3., 2.], requires_grad=True)
w = mg.tensor([1., 2., 3.], requires_grad=True)
(((x * 2 + 1) > 0).float() * w).sum().backward()  #!
answer = mg.why(x)

=== no_derivative | a cast to integers
x = mg.tensor([1.5, 3.5], requires_grad=True)
w = mg.ones(2, requires_grad=True)
n = x.long()  #!
(n * w).sum().backward()
answer = mg.why(x)

=== no_derivative | the indices of a sort
x = mg.tensor([3., 1., 2.], requires_grad=True)
w = mg.ones(3, requires_grad=True)
values, order = x.sort()  #!
w[order].sum().backward()
answer = mg.why(x)

=== no_derivative | topk of something unnamed
x = mg.tensor([3., 1., 2.], requires_grad=True)
w = mg.ones(3, requires_grad=True)
best = (x * 2 + 1).topk(2).indices  #!
w[best].prod().backward()
answer = mg.why(x)

=== overwritten | one element
x = mg.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
y[0] = 5.  #!
y.sum().backward()
answer = mg.why(x[0])

=== overwritten | all of it, element by element
x = mg.tensor([1., 2.], requires_grad=True)
y = x * 2
y[0] = 5.  #!
y[1] = 7.
y.sum().backward()
answer = mg.why(x)

=== overwritten | all of it at once
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.ones(2, requires_grad=True)
y = x * 2
y.copy_(w)  #!
y.sum().backward()
answer = mg.why(x)

=== overwritten | by zero_
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.ones(2, requires_grad=True)
h = (x * 2).exp()
h.zero_()  #!
(h + w).sum().backward()
answer = mg.why(x)

=== overwritten | by a slice of everything
x = mg.ones(3, requires_grad=True)
w = mg.ones(3, requires_grad=True)
buffer = mg.zeros(3)
buffer[:] = x
buffer[:] = w  #!
buffer.sum().backward()
answer = mg.why(x)

=== overwritten | a leaf itself
x = mg.tensor([1., 2., 3.], requires_grad=True)
x[1] = 0.  #!
(x * x).sum().backward()
answer = mg.why(x[1])

=== overwritten | in a loop
x = mg.tensor([1., 2., 3.], requires_grad=True)
y = mg.zeros(2)
for i in range(3):
    y[0] = x[i]  #!
y.sum().backward()
answer = mg.why(x[0])

=== detached | by detach in the loss
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
(x.detach() * w).sum().backward()  #!
answer = mg.why(x)

=== detached | of something computed
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
target = (x * 2 + 1).exp().detach()  #!
loss = ((w - target) ** 2).mean()
loss.backward()
answer = mg.why(x)

=== detached | by .data
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
y = x.data * 2  #!
(y * w).sum().backward()
answer = mg.why(x)

=== detached | in a function that was called
w = mg.tensor([1., 2.], requires_grad=True)
x = mg.tensor([1., 2.], requires_grad=True)
def stop(value):
    return value.detach()  #!
def model(a):
    h = a.exp()
    return stop(h) * w
model(x).sum().backward()
answer = mg.why(x)

=== detached | the tensor itself was detached
w = mg.tensor([1., 2.], requires_grad=True)
h = (w * 2).detach()  #!
answer = mg.why(h)

=== item | a number
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
scale = x.sum().item()  #!
(w * scale).sum().backward()
answer = mg.why(x)

=== item | float()
x = mg.tensor(3., requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
(w * float(x)).sum().backward()  #!
answer = mg.why(x)

=== item | tolist
x = mg.tensor([3., 1.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
a, b = x.tolist()  #!
(w * a + b).sum().backward()
answer = mg.why(x)

=== tensor | put together as data
import warnings
warnings.simplefilter("ignore")
a = mg.tensor(1., requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
v = mg.tensor([a, a * 2])  #!
(v * w).sum().backward()
answer = mg.why(a)

=== detached | NumPy
import numpy as np
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
array = np.tanh(x.detach().numpy())  #!
(mg.from_numpy(array) * w).sum().backward()
answer = mg.why(x)

=== no_grad | a block
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
with mg.no_grad():
    h = x * 2  #!
(h * w).sum().backward()
answer = mg.why(x)

=== no_grad | a decorated function
w = mg.tensor([1., 2.], requires_grad=True)
x = mg.tensor([1., 2.], requires_grad=True)
@mg.no_grad()
def features(a):
    b = a.exp()  #!
    return b + 1
(features(x) * w).sum().backward()
answer = mg.why(x)

=== no_grad | the block itself is named, too
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
with mg.no_grad():  #!
    h = x * 2
(h * w).sum().backward()
answer = mg.why(x)

=== no_grad | where the text cannot be read
names = {"mg": mg}
exec("x, w = mg.ones(2, requires_grad=True), mg.ones(2, requires_grad=True)", names)
exec("with mg.no_grad():\\n    h = x * 2", names)
exec("(h * w).sum().backward()\\nanswer = mg.why(x)", names)
answer = names["answer"]

=== no_grad | set_grad_enabled
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
mg.set_grad_enabled(False)
h = x * 2  #!
mg.set_grad_enabled(True)
(h * w).sum().backward()
answer = mg.why(x)

=== no_grad | a tensor that was computed there
x = mg.tensor([1., 2.], requires_grad=True)
with mg.no_grad():  #!
    h = x * 2
answer = mg.why(h)

=== no_grad | in the forward of a layer
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 1)
    def forward(self, x):
        with mg.no_grad():
            h = self.a(x)  #!
        return self.b(h)
net = Net()
net(mg.ones(3, 2)).sum().backward()
answer = mg.why(net.a.weight)

=== no_derivative | a loss that has no history at all
model = nn.Linear(3, 3)
out = model(mg.randn(8, 3))
found = out.argmax(1)  #!
accuracy = (found == 0).float().mean()
try:
    accuracy.backward()
except RuntimeError:
    pass
answer = mg.why(model.weight)

=== no_derivative | with a loss that has no history
x = mg.tensor([0.3, 0.8], requires_grad=True)
hard = (x > 0.5).float()  #!
answer = mg.why(x, (hard - 1).sum())

=== detached | in the forward of a layer
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 1)
    def forward(self, x):
        h = self.a(x)
        return self.b(h.detach())  #!
net = Net()
net(mg.ones(3, 2)).sum().backward()
answer = mg.why(net.a.weight)

=== detached | in an attribute of an object
class Trainer:
    def __init__(self):
        self.x, self.w = mg.ones(3, requires_grad=True), mg.ones(3, requires_grad=True)
    def step(self):
        h = self.x.detach() + 1  #!
        (h * self.w).sum().backward()
        return mg.why(self.x)
answer = Trainer().step()

=== item | in a comprehension
x = mg.ones(3, requires_grad=True)
w = mg.ones(3, requires_grad=True)
values = [v.item() for v in x]  #!
(w * mg.tensor(values)).sum().backward()
answer = mg.why(x)

=== failed | a second backward
x = mg.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward()
x.grad = None
try:
    loss.backward()  #!
except RuntimeError:
    pass
answer = mg.why(x)

=== not_reached | a name that was bound anew
x = mg.ones(3, requires_grad=True)
w = mg.ones(3, requires_grad=True)
y = x * 2
y = mg.zeros(3)  #!
(y + w).sum().backward()
answer = mg.why(x)

=== not_reached | the part of a cat that is not read
a, b = mg.ones(2, requires_grad=True), mg.ones(2, requires_grad=True)
mg.cat([a, b])[:2].sum().backward()  #!
answer = mg.why(b)

=== not_reached | a row that an embedding does not look up
table = nn.Embedding(5, 2)
table(mg.tensor([0, 1])).sum().backward()  #!
answer = mg.why(table.weight[3])

=== zero | a gradient of zero to start from
x = mg.ones(3, requires_grad=True)
(x * 2).backward(mg.tensor([1., 0., 1.]))  #!
answer = mg.why(x[1])

=== zero | a weight that was never set, after the optimizer's step
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
nn.init.zeros_(model[2].weight)
optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
model(mg.randn(16, 4)).mean().backward()  #!
optimizer.step()
answer = mg.why(model[0].weight)

=== zero | too large to be remembered
x, mask = mg.ones(1000000, requires_grad=True), mg.zeros(1000000)
(x * mask).sum().backward()  #!
answer = mg.why(x)

=== zero | a graph that is retained
x = mg.ones(3, requires_grad=True)
(x * mg.zeros(3)).sum().backward(retain_graph=True)  #!
answer = mg.why(x)

=== zero | seen through a transposed view
x, m = mg.ones(2, 3, requires_grad=True), mg.ones(3, 2)
m[0, 1] = 0.
(x.T * m).sum().backward()  #!
answer = mg.why(x[1, 0])

=== vanished | too small for the type
x = mg.tensor([1.], requires_grad=True)
h = x
for _ in range(60):
    h = h * 0.1  #!
h.sum().backward()
answer = mg.why(x)

=== exploded | to infinity
x = mg.tensor([1.], requires_grad=True)
h = x
for _ in range(60):
    h = h * 10.  #!
h.sum().backward()
answer = mg.why(x)

=== nan | where a root has an infinite derivative
x = mg.tensor([0., 1.], requires_grad=True)
d = x - x
s = (d * d).sum()
n = s.sqrt()  #!
n.backward()
answer = mg.why(x)

=== ok | through a Function, whose code is not run again
runs = []
class Cube(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        runs.append(g)
        x, = ctx.saved_tensors
        return 3 * x ** 2 * g
x = mg.ones(3, requires_grad=True)
(Cube.apply(x) * 2).sum().backward()
answer = mg.why(x)
assert len(runs) == 1 and answer.stages[-1][2] > 10

=== not_reached | not used
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
(w * 2).sum().backward()  #!
answer = mg.why(x)

=== not_reached | used, but not by the loss
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
other = (x * 2).sum()  #!
(w * 2).sum().backward()
answer = mg.why(x)

=== not_reached | an element that the loss does not read
x = mg.tensor([1., 2., 3.], requires_grad=True)
y = x * 2
y[:2].sum().backward()
answer = mg.why(x[2])

=== not_reached | set to require a gradient too late
x = mg.tensor([1., 2.])
w = mg.tensor([1., 2.], requires_grad=True)
loss = (x * w).sum()
x.requires_grad_()
loss.backward()
answer = mg.why(x)

=== not_swept | backward was forgotten
x = mg.tensor([1., 2.], requires_grad=True)
loss = (x * 2).sum()  #!
answer = mg.why(x)

=== not_swept | for this loss, of two
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
w.sum().backward()
loss = (x * 2).sum()  #!
answer = mg.why(x)

=== not_leaf | computed
x = mg.tensor([1., 2.], requires_grad=True)
h = x * 2  #!
(h * h).sum().backward()
answer = mg.why(h)

=== not_leaf | computed, and another loss was swept since
x = mg.tensor([2., 3.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
y = x * 3  #!
(y * y).sum().backward()
(w * w).sum().backward()
answer = mg.why(y)

=== not_leaf | a leaf that was moved to another type
x = mg.tensor([1., 2.], requires_grad=True).double()  #!
(x * x).sum().backward()
answer = mg.why(x)

=== cleared | by zero_grad
model = nn.Linear(2, 1)
optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
model(mg.ones(1, 2)).sum().backward()  #!
optimizer.step()
optimizer.zero_grad()
answer = mg.why(model.weight)

=== not_asked | autograd.grad returns it
x = mg.tensor([1., 2.], requires_grad=True)
g, = mg.autograd.grad((x * x).sum(), x)  #!
answer = mg.why(x)

=== not_asked | backward for other inputs
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
loss = (x * w).sum()
loss.backward(inputs=[w])  #!
answer = mg.why(x)

=== nan | the root of a negative number
x = mg.tensor([1., -2.], requires_grad=True)
h = x * 2
r = h.sqrt()  #!
import warnings
warnings.simplefilter("ignore")
r.sum().backward()
answer = mg.why(x)

=== nan | a derivative that is not defined
x = mg.tensor([0., 2.], requires_grad=True)
with mg.autograd.strong_zeros(False):
    y = (x * 0).sqrt()  #!
    y.sum().backward()
answer = mg.why(x)

=== vanished | a long chain of sigmoids
x = mg.tensor([0.5], requires_grad=True)
h = x
for _ in range(40):
    h = mg.sigmoid(h)  #!
h.sum().backward()
answer = mg.why(x)

=== exploded | a long chain of products
x = mg.tensor([1.], requires_grad=True)
h = x
for _ in range(40):
    h = h * 3  #!
h.sum().backward()
answer = mg.why(x)

=== hook | that makes it zero
x = mg.tensor([1., 2.], requires_grad=True)
h = x * 2
h.register_hook(lambda g: g * 0)  #!
h.sum().backward()
answer = mg.why(x)

=== function | whose backward returns zero
class Stop(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 0
x = mg.tensor([1., 2.], requires_grad=True)
y = Stop.apply(x)  #!
y.sum().backward()
answer = mg.why(x)

=== function | whose backward returns None
class Nothing(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return None
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.tensor([1., 2.], requires_grad=True)
y = Nothing.apply(x) * w
y.sum().backward()
z = Nothing.apply(x)  #!
z.sum().backward()
answer = mg.why(x)

=== cancelled | two ways that add up to nothing
x = mg.tensor([1., 2.], requires_grad=True)
y = x - x  #!
y.sum().backward()
answer = mg.why(x)

=== integer | by its type
n = mg.tensor([1, 2, 3])
answer = mg.why(n)

=== does_not_require_grad | made without it
x = mg.tensor([1., 2.])
(x * 2).sum()
answer = mg.why(x)

=== ok | a gradient
x = mg.tensor([1., 2.], requires_grad=True)
y = x * x
y.sum().backward()
answer = mg.why(x)

=== ok | before backward, with a loss
x = mg.tensor([1., 2.], requires_grad=True)
h = x * 2
h.retain_grad()
loss = (h * h).sum()
loss.backward(retain_graph=True)
answer = mg.why(h, loss)

=== detached | backward was refused
x = mg.tensor([1., 2.], requires_grad=True)
y = x.detach()  #!
loss = (y * y).sum()
try:
    loss.backward()
except RuntimeError:
    pass
answer = mg.why(x)

=== function | inside of a checkpoint
from mutagrad.utils.checkpoint import checkpoint
x = mg.tensor([-1., -2.], requires_grad=True)
y = checkpoint(F.relu, x, use_reentrant=False)  #!
y.sum().backward()
answer = mg.why(x)

=== parameter | made a parameter after computing
x = mg.tensor([1., 2.], requires_grad=True)
p = nn.Parameter(x * 2)  #!
(p * p).sum().backward()
answer = mg.why(x)

=== detached | a name that was another tensor's before
x = mg.tensor([1., 2.], requires_grad=True)
w = mg.ones(2, requires_grad=True)
y = mg.argmax(x) * w
y.sum().backward()
x = mg.tensor([1., 2.], requires_grad=True)
y = x.detach()  #!
(y * w).sum().backward()
answer = mg.why(x)

=== overwritten | an index that names an element twice
x = mg.tensor([1., 2., 3.], requires_grad=True)
y = mg.zeros(3)
y[mg.tensor([0, 0, 1])] = x * 2  #!
y.sum().backward()
answer = mg.why(x[0])

=== zero | before backward, with a loss
x = mg.tensor([1., 2.], requires_grad=True)
y = x * mg.zeros(2)  #!
loss = y.sum()
answer = mg.why(x, loss)
"""

CASES = _cases()
