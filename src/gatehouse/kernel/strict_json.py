"""JSON in which no name occurs twice in one object: two readers of such a document could see two values."""

import json
from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode_strict_json(text: str, kind: type[T]) -> T:
    """Decode JSON of a kind. Raises ValueError for anything else, and for a repeated name at any depth."""
    try:
        decoded = msgspec.json.decode(text, type=kind)
        json.loads(text, object_pairs_hook=refuse_duplicate_members)  # msgspec takes the last one of a name
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return decoded


def refuse_duplicate_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return members
