"""Files of weights in PyTorch's cache: those that are there are found, and nothing is downloaded."""
from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn
from urllib.parse import urlparse

from ..base.errors import BadFile, MissingExtra, NotSupported
from ..files import load as load_file

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_directory: dict[str, str] = {}


def _get_torch_home() -> str:
    """Return where PyTorch keeps its files: $TORCH_HOME, or ~/.cache/torch."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return where the cache is: $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    return _directory.get("set") or os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    _directory["set"] = os.path.expanduser(d)


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
                             check_hash: bool = False, file_name: str | None = None,
                             weights_only: bool | None = None) -> Any:
    """Return what `load` reads from the file of that name, if it is in the cache.

    `check_hash=True` compares it with its name, which has the first digits of its SHA-256 (`resnet18-f37072fd.pth`),
    and removes a file that differs. A name without digits has nothing to compare with, as in PyTorch.
    """
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), name)
    if not os.path.exists(path):
        raise NotSupported(f"hub: {url} is not downloaded, and {path} is not there", fix="put the file there")
    if check_hash:
        _check_hash(path, name)
    return load_file(path, map_location=map_location, weights_only=weights_only)


def _check_hash(path: str, name: str) -> None:
    """Remove a file and raise, unless its digest begins as its name says."""
    wanted = HASH_REGEX.search(name)
    if wanted is None:
        return
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    found = digest.hexdigest()
    if not found.startswith(wanted[1]):
        os.remove(path)
        raise BadFile(f'hub: invalid hash value (expected "{wanted[1]}", got "{found}"): {path} has been removed',
                      why="it is damaged, or another file under this name",
                      fix="download it again, or check_hash=False")


load_url = load_state_dict_from_url  # torch.utils.model_zoo's name for it


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refused(source: Any = "", *arguments: Any, **settings: Any) -> NoReturn:
        raise NotSupported(f"hub.{name}: {source} is not downloaded",
                           fix="import the model's code, and mutagrad.load its weights from a file")

    return refused


load, list, help, download_url_to_file = map(_refuse, ("load", "list", "help", "download_url_to_file"))


def __getattr__(name: str) -> Any:
    """Find `tqdm`, which programs import from here."""
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module("tqdm").tqdm
    except ImportError:
        raise MissingExtra("hub.tqdm: tqdm is not installed", fix="pip install 'mutagrad[progress]'") from None
