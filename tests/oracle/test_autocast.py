"""Which functions `autocast` casts on the CPU, and to what, against PyTorch."""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg

from .compare import ours

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytest.importorskip("ml_dtypes", reason="make oracle installs it")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# `L` is the library, F its functions for layers; x is 4 x 4, b the same in bfloat16, s symmetric in bfloat16, v has 4 elements, i are classes.
CALLS: dict[str, Any] = {name: eval(f"lambda L, F, x, b, s, v, i: {name}") for name in """
L.mm(x, x)
x @ x
v @ v
x @ b
x.double() @ x.double()
L.mv(x, v)
L.dot(v, v)
L.outer(v, v)
L.inner(x, x)
L.kron(x, x)
L.bmm(x[None], x[None])
L.addmm(x, x, x)
L.addmv(v, x, v)
L.baddbmm(x[None], x[None], x[None])
L.addbmm(x, x[None], x[None])
L.einsum('ij,jk->ik', x, x)
L.tensordot(x, x, 1)
L.chain_matmul(x, x, x)
L.linalg.multi_dot([x, x, x])
L.linalg.vecdot(x, x)
F.linear(x, x, v)
F.bilinear(x, x, x[None])
F.conv1d(x[None], x[:, :, None])
F.conv2d(x[None, None], x[None, None])
F.conv_transpose2d(x[None, None], x[None, None])
F.prelu(x, v[:1])
F.scaled_dot_product_attention(x[None], x[None], x[None])
F.softmax(b, -1)
F.layer_norm(b, (4,))
F.layer_norm(b, (4,), v, v)
F.group_norm(b[None], 2, v, v)
F.batch_norm(b, None, None, v, v, True)
F.cross_entropy(b, i)
F.nll_loss(b, i)
F.mse_loss(b, b * 2)
F.l1_loss(b, b * 2)
F.smooth_l1_loss(b, b * 2)
F.huber_loss(b, b * 2)
F.kl_div(b, b.sigmoid())
F.binary_cross_entropy(b.sigmoid(), b.sigmoid())
F.binary_cross_entropy_with_logits(b, b.sigmoid())
F.cosine_embedding_loss(b, b * 2, v * 0 + 1)
F.gelu(b)
F.normalize(b)
F.avg_pool2d(b[None], 2)
F.avg_pool3d(b[None, None], (1, 2, 2))
F.pad(b[None], (1, 1), mode='reflect')
F.pad(b[None], (1, 1))
F.interpolate(b[None], scale_factor=2.0)
F.embedding(i, x)
L.cdist(b, b * 2)
b.sum()
b.prod()
b.norm()
b.trace()
b.cumsum(0)
b.logsumexp(0)
L.quantile(b, 0.5)
L.cat([x, b])
L.stack([b, x])
L.where(b > 0, b, x)
x + b
b ** 2
L.linalg.inv(s)
L.linalg.cholesky(s)
L.linalg.eigvalsh(s)
L.linalg.svdvals(b)
L.linalg.solve(s, b)
L.linalg.norm(b)
L.fft.rfft(b).real
""".strip().splitlines()}


@pytest.mark.parametrize("name", CALLS)
def test_autocast(name: str) -> None:
    torch.manual_seed(0)
    x, v = torch.randn(4, 4), torch.randn(4)
    given = (x, x.bfloat16(), (x @ x.T + 4 * torch.eye(4)).bfloat16(), v, torch.tensor([0, 3, 1, 2]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = CALLS[name](torch, torch.nn.functional, *given)
    with mg.autocast("cpu", dtype=mg.bfloat16):
        found = CALLS[name](mg, mg.nn.functional, *map(ours, given))
    assert str(found.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
    tolerance = 4e-2 if "bfloat16" in f"{found.dtype}" else 2e-2
    assert mg.allclose(found.double(), ours(expected.double()), tolerance, tolerance)
