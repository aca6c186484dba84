"""Entities in a notebook: an object that shows itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..modeling.decoding import Entity
from .drawing import render


@dataclass(frozen=True, repr=False)
class View:
    """A text and its entities. A notebook shows it as HTML, everything else as plain text."""

    text: str | Sequence[str]
    entities: Sequence[Mapping[str, Any] | Entity]
    options: Mapping[str, Any]

    def _repr_html_(self) -> str:
        return render(self.text, self.entities, "html", **self.options)

    def __repr__(self) -> str:
        return render(self.text, self.entities, "ansi", color=False)


def show(
    entities: Iterable[Mapping[str, Any] | Entity],
    text: str | Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    theme: str = "auto",
) -> View:
    """What shows the entities of a text when it is the last line of a notebook's cell.

    What the pipeline returns stays a plain list, because its offsets mean nothing without a text and a list that looks
    like something else surprises whoever prints it.

    ```python
    >>> hf_spanner.show(ner(text), text)
    ```

    Args:
        entities, text, labels, theme: as in `render`.
    """
    if isinstance(entities, (str, Mapping)):
        raise TypeError("show(entities, text) takes the entities first, a list: show(ner(text), text).")
    view = View(text, list(entities), {"labels": labels, "theme": theme})
    repr(view)  # a mistake in the entities is said here, not when a notebook tries to show them
    return view
