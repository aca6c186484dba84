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
    """

    def __init__(self, total: int | None, shown: bool = True) -> None:
        self.total, self.shown = total, shown
        self.before = 0  # texts that an earlier run had read
        self.read = 0
        self.expected: float | None = None  # texts of the whole input, as far as it can be told from its beginning
        self.moves = sys.stderr is not None and sys.stderr.isatty()
        self.begun = self.drawn = monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        return self.read / max(monotonic() - self.begun, 1e-9)

    def line(self) -> str:
        """What is known now, such as `12,288 texts, 40 %, 512 texts/s, 01:40 left`."""
        told = [f"{self.before + self.read:,} texts"]
        if self.expected:
            told.append(f"{min((self.before + self.read) / self.expected, 1):.0%}")
        told.append(f"{self.speed:,.0f} texts/s")
        if self.expected and self.read:
            left = max(self.expected - self.before - self.read, 0) / self.speed
            told.append(f"{tqdm.format_interval(left)} left")
        return ", ".join(told)

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}" if self.moves else text)
        sys.stderr.flush()
