"""Logs for TensorBoard: scalars, histograms, images and text, written as training goes on."""
from __future__ import annotations

import socket
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from ..arrays import np
from ..base.errors import BadValue, NotSupported, ShapeError
from ..base.operands import Array
from ..core.storage import TensorBase
from ..tensors.tensor import Tensor
from .event_file import EventFile, field, single

__all__ = ["SummaryWriter"]

_TEXT_TYPE = 7  # what TensorFlow calls DT_STRING


def _array(values: Any) -> Array:
    return values._array if isinstance(values, TensorBase) else np.asarray(values)


def _edges() -> Array:
    """Where TensorBoard's own buckets end: they grow by a tenth, on both sides of zero."""
    positive = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-positive[::-1], [0.0], positive])


def _histogram(values: Any, bins: Any) -> bytes:
    """The message about how many values each bucket holds; the first is empty and says where the second begins."""
    values = values.astype(np.float64).ravel()
    if not values.size or not np.isfinite(values).all():
        finite = np.isfinite(values).sum()
        raise BadValue(f"SummaryWriter.add_histogram: needs finite numbers, got {values.size} of which {finite} are",
                       fix="values[values.isfinite()]")
    counts, edges = np.histogram(values, bins=_edges() if isinstance(bins, str) and bins == "tensorflow" else bins)
    first, last = np.flatnonzero(counts)[[0, -1]]
    limits, found = edges[first:last + 2], np.concatenate([[0], counts[first:last + 1]])
    totals = (values.min(), values.max(), values.size, values.sum(), (values * values).sum())
    return (b"".join(field(i, float(total)) for i, total in enumerate(totals, 1))
            + field(6, limits.astype("<f8").tobytes()) + field(7, found.astype("<f8").tobytes()))


def _png(pixels: Array) -> bytes:
    """An image of (height, width, channels) in bytes as a PNG file."""
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    filters = np.zeros((height, 1), np.uint8)  # of each row, which begins with it: none
    rows = np.concatenate([filters, pixels.reshape(height, -1)], 1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(rows.tobytes()))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def _grid(images: Array) -> Array:
    """Images of (N, H, W, C) side by side, eight in a row."""
    count, height, width, channels = images.shape
    columns = min(count, 8)
    rows = -(-count // columns)
    full = np.concatenate([images, np.zeros((rows * columns - count, height, width, channels), images.dtype)])
    placed = full.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return placed.reshape(rows * height, columns * width, channels)


def _pixels(name: str, images: Any, order: str) -> Array:
    """The image, or a grid of images, as bytes of (height, width, channels); numbers but bytes go from 0 to 1."""
    images, order = _array(images), order.upper()
    if len(order) != images.ndim or set(order) - set("NHWC") or not {"H", "W"} <= set(order):
        raise ShapeError(f"{name}: dataformats={order!r} does not describe an image of shape {images.shape}",
                         fix="dataformats='CHW'")
    for missing in set("NC") - set(order):
        images, order = images[None], missing + order
    images = images.transpose([order.index(dim) for dim in "NHWC"])
    if images.shape[-1] not in (1, 2, 3, 4):
        raise ShapeError(f"{name}: an image has 1, 3 or 4 channels, not {images.shape[-1]}",
                         why=f"dataformats says {order}", fix="dataformats='HWC'")
    if images.dtype != np.uint8:
        images = np.clip(images.astype(np.float32) * 255, 0, 255).astype(np.uint8)
    return _grid(images)


def _refuse(name: str) -> Callable[..., None]:
    def refused(self: SummaryWriter, *arguments: Any, **settings: Any) -> None:
        raise NotSupported(f"SummaryWriter.{name}: not supported",
                           why="it writes scalars, histograms, images, figures and text",
                           fix="from tensorboardX import SummaryWriter, a package that has the rest")

    return refused


class SummaryWriter:
    """Writes what happens in training into a folder that TensorBoard shows.

    >>> import mutagrad as mg
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = mg.utils.tensorboard.SummaryWriter(folder)
    ...     writer.add_scalar("loss", 0.5, global_step=1)
    ...     writer.close()
    ...     len(os.listdir(folder))
    1
    """

    def __init__(self, log_dir: str | Path | None = None, comment: str = "", purge_step: int | None = None,
                 max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        started = datetime.now().strftime("%b%d_%H-%M-%S")
        self.log_dir = str(log_dir or Path("runs") / f"{started}_{socket.gethostname()}{comment}")
        self.purge_step, self.filename_suffix = purge_step, filename_suffix
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self._waiting, self._flushed = 0, time.monotonic()
        self._files: dict[Path, EventFile] = {}
        self._file(Path(self.log_dir))
        if purge_step is not None:
            start = field(7, field(1, 1))  # what was after this step is forgotten
            self._files[Path(self.log_dir)].write(start, purge_step)

    def _file(self, folder: Path) -> EventFile:
        if folder not in self._files:
            self._files[folder] = EventFile(folder, self.filename_suffix)
        return self._files[folder]

    def _add(self, tag: str, content: bytes, step: int | None, walltime: float | None, folder: str = "") -> None:
        """Writes one value; the files are flushed when enough of them wait, or long enough."""
        value = field(5, field(1, field(1, tag) + content))
        self._file(Path(self.log_dir + folder)).write(value, None if step is None else int(step), walltime)
        self._waiting += 1
        if self._waiting >= self.max_queue or time.monotonic() - self._flushed >= self.flush_secs:
            self.flush()

    def add_scalar(self, tag: str, scalar_value: Tensor | float, global_step: int | None = None,
                   walltime: float | None = None, new_style: bool = False, double_precision: bool = False) -> None:
        """Add a number.

        >>> import mutagrad as mg
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mg.utils.tensorboard.SummaryWriter(folder)
        ...     writer.add_scalar("loss", 0.5, 1)
        ...     writer.close()
        ...     len(os.listdir(folder))
        1
        """
        if new_style or double_precision:
            raise NotSupported("SummaryWriter.add_scalar: new_style and double_precision are not supported",
                               why="numbers are written in 32 bits", fix="add_scalar(tag, value, step)")
        self._add(tag, single(2, float(_array(scalar_value))), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: Mapping[str, Tensor | float], global_step: int | None = None,
                    walltime: float | None = None) -> None:
        """Add several numbers that are shown in one plot, each in a folder of its own.

        >>> import mutagrad as mg
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mg.utils.tensorboard.SummaryWriter(folder)
        ...     writer.add_scalars("loss", {"train": 0.5, "test": 0.7}, 1)
        ...     writer.close()
        ...     sorted(name for name in os.listdir(folder) if name.startswith("loss"))
        ['loss_test', 'loss_train']
        """
        for tag, value in tag_scalar_dict.items():
            folder = f"/{main_tag.replace('/', '_')}_{tag.replace('/', '_')}"
            self._add(main_tag, single(2, float(_array(value))), global_step, walltime, folder)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:
        """Add a histogram of values; bins is "tensorflow" or what `numpy.histogram` takes.

        >>> import mutagrad as mg
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mg.utils.tensorboard.SummaryWriter(folder)
        ...     writer.add_histogram("weights", mg.randn(10), 1)
        ...     writer.close()
        ...     len(os.listdir(folder))
        1
        """
        if max_bins is not None:
            raise NotSupported("SummaryWriter.add_histogram: max_bins is not supported", fix=f"bins={max_bins}")
        self._add(tag, field(5, _histogram(_array(values), bins)), global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:
        """Add an image: bytes, or numbers from 0 to 1.

        >>> import mutagrad as mg
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mg.utils.tensorboard.SummaryWriter(folder)
        ...     writer.add_image("image", mg.rand(3, 8, 8))
        ...     writer.close()
        ...     len(os.listdir(folder))
        1
        """
        pixels = _pixels("SummaryWriter.add_image", img_tensor, dataformats)
        height, width, channels = pixels.shape
        size = field(1, height) + field(2, width) + field(3, channels)
        self._add(tag, field(4, size + field(4, _png(pixels))), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:
        """Add several images side by side.

        >>> import mutagrad as mg
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mg.utils.tensorboard.SummaryWriter(folder)
        ...     writer.add_images("images", mg.rand(2, 3, 8, 8))
        ...     writer.close()
        ...     len(os.listdir(folder))
        1
        """
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
                   walltime: float | None = None) -> None:
        """Add figures of Matplotlib as they are drawn."""
        figures = figure if isinstance(figure, list) else [figure]
        drawn = []
        for each in figures:
            each.canvas.draw()
            drawn.append(np.asarray(each.canvas.buffer_rgba())[..., :3])
            if close:
                each.clear()
        self.add_image(tag, np.stack(drawn), global_step, walltime, "NHWC")

    def add_text(self, tag: str, text_string: str, global_step: int | None = None,
                 walltime: float | None = None) -> None:
        """Add a text, which may be Markdown.

        >>> import mutagrad as mg
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mg.utils.tensorboard.SummaryWriter(folder)
        ...     writer.add_text("note", "**done**")
        ...     writer.close()
        ...     len(os.listdir(folder))
        1
        """
        tensor = field(1, _TEXT_TYPE) + field(2, field(2, field(1, 1))) + field(8, text_string)
        self._add(f"{tag}/text_summary", field(8, tensor) + field(9, field(1, field(1, "text"))), global_step, walltime)

    add_audio, add_custom_scalars, add_embedding = map(_refuse, ("add_audio", "add_custom_scalars", "add_embedding"))
    add_graph, add_hparams, add_mesh = map(_refuse, ("add_graph", "add_hparams", "add_mesh"))
    add_onnx_graph, add_pr_curve, add_video = map(_refuse, ("add_onnx_graph", "add_pr_curve", "add_video"))

    def get_logdir(self) -> str:
        """Return the folder that is written.

        >>> import mutagrad as mg
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mg.utils.tensorboard.SummaryWriter(folder)
        ...     writer.get_logdir() == folder
        ...     writer.close()
        True
        """
        return self.log_dir

    def flush(self) -> None:
        """Bring everything to the disk.

        >>> import mutagrad as mg
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = mg.utils.tensorboard.SummaryWriter(folder)
        ...     writer.flush()
        ...     writer.close()
        ...     len(os.listdir(folder))
        1
        """
        self._waiting, self._flushed = 0, time.monotonic()
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """End the files; what is added afterwards begins new ones."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
