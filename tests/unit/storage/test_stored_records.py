"""Records stored by an earlier version are read: `stored_records.json` holds what its code wrote."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from gatehouse.oauth.model import ClaimContent, ClaimSource, Client
from gatehouse.storage.oauth.clients import client_from_fields, columns_of

STORED: Final = msgspec.json.decode(
    (Path(__file__).parent / "stored_records.json").read_bytes(), type=dict[str, str]
)  # by "module:class", the JSON of a record with a value in every member
# They are parts of requests too, where an unknown member is an error.
FORBIDDING: Final = {"ClaimSource", "TokenSettings", "ExportedSecret"}
REMOVED: Final = {"subject"}  # of an authorization request, which is stored for minutes: `subjects` now


def record_type(path: str) -> type[msgspec.Struct]:
    module, _, name = path.partition(":")
    kind: type[msgspec.Struct] = getattr(import_module(module), name)
    return kind


@pytest.mark.parametrize("path", STORED)
def test_record_of_an_earlier_version_is_read_with_all_its_members(path: str) -> None:
    record = msgspec.json.decode(STORED[path], type=record_type(path))
    members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    stored = {name: value for name, value in msgspec.json.decode(STORED[path]).items() if name not in REMOVED}
    assert {**members, **stored} == members


@pytest.mark.parametrize("path", [path for path in STORED if path.partition(":")[2] not in FORBIDDING])
def test_record_of_a_later_version_is_read_without_members_that_are_unknown_here(path: str) -> None:
    kind = record_type(path)
    later = msgspec.json.encode({**msgspec.json.decode(STORED[path]), "of_a_later_version": {"a": 1}})
    read = msgspec.json.decode(later, type=kind)
    known = msgspec.json.decode(STORED[path], type=kind)
    assert msgspec.json.decode(msgspec.json.encode(read)) == msgspec.json.decode(msgspec.json.encode(known))


@pytest.mark.parametrize("path", STORED)
def test_stored_record_is_no_array(path: str) -> None:
    assert not record_type(path).__struct_config__.array_like


def test_client_of_a_later_version_is_read_without_members_that_are_unknown_here() -> None:
    client = Client(
        client_id="web",
        name="Web",
        created_at=1,
        claims={"rank": ClaimSource(application_id=1, told=ClaimContent.ROLES)},
    )
    columns = columns_of(client)
    columns["claims"] = {"rank": {"application_id": 1, "told": "roles", "of_a_later_version": 1}}
    columns["token_settings"] = {**columns["token_settings"], "of_a_later_version": 1}
    assert client_from_fields(columns) == client
