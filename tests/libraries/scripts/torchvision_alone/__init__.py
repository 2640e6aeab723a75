"""Imports torchvision where its compiled operations cannot be loaded: they are built for one build of PyTorch.

Its Python parts need two of them declared. The scripts here call none.
"""
import torch

try:
    import torchvision
except RuntimeError:  # operator torchvision::nms does not exist
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision  # noqa: F401
