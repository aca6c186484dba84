"""The score of nested NER, as a function and as an `evaluate` metric; both are the same code.

```python
>>> from hf_spanner.metrics import format_scores, score_entities
>>> scores = score_entities(predictions=[[(0, 2, "PER")]], references=[[(0, 2, "PER"), (1, 2, "LOC")]])
>>> scores["precision"], scores["recall"]
(1.0, 0.5)

```
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .given_spans import score_typing
from .nested_ner.scoring import score_entities, scores_of_counts
from .tables import format_scores

if TYPE_CHECKING:
    import evaluate

METRIC_FOLDER = Path(__file__).resolve().parent / "nested_ner"


def load_metric(**kwargs: Any) -> evaluate.EvaluationModule:
    """The metric as an `evaluate` module, loaded from this package's folder without a network.

    Keyword arguments go to `evaluate.load`, e.g. `num_process`, `process_id` and `experiment_id` of a distributed run.
    """
    import evaluate  # here, because it brings in datasets: a second that `import hf_spanner` should not cost

    return evaluate.load(str(METRIC_FOLDER), **kwargs)


__all__ = [
    "METRIC_FOLDER",
    "format_scores",
    "load_metric",
    "score_entities",
    "score_typing",
    "scores_of_counts",
]
