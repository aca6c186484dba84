"""DiffusionNER (Shen et al., 2023): entities are made from noisy spans by removing the noise of their boundaries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers.utils import logging

from .bilstm import initialise_lstm, run_lstm
from .configuration_nested_ner import NestedNerConfig, Reach
from .decoding import Entity
from .diffusion_ner_matching import BOUNDARY_LOSSES, HungarianMatcher, set_losses
from .diffusion_ner_network import SpanDenoiser
from .diffusion_ner_process import (
    SCHEDULES,
    STATES,
    SentenceNoise,
    alpha_bars,
    betas,
    ddim_step,
    diffuse,
    random_states,
    sampling_times,
    seeded_noise,
    spans_of_states,
    states_of_spans,
)
from .graphs import in_graph, refuse_graph
from .losses import Gold
from .modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel, WordStates
from .spans import fill_cells, list_spans

logger = logging.get_logger(__name__)

SAMPLING = ("num_steps", "num_noisy_spans", "seed", "eta", "early_stop")  # what inference may choose anew


class DiffusionNerConfig(NestedNerConfig):
    """DiffusionNER. Defaults are the paper's, and the authors' code's where the paper is silent.

    A prediction's score is the mean of the probabilities of its left boundary, its right boundary and its type, so
    that the paper's threshold φ = 2.5 for their sum is `threshold` = 2.5 / 3.

    Args:
        num_noisy_spans: K, in training, and by default at inference, where it is free.
        num_steps: γ, the denoising steps of inference.
        eta: η, how much chance there is in a denoising step: 0 for none (the paper), 1 for the authors' code.
        seed: of the noise that inference starts from; each text has its own, whatever stands beside it in a batch.
        early_stop: stop denoising a text when a step leaves the entities that it takes its spans for as they were.
        timesteps: T.
        schedule: `"cosine"` or `"linear"`.
        scale: λ, the signal's scale: states lie in [-λ, λ].
        span_state: what is diffused: `"left_width"` as in the code, or `"left_right"` as in the paper.
        original_indices: divide gold indices by n and multiply by n - 1, as the authors' code does, for comparison:
            more than half of the gold spans then come back as others even without noise.
        expansion: how N entities become K in training. `"repeat"`: entities are repeated, and all K predictions must
            find one (none is then learnt from sentences without entities only). `"random"`: random spans are added
            that must find none. `"mixed"`: half of the K are repeated entities, the rest random spans.
        span_representation: `"boundary"`, a map of the first and the last word (the code's), or `"mean"` over all
            words (the paper's; the code's for GENIA).
        lstm_layers: layers of the BiLSTM over words; 0 for none.
        span_layers, attention_heads, ffn_size: of the span encoder.
        self_attention, cross_attention: whether, in the span encoder, spans look at each other and at the sentence
            (Table 4 leaves out one, the other, or both).
        time_embedding: what is added to a span for the time: `"mlp"` of its sinusoid, as in the code, or the
            `"sinusoid"` itself, as in the paper.
        boundary_loss: `"binary"`, as in the code: each word is or is not the boundary; or `"likelihood"`, as the paper
            writes: -log P of the right word alone. P is a sigmoid, so that nothing keeps the other words' P low.
        class_weight, boundary_weight: of the two terms of the loss, and of the matching.
        distance_weight: of a third term of the matching alone, the distance of a noisy span from the entity that its
            prediction answers for; 0 in the paper. It makes the first epochs count.
        none_weight: of predictions that must find none; None to balance them with the others, batch by batch.
        max_span_length: None, as in the paper, for any length; predictions longer than a number are dropped.
        multi_label: keep predictions of one span with different labels, as the authors' code does; the paper keeps the
            one of the most probable type.
    """

    model_type = "diffusion_ner"
    keys_to_ignore_at_inference = [*NestedNerConfig.keys_to_ignore_at_inference, "left", "right", "steps"]

    num_noisy_spans: int = 60
    num_steps: int = 5
    eta: float = 0.0
    seed: int = 42
    early_stop: bool = False
    timesteps: int = 1000
    schedule: str = "cosine"
    scale: float = 1.0
    span_state: str = "left_width"
    original_indices: bool = False
    expansion: str = "repeat"
    span_representation: str = "boundary"
    lstm_layers: int = 2
    span_layers: int = 2
    attention_heads: int = 8
    ffn_size: int = 1024
    self_attention: bool = True
    cross_attention: bool = True
    time_embedding: str = "mlp"
    boundary_loss: str = "binary"
    class_weight: float = 1.0
    boundary_weight: float = 1.0
    distance_weight: float = 0.0
    none_weight: float | None = None
    threshold: float | dict[str, float] | None = 2.5 / 3
    max_span_length: int | None = None

    def _check(self) -> None:
        super()._check()
        self.check_choice("schedule", SCHEDULES)
        self.check_choice("span_state", STATES)
        self.check_choice("expansion", ("repeat", "random", "mixed"))
        self.check_choice("span_representation", ("boundary", "mean"))
        self.check_choice("time_embedding", ("mlp", "sinusoid"))
        self.check_choice("boundary_loss", BOUNDARY_LOSSES)
        self.check_choice("loss_reduction", ("span",))
        if self.timesteps < 1 or max(betas(self.schedule, self.timesteps)) >= 1:
            raise ValueError(
                f"timesteps={self.timesteps} are too few for the {self.schedule} schedule, whose last step would add "
                "more noise than there is: the paper has 1000."
            )
        if self.scale <= 0:
            raise ValueError(f"scale={self.scale} must be positive.")
        if self.boundary_smoothing:
            raise ValueError(
                f"boundary_smoothing={self.boundary_smoothing}: diffusion_ner has no grid of spans to smooth, set it "
                "to 0."
            )
        if self.encoder_config is not None and self.hidden_size % (2 * self.attention_heads):
            raise ValueError(
                f"attention_heads={self.attention_heads} do not divide the encoder's {self.hidden_size} dimensions "
                "into even parts: choose fewer."
            )
        self.check_inference({name: getattr(self, name) for name in SAMPLING})

    @property
    def num_classes(self) -> int:
        """None is one of the types of a span; `multi_label` is about predictions that share a span."""
        return len(self.labels) + 1

    def reach(self) -> Reach:
        return Reach(longest=self.max_span_length, per_text=self.num_noisy_spans)

    def check_inference(self, settings: dict[str, Any]) -> None:
        if not 1 <= settings["num_steps"] <= self.timesteps:
            raise ValueError(
                f"num_steps={settings['num_steps']} must lie between 1 and the {self.timesteps} timesteps of training."
            )
        if settings["num_noisy_spans"] < 1:
            raise ValueError(f"num_noisy_spans={settings['num_noisy_spans']} must be at least 1.")
        if not 0 <= settings["eta"] <= 1:
            raise ValueError(f"eta={settings['eta']} must lie between 0 and 1.")
        if not isinstance(settings["seed"], int):
            raise ValueError(f"seed={settings['seed']!r} must be a whole number.")


@dataclass
class DiffusionNerOutput(NestedNerOutput):
    """`logits (B, K, m + 1)` of the types, and

    Attributes:
        left, right: `(B, K, T)` logits of each word as the boundary of each span.
        steps: `(B,)` denoising steps that were made.
    """

    left: torch.Tensor | None = None
    right: torch.Tensor | None = None
    steps: torch.Tensor | None = None


class SentenceLstm(nn.Module):
    """The second half of the sentence encoder: a stacked BiLSTM that keeps the dimension."""

    def __init__(self, size: int, layers: int, dropout: float):
        super().__init__()
        dropout = dropout if layers > 1 else 0.0  # between layers
        self.lstm = nn.LSTM(size, size // 2, layers, dropout=dropout, bidirectional=True)

    def forward(self, words: torch.Tensor, num_words: Sequence[int]) -> torch.Tensor:
        """`(B, T, d)` → `(B, T, d)`."""
        lengths = num_words if in_graph() else [max(int(n), 1) for n in num_words]  # an LSTM cannot read nothing
        ones = list_spans(lengths, words.size(1), 1, 1, words.device)
        states = run_lstm(self.lstm, words.flatten(0, 1).index_select(0, ones.cell), ones.batch_sizes)
        return fill_cells(states, ones.cell, *words.shape[:2])

    def initialise(self) -> None:
        initialise_lstm(self.lstm)


class DiffusionNerForNestedNer(NestedNerPreTrainedModel):
    """Training: gold spans → noise → denoise → match → loss (Algorithm 1). Inference: noise → denoise, γ times (2).

    ```python
    >>> model = DiffusionNerForNestedNer.from_encoder("bert-large-cased", labels=["PER", "ORG"])
    >>> output = model(**batch, num_steps=1, num_noisy_spans=100, seed=7)
    >>> model.decode(output, threshold=2.6 / 3)
    ```
    """

    config: DiffusionNerConfig
    config_class = DiffusionNerConfig
    inference_parameters = SAMPLING

    def __init__(self, config: DiffusionNerConfig):
        super().__init__(config)
        d = config.hidden_size
        self.lstm = SentenceLstm(d, config.lstm_layers, config.dropout) if config.lstm_layers else None
        self.denoiser = SpanDenoiser(
            d,
            config.num_classes,
            config.span_representation,
            config.span_layers,
            config.attention_heads,
            config.ffn_size,
            config.dropout,
            config.self_attention,
            config.cross_attention,
            config.time_embedding,
        )
        self.matcher = HungarianMatcher(config.class_weight, config.boundary_weight, config.distance_weight)
        self.post_init()

    def recognise(self, states: WordStates, gold: Gold | None) -> DiffusionNerOutput:
        refuse_graph(self.config.model_type, "the noise that it begins with is drawn for each text by its sub-words")
        words = states.words if self.lstm is None else self.lstm(states.words, states.lengths)  # H_S, made once
        losses = None
        if gold is not None:
            gold.require_all_labels(self.config.model_type)  # a set prediction is right or wrong as a whole
            gold.require_nested(self.config.model_type)
            noise = SentenceNoise([None] * len(words), words.device) if self.training else self.noise(states)
            output = self.train_step(words, states, gold.entities, noise)
            losses = output.losses
        if gold is None or not self.training:
            output = self.generate(words, states, self.noise(states), **states.inference)
            output.losses = losses
        return output

    def noise(self, states: WordStates) -> SentenceNoise:
        """Noise of which the same text gets the same share in every batch: its sub-words say which."""
        assert states.inputs is not None  # `forward` has refused to go on without
        rows = zip(states.inputs.tolist(), states.word_ids.tolist(), strict=True)
        texts = [[x for x, word in zip(given, of, strict=True) if word >= 0] for given, of in rows]
        return seeded_noise(states.inference["seed"], texts, states.words.device)

    def denoise(
        self, words: torch.Tensor, mask: torch.Tensor, num_words: torch.Tensor, x: torch.Tensor, times: list[int]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What the network makes of noisy states x `(B, K, 2)` at `times (B,)`: logits of types, left and right."""
        spans = spans_of_states(x, num_words, self.config.scale, self.config.span_state)
        return self.denoiser(words, mask, spans, torch.as_tensor(times, device=words.device))

    # ------------------------------------------------------------------------------------------------------- training

    def train_step(
        self, words: torch.Tensor, states: WordStates, entities: torch.Tensor, noise: SentenceNoise
    ) -> DiffusionNerOutput:
        """One noisy look at the gold entities, and its loss (Algorithm 1)."""
        config = self.config
        targets, x0 = self.expand(entities, torch.tensor(states.lengths), noise)
        times = noise.times(config.timesteps)
        schedule = alpha_bars(config.schedule, config.timesteps)
        alpha_bar = torch.tensor([schedule[t] for t in times], device=words.device).view(-1, 1, 1)
        x = diffuse(x0, alpha_bar, noise.normal(*x0.shape[1:]))
        logits, left, right = self.denoise(words, states.mask, states.num_words, x, times)
        spans = spans_of_states(x, states.num_words, config.scale, config.span_state)
        matches = self.matcher(logits, left, right, targets, spans, states.num_words)
        types, boundaries = set_losses(
            logits, left, right, states.mask, targets, matches, config.none_weight, config.boundary_loss
        )
        losses = {"types": config.class_weight * types, "boundaries": config.boundary_weight * boundaries}
        return DiffusionNerOutput(losses=losses, logits=logits, left=left, right=right)

    def expand(
        self, entities: torch.Tensor, num_words: torch.Tensor, noise: SentenceNoise
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Targets `(M, 3)` = left, right, class for each sentence, and x_0 `(B, K, 2)`, theirs and random spans'.

        How many entities a sentence has decides about sizes: `num_words` and targets are the host's, which asks the
        device once for all entities of the batch.
        """
        config = self.config
        shift = torch.tensor([0, 1, -1])  # right inside, none = 0
        gold = [rows[rows[:, 0] >= 0] - shift for rows in entities.cpu()]
        most = max(len(rows) for rows in gold)
        if most > config.num_noisy_spans:
            logger.warning_once(
                "A sentence has %d entities, more than num_noisy_spans=%d: as many noisy spans are trained with where "
                "they are needed, and as many are needed at inference to find them all.",
                most,
                config.num_noisy_spans,
            )
        count = max(config.num_noisy_spans, most)
        size = {"repeat": lambda n: count, "random": lambda n: n, "mixed": lambda n: max(n, count // 2)}
        targets = [
            rows[torch.arange(size[config.expansion](len(rows))) % len(rows)] if len(rows) else rows for rows in gold
        ]
        padded = pad_sequence([*targets, torch.zeros(count, 3, dtype=torch.long)], batch_first=True)[:-1]  # (B, K, 3)
        known = states_of_spans(padded[..., :2], num_words, config.scale, config.span_state, config.original_indices)
        is_known = torch.arange(count) < torch.tensor([len(rows) for rows in targets]).unsqueeze(1)  # (B, K)
        x0 = random_states(noise.normal(count, 2), config.scale, config.span_state)
        x0 = torch.where(is_known.unsqueeze(-1).to(x0.device), known.to(x0.device), x0)
        if config.expansion != "repeat":  # the network knows its spans by their number: entities must not come first
            x0 = x0.gather(1, noise.order(count).unsqueeze(-1).expand(-1, -1, 2))
        return targets, x0

    # ------------------------------------------------------------------------------------------------------ inference

    def generate(
        self,
        words: torch.Tensor,
        states: WordStates,
        noise: SentenceNoise,
        num_steps: int,
        num_noisy_spans: int,
        eta: float,
        early_stop: bool,
        seed: int | None = None,
    ) -> DiffusionNerOutput:
        """Denoise K random spans in γ steps (Algorithm 2); the last step's prediction is the answer.

        A text whose entities a step has left as they were goes no further with `early_stop`, while others do.
        """
        config, num_words = self.config, states.num_words
        schedule = alpha_bars(config.schedule, config.timesteps)
        times = sampling_times(config.timesteps, num_steps)
        x = noise.normal(num_noisy_spans, 2)
        going = torch.arange(len(words), device=words.device)  # the rows that are not settled
        steps = torch.zeros_like(going)
        answer: tuple[torch.Tensor, ...] | None = None
        before: torch.Tensor | None = None
        for step, time in enumerate(times):
            prediction = self.denoise(
                words[going], states.mask[going], num_words[going], x[going], [time] * len(going)
            )
            answer = (
                prediction
                if answer is None
                else tuple(old.index_copy(0, going, new) for old, new in zip(answer, prediction, strict=True))
            )
            steps[going] += 1
            if step + 1 == len(times):
                break
            spans = torch.stack(
                [answer[1].argmax(-1), answer[2].argmax(-1)], dim=-1
            )  # (B, K, 2), right < left is possible
            x0 = states_of_spans(spans, num_words, config.scale, config.span_state).clamp(-config.scale, config.scale)
            x, sigma = ddim_step(x, x0, schedule[time], schedule[times[step + 1]], eta)
            if sigma:
                x = x + sigma * noise.normal(num_noisy_spans, 2)
            if early_stop:
                now = entity_codes(answer[0], spans, words.size(1))
                if before is not None:
                    going = going[(now[going] != before[going]).any(-1)]
                    if len(going) == 0:
                        break
                before = now
        assert answer is not None  # there is one step at least
        logits, left, right = answer
        return DiffusionNerOutput(logits=logits, left=left, right=right, steps=steps)

    def candidates(self, output: DiffusionNerOutput, thresholds: list[float | None]) -> list[list[Entity]]:
        """Of predictions with one span the one of the most probable type, if it reaches φ."""
        config = self.config
        defaults = config.thresholds(config.threshold)
        limits = [own if given is None else given for given, own in zip(thresholds, defaults, strict=True)]
        assert output.left is not None and output.right is not None  # `generate` gives all
        assert output.logits is not None and output.num_words is not None
        p_left, left = output.left.float().sigmoid().max(-1)  # (B, K)
        p_right, right = output.right.float().sigmoid().max(-1)
        p_type, types = output.logits.float().softmax(-1).max(-1)
        score = (p_left + p_right + p_type) / 3
        ends = output.num_words.unsqueeze(1)
        keep = (types > 0) & (left <= right) & (right < ends)
        if config.max_span_length is not None:
            keep &= right - left < config.max_span_length
        result = []
        for i in range(len(types)):
            chosen = keep[i].nonzero().squeeze(1)
            columns = (x[i, chosen].tolist() for x in (left, right, types, p_type, score))
            best: dict[tuple, tuple] = {}
            for first, last, type_, certainty, mean in zip(*columns, strict=True):
                key = (first, last, type_) if config.multi_label else (first, last)
                best[key] = max(best.get(key, ()), (certainty, mean, -type_, first, last))
            result.append(
                [
                    Entity(first, last + 1, config.labels[-type_ - 1], mean)
                    for _, mean, type_, first, last in best.values()
                    if mean >= (limits[-type_ - 1] or 0.0)
                ]
            )
        return result


def entity_codes(logits: torch.Tensor, spans: torch.Tensor, num_words: int) -> torch.Tensor:
    """`(B, K)`: a number for each different entity among the predictions of a row, sorted, padded with -1 in front.

    Two rows are equal if and only if they hold the same entities, in whatever order and however often; so are those of
    two calls with the same `num_words`, the T of the batch.
    """
    types = logits.argmax(-1)
    left, right = spans.unbind(-1)
    code = (left * num_words + right) * logits.size(-1) + types
    code = code.masked_fill((types == 0) | (left > right), -1).sort(-1).values
    again = torch.zeros_like(code, dtype=torch.bool)
    again[:, 1:] = code[:, 1:] == code[:, :-1]
    return code.masked_fill(again, -1).sort(-1).values
