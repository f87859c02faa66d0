"""The description of a client: everything derived from it has every field."""

import tomllib
from pathlib import Path

from msgspec.structs import fields

import gatehouse.web
from gatehouse.cli.client import create
from gatehouse.fields.model import Kind
from gatehouse.oauth.client_document import ClientPatch, ClientRecord
from gatehouse.oauth.model import CLIENT_FIELDS, SINGLE_FIELDS, Client
from gatehouse.storage.oauth.clients import client_from_fields, columns_of
from gatehouse.web.console.applications.client_forms import FORM_FIELDS, ClientForm
from tests.support.builders import a_client

NOT_SET_BY_FIELD = {"client_id", "removed", "created_at", "version", "rev", "secrets", "logo"}
WORDS = Path(gatehouse.web.__file__).parent / "locales/console/en/shared.toml"


def test_every_editable_client_field_is_described() -> None:
    described = {field.name for field in CLIENT_FIELDS}
    assert described == {field.name for field in fields(Client)} - NOT_SET_BY_FIELD


def test_files_the_api_and_the_command_line_have_every_described_field() -> None:
    described = {field.name for field in CLIENT_FIELDS}
    assert set(ClientRecord.__struct_fields__) == described | {"client_id"}
    assert set(ClientPatch.__struct_fields__) == described - {"application_id"}
    assert {field.name for field in SINGLE_FIELDS} <= {parameter.name for parameter in create.params}


def test_the_form_has_every_field_that_names_a_section_and_its_words() -> None:
    words = tomllib.loads(WORDS.read_text())["field"]
    for field in FORM_FIELDS:
        assert field.name in ClientForm.__struct_fields__
        assert field.name in words
        assert not field.field.hint or f"{field.name}_hint" in words
        assert field.kind is not Kind.FLAG or f"{field.name}_check" in words


def test_token_settings_are_stored_under_the_names_that_older_rows_have() -> None:
    stored = columns_of(a_client())
    assert set(stored["token_settings"]) == {
        *("id_token_alg", "access_seconds", "refresh_seconds", "refresh_grace_seconds"),
    }
    assert client_from_fields(stored, a_client().secrets) == a_client()
