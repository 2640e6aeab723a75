"""Normal numbers in single precision, as ops/random/box_muller.py explains them. As rows.py, for Numba to read."""
# ruff: noqa: F821
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations


def normals(start, stop, x, mean, std):
    """Groups of two rows of uniform numbers, in place: of radii and of angles. W(F(...)) rounds to single precision."""
    for r in range(start, stop):
        radii, angles = x[r, 0], x[r, 1]
        for j in range(radii.size):
            # The logarithm of u, which is 2^power times a number around 1.
            u = F(1.0) - radii[j]
            bits = i_of_f(u)
            power = F((bits >> np.int32(23)) - np.int32(126))
            v = f_of_i((bits & np.int32(0x007FFFFF)) | np.int32(0x3F000000))
            small = v < F(0.707106781186547524)
            power = power - F(1.0) if small else power
            v = (v - F(1.0)) + (v if small else F(0.0))
            square = v * v
            w = W(v)
            p = W(F(7.0376836292e-2))
            p = W(F(p * w + W(F(-1.1514610310e-1))))
            p = W(F(p * w + W(F(1.1676998740e-1))))
            p = W(F(p * w + W(F(-1.2420140846e-1))))
            p = W(F(p * w + W(F(1.4249322787e-1))))
            p = W(F(p * w + W(F(-1.6668057665e-1))))
            p = W(F(p * w + W(F(2.0000714765e-1))))
            p = W(F(p * w + W(F(-2.4999993993e-1))))
            p = W(F(p * w + W(F(3.3333331174e-1))))
            p = W(F(p * w))
            p = W(F(p * W(square) + W(power * F(-2.12194440e-4))))
            p = W(F(p - 0.5 * W(square)))
            total = W(F(w + p))
            radius = np.sqrt(F(-2.0) * F(W(power) * 0.693359375 + total))
            # The sine and cosine of an angle, less an even number of eighths of a turn.
            angle = F(6.283185307179586) * angles[j]
            part = (np.int32(angle * F(1.27323954473516)) + np.int32(1)) & np.int32(-2)
            parts = W(part)
            a = W(F(parts * -0.78515625 + W(angle)))
            a = W(F(parts * -2.4187564849853515625e-4 + a))
            a = W(F(parts * W(F(-3.77489497744594108e-8)) + a))
            z = W(F(a * a))
            c = W(F(W(F(2.443315711809948e-5)) * z + W(F(-1.388731625493765e-3))))
            c = W(F(c * z + W(F(4.166664568298827e-2))))
            c = W(F(c * z))
            cosine = F(c * z - 0.5 * z) + F(1.0)
            s = W(F(W(F(-1.9515295891e-4)) * z + W(F(8.3321608736e-3))))
            s = W(F(s * z + W(F(-1.6666654611e-1))))
            s = W(F(s * z))
            sine = F(s * a + a)
            swapped = (part & np.int32(2)) != 0
            up, along = (cosine if swapped else sine), (sine if swapped else cosine)
            up = -up if (part & np.int32(4)) != 0 else up
            along = along if ((part - np.int32(2)) & np.int32(4)) != 0 else -along
            radii[j] = F(W(radius * along) * std + mean)
            angles[j] = F(W(radius * up) * std + mean)
