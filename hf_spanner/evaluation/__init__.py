"""Understanding results: scores by groups of entities, kinds of errors, calibration, thresholds, comparison.

```python
>>> from hf_spanner.evaluation import compare, read_predictions, summarise
>>> found = read_predictions("predictions.jsonl", sentences)
>>> summarise(found, sentences, train)["groups"]["nesting"]["both"]["f1"]
>>> compare({"shallow": found, "deep": other}, sentences, train)["tests"]["deep"]["p_randomisation"]
```
"""

from .calibration import calibration
from .comparison import bootstrap_f1, compare_systems, found_by, holm
from .errors import KINDS, Error, confusion, list_errors, summarise_errors
from .groups import format_groups, groupings, label_consistency, score_groups, unseen_density
from .mentions import Mention, list_mentions, score_mentions
from .predictions import read_predictions, write_predictions
from .scoring import evaluate
from .summary import compare, summarise
from .systems import System
from .thresholds import Tuned, f1_at, tune_threshold, tune_thresholds

__all__ = [
    "KINDS",
    "Error",
    "Mention",
    "System",
    "Tuned",
    "bootstrap_f1",
    "calibration",
    "compare",
    "compare_systems",
    "confusion",
    "evaluate",
    "f1_at",
    "format_groups",
    "found_by",
    "groupings",
    "holm",
    "label_consistency",
    "list_errors",
    "list_mentions",
    "read_predictions",
    "score_groups",
    "score_mentions",
    "summarise",
    "summarise_errors",
    "tune_threshold",
    "tune_thresholds",
    "unseen_density",
    "write_predictions",
]
