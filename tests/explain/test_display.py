"""How notebooks show tensors: always something, never an error, with what is drawn being what is in them."""
from __future__ import annotations

import re
import struct
import subprocess
import sys
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.explain.display import panels, sparkline
from mutagrad.explain.png import as_image, heat_map, png

NAN, INF = float("nan"), float("inf")
TENSORS: dict[str, Any] = {
    "0-d": lambda: mg.tensor(3.), "empty": lambda: mg.tensor([]), "empty matrix": lambda: mg.zeros(0, 3), "empty images": lambda: mg.zeros(2, 3, 0, 9),
    "nan": lambda: mg.full((3, 3), NAN), "inf": lambda: mg.full((3,), -INF), "mixed": lambda: mg.tensor([NAN, 1., INF, 2., 3.]),
    "complex": lambda: mg.ones(3, 4, dtype=mg.complex64), "bool": lambda: mg.eye(4) > 0, "vector of bools": lambda: mg.ones(5) > 0, "int": lambda: mg.arange(9),
    "largest": lambda: mg.tensor([[1e308, -1e308]], dtype=mg.float64), "long": lambda: mg.linspace(0, 1, 100_000), "huge": lambda: mg.tensor(1.).expand(10**6, 10**6),
    "half": lambda: mg.ones(3, 3).half(), "bytes": lambda: mg.zeros(20, 30, 3, dtype=mg.uint8), "uint16": lambda: mg.ones(3, dtype=mg.uint16),
    "image": lambda: mg.rand(3, 16, 16), "batch": lambda: mg.rand(20, 3, 16, 16), "4-d": lambda: mg.randn(2, 3, 4, 5), "7-d": lambda: mg.ones(1, 2, 1, 2, 1, 2, 3),
    "meta": lambda: mg.empty(3, 3, device="meta"), "parameter": lambda: nn.Parameter(mg.ones(2, 2)), "computed": lambda: nn.Parameter(mg.ones(2, 2)) * 2,
    "flipped": lambda: mg.arange(6.).flip(0), "transposed": lambda: mg.randn(3, 9).T, "uninitialized": lambda: nn.LazyLinear(3).weight,
    "one": lambda: mg.ones(1, 1, 1), "column": lambda: mg.ones(300, 1),
}


class Balanced(HTMLParser):
    """Fails where tags do not close as they open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("img", "path", "line"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "line"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def decoded(html: str) -> list[Any]:
    """The pixels of all images."""
    found = []
    for text in re.findall(r'src="data:image/png;base64,([^"]+)"', html):
        data, at, parts = b64decode(text), 8, {}
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        while at < len(data):
            length, name = struct.unpack(">I4s", data[at:at + 8])
            parts[name] = data[at + 8:at + 8 + length]
            assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(name + parts[name])
            at += 12 + length
        width, height = struct.unpack(">II", parts[b"IHDR"][:8])
        rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
        assert not rows[:, 0].any()
        found.append(rows[:, 1:].reshape(height, width, 3))
    return found


@pytest.mark.parametrize("kind", TENSORS)
def test_every_tensor_is_shown(kind: str) -> None:
    x = TENSORS[kind]()
    html = x._repr_html_()
    page = Balanced(html)
    assert repr(x) in page.text, "no error was hidden: it has the values"
    assert len(html) < 300_000
    decoded(html)
    if kind not in ("uninitialized",):
        assert str(tuple(x.shape)) in page.text and x.dtype.name in page.text, "and the line about it"


def test_bfloat16_is_shown() -> None:
    pytest.importorskip("ml_dtypes", reason="needs the extra bfloat16")
    for shape in ((5,), (4, 4), ()):
        assert "bfloat16" in Balanced(mg.ones(shape, dtype=mg.bfloat16)._repr_html_()).text


def test_vmap_and_grad_inside_functions() -> None:
    seen: list[str] = []

    def look(x: Any) -> Any:
        seen.append(x._repr_html_())
        return x * 2

    mg.vmap(look)(mg.ones(3, 4))
    assert seen and all(Balanced(html) for html in seen)


def test_html_is_escaped_and_a_broken_repr_is_survived() -> None:
    class Broken(mg.Tensor):
        def __repr__(self, **settings: Any) -> str:
            raise RuntimeError("<b>no</b>")

    class Odd(mg.Tensor):
        def __repr__(self, **settings: Any) -> str:
            return "<script>alert(1)</script>"

    html = mg.ones(3).as_subclass(Broken)._repr_html_()
    assert "<b>" not in html and "cannot be shown" in Balanced(html).text
    odd = mg.ones(3).as_subclass(Odd)._repr_html_()
    assert "<script" not in odd and "<script>alert(1)</script>" in Balanced(odd).text


def test_plain_repr_does_not_load_it() -> None:
    program = ("import sys, mutagrad as mg\nx = mg.ones(3, 3)\nrepr(x), str(x), f'{x}', mg.Tensor.__dict__['_repr_html_']\n"
               "print('mutagrad.explain.display' in sys.modules)\nx._repr_html_()\nprint('mutagrad.explain.display' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout == "False\nTrue\n"


def test_a_heat_map_has_the_colours_of_its_values() -> None:
    pixels = heat_map(np.array([[-1., 0., 4.], [NAN, INF, 0.5]]))
    blue, white, red = pixels[0]
    assert blue[2] > blue[0] and red[0] > red[2] and white.min() > 240, "zero is white"
    assert tuple(pixels[1, 0]) == (255, 0, 255) and tuple(pixels[1, 1]) == (0, 0, 0)
    rising = heat_map(np.arange(10.)[None])[0].astype(int).sum(1)
    assert (np.diff(rising) > 0).all(), "of one sign: from dark to light"


def test_images_are_drawn_as_they_are() -> None:
    x = mg.zeros(3, 8, 10)
    x[0, 0, 0], x[1, 0, 1], x[2, 7, 9] = 1., 0.5, 1.
    (pixels,) = decoded(x._repr_html_())
    assert pixels.shape == (8, 10, 3) and pixels[0, 0].tolist() == [255, 0, 0] and pixels[0, 1].tolist() == [0, 128, 0] and pixels[7, 9].tolist() == [0, 0, 255]
    last = mg.arange(8 * 9 * 3).reshape(8, 9, 3).to(mg.uint8)
    assert (decoded(last._repr_html_())[0] == last.numpy()).all()
    assert as_image(np.array([[[-2., 0., 2.]]])).tolist() == [[[0, 128, 255]]], "stretched"
    assert png(np.zeros((1, 1, 3), np.uint8)).startswith(b"\x89PNG")


def test_many_panels_are_cut_and_counted() -> None:
    html = panels(np.zeros((20, 4, 4)))
    assert len(decoded(html)) == 8 and "12 more" in html
    assert len(decoded(panels(np.zeros((2, 3, 4, 4))))) == 6
    assert decoded(panels(np.zeros((1000, 2000))))[0].shape == (250, 250, 3)


def test_a_sparkline_goes_where_the_values_go() -> None:
    ys = [float(y) for y in re.findall(r"[ML]\d+\.\d (\d+\.\d)", sparkline(np.array([0., 1., 2.])))]
    assert ys == sorted(ys, reverse=True) and len(ys) == 3
    assert sparkline(np.array([1., NAN, 1.])).count("M") == 2, "interrupted"
    assert sparkline(np.array([NAN, NAN])) == "" and "<line" in sparkline(np.array([-1., 1.])) and "<line" not in sparkline(np.array([1., 2.]))
    assert sparkline(np.linspace(0, 1, 100_000)).count("L") < 400
