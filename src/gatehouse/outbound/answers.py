"""Reads one HTTP/1.1 answer within bounds; the parser is llhttp, strict as it comes."""

import asyncio
from typing import Final

import httptools

from gatehouse.outbound.errors import BadResponse, ResponseTooLarge
from gatehouse.outbound.model import CallLimits, OutboundResponse

CHUNK_BYTES: Final = 16_384
MAX_INTERIM_RESPONSES: Final = 4  # 1xx answers before the real one
FIRST_FINAL_STATUS: Final = 200  # statuses below are interim
SWITCHING_PROTOCOLS: Final = 101


class ResponseParser:
    """Fed with what arrives; `answer` is there once it is whole."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._head_bytes = 0
        self._interim_count = 0
        self._is_in_body = False
        self._has_length = False
        self.response: OutboundResponse | None = None

    def feed(self, data: bytes) -> None:
        """Raises BadAnswer, AnswerTooLarge."""
        if not self._is_in_body:
            # Before the parser keeps a line that never ends.
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
        """The connection was closed: the end of an answer that told no length, and of no other."""
        if self.response is None and self._is_in_body and not self._has_length:
            self._finish()
        if self.response is None:
            raise BadResponse("the connection closed before the response was complete")
        return self.response

    # -- called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
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
            self.response = OutboundResponse(status=self._parser.get_status_code(), body=bytes(self._body))


def parser_error_cause(error: Exception) -> BadResponse | ResponseTooLarge:
    """What a callback raised comes out of the parser as the context of its own error."""
    inner = error.__context__
    return inner if isinstance(inner, BadResponse | ResponseTooLarge) else BadResponse(str(error))


async def read_response(reader: asyncio.StreamReader, limits: CallLimits) -> OutboundResponse:
    """Raises BadAnswer, AnswerTooLarge."""
    parsing = ResponseParser(limits)
    while parsing.response is None:
        data = await reader.read(CHUNK_BYTES)
        if not data:
            return parsing.end()
        parsing.feed(data)
    return parsing.response
