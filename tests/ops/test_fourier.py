"""What the table of samples does not ask of Fourier transforms: frequencies, windows, round trips, refusals."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

WINDOWS = {
    "hann": (mg.hann_window, np.hanning), "hamming": (mg.hamming_window, np.hamming),
    "blackman": (mg.blackman_window, np.blackman), "bartlett": (mg.bartlett_window, np.bartlett),
    "kaiser": (mg.kaiser_window, lambda n: np.kaiser(n, 12.0)),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 16])
def test_windows_are_those_of_numpy(name: str, n: int) -> None:
    window, reference = WINDOWS[name]
    named = getattr(mg.signal.windows, name)
    periodic = reference(n + 1)[:n] if n > 1 else np.ones(n)
    for found, expected in ((named(n, dtype=mg.float64), reference(n)), (window(n, False, dtype=mg.float64), reference(n)),
                            (named(n, sym=False, dtype=mg.float64), periodic), (window(n, dtype=mg.float64), periodic)):
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    assert window(n).dtype is mg.float32


def test_windows_by_formula() -> None:
    t = np.arange(5.0)
    windows = mg.signal.windows
    for found, expected in ((windows.gaussian(5, std=2.0), np.exp(-((t - 2) / 2) ** 2 / 2)), (windows.exponential(5, tau=3.0), np.exp(-abs(t - 2) / 3)),
                            (windows.cosine(5), np.sin(np.pi / 5 * (t + 0.5))),
                            (windows.general_cosine(5, a=[0.4, 0.5, 0.1]), 0.4 - 0.5 * np.cos(np.pi * t / 2) + 0.1 * np.cos(np.pi * t)),
                            (windows.general_hamming(5, alpha=0.7), 0.7 - 0.3 * np.cos(np.pi * t / 2)),
                            (windows.nuttall(5), [0.0003628, 0.2269824, 1, 0.2269824, 0.0003628])):
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("n", [1, 4, 7])
def test_frequencies(n: int) -> None:
    assert np.allclose(mg.fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5))
    assert np.allclose(mg.fft.rfftfreq(n, d=2.0, dtype=mg.float64).numpy(), np.fft.rfftfreq(n, 2.0))


def test_transforms_keep_single_precision() -> None:
    x = mg.randn(3, 8, requires_grad=True)
    spectrum = mg.fft.rfft(x)
    assert spectrum.dtype is mg.complex64
    back = mg.fft.irfft(spectrum)
    assert back.dtype is mg.float32 and mg.allclose(back, x, atol=1e-5)
    back.sum().backward()
    assert x.grad.dtype is mg.float32 and mg.allclose(x.grad, mg.ones(3, 8), atol=1e-5)


def test_a_signal_comes_back_from_its_spectra() -> None:
    x = mg.randn(2, 40, dtype=mg.float64, requires_grad=True)
    window = mg.hann_window(16, dtype=mg.float64)
    back = mg.istft(mg.stft(x, 16, 4, window=window, return_complex=True), 16, 4, window=window, length=40)
    assert mg.allclose(back, x)
    weights = mg.randn(2, 40, dtype=mg.float64)
    (back * weights).sum().backward()
    assert mg.allclose(x.grad, weights)


def test_a_spectrum_is_changed_in_place() -> None:
    """A low-pass filter, written as one would with NumPy."""
    x = mg.randn(16, dtype=mg.float64, requires_grad=True)
    spectrum = mg.fft.rfft(x)
    spectrum[3:] = 0
    smooth = mg.fft.irfft(spectrum)
    smooth[0].backward()
    mask = np.arange(9) < 3
    expected = np.fft.irfft(np.fft.rfft(np.eye(16)[0]) * mask)
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(("call", "error"), [
    (lambda: mg.fft.fft(mg.tensor(1.0)), IndexError),
    (lambda: mg.fft.fft([1.0, 2.0]), TypeError),
    (lambda: mg.fft.fft(mg.ones(3), n=0), RuntimeError),
    (lambda: mg.fft.fft(mg.ones(3), norm="other"), RuntimeError),
    (lambda: mg.fft.rfft(mg.ones(3, dtype=mg.complex64)), RuntimeError),
    (lambda: mg.fft.irfft(mg.ones(1)), RuntimeError),
    (lambda: mg.fft.fftn(mg.ones(3, 3), dim=(0, 0)), RuntimeError),
    (lambda: mg.fft.fftn(mg.ones(3, 3), s=(3,), dim=(0, 1)), RuntimeError),
    (lambda: mg.fft.fft(mg.ones(3, dtype=mg.float16)), RuntimeError),
    (lambda: mg.stft(mg.ones(30), 8), RuntimeError),
    (lambda: mg.stft(mg.ones(30), 8, align_to_window=True, return_complex=True), NotImplementedError),
    (lambda: mg.istft(mg.ones(5, 4, dtype=mg.complex64), 8, hop_length=8, window=mg.hann_window(8)), RuntimeError),
    (lambda: mg.hann_window(-1), RuntimeError),
    (lambda: mg.hann_window(4, dtype=mg.int64), RuntimeError),
    (lambda: mg.signal.windows.gaussian(4, std=0.0), ValueError),
    (lambda: mg.signal.windows.hann(4, layout=mg.sparse_coo), ValueError),
])
def test_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        call()
    assert isinstance(raised.value, mg.MutagradError)
