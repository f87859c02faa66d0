"""Reads one HTTP/1.1 answer within bounds; the parser is llhttp, strict as it comes."""

import asyncio
from typing import Final

import httptools

from gatehouse.outbound.errors import AnswerTooLarge, BadAnswer
from gatehouse.outbound.model import Answer, Limits

CHUNK: Final = 16_384
INTERIM_MOST: Final = 4  # 1xx answers before the real one
FINAL: Final = 200  # statuses below are interim
SWITCHING: Final = 101


class AnswerReader:
    """Fed with what arrives; `answer` is there once it is whole."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._head = 0
        self._interim = 0
        self._is_in_body = False
        self._has_length = False
        self.answer: Answer | None = None

    def feed(self, data: bytes) -> None:
        """Raises BadAnswer, AnswerTooLarge."""
        if not self._is_in_body:
            # Before the parser keeps a line that never ends.
            self._head += len(data)
            if self._head > self._limits.head_bytes + CHUNK:
                raise AnswerTooLarge("the response headers")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise BadAnswer("protocol switch") from None
        except httptools.HttpParserError as error:
            raise cause_of(error) from None

    def end(self) -> Answer:
        """The connection was closed: the end of an answer that told no length, and of no other."""
        if self.answer is None and self._is_in_body and not self._has_length:
            self._finish()
        if self.answer is None:
            raise BadAnswer("the connection closed before the response was complete")
        return self.answer

    # -- called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        match name.lower():
            case b"content-length" | b"transfer-encoding":
                self._has_length = True
            case b"content-encoding" if value.strip().lower() not in (b"", b"identity"):
                raise BadAnswer("unexpected compressed response")

    def on_headers_complete(self) -> None:
        if self._parser.get_status_code() == SWITCHING:
            raise BadAnswer("protocol switch")
        self._is_in_body = self._parser.get_status_code() >= FINAL

    def on_body(self, body: bytes) -> None:
        if len(self._body) + len(body) > self._limits.body_bytes:
            raise AnswerTooLarge("the response body")
        self._body += body

    def on_message_complete(self) -> None:
        if self._is_in_body:
            self._finish()
            return
        self._interim += 1
        if self._interim > INTERIM_MOST:
            raise BadAnswer("too many interim responses")

    def _finish(self) -> None:
        if self.answer is None:
            self.answer = Answer(status=self._parser.get_status_code(), body=bytes(self._body))


def cause_of(error: Exception) -> BadAnswer | AnswerTooLarge:
    """What a callback raised comes out of the parser as the context of its own error."""
    inner = error.__context__
    return inner if isinstance(inner, BadAnswer | AnswerTooLarge) else BadAnswer(str(error))


async def read_answer(reader: asyncio.StreamReader, limits: Limits) -> Answer:
    """Raises BadAnswer, AnswerTooLarge."""
    parsing = AnswerReader(limits)
    while parsing.answer is None:
        data = await reader.read(CHUNK)
        if not data:
            return parsing.end()
        parsing.feed(data)
    return parsing.answer
