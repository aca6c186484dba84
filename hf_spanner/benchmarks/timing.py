"""Fair timing: the candidates take turns, and only ratios within one run are reported."""

import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def interleave(
    candidates: Mapping[Name, Callable[[], object]], repeats: int = 5, warm_up: int = 1
) -> dict[Name, float]:
    """Median seconds of each candidate, run in turns so that a busy moment hits all alike.

    Seconds mean nothing outside the run: divide one by another.
    """
    for _ in range(warm_up):
        for run in candidates.values():
            run()
    times: dict[Name, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}
