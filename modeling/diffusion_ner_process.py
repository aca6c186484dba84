"""Diffusion of span boundaries (Shen et al., 2023): schedules, states, noise and its removal. Pure functions.

Here a span is (left, right), its first and its last word, both inside. What is diffused is its *state*, a point of
[-λ, λ]²: the two numbers that say where it lies, each as a share of the sentence. A share is an index divided by
`max(n - 1, 1)` in a sentence of n words, on the way in and on the way out, so that a span without noise comes back as
it was. (The authors' code divides by n but multiplies by n - 1.)
"""

import functools
import hashlib
import math
from collections.abc import Sequence
from typing import Any

import torch

SCHEDULES = ("cosine", "linear")
STATES = ("left_width", "left_right")


# ----------------------------------------------------------------------------------------------------------- schedules


@functools.cache
def betas(schedule: str, timesteps: int) -> tuple[float, ...]:
    """β_0 … β_{T-1}, the variance that each step adds.

    They are Python floats: there is no buffer that a checkpoint, a change of dtype or a device could spoil.
    """
    if schedule == "linear":
        first, last = 0.1 / timesteps, 20 / timesteps  # 1e-4 and 2e-2 at T = 1000
        return tuple(first + (last - first) * t / max(timesteps - 1, 1) for t in range(timesteps))
    if schedule == "cosine":
        s = 0.008

        def remaining(t: float) -> float:
            return math.cos((t / timesteps + s) / (1 + s) * math.pi / 2) ** 2

        return tuple(min(1 - remaining(t + 1) / remaining(t), 0.999) for t in range(timesteps))
    raise ValueError(f"Unknown noise schedule {schedule!r}: choose one of {list(SCHEDULES)}.")


@functools.cache
def alpha_bars(schedule: str, timesteps: int) -> tuple[float, ...]:
    """ᾱ_t = Π (1 - β), how much of the signal's variance is left at each step."""
    product, result = 1.0, []
    for beta in betas(schedule, timesteps):
        product *= 1 - beta
        result.append(product)
    return tuple(result)


def sampling_times(timesteps: int, num_steps: int) -> list[int]:
    """τ, the γ = `num_steps` times that sampling visits, evenly spaced and noisiest first."""
    return [int(-1 + timesteps * step / num_steps) for step in range(num_steps, 0, -1)]


# -------------------------------------------------------------------------------------------------------------- states


def states_of_spans(
    spans: torch.Tensor, num_words: torch.Tensor, scale: float, form: str, original: bool = False
) -> torch.Tensor:
    """x_0 of `spans (B, N, 2)`, left and right inclusive, in sentences of `num_words (B,)`: `(B, N, 2)`.

    Args:
        scale: λ.
        form: `"left_width"` (the code's) or `"left_right"` (the paper's).
        original: divide by n as the authors' code does with gold spans, for comparison.
    """
    left, right = spans.unbind(-1)
    second = right - left if form == "left_width" else right
    words = (num_words if original else num_words - 1).clamp(min=1).view(-1, 1, 1)
    return (2 * torch.stack([left, second], dim=-1) / words - 1) * scale


def shares_of_states(states: torch.Tensor, scale: float, form: str) -> torch.Tensor:
    """Where noisy states `(B, N, 2)` lie: left and right as shares of the sentence, in [0, 1] and in order."""
    first, second = (states.clamp(-scale, scale) / scale / 2 + 0.5).unbind(-1)
    if form == "left_width":
        return torch.stack([first, (first + second).clamp(max=1)], dim=-1)
    return torch.stack([torch.minimum(first, second), torch.maximum(first, second)], dim=-1)


def spans_of_shares(shares: torch.Tensor, num_words: torch.Tensor) -> torch.Tensor:
    """The words nearest to `shares (B, N, 2)`: left and right indices, inclusive."""
    return (shares * (num_words - 1).clamp(min=0).view(-1, 1, 1)).round().long()


def spans_of_states(states: torch.Tensor, num_words: torch.Tensor, scale: float, form: str) -> torch.Tensor:
    """The inverse of [`states_of_spans`] for states that may be noisy: spans inside the sentence, left ≤ right."""
    return spans_of_shares(shares_of_states(states, scale, form), num_words)


def random_states(normal: torch.Tensor, scale: float, form: str) -> torch.Tensor:
    """Spans that stand for nothing, from standard normal `(..., 2)`: shares around the middle, N(1/2, 1/6²)."""
    shares = normal / 6 + 0.5
    if form == "left_width":
        shares = torch.stack([shares[..., 0], shares[..., 1].clamp(min=1e-4)], dim=-1)
    else:
        shares = shares.sort(-1).values
    return (2 * shares - 1) * scale


# ------------------------------------------------------------------------------------------------------ there and back


def diffuse(x0: torch.Tensor, alpha_bar: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """x_t ~ q(x_t | x_0) (Eq. 4)."""
    return alpha_bar.sqrt() * x0 + (1 - alpha_bar).sqrt() * noise


def ddim_step(
    x: torch.Tensor, x0: torch.Tensor, alpha_bar: float, next_alpha_bar: float, eta: float = 0.0
) -> tuple[torch.Tensor, float]:
    """From x at noise level ᾱ and the x̂_0 predicted there, the mean of x at the next level, and σ (Eq. 6 and 7).

    η = 0 is the paper's, without chance (σ = 0); with η = 1 and neighbouring times mean and σ² are those of the
    posterior q(x_{t-1} | x_t, x̂_0).
    """
    noise = (x - math.sqrt(alpha_bar) * x0) / math.sqrt(1 - alpha_bar)  # ε̂
    sigma = eta * math.sqrt((1 - alpha_bar / next_alpha_bar) * (1 - next_alpha_bar) / (1 - alpha_bar))
    return math.sqrt(next_alpha_bar) * x0 + math.sqrt(max(1 - next_alpha_bar - sigma**2, 0.0)) * noise, sigma


# -------------------------------------------------------------------------------------------------------------- chance


class SentenceNoise:
    """Random numbers for the sentences of a batch, each from its own generator (None: torch's global one)."""

    def __init__(self, generators: Sequence[torch.Generator | None], device: torch.device | str = "cpu"):
        self.generators, self.device = generators, device

    def normal(self, *shape: int) -> torch.Tensor:
        """`(B, *shape)` from N(0, 1)."""
        # Named only if there is one: `torch.compile` knows no `generator` beside a size that is open.
        draws = [torch.randn(shape) if g is None else torch.randn(shape, generator=g) for g in self.generators]
        return torch.stack(draws).to(self.device)

    def order(self, n: int) -> torch.Tensor:
        """`(B, n)`: the numbers below n, shuffled."""
        return torch.stack([torch.randperm(n, generator=g) for g in self.generators]).to(self.device)

    def times(self, timesteps: int) -> list[int]:
        """One t of 0 … T-1 for each sentence."""
        return [int(torch.randint(timesteps, (1,), generator=g)) for g in self.generators]


def seeded_noise(seed: int, texts: Sequence[Sequence[Any]], device: torch.device | str = "cpu") -> SentenceNoise:
    """Noise that depends on nothing but `seed` and the sub-words of each text (ids or vectors), not on the batch."""
    generators = []
    for ids in texts:
        digest = hashlib.blake2b(repr((seed, *ids)).encode(), digest_size=8).digest()
        generators.append(torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1))
    return SentenceNoise(generators, device)


def sinusoid(positions: torch.Tensor, dim: int) -> torch.Tensor:
    """`(...)` → `(..., dim)`: sines, then cosines, of frequencies that fall from 1 to 1/10000."""
    half = dim // 2
    frequencies = torch.exp(torch.arange(half, device=positions.device) * -(math.log(10000) / max(half - 1, 1)))
    angles = positions.unsqueeze(-1) * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
