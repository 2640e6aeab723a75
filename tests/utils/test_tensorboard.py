"""Does the log for TensorBoard say what was added? It is read back by what the formats say, not by what wrote it."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.utils.event_file import crc32c
from mutagrad.utils.tensorboard import SummaryWriter


def number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def message(data: bytes) -> dict[int, Any]:
    """The fields of a message by their numbers."""
    fields, at = {}, 0
    while at < len(data):
        key, at = number(data, at)
        if key & 7 == 0:
            value, at = number(data, at)
        else:
            length, at = (8, at) if key & 7 == 1 else (4, at) if key & 7 == 5 else number(data, at)
            content, at = data[at:at + length], at + length
            value = {1: "<d", 5: "<f"}.get(key & 7, content)
            value = struct.unpack(value, content)[0] if isinstance(value, str) else value
        fields[key >> 3] = value
    return fields


def masked(data: bytes) -> int:
    return ((crc32c(data) >> 15 | crc32c(data) << 17) + 0xA282EAD8) % 2**32


def events(folder: Path) -> list[dict[int, Any]]:
    file, = folder.glob("events.out.tfevents.*")
    data, found = file.read_bytes(), []
    while data:
        length, check = struct.unpack("<QI", data[:12])
        event = data[12:12 + length]
        assert check == masked(data[:8]) and struct.unpack("<I", data[12 + length:16 + length])[0] == masked(event)
        found.append(message(event))
        data = data[16 + length:]
    assert found[0][3] == b"brain.Event:2"
    return found[1:]


def values(folder: Path) -> list[tuple[int | None, dict[int, Any]]]:
    return [(event.get(2), message(message(event[5])[1])) for event in events(folder)]


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_scalars_and_text(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", mg.tensor(0.5, requires_grad=True), 300, walltime=7.0)
        writer.add_scalar("loss", 2, 301)
        writer.add_scalars("both/of", {"a": 1.0, "b": 3.0}, 4)
        writer.add_text("note", "*hello*")
    assert events(tmp_path)[0][1] == 7.0
    (_, first), (step, second), (no_step, text) = values(tmp_path)
    assert first == {1: b"loss", 2: 0.5} and (step, second[2]) == (301, 2.0)
    assert no_step is None and text[1] == b"note/text_summary" and message(text[8])[8] == b"*hello*" and message(message(text[9])[1])[1] == b"text"
    assert values(tmp_path / "both_of_b") == [(4, {1: b"both/of", 2: 3.0})]


def test_a_histogram_counts_every_value(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", mg.tensor([-1.0, 0.5, 0.5, 2.0]), 0)
        writer.add_histogram("w", np.array([0.0, 0.0, 1.0]), 1, bins=4)
    for (_, value), data, in zip(values(tmp_path), ([-1.0, 0.5, 0.5, 2.0], [0.0, 0.0, 1.0]), strict=True):
        found = message(value[5])
        limits, counts = np.frombuffer(found[6]), np.frombuffer(found[7])
        assert [found[i] for i in range(1, 6)] == [min(data), max(data), len(data), sum(data), sum(x * x for x in data)]
        assert len(limits) == len(counts) and counts[0] == 0 and counts.sum() == len(data) and (np.diff(limits) > 0).all()
        assert limits[0] <= min(data) and limits[-1] >= max(data)


@pytest.mark.parametrize("order, shape, size", [("CHW", (3, 2, 5), (2, 5, 3)), ("HWC", (2, 5, 4), (2, 5, 4)), ("HW", (2, 5), (2, 5, 1)), ("NCHW", (9, 1, 2, 3), (4, 24, 1))])
def test_an_image_is_a_png_file(tmp_path: Path, order: str, shape: tuple[int, ...], size: tuple[int, ...]) -> None:
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("bytes", mg.tensor(pixels), dataformats=order)
        writer.add_image("floats", mg.tensor(pixels / np.float32(255)) + 0.001, dataformats=order)
    (_, first), (_, second) = values(tmp_path)
    image = message(first[4])
    assert (image[1], image[2], image[3]) == size and image == message(second[4])
    rows = np.frombuffer(zlib.decompress(image[4][41:-16]), np.uint8).reshape(size[0], -1)
    assert image[4][:8] == b"\x89PNG\r\n\x1a\n" and not rows[:, 0].any() and rows.sum(dtype=int) == pixels.sum(dtype=int)
    if order == "NCHW":
        for shown, at in ((0, (0, 0)), (1, (0, 1)), (8, (1, 0))):
            assert np.array_equal(rows[2 * at[0]:2 * at[0] + 2, 1 + 3 * at[1]:4 + 3 * at[1]], pixels[shown, 0])
    if order in ("HW", "CHW"):
        open_image = pytest.importorskip("PIL.Image", reason="matplotlib brings it: pip install 'mutagrad[examples]'").open
        assert np.array_equal(np.asarray(open_image(io.BytesIO(image[4]))), pixels if order == "HW" else pixels.transpose(1, 2, 0))


def test_what_it_cannot_write_is_refused(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path, purge_step=5) as writer:
        for refused in (lambda: writer.add_graph(None), lambda: writer.add_scalar("a", 1, new_style=True), lambda: writer.add_histogram("a", mg.ones(2), max_bins=3)):
            with pytest.raises(NotImplementedError):
                refused()
        for wrong in (lambda: writer.add_image("a", mg.ones(2, 3)), lambda: writer.add_image("a", mg.ones(5, 2, 2)), lambda: writer.add_histogram("a", mg.tensor([])),
                      lambda: writer.add_histogram("a", mg.tensor([float("nan")]))):
            with pytest.raises(RuntimeError):
                wrong()
        assert writer.get_logdir() == str(tmp_path)
    event, = events(tmp_path)
    assert event[2] == 5 and message(event[7])[1] == 1
