"""The order in which sentences are trained on."""

from collections.abc import Callable, Iterator

import torch
from torch.utils.data import Sampler


class InOrderOfEpoch(Sampler):
    """Another sampler, its order drawn from a seed and the number of the epoch, whatever was drawn before."""

    def __init__(self, sampler, seed: int, epoch: Callable[[], int]):
        self.sampler, self.seed, self.epoch = sampler, seed, epoch

    def __iter__(self) -> Iterator[int]:
        self.sampler.generator = torch.Generator().manual_seed(self.seed + self.epoch())
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)
