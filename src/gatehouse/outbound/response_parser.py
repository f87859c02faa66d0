"""Read one HTTP/1.1 response within limits; the parser is llhttp with its strict defaults."""

import asyncio
from typing import Final

import httptools

from gatehouse.outbound.model import BadResponse, CallLimits, OutboundResponse, ResponseTooLarge

CHUNK_BYTES: Final = 16_384
MAX_INTERIM_RESPONSES: Final = 4  # 1xx answers before the real one
FIRST_FINAL_STATUS: Final = 200  # statuses below are interim
SWITCHING_PROTOCOLS: Final = 101


class ResponseParser:
    """Parses bytes as they arrive; `response` is set once it is complete."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._interim_count = 0
        self._is_in_body = False
        self._has_length = False
        self.response: OutboundResponse | None = None

    def feed(self, data: bytes) -> None:
        """Raises BadResponse, ResponseTooLarge."""
        if not self._is_in_body:
            # Checked before the parser buffers an endless line.
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes + CHUNK_BYTES:
                raise ResponseTooLarge("the response headers")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise BadResponse("protocol switch") from None
        except httptools.HttpParserError as error:
            raise parser_error_cause(error) from None

    def end(self) -> OutboundResponse:
        """Called when the connection closes: this ends only a response without a length."""
        if self.response is None and self._is_in_body and not self._has_length:
            self._finish()
        if self.response is None:
            raise BadResponse("the connection closed before the response was complete")
        return self.response

    # -- called by the parser

    def on_message_begin(self) -> None:
        self._headers = {}  # an interim response has its own

    def on_header(self, name: bytes, value: bytes) -> None:
        header, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[header] = f"{self._headers[header]}, {text}" if header in self._headers else text
        match name.lower():
            case b"content-length" | b"transfer-encoding":
                self._has_length = True
            case b"content-encoding" if value.strip().lower() not in (b"", b"identity"):
                raise BadResponse("unexpected compressed response")

    def on_headers_complete(self) -> None:
        if self._parser.get_status_code() == SWITCHING_PROTOCOLS:
            raise BadResponse("protocol switch")
        self._is_in_body = self._parser.get_status_code() >= FIRST_FINAL_STATUS

    def on_body(self, body: bytes) -> None:
        if len(self._body) + len(body) > self._limits.body_bytes:
            raise ResponseTooLarge("the response body")
        self._body += body

    def on_message_complete(self) -> None:
        if self._is_in_body:
            self._finish()
            return
        self._interim_count += 1
        if self._interim_count > MAX_INTERIM_RESPONSES:
            raise BadResponse("too many interim responses")

    def _finish(self) -> None:
        if self.response is None:
            self.response = OutboundResponse(
                status=self._parser.get_status_code(), headers=self._headers, body=bytes(self._body)
            )


def parser_error_cause(error: Exception) -> BadResponse | ResponseTooLarge:
    """The error that a callback raised: the parser wraps it as the context of its own."""
    inner = error.__context__
    return inner if isinstance(inner, BadResponse | ResponseTooLarge) else BadResponse(str(error))


async def read_response(reader: asyncio.StreamReader, limits: CallLimits) -> OutboundResponse:
    """Raises BadResponse, ResponseTooLarge."""
    parsing = ResponseParser(limits)
    while parsing.response is None:
        data = await reader.read(CHUNK_BYTES)
        if not data:
            return parsing.end()
        parsing.feed(data)
    return parsing.response
