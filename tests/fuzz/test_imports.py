"""Accounts of any file are checked or refused with a reason, and no accepted hash costs more than R10 allows."""

import io
import json
import time
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.importing.checks import ProviderIssuer, RowChecker
from gatehouse.accounts.importing.files import open_import_file
from gatehouse.accounts.importing.firebase import FirebaseHashConfig
from gatehouse.accounts.importing.hashes import (
    IMPORTED,
    MAX_ARGON2_LANES,
    MAX_ARGON2_MIB,
    MAX_ARGON2_TIME,
    MAX_BCRYPT_COST,
    MAX_PBKDF2_ITERATIONS,
    MAX_SCRYPT_MIB,
    MAX_SCRYPT_PASSES,
    MAX_SHA_CRYPT_ROUNDS,
    Argon2,
    Bcrypt,
    FirebaseScrypt,
    ForeignHash,
    Pbkdf2,
    Scrypt,
    ShaCrypt,
    parse_hash,
)
from gatehouse.accounts.importing.model import AccountCandidate, BadImportFile, EmailState, ImportFormat, RefusedRow
from tests.fuzz.conftest import SEED, examples
from tests.fuzz.test_decoders import SOON, leaves, text_of
from tests.support.builders import NOW, ORIGIN, RECORDER
from tests.support.keys import master_keys

MIB: Final = 2**20
STORED: Final = {"google": ProviderIssuer("google", "https://accounts.google.com")}

number = st.integers(-3, 40) | st.integers(0, 2**33) | st.sampled_from([14, 15, 2_000_001, 262_145, 1_000_001])
salt = st.sampled_from(["c2FsdHNhbHQ", "", "c2FsdA==", "é", "$"])
checksum = st.sampled_from(
    ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
)
NOTATIONS: Final = (
    "$2b${0:02}${3}{3}",
    "bcrypt_sha256$$2a${0:02}$" + "a" * 53,
    "$2y${0:02}$" + "." * 53,
    "$pbkdf2-sha512$i={0},l={1}${2}${3}",
    "pbkdf2_sha256${0}${2}${3}",
    "$scrypt$ln={0},r={1},p={0}${2}${3}",
    "scrypt${0}${2}${1}${1}${3}",
    "$firebase-scrypt$ln={0},r={1}${2}${3}",
    "$argon2id$v=19$m={0},t={1},p={1}${2}${3}",
    "argon2$argon2i$v=19$m={1},t={0},p=1${2}${3}",
    "$5$rounds={0}${2}$" + "a" * 43,
    "$6$rounds={1}${2}$" + "b" * 86,
    "{{SSHA512}}{3}",
)
costly_hash = st.builds(str.format, st.sampled_from(NOTATIONS), number, number, salt, checksum)


def check_cost(known: ForeignHash) -> None:
    """Fail if checking a password costs more than R10 allows."""
    match known:
        case Bcrypt():
            assert int(known.text.split("$")[2]) <= MAX_BCRYPT_COST
        case Pbkdf2():
            assert known.iterations <= MAX_PBKDF2_ITERATIONS
        case Scrypt() | FirebaseScrypt():
            passes = known.p if isinstance(known, Scrypt) else 1
            assert 128 * known.n * known.r <= MAX_SCRYPT_MIB * MIB
            assert 128 * known.n * known.r * passes <= MAX_SCRYPT_PASSES * MAX_SCRYPT_MIB * MIB
        case Argon2():
            assert known.memory_kib <= MAX_ARGON2_MIB * 1024
            assert known.time_cost <= MAX_ARGON2_TIME
            assert known.lanes <= MAX_ARGON2_LANES
        case ShaCrypt():
            assert known.rounds <= MAX_SHA_CRYPT_ROUNDS


@seed(SEED)
@examples(100)
@given(costly_hash)
def test_im_02_no_hash_above_the_limits_is_accepted(text: str) -> None:
    began = time.perf_counter()
    with suppress(BadAccount):
        check_cost(parse_hash(text))
    assert time.perf_counter() - began < SOON


# Files of every format, with the members that their readers look at.


word = text_of("@.-_ \0\u202e", "anna", "@studio.example", "google", "TOTP", "JBSWY3DPEHPK3PXP", "=cmd()")
value = leaves | word | costly_hash


def members(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), value, max_size=len(names))


def as_json_text(found: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return found.map(json.dumps)


keycloak_credential = st.fixed_dictionaries(
    {"type": st.sampled_from(["password", "otp", "webauthn", ""])},
    optional={
        "secretData": as_json_text(members("value", "salt")) | word,
        "credentialData": as_json_text(
            st.fixed_dictionaries(
                {"algorithm": st.sampled_from(["argon2", "pbkdf2-sha256", "bcrypt", "x"])},
                optional={
                    "hashIterations": number,
                    "digits": number,
                    "period": number,
                    "additionalParameters": st.dictionaries(
                        st.sampled_from(["memory", "parallelism", "version", "type"]), st.lists(word, max_size=2)
                    ),
                },
            )
        ),
    },
)
keycloak_user = st.builds(
    lambda user, credentials: {**user, "credentials": credentials},
    members("id", "username", "email", "emailVerified", "firstName", "federatedIdentities"),
    st.lists(keycloak_credential, max_size=2),
)
auth0_hash = st.fixed_dictionaries(
    {"algorithm": st.sampled_from(["scrypt", "bcrypt", "sha512", "md5", "pbkdf2", "argon2", "ldap"])},
    optional={
        "hash": members("value", "encoding"),
        "salt": members("value", "encoding", "position"),
        "cost": number,
        "blockSize": number,
        "parallelization": number,
        "keylen": number,
    },
)
auth0_user = st.builds(
    lambda user, more: {**user, **more},
    members("user_id", "email", "email_verified", "username", "password_hash", "passwordHash", "mfa_factors"),
    st.fixed_dictionaries({}, optional={"custom_password_hash": auth0_hash}),
)
firebase_user = members(
    "localId", "email", "emailVerified", "displayName", "passwordHash", "salt", "providerUserInfo"
)
plain_user = members(
    "login", "nick", "username", "password_hash", "totp_secret", "tags", "user_id", "provider", "subject"
)


def csv_file(rows: list[dict[str, Any]]) -> bytes:
    header = "login,nick,password_hash,totp_secret,tags,user_id,provider,subject"
    lines = [",".join(str(row.get(name, "")) for name in header.split(",")) for row in rows]
    return "\n".join([header, *lines]).encode("utf-8", "surrogatepass")


def json_file(document: object) -> bytes:
    return json.dumps(document).encode()


FILES: Final = {
    ImportFormat.CSV: st.lists(plain_user, max_size=4).map(csv_file),
    ImportFormat.JSONL: st.lists(plain_user, max_size=4).map(lambda rows: b"\n".join(map(json_file, rows))),
    ImportFormat.KEYCLOAK: st.lists(keycloak_user, max_size=4).map(lambda users: json_file({"users": users})),
    ImportFormat.AUTH0: st.lists(auth0_user, max_size=4).map(json_file),
    ImportFormat.FIREBASE: st.lists(firebase_user, max_size=4).map(lambda users: json_file({"users": users})),
}
configs = st.builds(
    FirebaseHashConfig,
    signer_key=st.binary(max_size=64),
    salt_separator=st.just(b"\x04"),
    rounds=number,
    mem_cost=number,
)


@pytest.mark.parametrize("source", ImportFormat, ids=str)
def test_im_01_every_row_is_an_account_or_a_reason(source: ImportFormat) -> None:
    checker = RowChecker(
        sealer=master_keys(),
        recorder=RECORDER,
        origin=ORIGIN,
        source=source.value,
        import_id="import",
        now=NOW,
        issuers=STORED,
        emails=EmailState.UNVERIFIED,
    )

    @seed(SEED)
    @examples(60)
    @given(FILES[source], configs)
    def search(content: bytes, config: FirebaseHashConfig) -> None:
        began = time.perf_counter()
        try:
            rows = list(open_import_file(io.BytesIO(content), source, hash_config=config).rows)
        except BadImportFile:
            return
        for checked in map(checker.check, rows):
            if isinstance(checked, AccountCandidate):
                if checked.user.password_hash is not None:
                    check_cost(parse_hash(checked.user.password_hash.removeprefix(IMPORTED)))
                assert checked.user.login is not None or checked.identities
            else:
                assert isinstance(checked, RefusedRow)
                assert checked.reason
        assert time.perf_counter() - began < SOON

    search()
