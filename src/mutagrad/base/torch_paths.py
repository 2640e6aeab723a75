"""Where PyTorch's modules are in this package."""
from __future__ import annotations

# Where a module is under another path than PyTorch's.
ELSEWHERE = {
    "functorch": "mutagrad.func",
    "torch._C._functorch": "mutagrad.torch_api.unavailable._functorch",
    "torch._custom_ops": "mutagrad.library",
    "torch._dynamo._trace_wrapped_higher_order_op": "mutagrad.compiler",
    "torch._dynamo.utils": "mutagrad.compiler",
    "torch._functorch": "mutagrad.func",
    "torch._functorch.vmap": "mutagrad.func.batching",
    "torch._higher_order_ops": "mutagrad.control",
    "torch._higher_order_ops.associative_scan": "mutagrad.control",
    "torch._higher_order_ops.cond": "mutagrad.control",
    "torch._higher_order_ops.scan": "mutagrad.control",
    "torch._higher_order_ops.while_loop": "mutagrad.control",
    "torch._jit_internal": "mutagrad.jit",
    "torch._subclasses": "mutagrad.fx",
    "torch._subclasses.fake_tensor": "mutagrad.fx",
    "torch._tensor_str": "mutagrad.tensors.printing",
    "torch.ao": "mutagrad.quantization",
    "torch.ao.quantization": "mutagrad.quantization",
    "torch.distributed._composable": "mutagrad.distributed.others",
    "torch.distributed._composable.fsdp": "mutagrad.distributed.fsdp",
    "torch.distributed._tensor": "mutagrad.distributed.tensor",
    "torch.distributed._tensor.experimental": "mutagrad.distributed.others",
    "torch.distributed.autograd": "mutagrad.distributed.others",
    "torch.distributed.elastic": "mutagrad.distributed.others",
    "torch.distributed.elastic.multiprocessing": "mutagrad.distributed.others",
    "torch.distributed.elastic.multiprocessing.errors": "mutagrad.distributed.others",
    "torch.distributed.nn": "mutagrad.distributed.functional",
    "torch.distributed.optim": "mutagrad.distributed.others",
    "torch.distributed.rpc": "mutagrad.distributed.others",
    "torch.distributed.tensor.experimental": "mutagrad.distributed.others",
    "torch.distributed.tensor.placement_types": "mutagrad.distributed.placements",
    "torch.distributed.nn.functional": "mutagrad.distributed.functional",
    "torch.fx.experimental": "mutagrad.fx",
    "torch.fx.experimental.proxy_tensor": "mutagrad.fx",
    "torch.jit.annotations": "mutagrad.jit",
    "torch.nn.attention.flex_attention": "mutagrad.nn.flex_attention",
    "torch.nn.parallel.data_parallel": "mutagrad.nn.parallel",
    "torch.nn.parallel.distributed": "mutagrad.nn.parallel",
    "torch.nn.parallel.scatter_gather": "mutagrad.nn.parallel",
    "torch.onnx.symbolic_helper": "mutagrad.onnx",
    "torch.onnx.symbolic_opset11": "mutagrad.onnx",
    "torch.quantization": "mutagrad.quantization",
    "torch.torch_version": "mutagrad.torch_api.import_hook",
    "torch.utils.data._utils": "mutagrad.utils.data",
    "torch.utils.data._utils.collate": "mutagrad.utils.data.collate",
    "torch.utils.data._utils.worker": "mutagrad.utils.data.workers",
    "torch.utils.model_zoo": "mutagrad.hub",
}


def our_path(path: str) -> str:
    """Return the path, in this package, of the module that PyTorch has at `path`."""
    return ELSEWHERE.get(path, "mutagrad" + path[len("torch"):])
