"""What a server counts, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Counts:
    """Requests by status, texts, characters, batches, and how long answers took."""

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        self.texts = self.characters = 0
        self.seconds = [0] * len(BUCKETS)  # answers that took at most so long
        self.total_seconds = 0.0

    def answered(self, status: int, seconds: float) -> None:
        self.requests[status] += 1
        self.total_seconds += seconds
        for index, bound in enumerate(BUCKETS):
            self.seconds[index] += seconds <= bound

    def text(self, waiting: int, batches: int) -> str:
        """All of it, in Prometheus' text format."""
        lines: list[str] = []

        def metric(name: str, kind: str, told: str, *values: tuple[str, float]) -> None:
            lines.extend([f"# HELP hf_spanner_{name} {told}", f"# TYPE hf_spanner_{name} {kind}"])
            lines.extend(f"hf_spanner_{name}{label} {value}" for label, value in values)

        by_status = [(f'{{status="{status}"}}', count) for status, count in sorted(self.requests.items())]
        metric("requests_total", "counter", "Requests to /predict by status.", *by_status)
        metric("texts_total", "counter", "Texts read.", ("", self.texts))
        metric("characters_total", "counter", "Characters read.", ("", self.characters))
        metric("batches_total", "counter", "Times the model was called.", ("", batches))
        metric("waiting_texts", "gauge", "Texts that wait for the model or are being read.", ("", waiting))
        buckets = [(f'_bucket{{le="{bound}"}}', count) for bound, count in zip(BUCKETS, self.seconds)]
        total = self.requests.total()
        ends: list[tuple[str, float]] = [
            ('_bucket{le="+Inf"}', total),
            ("_sum", self.total_seconds),
            ("_count", total),
        ]
        metric("request_seconds", "histogram", "Seconds from a request to its answer.", *buckets, *ends)
        return "\n".join(lines) + "\n"
