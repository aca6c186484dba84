"""Running the server with uvicorn, with no patience for clients that begin a request and do not go on."""

from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from .app import Limits, make_app


def serve(predictor: Any, host: str, port: int, limits: Limits, name: str = "default") -> None:
    """Serve until SIGTERM or Ctrl-C; what waits then is still answered."""
    make_server(predictor, host, port, limits, name).run()


def make_server(predictor: Any, host: str, port: int, limits: Limits, name: str = "default") -> uvicorn.Server:
    """The server, not running yet."""
    app = make_app(predictor, limits, name)
    protocol = impatient(AutoHTTPProtocol, limits.seconds)
    return uvicorn.Server(
        uvicorn.Config(
            app, host=host, port=port, http=protocol, log_level="warning", access_log=False, server_header=False
        )
    )


def impatient(protocol: Any, seconds: float) -> Any:
    """A protocol of uvicorn that closes connections on which no request has begun for so long.

    uvicorn waits for ever for the first headers of a connection, and for the rest of headers that have begun.
    """

    class Impatient(protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(seconds, self.give_up, self.cycle)

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is before and (before is None or before.response_complete):  # headers have begun, at most
                self.loop.call_later(seconds, self.give_up, before)

        def give_up(self, before: Any) -> None:
            if self.cycle is before and (before is None or before.response_complete):
                self.transport.close()

    return Impatient
