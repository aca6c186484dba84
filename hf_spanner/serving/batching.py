"""Requests that come at the same time are read together, by the one thread that runs the model."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Found = list[Any]  # the entities of a text
Read = Callable[[list[str], dict[str, Any]], list[Found]]


class Overloaded(RuntimeError):
    """As many texts wait as may wait."""


@dataclass
class _Request:
    texts: list[str]
    parameters: dict[str, Any]
    answer: asyncio.Future[list[Found]]
    loop: asyncio.AbstractEventLoop
    kind: str = field(init=False)  # those of one kind can be read together

    def __post_init__(self) -> None:
        self.kind = json.dumps(self.parameters, sort_keys=True)


class Batcher:
    """Collects what comes within `window` seconds, up to `together` texts, and has it read at once.

    Args:
        read: gives the entities of texts; called in one thread only.
        most_waiting: texts that may wait; what comes then is refused with `Overloaded`.
    """

    def __init__(self, read: Read, window: float = 0.005, together: int = 512, most_waiting: int = 4096) -> None:
        self.read, self.window, self.together, self.most_waiting = read, window, together, most_waiting
        self.waiting = 0  # texts
        self.batches = 0
        self._requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    async def submit(self, texts: list[str], parameters: dict[str, Any]) -> list[Found]:
        """The entities of each text."""
        if self.waiting and self.waiting + len(texts) > self.most_waiting:
            raise Overloaded(f"{self.waiting:,} texts are waiting already: try again later.")
        loop = asyncio.get_running_loop()
        request = _Request(texts, parameters, loop.create_future(), loop)
        self.waiting += len(texts)
        request.answer.add_done_callback(lambda _: self._left(len(texts)))
        self._requests.put(request)
        return await request.answer

    def stop(self) -> None:
        """End the thread when all that waits is read."""
        self._requests.put(None)
        self._thread.join()

    def _left(self, texts: int) -> None:
        self.waiting -= texts

    def _run(self) -> None:
        ended = False
        while not ended:
            first = self._requests.get()
            if first is None:
                return
            together, until = [first], time.monotonic() + self.window
            while sum(len(request.texts) for request in together) < self.together:
                try:
                    request = self._requests.get(timeout=max(until - time.monotonic(), 0))
                except queue.Empty:
                    break
                if request is None:
                    ended = True
                    break
                together.append(request)
            self._answer([request for request in together if not request.answer.done()])  # nobody waits for others

    def _answer(self, requests: list[_Request]) -> None:
        for kind in dict.fromkeys(request.kind for request in requests):
            alike = [request for request in requests if request.kind == kind]
            try:
                found = self._found(alike)
            except Exception:  # one of them is the cause: it alone shall pay
                for request in alike:
                    try:
                        _tell(request, self._found([request]), None)
                    except Exception as error:
                        _tell(request, None, error)
                continue
            for request in alike:
                _tell(request, found[: len(request.texts)], None)
                found = found[len(request.texts) :]

    def _found(self, requests: list[_Request]) -> list[Found]:
        self.batches += 1
        return self.read([text for request in requests for text in request.texts], requests[0].parameters)


def _tell(request: _Request, found: list[Found] | None, error: Exception | None) -> None:
    def tell() -> None:
        if request.answer.done():  # given up meanwhile
            return
        if error is not None:
            request.answer.set_exception(error)
        else:
            request.answer.set_result(found or [])

    request.loop.call_soon_threadsafe(tell)
