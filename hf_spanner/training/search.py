"""A search for the settings of a training: where it looks, and the study that remembers what it has seen."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..modeling.configuration_nested_ner import NestedNerConfig
from ..relabelling import shapes
from .arguments import NestedNerTrainingArguments

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

STUDY = "study.db"
NAME, ABOUT = "hf-spanner tune", "about"
AROUND = 5.0  # a learning rate is searched from a fifth of what training would use to five times as much
FRESH = 50.0  # that of new layers up to fifty times the encoder's, if nobody has said anything about it
SHARES = (0.95, 0.99, 0.999)  # of the entities: how long a span has to be to hold so many


class Space(NamedTuple):
    """Where a search looks."""

    rates: dict[str, tuple[float, float]]  # learning rates: from, to; uniform in their logarithm
    spans: list[int | None]  # values of `max_span_length`; empty if there is nothing to choose
    start: dict[str, Any]  # what training would use without a search: the first trial

    def suggest_rates(self, trial: Trial) -> dict[str, float]:
        """The learning rates of a trial."""
        ranges = self.rates.items()
        return {name: rounded(trial.suggest_float(name, low, high, log=True)) for name, (low, high) in ranges}

    def suggest_settings(self, trial: Trial) -> dict[str, Any]:
        """The settings of a trial's model."""
        return {"max_span_length": trial.suggest_categorical("max_span_length", self.spans)} if self.spans else {}


def rounded(rate: float) -> float:
    """A learning rate as one would write it."""
    return float(f"{rate:.3g}")


def make_space(
    args: NestedNerTrainingArguments, model: Any, sentences: Iterable[Mapping[str, Any]], is_trained: bool = False
) -> Space:
    """Where to look for the settings of a training, around those that it would have had.

    Args:
        model: as it would be trained.
        sentences: the training sentences, whose entities say how long spans may have to be.
        is_trained: whether the model goes on with trained weights, which may be made for its span length.
    """
    rate, head = args.learning_rate, args.head_learning_rate
    if model.config.encoder_config is None:  # all of it is head
        name = "learning_rate" if head is None else "head_learning_rate"
        rates, start = {name: around(head or rate)}, {name: head or rate}
    else:
        new = (rate / AROUND, rate * FRESH) if head is None else around(head)
        rates = {"learning_rate": around(rate), "head_learning_rate": new}
        start = {"learning_rate": rate, "head_learning_rate": head or rate}
    spans = span_lengths(model, sentences, is_trained)
    if spans:
        start["max_span_length"] = model.config.max_span_length
    return Space(rates, spans, start)


def around(rate: float) -> tuple[float, float]:
    return rate / AROUND, rate * AROUND


def span_lengths(model: Any, sentences: Iterable[Mapping[str, Any]], is_trained: bool) -> list[int | None]:
    """The values of `max_span_length` worth a try: its own, and those that hold nearly all entities; [] if fixed."""
    config, lengths = model.config, sorted(e["end"] - e["start"] for s in sentences for e in s["entities"])
    if not lengths or config.reach().unit != "word":
        return []
    enough = sorted({lengths[math.ceil(share * len(lengths)) - 1] for share in SHARES} - {config.max_span_length})
    values = [config.max_span_length, *(value for value in enough if can_have(model, value, is_trained))]
    return values if len(values) > 1 else []


def can_have(model: Any, span: int, is_trained: bool) -> bool:
    """Whether another `max_span_length` is allowed, changes what the model can find, and fits its weights."""
    config: NestedNerConfig = copy.deepcopy(model.config)
    config.max_span_length = span
    try:
        config._check()
    except ValueError:
        return False
    if config.reach() == model.config.reach():
        return False
    return not is_trained or shapes(config, type(model), 3) == shapes(model.config, type(model), 3)


# ----------------------------------------------------------------------------------------------------------- the study


def fingerprint(data: Mapping[str, Iterable[Mapping[str, Any]]]) -> str:
    """A few letters that change with any sentence or entity of the data."""
    digest = hashlib.sha256()
    for split, sentences in sorted(data.items()):
        digest.update(split.encode())
        for sentence in sentences:
            row = [sentence["tokens"], sentence["entities"], sentence.get("labels")]
            digest.update(json.dumps(row, sort_keys=True).encode())
    return digest.hexdigest()[:12]


def open_study(folder: Path, about: Mapping[str, Any], space: Space) -> Study:
    """The study in a folder, or a new one; one of another search is refused.

    A new one begins with what training would use. Trials that were interrupted are put in line again.

    Args:
        about: what is searched on what, by name; kept in the study to know it again.
    """
    import optuna

    try:
        study = optuna.create_study(
            study_name=NAME, storage=storage(folder), direction="maximize", load_if_exists=True
        )
        known = study.user_attrs.get(ABOUT)
    except Exception as error:  # of SQLAlchemy, Alembic or Optuna
        raise ValueError(
            f"{folder / STUDY} cannot be read as the study of a search ({type(error).__name__}): --overwrite begins "
            "anew, or name another output_dir."
        ) from error
    now = json.loads(json.dumps({**about, "rates": space.rates, "spans": space.spans}))
    if known is None:
        study.set_user_attr(ABOUT, now)
        study.enqueue_trial(space.start)
        return study
    for name in [*now, *known]:
        if known.get(name) != now.get(name):
            raise ValueError(
                f"{folder} holds a search with {name}={known.get(name)!r}, not {now.get(name)!r}: name another "
                "output_dir, or --overwrite begins anew."
            )
    _repeat_interrupted(study)
    return study


def storage(folder: Path) -> str:
    """Where Optuna keeps the study."""
    from sqlalchemy import URL

    return URL.create("sqlite", database=str(folder.resolve() / STUDY)).render_as_string()


def finished(study: Study) -> list[FrozenTrial]:
    """The trials that came to an end, or were stopped as they promised nothing."""
    from optuna.trial import TrialState

    return study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED))


def _repeat_interrupted(study: Study) -> None:
    from optuna.trial import TrialState

    for trial in study.get_trials(states=(TrialState.RUNNING,)):  # by a process that was killed
        study.tell(trial.number, state=TrialState.FAIL)
    trials = study.get_trials()
    known = [_values(trial) for trial in trials if trial.state != TrialState.FAIL]
    for values in (_values(trial) for trial in trials if trial.state == TrialState.FAIL):
        if values and values not in known:
            study.enqueue_trial(values)
            known.append(values)


def _values(trial: FrozenTrial) -> dict[str, Any]:
    """What a trial was, or will be, run with."""
    return trial.system_attrs.get("fixed_params") or trial.params
