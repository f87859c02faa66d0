"""The files of other systems."""

import io
import json
from typing import Any

import pytest

from gatehouse.accounts.importing.files import open_import_file
from gatehouse.accounts.importing.hashes import verify_imported
from gatehouse.accounts.importing.lines import MAX_LINE_BYTES
from gatehouse.accounts.importing.model import BadImportFile, FileRow, ForeignIdentity, ImportEntry, ImportFormat
from tests.unit.accounts.importing.test_hashes import FIREBASE, FIREBASE_HASH, phc

CSV = ImportFormat.CSV


def rows_of(content: bytes | str, source: ImportFormat = CSV) -> list[FileRow]:
    raw = content.encode() if isinstance(content, str) else content
    return list(open_import_file(io.BytesIO(raw), source, hash_config=FIREBASE).rows)


def problems_of(content: bytes | str, source: ImportFormat = CSV) -> dict[int, str]:
    return {row.number: row.problem for row in rows_of(content, source) if row.problem}


def test_csv_has_every_column_of_the_ruling() -> None:
    columns = (
        "login,nick,name,username,password_hash,totp_secret,tags,purchases,email_verified,user_id,provider,subject"
    )
    cells = 'anna@studio.example,Anna,"Anna ""B"" Berg",anna,$2b$x,JBSWY3DP,"a, b",steam:480,TRUE,7,google,123'
    [row] = rows_of(f"{columns}\n{cells}\n")
    assert row == FileRow(
        2,
        ImportEntry(
            login="anna@studio.example",
            nick="Anna",
            name='Anna "B" Berg',
            username="anna",
            password_hash="$2b$x",
            totp_secret="JBSWY3DP",
            tags=frozenset({"a", "b"}),
            purchases=frozenset({"steam:480"}),
            email_verified=True,
            user_id="7",
            identities=(ForeignIdentity("google", "123"),),
        ),
    )


@pytest.mark.parametrize("content", ["\ufefflogin;nick\r\na@b.example;Anna\r\n", "Login\tNick\n\na@b.example\tAnna"])
def test_csv_of_a_spreadsheet_is_read(content: str) -> None:
    [row] = rows_of(content)
    assert (row.entry.login, row.entry.nick, row.problem) == ("a@b.example", "Anna", "")


@pytest.mark.parametrize(
    ("cell", "blocked", "problem"), [("yes", True, ""), ("", False, ""), ("maybe", False, "blocked")]
)
def test_a_blocked_account_stays_blocked(cell: str, problem: str, *, blocked: bool) -> None:
    [row] = rows_of(f"login,blocked\na@b.example,{cell}\n")
    assert row.entry.blocked is blocked
    assert row.problem == (f"{problem} must be true or false" if problem else "")
    [line] = rows_of(json.dumps({"login": "a@b.example", "blocked": blocked}), ImportFormat.JSONL)
    assert line.entry.blocked is blocked


def test_im_01_a_broken_line_is_told_with_its_number_and_swallows_no_other() -> None:
    lines = [
        b"login,nick",
        b'"a@b.example,Anna',  # a quote that is never closed
        b"b@b.example,Ben",
        b"c@b.example",
        b"\xff@b.example,Cleo",
        b"d@b.example," + b"x" * (3 * MAX_LINE_BYTES),
        b"e@b.example,Emil",
    ]
    rows = rows_of(b"\n".join(lines))
    assert [row.entry.login for row in rows if not row.problem] == ["b@b.example", "e@b.example"]
    assert {row.number: row.problem for row in rows if row.problem} == {
        2: "the line is not CSV: unexpected end of data",
        4: "has 1 cells, the header has 2",
        5: "the line is not UTF-8",
        6: "the line is longer than 65,536 bytes",
    }


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("", "empty"),
        ("login,passwort", "unknown column 'passwort'; the columns are login, nick"),
        ("login,login", "named twice"),
        ("nick,name", "needs a column login"),
        ("x" * 100_000, "longer than"),
    ],
)
def test_im_01_a_file_without_a_usable_header_is_refused(header: str, reason: str) -> None:
    with pytest.raises(BadImportFile, match=reason):
        rows_of(f"{header}\n" if header else "")


def test_json_lines_take_the_same_fields_and_any_number_of_identities() -> None:
    identities = [{"provider": "steam", "subject": "76561197960287930"}, {"provider": "google", "subject": "1"}]
    line = {"login": "a@b.example", "tags": ["x"], "user_id": 12, "nick": None, "identities": identities}
    [row] = rows_of(json.dumps(line), ImportFormat.JSONL)
    assert row.entry.user_id == "12"
    assert [one.provider for one in row.entry.identities] == ["steam", "google"]


def test_im_01_json_that_is_malformed_deep_or_has_unknown_fields_is_refused_line_by_line() -> None:
    lines = ["{", '{"login": 1}', '{"pasword": "x"}', "[" * 30_000, '"\\ud800"', '{"login": "a@b.example"}']
    rows = rows_of("\n".join(lines), ImportFormat.JSONL)
    assert [bool(row.problem) for row in rows] == [True] * 5 + [False]


# The exports of vendors, in the shapes of their documentation.


def a_keycloak_user(**more: Any) -> dict[str, Any]:
    return {
        "id": "5d1b1f7e-8f0a-4a39-9d1c-6a8a1f1c2b3d",
        "createdTimestamp": 1_600_000_000_000,
        "username": "anna",
        "email": "anna@studio.example",
        "emailVerified": True,
        "enabled": True,
        "firstName": "Anna",
        "lastName": "Berg",
        "attributes": {"locale": ["de"]},
        "requiredActions": [],
        "realmRoles": ["default-roles-studio"],
        **more,
    }


def a_credential(kind: str, secret: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "secretData": json.dumps(secret), "credentialData": json.dumps(data), "priority": 10}


def keycloak(*users: dict[str, Any]) -> list[FileRow]:
    return rows_of(json.dumps({"realm": "studio", "users": users, "clients": []}), ImportFormat.KEYCLOAK)


PBKDF2 = a_credential(
    "password",
    {"value": "CWWFdHOWwPnki7HvkcqN9iA2T3KLW1cf2uZ5kvArtVY=", "salt": "c2Vhc2FsdA==", "additionalParameters": {}},
    {"hashIterations": 10_000, "algorithm": "pbkdf2-sha256", "additionalParameters": {}},
)
ARGON2 = a_credential(
    "password",
    {"value": "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc=", "salt": "c29tZXNhbHQ="},
    {
        "hashIterations": 2,
        "algorithm": "argon2",
        "additionalParameters": {
            "hashLength": ["32"],
            "memory": ["65536"],
            "type": ["id"],
            "version": ["1.3"],
            "parallelism": ["1"],
        },
    },
)
OTP = {"subType": "totp", "digits": 6, "counter": 0, "period": 30, "algorithm": "HmacSHA1"}


def test_a_keycloak_realm_gives_passwords_factors_and_links() -> None:
    links = [{"identityProvider": "google", "userId": "1234", "userName": "anna"}]
    otp = a_credential("otp", {"value": "12345678901234567890"}, OTP)
    other = a_credential("otp", {"value": "JBSWY3DPEHPK3PXP"}, {**OTP, "secretEncoding": "BASE32"})
    first, second = keycloak(
        a_keycloak_user(credentials=[PBKDF2, otp], federatedIdentities=links),
        a_keycloak_user(username="bob@studio.example", email=None, enabled=False, credentials=[ARGON2, other]),
    )
    assert verify_imported(first.entry.password_hash, "lètmein")
    assert verify_imported(second.entry.password_hash, "password")
    assert first.entry.totp_secret == "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # of RFC 6238
    assert second.entry.totp_secret == "JBSWY3DPEHPK3PXP"
    assert first.entry.identities == (ForeignIdentity("google", "1234"),)
    assert (first.entry.name, first.entry.username, first.entry.email_verified) == ("Anna Berg", "anna", True)
    assert (second.entry.login, second.entry.username, second.entry.blocked) == ("bob@studio.example", "", True)


def test_keycloak_accounts_that_would_lose_protection_are_refused() -> None:
    rows = keycloak(
        a_keycloak_user(credentials=[a_credential("otp", {"value": "1" * 20}, {**OTP, "digits": 8})]),
        a_keycloak_user(credentials=[PBKDF2, a_credential("webauthn", {}, {})]),
        a_keycloak_user(serviceAccountClientId="game"),
        a_keycloak_user(credentials=[a_credential("password", {"value": "AA=="}, {"algorithm": "md5"})]),
        {"username": 7},
    )
    assert [row.problem.partition(";")[0] for row in rows] == [
        "the second factor is not TOTP with 6 digits, 30 seconds and SHA-1",
        "has a second factor that cannot be imported",
        "is the service account of a client, not a person",
        "the password is hashed with 'md5', which is not supported",
        "is not valid: Expected `str | null`, got `int` - at `$.username`",
    ]


def test_auth0_is_read_as_lines_and_as_an_array() -> None:
    bcrypt = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
    exported = {
        "_id": {"$oid": "60425dc43519d90068f82973"},
        "email": "anna@studio.example",
        "email_verified": True,
        "passwordHash": bcrypt,
        "tenant": "studio",
        "identities": [
            {"provider": "auth0", "user_id": "60425dc4", "connection": "Username-Password-Authentication"},
            {"provider": "google-oauth2", "user_id": "1234", "isSocial": True},
        ],
    }
    salted = {"value": phc("f84fa2149dbb62ed4e0cf1f550d2949b33a6513d3a7707e08502511c79ccb0ee"), "encoding": "base64"}
    bulk = {
        "email": "bob@studio.example",
        "nickname": "Bob",
        "blocked": True,
        "custom_password_hash": {
            "algorithm": "sha256",
            "hash": salted,
            "salt": {"value": "salt", "encoding": "utf8", "position": "suffix"},
        },
        "mfa_factors": [{"totp": {"secret": "JBSWY3DPEHPK3PXP"}}],
    }
    lines = "\n".join(json.dumps(one) for one in (exported, bulk))
    as_lines, as_array = rows_of(lines, ImportFormat.AUTH0), rows_of(json.dumps([exported, bulk]), ImportFormat.AUTH0)
    assert as_lines == as_array
    first, second = as_array
    assert verify_imported(first.entry.password_hash, "U*U")
    assert verify_imported(second.entry.password_hash, "secret")
    assert first.entry.identities == (ForeignIdentity("google-oauth2", "1234"),)
    assert (second.entry.nick, second.entry.blocked) == ("Bob", True)
    assert second.entry.totp_secret == "JBSWY3DPEHPK3PXP"


def test_auth0_hashes_that_are_not_supported_are_refused() -> None:
    def problem(**given: Any) -> str:
        line = {"email": "a@b.example", "custom_password_hash": {"hash": {"value": "00" * 32}, **given}}
        [row] = rows_of(json.dumps(line), ImportFormat.AUTH0)
        return row.problem

    assert "hashed with 'md5'" in problem(algorithm="md5")
    assert "without a salt" in problem(algorithm="sha256")
    assert "power of two" in problem(algorithm="scrypt", cost=1_000, salt={"value": "x"})
    assert "encoding" in problem(algorithm="sha256", hash={"value": "zz"}, salt={"value": "x"})
    [row] = rows_of(json.dumps({"email": "a@b.example", "mfa_factors": [{"phone": {}}]}), ImportFormat.AUTH0)
    assert "second factor" in row.problem


def test_firebase_passwords_need_the_parameters_of_the_project() -> None:
    user = {
        "localId": "q1w2",
        "email": "anna@studio.example",
        "emailVerified": True,
        "passwordHash": FIREBASE_HASH,
        "salt": "42xEC+ixf3L2lw==",
        "displayName": "Anna",
        "disabled": False,
        "providerUserInfo": [{"providerId": "google.com", "rawId": "1234", "email": "anna@studio.example"}],
    }
    [row] = rows_of(json.dumps({"users": [user]}), ImportFormat.FIREBASE)
    assert verify_imported(row.entry.password_hash, "user1password")
    assert row.entry.identities == (ForeignIdentity("google.com", "1234"),)
    raw = io.BytesIO(json.dumps({"users": [user]}).encode())
    [without] = open_import_file(raw, ImportFormat.FIREBASE).rows
    assert "without the hash parameters" in without.problem


@pytest.mark.parametrize("source", [ImportFormat.KEYCLOAK, ImportFormat.FIREBASE, ImportFormat.AUTH0])
@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b'{"users": 7}', b"\xff\xfe", b"[[[["])
def test_im_01_a_document_that_is_not_one_is_refused_as_a_whole(source: ImportFormat, content: bytes) -> None:
    try:
        rows = rows_of(content, source)
    except BadImportFile:
        return
    assert all(
        row.problem or row.entry == ImportEntry() for row in rows
    )  # Auth0 reads anything but an array as lines
