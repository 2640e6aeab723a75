"""What watches calls follows the values of sparse tensors."""
from __future__ import annotations

import pytest

import mutagrad as mg

pytest.importorskip("scipy", reason="the extra `scipy`")


def program() -> mg.Tensor:
    w = mg.ones(3, requires_grad=True)
    for s in (mg.eye(3).to_sparse(), mg.eye(3).to_sparse_csr()):
        (s @ w[:, None]).sum().backward()
    mg.eye(3).to_sparse().values().mul_(2)
    return w


def test_doctor_follows_sparse_tensors() -> None:
    with mg.doctor() as found:
        program()
    assert found.stumbled == [] and list(found.findings) == []


def test_a_trace_and_a_profile_do() -> None:
    with mg.trace() as t, mg.profile() as p:
        assert program().grad.tolist() == [2, 2, 2]
    assert t.unrecorded == 0 and "matmul" in str(p)
