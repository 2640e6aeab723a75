"""`nn.modules.conv`, PyTorch's path to the convolutions."""
from __future__ import annotations

from ..convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, _ConvNd

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "_ConvNd"]
