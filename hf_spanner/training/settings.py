"""What a training does when nobody tells it: settings that follow from what is at hand, by one function, `choose`.

The values come from `scripts/sweep.py` and `scripts/race.py`. Flags, arguments and recipes are left as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

BATCH = 8  # sentences a step
MOST_STEPS = 40_000
LONGEST = (12, 40)  # the least and the highest cap on the words of an entity that is chosen
REACHED = 0.99  # of the entities in training and validation data, under that cap
EVALUATIONS = (3, 8)  # in a training: the least and the most
PATIENCE = 4  # evaluations without a better score
ENOUGH = 300  # validation sentences: by fewer a checkpoint is chosen for its luck, and the last is as good
COLLAPSED = 0.3  # of their variance words have within a sentence, in a layer that tells sentences apart and not words
SIZES = {"small": 512, "base": 896}  # the widest hidden state of such an encoder; a wider one is large


class Pace(NamedTuple):
    """Where training starts, learning rates of encoder and head, and how long: passes, and steps beyond them."""

    start: str
    encoder: float
    head: float
    passes: int
    steps: int


PACES = {  # by what training starts from
    "trained small": Pace("a small model trained for nested NER", 1e-4, 5e-4, 5, 400),
    "trained base": Pace("a base model trained for nested NER", 5e-5, 5e-4, 5, 400),
    "trained large": Pace("a large model trained for nested NER", 2e-5, 5e-4, 5, 400),
    "fresh small": Pace("a small encoder (up to 512 wide)", 1e-4, 1e-3, 5, 400),
    "fresh base": Pace("a base encoder (up to 896)", 5e-5, 1e-3, 5, 400),
    "fresh large": Pace("a large encoder", 2e-5, 1e-3, 5, 400),
    "word vectors": Pace("word vectors", 3e-3, 3e-3, 6, 400),
}


class Habit(NamedTuple):
    """What an approach wants otherwise: settings of a new model, the pace of the others times something, no cap."""

    model: dict[str, Any]
    head: float = 1.0
    passes: int = 1
    capped: bool = True


# The papers' dropouts and samples of negatives are for trainings of 20 passes and more.
ALL_SPANS = {"max_negatives": None, "loss_reduction": "sentence", "boundary_smoothing": 0.1, "dropout": 0.2}
HABITS = {
    "span_ner": Habit(ALL_SPANS),
    "bl_ner": Habit(ALL_SPANS),
    "seq_ner": Habit({"dropout": 0.2}, capped=False),
    "biaffine_ner": Habit({"encoder_dropout": 0.1, "lstm_dropout": 0.25, "dropout": 0.2, "affine_dropout": 0.1}),
    "cnn_ner": Habit({"encoder_dropout": 0.1, "dropout": 0.2, "affine_dropout": 0.1}),
    "dspert": Habit(
        {
            "encoder_dropout": 0.1,
            "init_dropout": 0.1,
            "lstm_dropout": 0.25,
            "dropout": 0.2,
            "pre_logit_dropout": 0.1,
        }
    ),
    "locate_and_label": Habit({"windows": None, "negative_ratio": None, "dropout": 0.2}),
    "diffusion_ner": Habit(
        {"num_noisy_spans": 30, "distance_weight": 2.0, "threshold": 0.4}, head=0.3, passes=4, capped=False
    ),
    "sng": Habit({"freeze_vectors": False}),
}


@dataclass(frozen=True)
class AtHand:
    """What there is to choose from.

    Attributes:
        approach: its name.
        trained: whether the model is trained for nested NER already.
        width: of the encoder's hidden states; None for an approach on word vectors.
        sentences, validation: how many to train on, and to choose the best checkpoint with.
        lengths: of the entities in training and validation data, in words.
        collapsed_layers: how many of the encoder's last layers give all words of a sentence nearly the same.
        batch: sentences of a step, if that is settled already.
    """

    approach: str
    trained: bool
    width: int | None
    sentences: int
    validation: int
    lengths: Sequence[int] = ()
    collapsed_layers: int = 0
    batch: int | None = None

    @property
    def start(self) -> str:
        """Which row of `PACES` it is."""
        if self.width is None:
            return "word vectors"
        size = next((name for name, widest in SIZES.items() if self.width <= widest), "large")
        return f"{'trained' if self.trained else 'fresh'} {size}"


@dataclass
class Choice:
    """Settings for a new model's configuration and for training, and why: a reason for each name."""

    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """What was chosen, and why: a line for each reason."""
        by_reason: dict[str, list[str]] = {}
        for name, value in {**self.model, **self.training}.items():
            if name not in ("eval_strategy", "save_strategy", "save_steps"):  # as eval_steps says
                by_reason.setdefault(self.why[name], []).append(f"{name} {shown(value)}")
        return [f"chosen: {', '.join(settings)} ({reason})" for reason, settings in by_reason.items()]


def choose(at_hand: AtHand) -> Choice:
    """The settings of a training, from what is at hand."""
    choice = Choice()

    def put(settings: dict[str, Any], reason: str, into: dict[str, Any] = choice.training) -> None:
        into |= settings
        choice.why |= dict.fromkeys(settings, reason)

    pace, habit = PACES[at_hand.start], HABITS.get(at_hand.approach, Habit({}))
    if not at_hand.trained:
        put(habit.model, "for a short training; the papers' are long", choice.model)
        if at_hand.collapsed_layers:
            put({"fresh_layers": at_hand.collapsed_layers}, "they give all words of a sentence the same", choice.model)
        if habit.capped and at_hand.lengths:
            put({"max_span_length": cap(at_hand.lengths)}, f"reaches {REACHED:.0%} of the entities", choice.model)

    rates = {"learning_rate": pace.encoder, "head_learning_rate": pace.head * habit.head}
    put(rates | {"warmup_steps": 0.1, "max_grad_norm": 5.0}, f"{at_hand.approach} from {pace.start}")

    a_pass = max(math.ceil(at_hand.sentences / (at_hand.batch or BATCH)), 1)  # in steps
    steps = min(habit.passes * (pace.passes * a_pass + pace.steps), MOST_STEPS)
    passes = max(math.ceil(steps / a_pass), 1)
    put(
        {"per_device_train_batch_size": BATCH, "num_train_epochs": float(passes)},
        f"{at_hand.sentences:,} sentences; {passes * a_pass:,} steps",
    )

    affordable = 2 * passes * at_hand.sentences // max(at_hand.validation, 1)  # a step costs three times the reading
    number = min(max(affordable, EVALUATIONS[0]), EVALUATIONS[1], passes * a_pass)
    every = math.ceil(passes * a_pass / number)
    often = {"eval_strategy": "steps", "eval_steps": every, "save_strategy": "steps", "save_steps": every}
    put(often, f"{number} times {at_hand.validation:,} validation sentences")
    if at_hand.validation >= ENOUGH:
        put({"patience": PATIENCE}, "the passes are not given")
    else:
        put({"load_best_model_at_end": False}, f"{at_hand.validation} validation sentences choose no checkpoint")
    return choice


def cap(lengths: Sequence[int]) -> int:
    """The fewest words under which `REACHED` of the entities are, within `LONGEST`."""
    needed = sorted(lengths)[math.ceil(REACHED * len(lengths)) - 1]
    return min(max(needed, LONGEST[0]), LONGEST[1])


def shown(value: Any) -> str:
    """A value as a flag has it."""
    return f"{value:g}" if isinstance(value, float) else "null" if value is None else str(value)


def table() -> str:
    """The rules in Markdown: what the README shows."""
    rows = [
        f"| {pace.start} | {pace.encoder:g} | {pace.head:g} | {pace.passes} passes + {pace.steps} steps |"
        for pace in PACES.values()
    ]
    habits = []
    for name, habit in HABITS.items():
        model = ", ".join(f"`{key} {shown(value)}`" for key, value in habit.model.items())
        factors = [f"head's learning rate × {habit.head:g}"] if habit.head != 1 else []
        factors += [f"{habit.passes} times as long"] if habit.passes != 1 else []
        factors += [] if habit.capped else ["entities of any length"]
        habits.append(f"| `{name}` | {', '.join([model, *factors])} |")
    return "\n".join(
        [
            "| training starts from | learning rate | of the head | length |",
            "|---|---|---|---|",
            *rows,
            "",
            "| approach | a new model's settings |",
            "|---|---|",
            *habits,
            "",
            "| otherwise | |",
            "|---|---|",
            f"| `per_device_train_batch_size` | {BATCH} |",
            "| `warmup_steps`, `max_grad_norm` | 0.1, 5 |",
            f"| `num_train_epochs` | the length above, at most {MOST_STEPS:,} steps |",
            f"| `max_span_length` | the fewest words that reach {REACHED:.0%} of the entities, "
            f"{LONGEST[0]} to {LONGEST[1]} |",
            "| `fresh_layers` | the last layers in which words of a sentence share "
            f"{1 - COLLAPSED:.0%} of their variance |",
            f"| `eval_steps`, `save_steps` | {EVALUATIONS[1]} evaluations; down to {EVALUATIONS[0]} where reading "
            "validation data would take longer than training |",
            f"| `patience` | {PATIENCE} evaluations, if the length is chosen |",
            f"| `load_best_model_at_end` | not with fewer than {ENOUGH} validation sentences |",
        ]
    )
