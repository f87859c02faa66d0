"""What is derived from the fields of a record, of any kind."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec
import pytest

from gatehouse.fields.derive import copy_as, document_values, draft_members, entry_members, entry_values, with_members
from gatehouse.fields.model import CREATED, FIXED, Field, described_fields
from gatehouse.permissions.documents.fields import RecordField, read_fields, read_line
from gatehouse.permissions.errors import Malformed


class Color(StrEnum):
    RED = "red"


def parts_document(parts: tuple[int, ...]) -> list[str]:
    return [f"part {one}" for one in parts]


def read_name(value: object, place: str) -> str:
    return read_line(value, place, 5)


class Toy(msgspec.Struct, frozen=True, kw_only=True):
    toy_id: Annotated[str, Field(entry_name="id", patchable=False)]
    name: Annotated[str, RecordField(read=read_name)]
    color: Annotated[Color, RecordField()] = Color.RED
    tags: Annotated[tuple[str, ...], RecordField()] = ("new",)
    parts: Annotated[tuple[int, ...], Field(document=parts_document)] = ()
    created_at: Annotated[int, CREATED] = 0
    version: Annotated[int, FIXED] = 1
    secret: str = "hidden"  # not described: in no entry


FIELDS = tuple(described_fields(Toy, Field))
READ = tuple(described_fields(Toy, RecordField))
TOY = Toy(toy_id="7", name="bear", tags=("a", "b"), parts=(1, 2))


@with_members(lambda: entry_members(FIELDS))
class ToyEntry(msgspec.Struct, frozen=True, kw_only=True):
    pass


@with_members(lambda: draft_members(FIELDS))
class ToyDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: object = msgspec.UNSET


def test_entry_has_the_described_fields_in_order_under_their_names() -> None:
    assert msgspec.json.encode(ToyEntry(**entry_values(TOY, FIELDS))) == (
        b'{"id":"7","name":"bear","color":"red","tags":["a","b"],'
        b'"parts":["part 1","part 2"],"created":"","version":1}'
    )
    types = {field.name: field.type for field in msgspec.structs.fields(ToyEntry)}
    assert (types["parts"], types["created"]) == (list[str], str)


def test_document_has_lists_and_plain_values() -> None:
    document = document_values(TOY, READ)
    assert document == {"name": "bear", "color": "red", "tags": ["a", "b"]}
    assert type(document["color"]) is str


def test_absent_field_stays_null_clears_and_what_is_not_read_is_ignored() -> None:
    draft = msgspec.convert({"name": "lion", "tags": None, "id": "8", "version": 9}, ToyDraft)
    after = read_fields(TOY, draft, READ, "data.")
    assert (after.name, after.tags, after.color) == ("lion", ("new",), Color.RED)
    assert (after.toy_id, after.version) == ("7", 1)
    with pytest.raises(Malformed, match=r"data\.name: must be text"):
        read_fields(TOY, ToyDraft(name="elephant"), READ, "data.")
    with pytest.raises(msgspec.ValidationError, match="secret"):
        msgspec.convert({"secret": "x"}, ToyDraft)


def test_member_that_a_struct_declares_keeps_its_type() -> None:
    @with_members(lambda: draft_members(FIELDS))
    class NamedDraft(msgspec.Struct, frozen=True, kw_only=True):
        name: str

    with pytest.raises(msgspec.ValidationError, match=r"Expected `str`, got `int` - at `\$\.name`"):
        msgspec.convert({"name": 7}, NamedDraft)


def test_copy_takes_attributes_of_the_same_name_unless_they_are_given() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Label:
        name: str
        version: int
        shelf: str = "top"

    assert copy_as(Label, TOY, version=2) == Label(name="bear", version=2)
    with pytest.raises(TypeError, match="name"):
        copy_as(Label, object(), version=2)
