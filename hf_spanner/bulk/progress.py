"""What a bulk prediction shows meanwhile: a line that moves on a terminal, and a line a minute elsewhere."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType

from tqdm import tqdm

MOVES, STANDS = 0.5, 60.0  # seconds between two lines on a terminal, and elsewhere


class Progress:
    """Texts read, texts per second and time left, on standard error.

    Args:
        total: bytes or rows of the whole input; None if nobody knows.
        shown: whether anything is shown at all.
        processes: how many read the input together; what this one has read is taken for the share of each.
    """

    def __init__(self, total: int | None, shown: bool = True, processes: int = 1) -> None:
        self.total, self.shown, self.processes = total, shown, processes
        self.before = 0  # texts that an earlier run had read
        self.read = 0  # by this process
        self.expected: float | None = None  # texts of the whole input, as far as it can be told from its beginning
        self.moves = sys.stderr is not None and sys.stderr.isatty()
        self.begun = self.drawn = monotonic()
        self.ended: float | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended = monotonic()
        if self.shown and self.moves:
            self._write("")

    def expect(self, texts: int, done: int) -> None:
        """So many texts stood in so much of the input."""
        if self.total and done:
            self.expected = self.total * texts / done

    def tick(self, texts: int) -> None:
        """So many more texts have been read."""
        self.read += texts
        if self.shown and monotonic() - self.drawn >= (MOVES if self.moves else STANDS):
            self.drawn = monotonic()
            self._write(self.line() if self.moves else f"{self.line()}\n")

    @property
    def speed(self) -> float:
        """Texts per second of this run."""
        return self.processes * self.read / max((self.ended or monotonic()) - self.begun, 1e-9)

    def line(self) -> str:
        """What is known now, such as `12,288 texts, 40 %, 512 texts/s, 01:40 left`."""
        read = self.before + self.processes * self.read
        told = [f"{read:,} texts"]
        if self.expected:
            told.append(f"{min(read / self.expected, 1):.0%}")
        told.append(f"{self.speed:,.0f} texts/s")
        if self.expected and self.read:
            left = max(self.expected - read, 0) / self.speed
            told.append(f"{tqdm.format_interval(left)} left")
        return ", ".join(told)

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}" if self.moves else text)
        sys.stderr.flush()
