"""The server: POST /predict in the convention of Hugging Face's inference, /health, /metrics and /docs."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from starlette.exceptions import HTTPException

from .. import __version__
from ..bulk.predictor import Predictor
from ..bulk.sources import as_json
from ..data.readers.files import complaint, parse_json
from .batching import Batcher, Overloaded
from .counting import Counts


@dataclass(frozen=True)
class Limits:
    """What one request may ask for, and all together.

    Attributes:
        bytes: of a body.
        texts: of a request.
        characters: of all its texts together.
        seconds: for sending the body, and again for the answer.
        waiting: texts of all requests that may wait.
    """

    bytes: int = 1_000_000
    texts: int = 256
    characters: int = 200_000
    seconds: float = 30.0
    waiting: int = 4096


class Parameters(BaseModel):
    """How entities are chosen and shown: parameters of the pipeline."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    threshold: float | dict[str, float] | None = None
    overlap: Literal["flat", "nested", "any"] | None = None
    labels: list[str] | None = None
    label_map: dict[str, str] | None = None
    mentions: str | list[str] | None = None
    head: Literal["span", "seq"] | None = None
    nesting: bool | None = None
    word_indices: bool | None = None


class Query(BaseModel):
    """One text or several, under `inputs` or `texts`."""

    model_config = ConfigDict(extra="forbid")
    inputs: str | list[str] | None = None
    texts: str | list[str] | None = None
    parameters: Parameters | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "Query":
        if (self.inputs is None) == (self.texts is None):
            raise ValueError("give the text, or a list of texts, as inputs (or as texts)")
        return self


class Entity(BaseModel):
    """An entity, in characters of its text."""

    model_config = ConfigDict(extra="allow")
    entity_group: str
    score: float
    word: str
    start: int
    end: int


REASONS = {
    400: "not JSON, or not UTF-8",
    408: "the body came too slowly",
    413: "too many bytes, texts or characters",
    422: "other fields or values than these",
    503: "too many texts are waiting",
}


# Of a body that is too large so much is let pass by: a client that is still sending hears of no refusal.
DISCARDED = 16_000_000


def make_app(predictor: Predictor, limits: Limits | None = None, name: str = "default") -> FastAPI:
    """The application for a predictor; any ASGI server runs it, one process a model."""
    limits, ner = limits or Limits(), predictor.ner
    counts = Counts()

    def read(texts: list[str], parameters: dict[str, Any]) -> list[Any]:
        return predictor.read(texts, **parameters)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        app.state.batcher = Batcher(read, most_waiting=limits.waiting)
        yield
        app.state.batcher.stop()

    about = "Nested named entity recognition: the JSON of the pipeline, for one text or a list of texts."
    app = FastAPI(title="hf_spanner", version=__version__, description=about, lifespan=running)
    example = {"inputs": "The mayor of New York", "parameters": {"nesting": True}}
    schema = {"content": {"application/json": {"schema": Query.model_json_schema(), "example": example}}}

    @app.post(
        "/predict",
        response_model=list[Entity] | list[list[Entity]],
        responses={status: {"description": told} for status, told in REASONS.items()},
        openapi_extra={"requestBody": {"required": True, **_inline(schema)}},
    )
    async def predict(request: Request) -> Response:
        """The entities of a text, or a list of them for each text of a list."""
        begun = time.monotonic()
        try:
            response = Response(await answer(request), media_type="application/json")
        except HTTPException as error:
            response = refusal(error)
        except Exception as error:  # a mistake of ours: it is said, and the server goes on
            response = refusal(HTTPException(500, f"{type(error).__name__}: {error}"))
        counts.answered(response.status_code, time.monotonic() - begun)
        return response

    async def answer(request: Request) -> str:
        body = await body_of(request, limits)
        query = query_of(body)
        given = query.inputs if query.inputs is not None else query.texts
        texts = [given] if isinstance(given, str) else given or []
        check_size(texts, limits)
        parameters = query.parameters.model_dump(exclude_none=True) if query.parameters else {}
        try:
            ner._sanitize_parameters(**parameters)
        except (TypeError, ValueError) as error:
            raise HTTPException(422, str(error)) from None
        try:
            found = await asyncio.wait_for(app.state.batcher.submit(texts, parameters), limits.seconds)
        except Overloaded as error:
            raise HTTPException(503, str(error), headers={"Retry-After": "1"}) from None
        except asyncio.TimeoutError:
            told = f"no answer within {limits.seconds:g} seconds: try again later, or with fewer texts."
            raise HTTPException(503, told, headers={"Retry-After": "10"}) from None
        counts.texts += len(texts)
        counts.characters += sum(map(len, texts))
        return as_json(found[0] if isinstance(given, str) else found)

    @app.get("/health")
    async def health() -> Response:
        """Whether texts can be read."""
        alive = app.state.batcher.is_running
        return Response(
            json.dumps({"status": "ok" if alive else "the model has stopped", "model": name}),
            200 if alive else 503,
            media_type="application/json",
        )

    @app.get("/metrics")
    async def metrics() -> Response:
        """Counts, in Prometheus' text format."""
        batcher = app.state.batcher
        return Response(counts.text(batcher.waiting, batcher.batches), media_type="text/plain; version=0.0.4")

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return refusal(error)

    return app


def refusal(error: HTTPException) -> Response:
    """An error as JSON, `{"error": sentence}`; a body that was not read to its end is not waited for."""
    headers = {**(error.headers or {}), **({"Connection": "close"} if error.status_code in (408, 413) else {})}
    content = as_json({"error": error.detail})
    return Response(content, error.status_code, headers=headers, media_type="application/json")


async def body_of(request: Request, limits: Limits) -> bytes:
    """The body, if it is not too large and comes in time; no more of it is kept than may be."""
    told = f"the body is larger than the {limits.bytes:,} bytes that one request may have."
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > limits.bytes and "expect" in request.headers:
        raise HTTPException(413, told)  # the client asks before it sends

    async def received() -> bytes:
        body, size = bytearray(), 0
        async for chunk in request.stream():
            size += len(chunk)
            if size <= limits.bytes:
                body += chunk
            elif size > limits.bytes + DISCARDED:
                break
        if size > limits.bytes:
            raise HTTPException(413, told)
        return bytes(body)

    try:
        return await asyncio.wait_for(received(), limits.seconds)
    except asyncio.TimeoutError:
        raise HTTPException(408, f"the body did not come within {limits.seconds:g} seconds.") from None


def query_of(body: bytes) -> Query:
    """What a body asks for."""
    try:
        content = parse_json(body.decode())
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"the body is not UTF-8: byte {error.start} is 0x{body[error.start]:02x}.") from None
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {complaint(error)}.") from None
    try:
        return Query.model_validate(content, strict=True)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in wrong["loc"])
        raise HTTPException(422, f"{place + ': ' if place else ''}{wrong['msg'][:300]}.") from None


def check_size(texts: list[str], limits: Limits) -> None:
    if len(texts) > limits.texts:
        raise HTTPException(413, f"{len(texts):,} texts, and one request may have {limits.texts:,}.")
    if (characters := sum(map(len, texts))) > limits.characters:
        raise HTTPException(413, f"{characters:,} characters, and one request may have {limits.characters:,}.")


def _inline(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its definitions where they are used: OpenAPI looks for them elsewhere."""
    defined = schema["content"]["application/json"]["schema"].pop("$defs", {})
    text = json.dumps(schema)
    for name, definition in defined.items():
        text = text.replace(json.dumps({"$ref": f"#/$defs/{name}"}), json.dumps(definition))
    inlined: dict[str, Any] = json.loads(text)
    return inlined
