"""Several corpora as one, each sentence knowing which labels it is annotated with."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .describe import label_names
from .schema import several

if TYPE_CHECKING:
    import datasets


def join_corpora(corpora: Mapping[str, datasets.DatasetDict], complete: Collection[str] = ()) -> datasets.DatasetDict:
    """Join corpora of different labels split by split; one alone is returned as it is.

    Each sentence gets a column `corpus` and a column `labels`: those of its own corpus. That a biomedical corpus marks
    no person does not mean that it mentions none, so a model trains on a sentence against its `labels` alone.

    Args:
        corpora: by name or path; the corpus is called by the last part of it.
        complete: those that hold no entity of the others' labels, although they do not mark them (say, no proteins in
            news). Their sentences have all labels, and so are examples without the others' entities too.
    """
    from datasets import DatasetDict, concatenate_datasets

    if len(corpora) == 1:
        return next(iter(corpora.values()))
    if unknown := set(several("complete", complete)) - set(corpora):
        raise ValueError(f"complete names {sorted(unknown)}, but the corpora are {sorted(corpora)}.")
    names = {source: Path(source).name for source in corpora}
    if len(set(names.values())) < len(names):
        raise ValueError(f"Two corpora have the same name: {sorted(names.values())}. Rename the folder of one.")
    labels_of = {source: label_names(data) for source, data in corpora.items()}
    every = sorted(set().union(*labels_of.values()))
    joined: dict[str, list[datasets.Dataset]] = {}
    for source, data in corpora.items():
        labels = every if source in complete else labels_of[source]
        for split, part in data.items():
            part = part.add_column("corpus", [names[source]] * len(part))
            joined.setdefault(split, []).append(part.add_column("labels", [labels] * len(part)))
    return DatasetDict({split: concatenate_datasets(parts) for split, parts in joined.items()})


def by_corpus(part: datasets.Dataset) -> Iterator[tuple[str, datasets.Dataset]]:
    """The sentences of each corpus of a joined split, if there are several."""
    names = list(dict.fromkeys(part["corpus"])) if "corpus" in part.column_names else []
    for name in names if len(names) > 1 else ():
        yield name, part.select([index for index, corpus in enumerate(part["corpus"]) if corpus == name])
