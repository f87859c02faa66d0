"""The description of an account: everything derived from it has every field."""

import tomllib
from pathlib import Path

import gatehouse.web
from gatehouse.accounts.importing.checks import IMPORTED_FIELDS
from gatehouse.accounts.model import ACCOUNT_FIELDS, CLAIM_FIELDS, FORM_FIELDS, OWN_FIELDS
from gatehouse.accounts.own_account.export import ExportedAccount
from gatehouse.accounts.profile_fields import apply_changes
from gatehouse.fields.derive import changed_names, form_rows
from gatehouse.oauth.user_claims import PROFILE_CLAIMS
from gatehouse.provision.sections.user_plan import FIELD_CHECKS, PLAIN_FIELDS, UserFileEntry
from gatehouse.storage.accounts.users import SAVED_COLUMNS
from gatehouse.storage.tables.accounts import users
from gatehouse.web.api.permissions.user_admin import AccountData
from gatehouse.web.api.permissions.user_records import UserEntry
from gatehouse.web.console.person import PersonForm, form_of
from gatehouse.web.pages.account_profile import ProfileForm
from tests.support.builders import a_user

LOCALES = Path(gatehouse.web.__file__).parent / "locales"
DESCRIBED = {one.name for one in ACCOUNT_FIELDS}


def test_api_files_and_export_have_every_described_field() -> None:
    for struct in (UserEntry, AccountData, UserFileEntry, ExportedAccount):
        assert set(struct.__struct_fields__) >= DESCRIBED, struct
    assert set(PLAIN_FIELDS) >= DESCRIBED - {"picture"}
    assert set(FIELD_CHECKS) >= {one.name for one in ACCOUNT_FIELDS if one.field.check is not None}


def test_forms_have_their_fields_and_labels() -> None:
    assert set(PersonForm.__struct_fields__) >= {one.name for one in FORM_FIELDS}
    assert set(ProfileForm.__struct_fields__) >= {one.name for one in OWN_FIELDS}
    texts = tomllib.loads((LOCALES / "en.toml").read_text())
    console = tomllib.loads((LOCALES / "console" / "en" / "people.toml").read_text())
    assert {one.name for one in OWN_FIELDS} <= texts["field"].keys()
    assert {f"{one.name}_rule" for one in OWN_FIELDS if one.field.hint} <= texts["account"].keys()
    assert {f"{one.name}_hint" for one in FORM_FIELDS if one.field.hint} <= console["people"].keys()


def test_every_described_column_is_saved() -> None:
    columns = {one.name for one in ACCOUNT_FIELDS if one.name in users.c}
    assert columns - set(SAVED_COLUMNS) == {"username"}  # it is reserved by a statement of its own


def test_claims_and_imports_are_those_of_the_description() -> None:
    assert (
        {one.field.claim for one in CLAIM_FIELDS} == {"given_name", "family_name", "zoneinfo"} < set(PROFILE_CLAIMS)
    )
    assert {one.name for one in IMPORTED_FIELDS} == {"name", "given_name", "family_name"}


def test_form_of_an_account_changes_nothing() -> None:
    user = a_user(tags=frozenset({"b", "a"}), username="anna", country="DE", given_name="Anna")
    after = apply_changes(user, form_of(user).changes())
    assert changed_names(user, after, ACCOUNT_FIELDS) == ()


def test_change_of_one_field_leaves_an_old_value_of_another_unchecked() -> None:
    """A guest without an address, or a user name that is reserved by now, does not stop a change."""
    user = a_user(login=None, username="admin")
    after = apply_changes(user, {"login": "", "username": "admin", "nick": "Kim"})
    assert (after.login, after.username, after.nick) == (None, "admin", "Kim")


def test_two_short_fields_share_a_row() -> None:
    rows = form_rows(OWN_FIELDS)
    assert [[one.name for one in row] for row in rows] == [
        ["nick"],
        ["name"],
        ["given_name", "family_name"],
        ["zoneinfo"],
    ]
