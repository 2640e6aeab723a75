"""Samples of the Fourier transforms. (Frequencies and windows are not functions of tensors: test_fourier.py has them.)"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, P, R, elsewhere, op


def swapped(norm: str | None) -> str:
    return {"forward": "backward", "ortho": "ortho"}.get(norm or "backward", "forward")


def along(f: Any, many: bool = False) -> Any:
    """NumPy's transform under PyTorch's names."""
    if many:
        return lambda x, s=None, dim=None, norm=None: f(x, s, tuple(range(x.ndim - len(s), x.ndim)) if s is not None and dim is None else dim, norm)
    return lambda x, n=None, dim=-1, norm=None: f(x, n, dim, norm)


def hfft(x: Array, s: Any = None, dim: Any = None, norm: Any = None) -> Array:
    return along(np.fft.irfftn, True)(np.conj(x), s, dim, swapped(norm))


def ihfft(x: Array, s: Any = None, dim: Any = None, norm: Any = None) -> Array:
    return np.conj(along(np.fft.rfftn, True)(x, s, dim, swapped(norm)))


for name, ref in (("fft", np.fft.fft), ("ifft", np.fft.ifft), ("irfft", np.fft.irfft), ("hfft", np.fft.hfft)):
    op(f"fft.{name}", R(3, 8), ref=along(ref), complex=True)
    op(f"fft.{name}", R(5, 4), n=7, dim=0, norm="ortho", ref=along(ref), complex=True)
    op(f"fft.{name}", R(2, 7), 4, norm="forward", ref=along(ref), complex=True)
for name, ref in (("rfft", np.fft.rfft), ("ihfft", np.fft.ihfft)):
    op(f"fft.{name}", R(3, 8), ref=along(ref))
    op(f"fft.{name}", R(5, 4), n=7, dim=0, norm="ortho", ref=along(ref))
    op(f"fft.{name}", R(2, 7), 4, norm="forward", ref=along(ref))
for name, ref in (("fft2", np.fft.fft2), ("ifft2", np.fft.ifft2), ("irfft2", np.fft.irfft2), ("hfft2", None)):
    op(f"fft.{name}", R(2, 3, 4), ref=lambda x, f=ref or hfft: f(x, None, (-2, -1)), complex=True)
for name, ref in (("rfft2", np.fft.rfft2), ("ihfft2", None)):
    op(f"fft.{name}", R(2, 3, 4), ref=lambda x, f=ref or ihfft: f(x, None, (-2, -1)))
for name, ref in (("fftn", along(np.fft.fftn, True)), ("ifftn", along(np.fft.ifftn, True)), ("irfftn", along(np.fft.irfftn, True)), ("hfftn", hfft)):
    op(f"fft.{name}", R(2, 3, 4), ref=ref, complex=True)
    op(f"fft.{name}", R(2, 3, 4), s=(4, 5), norm="ortho", ref=ref, complex=True)
    op(f"fft.{name}", R(2, 3, 4), dim=(2, 0), norm="forward", ref=ref, complex=True)
for name, ref in (("rfftn", along(np.fft.rfftn, True)), ("ihfftn", ihfft)):
    op(f"fft.{name}", R(2, 3, 4), ref=ref)
    op(f"fft.{name}", R(2, 3, 4), s=(4, 5), norm="ortho", ref=ref)
for name, ref in (("fftshift", np.fft.fftshift), ("ifftshift", np.fft.ifftshift)):
    op(f"fft.{name}", R(5, 4), ref=ref)
    op(f"fft.{name}", R(5, 4), dim=0, ref=lambda x, dim, f=ref: f(x, dim))

# -------------------------------------------------------------------------------------------------------- pieces of a signal


def stft(x: Array, n_fft: int, hop_length: int, window: Array | None = None, center: bool = True, onesided: bool = True, pad_mode: str = "reflect",
         return_complex: bool = True) -> Array:
    window = np.ones(n_fft, x.dtype) if window is None else window
    left = (n_fft - len(window)) // 2
    window = np.pad(window, (left, n_fft - len(window) - left))
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], pad_mode) if center else x
    pieces = [x[..., i:i + n_fft] * window for i in range(0, x.shape[-1] - n_fft + 1, hop_length)]
    found = np.stack([(np.fft.rfft if onesided else np.fft.fft)(p) for p in pieces], -1)
    return found if return_complex else np.stack([found.real, found.imag], -1)


def istft(x: Array, n_fft: int, hop_length: int, window: Array) -> Array:
    pieces = np.fft.irfft(np.swapaxes(x, -1, -2), n_fft) * window
    total, share = np.zeros((*x.shape[:-2], (x.shape[-1] - 1) * hop_length + n_fft)), np.zeros((x.shape[-1] - 1) * hop_length + n_fft)
    for i in range(x.shape[-1]):
        total[..., i * hop_length:i * hop_length + n_fft] += pieces[..., i, :]
        share[i * hop_length:i * hop_length + n_fft] += window**2
    inside = slice(n_fft // 2, len(share) - n_fft // 2)
    return (total[..., inside] / share[inside]).astype(window.dtype)


op("stft", R(20), n_fft=8, hop_length=3, return_complex=True, ref=stft)
op("stft", R(2, 12), n_fft=6, hop_length=2, window=P(4), win_length=4, center=False, onesided=False, return_complex=True,
   ref=lambda x, win_length, **settings: stft(x, **settings))
op("stft", R(12), n_fft=6, hop_length=4, window=P(6), pad_mode="constant", return_complex=False, ref=stft)
SPECTRA = np.fft.rfft(np.random.default_rng(0).normal(size=(2, 5, 6))).swapaxes(1, 2).astype(np.complex64)
op("istft", SPECTRA, n_fft=6, hop_length=2, window=P(6), ref=istft)

elsewhere("fft.fftfreq fft.rfftfreq bartlett_window blackman_window hamming_window hann_window kaiser_window")
