"""Trainings of a reproduction: what a cell of a table asks for under a budget, each done once and found again.

A run is a recipe (the paper's, what the budget makes of it, what the row sets), a corpus and a seed; its folder has a
name made of these, so that tables which ask for the same share it, and what is finished is never trained again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from transformers import AutoConfig

from ..auto import approach
from ..benchmarks.sweep import draw
from ..building.toy import make_toy_encoder
from ..data.corpora import corpus_names, load_corpus
from ..data.loading import load_nested_ner
from ..default import folder_of
from ..hub.record import RECORD
from ..training.recipes import read_recipe
from .tables import Cell

HERE = Path(__file__).resolve().parent
SAMPLE = "sample"
DRAW = 0  # the seed of the sentences that a budget leaves: all systems and seeds read the same
TOY_LAYERS = 12  # as deep as a base encoder, so that every depth of the tables is there


@dataclass(frozen=True)
class Commands:
    """What a reproduction needs of the command line, which stands above it."""

    train: Callable[[list[str]], Any]  # the arguments of `hf-spanner train`: trains, unless it is done
    data: Callable[[list[str]], Mapping[str, Any]]  # the same arguments: the splits as training sees them
    pictures: Callable[[list[str]], Any]


@dataclass(frozen=True)
class Budget:
    """What becomes of a paper's recipe; see budgets.yaml."""

    name: str
    sentences: tuple[int, int, int] | None = None
    seeds: tuple[int, ...] | None = None
    base: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        return self.name == "full"


def read_budgets() -> dict[str, Budget]:
    """The budgets by name."""
    content = yaml.safe_load((HERE / "budgets.yaml").read_text(encoding="utf-8"))
    return {name: Budget(name, **_tuples(parts)) for name, parts in content.items()}


def _tuples(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in parts.items()}


@dataclass
class Place:
    """Where a reproduction finds its data and encoder, where it writes, and what it may spend."""

    output: Path
    budget: Budget
    commands: Commands
    data_root: Path | None = None
    encoder: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the user, on top of all; `genia/NAME` of one corpus
    say: Callable[[str], None] = print

    def source(self, corpus: str) -> str:
        """The folder of a corpus; where there is none, a small budget takes the package's sample."""
        folder = None if self.data_root is None else self.data_root / corpus
        if folder is not None and folder.exists():
            return str(folder)
        if self.budget.name == "small":
            return SAMPLE
        about = load_corpus(corpus)
        needs = f" It needs {about.needs}." if about.needs else ""
        where = "no --data-root is given" if folder is None else f"there is no folder {folder}"
        raise FileNotFoundError(
            f"{corpus} ({about.title}) is not at hand, {where}.{needs} `hf-spanner data {corpus}` says how to get it; "
            "--budget small runs without it."
        )

    def stands_in(self, corpus: str) -> bool:
        """Whether the sample stands for a corpus that is not there."""
        return self.budget.name == "small" and self.source(corpus) == SAMPLE

    def data(self, corpus: str) -> str:
        """The data that is trained on: the corpus, or the sentences of it that the budget leaves."""
        source, sizes = self.source(corpus), self.budget.sentences
        if sizes is None:
            return source
        return str(self.output / "data" / "-".join(map(str, sizes)) / f"{Path(source).name}-{sizes[0]}-{DRAW}")

    def encoder_for(self, corpus: str) -> str | None:
        """What takes the place of the recipe's encoder: the user's, a toy made of the corpus' words, or nothing."""
        if self.encoder is not None or self.budget.is_full:
            return self.encoder
        if self.budget.name != "small":
            raise ValueError(
                f"--budget {self.budget.name} trains on a small encoder that you name: --encoder "
                "sentence-transformers/all-MiniLM-L6-v2, or a folder."
            )
        return str(self.output / "encoders" / f"toy-{Path(self.data(corpus)).name}")

    def make_data(self, corpus: str) -> str:
        """What `data` names, made if the budget leaves but some of the sentences."""
        if (sizes := self.budget.sentences) is not None:
            folder = Path(self.data(corpus))
            drawn = folder.with_name(f"{folder.name}.drawn")
            if not drawn.is_file():  # reading a whole corpus takes a while
                draw(self.source(corpus), sizes[0], DRAW, folder.parent, sizes[1], sizes[2])
                drawn.touch()
        return self.data(corpus)

    def train(self, run: Run) -> None:
        """Make ready what a run needs, and train it, unless it is done."""
        if run.done:
            return
        self.make_data(run.corpus)
        if self.encoder is None and self.budget.name == "small":
            encoder = Path(str(self.encoder_for(run.corpus)))
            if not (encoder / "model.safetensors").is_file():  # the last file of it
                texts = [" ".join(sentence["tokens"]) for sentence in load_nested_ner(run.data)["train"]]
                make_toy_encoder(encoder, texts, hidden_size=32, num_layers=TOY_LAYERS)
        run.train(self.commands)

    def seeds(self, table: Iterable[int], asked: Iterable[int] | None = None) -> list[int]:
        """The seeds: those asked for, the budget's, or the table's."""
        return list(asked or self.budget.seeds or table)


@dataclass(frozen=True)
class Run:
    """One training: its folder and what trains it."""

    folder: Path
    recipe: Mapping[str, Any]
    corpus: str
    data: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}, seed {self.seed}"

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def done(self) -> bool:
        return (self.folder / RECORD).is_file()

    def argv(self) -> list[str]:
        """The arguments of `hf-spanner train`."""
        recipe = self.folder.parent / "recipe.yaml"
        flags = ["--seed", str(self.seed), "--report_to", "none", "--disable_tqdm", "true", "--resume"]
        return [str(recipe), "--data", self.data, "--output_dir", str(self.folder), *flags]

    def train(self, commands: Commands) -> None:
        """Train; what is printed goes into a log beside the folder."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        recipe = self.folder.parent / "recipe.yaml"
        recipe.write_text(yaml.safe_dump(dict(self.recipe), sort_keys=False, allow_unicode=True), encoding="utf-8")
        try:
            with self.log.open("w", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
                commands.train(self.argv())
        except SystemExit as error:  # of the parser, which has said why
            raise ValueError(self.log.read_text(encoding="utf-8").strip().splitlines()[-1]) from error


def plan_run(place: Place, cell: Cell, seed: int) -> Run:
    """The training that a cell of a table asks for."""
    recipe = recipe_of(place, cell)
    data = place.data(cell.corpus)
    # What a recipe says and what is so anyway are one training; nothing is chosen where the learning rate is given.
    unsaid = _defaults(recipe) if "learning_rate" in recipe else {}
    said = {key: value for key, value in recipe.items() if key not in unsaid or unsaid[key] != value}
    named = {key: Path(str(value)).name if key == "encoder" else value for key, value in said.items()}
    identity = json.dumps([named, Path(data).name, place.budget.sentences], sort_keys=True)
    digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
    stem = PurePosixPath(str(cell.recipe)).stem
    name = f"{cell.corpus if not place.stands_in(cell.corpus) else SAMPLE}-{stem}-{digest}"
    return Run(place.output / "runs" / name / f"seed-{seed}", recipe, cell.corpus, data, seed)


def recipe_of(place: Place, cell: Cell) -> dict[str, Any]:
    """The whole recipe: the paper's, what the budget makes of it, what the row sets, and what the user sets."""
    if cell.recipe is None:
        raise ValueError(f"{cell.measure} of row {cell.row!r} needs a training, and the table names no recipe.")
    budget, row = place.budget, dict(cell.settings)
    base = budget.base and f"{budget.base}/{PurePosixPath(cell.recipe).stem}.yaml"
    recipe = read_recipe(base or cell.recipe)
    recipe.pop("seed", None)
    name = str(row.get("approach", recipe.get("approach", "span_ner")))
    fields = _defaults({"approach": name})
    replaced = {**budget.settings, **budget.of.get(name, {})}
    recipe |= {key: value for key, value in replaced.items() if key != "frozen_encoder_epochs" or key in recipe}
    for key, most in budget.at_most.items():
        size = recipe.get(key, fields.get(key))
        if isinstance(size, int) and size > most:
            recipe[key] = most
    paper = str(row.get("encoder", recipe.get("encoder", "")))
    if (encoder := place.encoder_for(cell.corpus)) and "encoder_config" in approach(name).config_class.sub_configs:
        if not (budget.is_full and "encoder" in row):  # what the row is about stays
            row["encoder"] = encoder
        if not budget.is_full and row.get("span_depth"):
            row["span_depth"] = _depth(row["span_depth"], paper, place.encoder)
    whole = {**recipe, **row, **_of_corpus(place.settings, cell.corpus)}
    return {key: value for key, value in whole.items() if value is not None or key in fields}  # None: as if unset


def paper_recipe(cell: Cell) -> dict[str, Any]:
    """The paper's recipe and what the row sets, whatever the budget; what neither says is the approach's default."""
    recipe = read_recipe(str(cell.recipe)) | dict(cell.settings)
    return {key: value for key, value in _defaults(recipe).items() if value is not dataclasses.MISSING} | recipe


def _of_corpus(settings: Mapping[str, Any], corpus: str) -> dict[str, Any]:
    """What a user sets for all corpora, and in its place what for this one: `genia/vectors`, say."""
    ours = {}
    for name, value in sorted(settings.items(), key=lambda item: "/" in item[0]):
        of, _, key = name.rpartition("/")
        if of and of not in corpus_names():
            raise ValueError(f"--set {name}: there is no corpus {of!r}: choose from {', '.join(corpus_names())}.")
        if of in ("", corpus):
            ours[key] = value
    return ours


def _defaults(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What the configuration of a recipe's approach has if nothing is said."""
    config = approach(str(recipe.get("approach", "span_ner"))).config_class
    return {f.name: f.default for f in dataclasses.fields(config)}


def _depth(depth: int, paper: str, encoder: str | None) -> int:
    """The same share of another encoder's layers, a toy's if none is named: 4 of 12 are 2 of 6."""
    layers = TOY_LAYERS
    if encoder is not None:
        config = AutoConfig.from_pretrained(folder_of(encoder))
        layers = (getattr(config, "encoder_config", None) or config).num_hidden_layers  # of a model, its encoder's
    return max(1, round(depth * layers / (24 if "large" in paper else 12)))
