"""JSON of permission answers: bounded in size, and made in slices where it is large.

One call that encodes 8 MB keeps the interpreter for 20 ms, and with it the event loop, in whatever thread it runs.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from gatehouse.kernel.background import MAX_INLINE_WEIGHT, OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.errors import MAX_ANSWER_BYTES, AnswerTooLarge

NARROWER_HINT: Final = "ask for less at a time"
LIST_SLICE: Final = 5_000  # plain items of a list that are encoded by one call
CHUNK_BYTES: Final = 2**18  # bytes of a file that are sent at a time
MAX_SPLIT_DEPTH: Final = 6  # levels that are taken apart; what lies below is one role, one section or one person


def encode_bounded(value: object, *, weight: int = 0, narrower: str = NARROWER_HINT) -> bytes:
    """Raises AnswerTooLarge, with the narrower question to ask instead."""
    body = (
        msgspec.json.encode(value)
        if weight <= MAX_INLINE_WEIGHT
        else b"".join(limit_size(iter_json_pieces(value), narrower))
    )
    if len(body) > MAX_ANSWER_BYTES:
        raise AnswerTooLarge(narrower)
    return body


async def iter_json_chunks(make: Callable[[], object]) -> AsyncIterator[bytes]:
    """The JSON of what `make` makes, a few hundred kilobytes at a time, all of it off the event loop."""
    pieces = iter_json_pieces(await run_off_loop(OFF_LOOP_WEIGHT, make))
    while chunk := await run_off_loop(OFF_LOOP_WEIGHT, next_chunk, pieces):
        yield chunk


def next_chunk(pieces: Iterator[bytes]) -> bytes:
    chunk = bytearray()
    for piece in pieces:
        chunk += piece
        if len(chunk) > CHUNK_BYTES:
            break
    return bytes(chunk)


def limit_size(pieces: Iterable[bytes], narrower: str) -> Iterator[bytes]:
    """So that an endless answer is given up early."""
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > MAX_ANSWER_BYTES:
            raise AnswerTooLarge(narrower)
        yield piece


def iter_json_pieces(value: object, depth: int = 0) -> Iterator[bytes]:
    """What `msgspec.json.encode` would make of it, in pieces."""
    if depth < MAX_SPLIT_DEPTH and isinstance(value, msgspec.Struct):
        yield from iter_object_pieces(struct_members(value), depth)
    elif depth < MAX_SPLIT_DEPTH and isinstance(value, Mapping):
        yield from iter_object_pieces(value.items(), depth)
    elif depth < MAX_SPLIT_DEPTH and isinstance(value, list | tuple) and value and is_container(value[0]):
        yield from join_pieces((iter_json_pieces(item, depth + 1) for item in value), b"[", b"]")
    elif isinstance(value, list | tuple) and len(value) > LIST_SLICE:
        parts = (value[start : start + LIST_SLICE] for start in range(0, len(value), LIST_SLICE))
        yield from join_pieces(((msgspec.json.encode(part)[1:-1],) for part in parts), b"[", b"]")
    else:
        yield msgspec.json.encode(value)


def iter_object_pieces(members: Iterable[tuple[str, object]], depth: int) -> Iterator[bytes]:
    def member(name: str, value: object) -> Iterator[bytes]:
        yield msgspec.json.encode(name) + b":"
        yield from iter_json_pieces(value, depth + 1)

    yield from join_pieces((member(name, value) for name, value in members), b"{", b"}")


def join_pieces(items: Iterable[Iterable[bytes]], begin: bytes, end: bytes) -> Iterator[bytes]:
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


def is_container(item: object) -> bool:
    return isinstance(item, msgspec.Struct | Mapping | list | tuple)
