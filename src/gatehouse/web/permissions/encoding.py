"""JSON of permission answers: bounded in size, and made in slices where it is large.

One call that encodes 8 MB keeps the interpreter for 20 ms, and with it the event loop, in whatever thread it runs.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from gatehouse.kernel.background import HEAVY, LIGHT, run_off_loop
from gatehouse.permissions.errors import ANSWER_MOST, AnswerTooLarge

NARROWER: Final = "ask for less at a time"
SLICE: Final = 5_000  # plain items of a list that are encoded by one call
CHUNK: Final = 2**18  # bytes of a file that are sent at a time
DEEPEST: Final = 6  # levels that are taken apart; what lies below is one role, one section or one person


def encoded(value: object, *, weight: int = 0, narrower: str = NARROWER) -> bytes:
    """Raises AnswerTooLarge, with the narrower question to ask instead."""
    body = msgspec.json.encode(value) if weight <= LIGHT else b"".join(bounded(slices(value), narrower))
    if len(body) > ANSWER_MOST:
        raise AnswerTooLarge(narrower)
    return body


async def chunks(make: Callable[[], object]) -> AsyncIterator[bytes]:
    """The JSON of what `make` makes, a few hundred kilobytes at a time, all of it off the event loop."""
    pieces = slices(await run_off_loop(HEAVY, make))
    while chunk := await run_off_loop(HEAVY, next_chunk, pieces):
        yield chunk


def next_chunk(pieces: Iterator[bytes]) -> bytes:
    chunk = bytearray()
    for piece in pieces:
        chunk += piece
        if len(chunk) > CHUNK:
            break
    return bytes(chunk)


def bounded(pieces: Iterable[bytes], narrower: str) -> Iterator[bytes]:
    """So that an endless answer is given up early."""
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > ANSWER_MOST:
            raise AnswerTooLarge(narrower)
        yield piece


def slices(value: object, depth: int = 0) -> Iterator[bytes]:
    """What `msgspec.json.encode` would make of it, in pieces."""
    if depth < DEEPEST and isinstance(value, msgspec.Struct):
        yield from object_slices(struct_members(value), depth)
    elif depth < DEEPEST and isinstance(value, Mapping):
        yield from object_slices(value.items(), depth)
    elif depth < DEEPEST and isinstance(value, list | tuple) and value and is_taken_apart(value[0]):
        yield from joined((slices(item, depth + 1) for item in value), b"[", b"]")
    elif isinstance(value, list | tuple) and len(value) > SLICE:
        parts = (value[start : start + SLICE] for start in range(0, len(value), SLICE))
        yield from joined(((msgspec.json.encode(part)[1:-1],) for part in parts), b"[", b"]")
    else:
        yield msgspec.json.encode(value)


def object_slices(members: Iterable[tuple[str, object]], depth: int) -> Iterator[bytes]:
    def member(name: str, value: object) -> Iterator[bytes]:
        yield msgspec.json.encode(name) + b":"
        yield from slices(value, depth + 1)

    yield from joined((member(name, value) for name, value in members), b"{", b"}")


def joined(items: Iterable[Iterable[bytes]], begin: bytes, end: bytes) -> Iterator[bytes]:
    yield begin
    for number, item in enumerate(items):
        if number:
            yield b","
        yield from item
    yield end


def struct_members(value: msgspec.Struct) -> Iterator[tuple[str, object]]:
    config = value.__struct_config__
    if config.tag is not None and config.tag_field is not None:
        yield config.tag_field, config.tag
    for field in msgspec.structs.fields(value):
        member = getattr(value, field.name)
        if not (config.omit_defaults and is_default(member, field)):
            yield field.encode_name, member


def is_default(member: object, field: msgspec.structs.FieldInfo) -> bool:
    return member == field.default or (field.default_factory in (list, dict, set) and not member)


def is_taken_apart(item: object) -> bool:
    return isinstance(item, msgspec.Struct | Mapping | list | tuple)
