"""Tensors where numbers are meant: what PyTorch takes is taken here, and what it differentiates is differentiated."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mutagrad as mg
from samples import SAMPLES, Sample, listed
from test_numbers import ELSE, exchanged, numbers_in

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
# What PyTorch takes, and we refuse: sizes and counts that its Python code computes with, be they fractions; and the
# order of polygamma, which stands before or behind the tensor, and is known by not being one.
REFUSED = {("tensordot", "dims"), ("split", "1"), ("polygamma", "0")}


def outcome(library: Any, sample: Sample, form: Callable[..., Any], path: tuple[Any, ...], value: Any) -> Any:
    """The results of a sample's call with one number exchanged; an error if that is what comes."""
    library.manual_seed(0)
    tensors = [library.tensor(a) for a in sample.arrays()]
    tensors = [tensors[0].clone(), *tensors[1:]] if sample.writes else tensors
    arguments, settings = sample.bind(tensors, library.tensor)
    nest = exchanged({"arguments": arguments, "settings": settings}, path, value)
    try:
        found = form(*nest["arguments"], **nest["settings"])
    except Exception as error:
        return error
    return [r for r in listed(tensors[0] if sample.writes else found) if isinstance(r, library.Tensor)]


def places(sample: Sample) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for path, value in numbers_in(sample.arguments):
        yield ("arguments", *path), value
    for key, given in sample.settings.items():
        for path, value in numbers_in(given):
            yield ("settings", key, *path), value


def leaf(library: Any, value: float) -> Any:
    return library.tensor(float(value), dtype=library.float64, requires_grad=True)


def differentiates(results: Any) -> bool:
    return not isinstance(results, Exception) and any(r.requires_grad for r in results)


def judged(sample: Sample) -> Iterator[str]:
    mine, theirs = sample.forms(mg), sample.forms(torch)
    for path, value in places(sample):
        for name in mine.keys() & theirs.keys() if (sample.name, str(path[1])) not in ELSE | REFUSED else ():
            if isinstance(outcome(torch, sample, theirs[name], path, value), Exception):
                continue  # PyTorch does not take this call as it is
            both = (mg, mine[name]), (torch, theirs[name])
            ours, expected = (outcome(library, sample, form, path, library.tensor(value)) for library, form in both)
            if not isinstance(expected, Exception) and isinstance(ours, Exception):
                yield f"{sample} {path}: refused, where PyTorch takes a tensor: {ours!r}"
            ours, expected = (outcome(library, sample, form, path, leaf(library, value)) for library, form in both)
            if math.isfinite(value) and differentiates(expected) and not differentiates(ours):
                yield f"{sample} {path}: not differentiated, where PyTorch does: {ours!r}"


BY_NAME: dict[str, list[Sample]] = {}
for sample in SAMPLES:
    if any(True for _ in places(sample)):
        BY_NAME.setdefault(sample.name, []).append(sample)


@pytest.mark.parametrize("samples", BY_NAME.values(), ids=BY_NAME)
def test_what_pytorch_takes_is_taken(samples: list[Sample]) -> None:
    assert not [text for sample in samples for text in judged(sample)]
