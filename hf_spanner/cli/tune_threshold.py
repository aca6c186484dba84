"""`hf-spanner tune-threshold`: the threshold with the best F1 on validation data, for all labels or for each."""

import json
from pathlib import Path
from typing import Any

from ..data.splits import load_split
from ..evaluation import f1_at, tune_threshold, tune_thresholds
from ..evaluation.calibration import calibration_error, fit_calibration
from ..evaluation.thresholds import FLOOR, predict_candidates, reaching, write_threshold
from ..loading import load_model
from ..metrics import score_entities
from ..modeling.decoding import Calibration, Entity
from .options import add_data_arguments, add_join_subwords, device_options, joined, make_parser, parse_with_data, say


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("tune-threshold", __doc__)
    add_data_arguments(parser, split="validation")
    add_join_subwords(parser)
    parser.add_argument("--model", required=True, help="folder or Hub id of a trained model")
    parser.add_argument("--per-label", action="store_true", help="a threshold for each label, not one for all")
    parser.add_argument(
        "--among",
        nargs="+",
        type=float,
        metavar="T",
        help="choose among these, such as 0.5 0.6 0.7, and say the F1 of each (default: any threshold)",
    )
    parser.add_argument(
        "--sum-of",
        type=int,
        default=1,
        metavar="N",
        help="the values of --among are sums of N probabilities: 3 for the φ of DiffusionNER's paper, 2.5 to 2.7",
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="make scores mean something, too: of entities with score 0.8 about 80 %% are right; --save keeps it",
    )
    parser.add_argument("--overlap", choices=["flat", "nested", "any"], help="default: the model's configuration")
    parser.add_argument("--head", choices=["span", "seq"], help="which head of a bundled model predicts")
    parser.add_argument("--save", action="store_true", help="write the threshold into the model's config.json")
    args = parse_with_data(parser, argv)

    if args.among is not None and (args.per_label or args.calibrate):
        raise ValueError(
            "--among chooses one threshold for scores as they are: leave --per-label and --calibrate out."
        )
    among = thresholds_among(args.among, args.sum_of)
    config = Path(args.model) / "config.json"
    if args.save and not config.is_file():
        raise ValueError(f"--save needs a folder, and {args.model} is none: download the model first.")
    model, tokenizer = load_model(args.model, **device_options(args))
    if args.calibrate:
        model.config.drop_calibration()  # it is made anew
    if model.task == "typing":
        raise ValueError(f"{args.model} types spans that it is given: there is no threshold to tune.")
    sentences, _, split = load_split(args.data, args.split, args.format, args.resplit, model.config.word_splitter)
    sentences = joined(sentences, args.join_subwords, args.model)
    gold = [sentence["entities"] for sentence in sentences]
    if not any(gold):
        raise ValueError(f"{args.data} ({split}) has no gold entity: there is nothing to tune a threshold on.")
    overlap = args.overlap or model.config.overlap
    options = {"head": args.head, "progress": True}
    candidates, default = predict_candidates(model, tokenizer, sentences, overlap, args.batch_size, **options)
    threshold: Any
    if args.per_label:
        threshold = tune_thresholds(candidates, gold, model.config.types, overlap).threshold
        threshold = {label: round(value, 4) for label, value in threshold.items()}
    elif among:
        f1 = {value: f1_at(value, candidates, gold, overlap) for value in among}
        for value in among:
            told = f" ({value * args.sum_of:g} of {args.sum_of} probabilities)" if args.sum_of > 1 else ""
            say(f"threshold {value:.4f}{told}: F1 {f1[value]:.4f}")
        threshold = max(among, key=lambda value: (f1[value], value))
    else:
        threshold = tune_threshold(candidates, gold, overlap).threshold
        threshold = round(threshold, 4)
    tuned = f1_at(threshold, candidates, gold, overlap)
    now = score_entities(default, gold)["f1"]
    before: Any = model.config.threshold
    before = "no threshold: a label has to beat none" if before is None else f"threshold {json.dumps(before)}"
    say(f"{args.model} on {args.data} ({split}, {len(sentences):,} sentences)")
    say(f"as it is   F1 {now:.4f}  {before}")
    say(f"tuned      F1 {tuned:.4f}  threshold {json.dumps(threshold, ensure_ascii=False)}")
    found: dict[str, Any] = {}
    if args.calibrate:
        points = fit_calibration(candidates, gold, overlap)
        before, after = calibration_errors(candidates, gold, overlap, threshold)
        rise = Calibration(points)
        if args.per_label:
            threshold = {label: round(rise(score), 4) for label, score in threshold.items()}
        else:
            threshold = round(rise(threshold), 4)
        found = {"calibration": points}
        say(f"calibrated: error {100 * before:.1f} before, {100 * after:.1f} after (each half by the other's line)")
        say(f"the threshold is then {json.dumps(threshold, ensure_ascii=False)}")
    if not args.save:
        return 0
    if tuned <= now and not args.calibrate:
        say("Nothing is saved: the tuned threshold is not better.")
        return 0
    write_threshold(config, threshold, **found)
    say(f"Saved to {config}")
    return 0


def thresholds_among(values: list[float] | None, sum_of: int) -> list[float]:
    """The thresholds to choose among, each the mean of the probabilities that a value is the sum of."""
    if values is None or sum_of < 1:
        if sum_of != 1:
            raise ValueError(f"--sum-of {sum_of} says what the values of --among are: name some, and at least 1.")
        return []
    among = [value / sum_of for value in values]
    for value, one in zip(values, among, strict=True):
        if not FLOOR <= one <= 1:
            raise ValueError(
                f"--among {value:g} must lie between {FLOOR * sum_of:g} and {sum_of}, as scores do (--sum-of 3 for φ "
                "of DiffusionNER)."
            )
    return among


def calibration_errors(
    candidates: list[list[Entity]], gold: list[Any], overlap: str, threshold: Any
) -> tuple[float, float]:
    """The calibration error of what reaches the threshold: as scores are, and with a line fitted on the other half."""
    kept = reaching(threshold, candidates)
    halves = [slice(0, None, 2), slice(1, None, 2)]
    errors = [
        calibration_error(kept[a], gold[a], overlap, fit_calibration(candidates[b], gold[b], overlap))
        for a, b in (halves, reversed(halves))
    ]
    return calibration_error(kept, gold, overlap), sum(errors) / 2
