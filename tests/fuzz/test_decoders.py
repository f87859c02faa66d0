"""Every decoder of external input accepts any bytes or refuses them with its own error, quickly."""

import io
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from fido2 import cbor
from fido2.cose import CoseKey
from hypothesis import example, given, seed
from hypothesis import strategies as st

from gatehouse.accounts.fixed_ips import check_fixed_ips
from gatehouse.accounts.identities import IdentityRules
from gatehouse.accounts.importing.files import open_import_file
from gatehouse.accounts.importing.firebase import parse_hash_config
from gatehouse.accounts.importing.hashes import parse_hash
from gatehouse.accounts.importing.model import ImportFormat
from gatehouse.accounts.second_factors.ceremony import check_public_key
from gatehouse.admin.role_cells import read_end as read_end_of_list
from gatehouse.kernel.addresses import parse_address
from gatehouse.kernel.errors import GatehouseError
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.keys.rsa_public_keys import parse_rsa_public_key
from gatehouse.oauth.model import Client
from gatehouse.oauth.redirects import is_registered_redirect, is_registrable_origin, is_registrable_uri
from gatehouse.permissions.documents import grammar, records, rules
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.documents.ends import parse_end
from gatehouse.permissions.documents.grammar import check_config_schema
from gatehouse.permissions.model.rules import RuleSection
from gatehouse.permissions.questions.parsing import read_rule
from gatehouse.providers.jwt_tickets import refuse_early_use, refuse_unlisted_audience
from gatehouse.providers.model import Provider
from gatehouse.providers.openid_connect import metadata_without_discovery, person_of, refuse_other_time
from gatehouse.providers.steam_tickets import is_bought, ticket_params
from gatehouse.provision.document import read_document
from gatehouse.tokens.foreign_jws import parse_foreign_jws
from gatehouse.tokens.request_signatures import is_signed_request
from gatehouse.tokens.verifier import parse_jws
from gatehouse.web.api.games import GetGsidRequest
from gatehouse.web.api.oauth.credentials import read_basic
from gatehouse.web.console.activity import parse_moment
from gatehouse.web.console.applications.staged_edits import parse_edits, parse_import_lines
from gatehouse.web.console.projects.holdings import parse_end_field
from gatehouse.web.http import parse_form, parse_json
from gatehouse.web.pages.sign_in_flow import restart_address
from tests.fuzz.conftest import SEED, examples
from tests.fuzz.stepped_service import stepped_service
from tests.support.authenticator import from_base64url, to_base64url
from tests.support.vendors import STEAM_ID
from tests.unit.accounts.second_factors import test_ceremony_checks as ceremony_checks

LONGEST: Final = 5  # seconds a response may take
SOON: Final = 1.0  # seconds; a decoder that reads its input twice takes a thousandth of it
LATEST: Final = 2**63
ISSUER: Final = Provider(
    provider_id="unity",
    kind="unity",
    name="Unity",
    issuer="https://issuer.example",
    rules=IdentityRules(provider_id="unity", provider_name="Unity"),
)
REGISTERED: Final = Client(client_id="c", name="c", created_at=1, redirect_uris=("https://shop.example/cb",))

Read = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Decoder:
    name: str
    read: Read
    input: st.SearchStrategy[Any]


def text_of(alphabet: str, *words: str) -> st.SearchStrategy[str]:
    """Text of characters and words that matter to a parser; sometimes any text."""
    piece = st.sampled_from([*words, *alphabet]) | st.text(max_size=3)
    return st.lists(piece, max_size=24).map("".join) | st.text(max_size=200)


def as_bytes(text: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return text.map(lambda value: value.encode("utf-8", "surrogatepass")) | st.binary(max_size=300)


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["everyone", "127.0.0.0/8", "mind_games", "1000000001", "50001", "a" * 24, "moderator", "x.y"])
)
WORDS: Final = (
    *("and", "or", "uid", "tag", "ip", "domain", "purchase", "everyone", "value", "params", "expired", "ttl"),
    *("name", "roles", "private_data", "public_data", "projectAccess", "groups", "applications", "meta", "protected"),
    *("description", "tags", "settings", "type", "properties", "$ref", "pattern", "items", "gdpr"),
)
document = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)
steam_response = st.fixed_dictionaries(
    {}, optional={"params": st.dictionaries(st.sampled_from(["result", "steamid"]), leaves), "error": leaves}
)
members = st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=8), document, max_size=4)
segment = st.binary(max_size=60).map(lambda raw: urlsafe_b64encode(raw).rstrip(b"=").decode())
json_segment = document.map(lambda found: urlsafe_b64encode(msgspec.json.encode(found)).rstrip(b"=").decode())
jws = st.lists(segment | json_segment | st.text(max_size=8), min_size=1, max_size=5).map(".".join)
basic = st.binary(max_size=40).map(lambda raw: f"Basic {b64encode(raw).decode()}") | st.text(max_size=60)
address = text_of(
    ":/?#@[].%\\ \t\r\n0", "https://", "http://", "shop.example", "127.0.0.1", "::ffff:", "javascript:", "xn--"
)
moment = text_of("0123456789-:TZ+. ", "2030-01-31", "T12:00", "0001-01-01", "9999-12-31", "T23:59", "+23:59")
form = text_of("=&;+%[]", "%00", "%ff", "%C3%28", "a=", "fixed_ips[]=", "gsid=")
lines = text_of("\r\n,\"'{}[]:", '{"user_id":', "user_id,role\n", "\x00")
yaml = text_of(
    *(
        "-:{}[]&*!|>%@#'\"\n ,?",
        "roles:\n",
        "- name: x\n",
        "!!python/object",
        "&a [*a]",
        "<<: *a",
        "? ",
        "---\n",
        "0o7",
    )
)
part = text_of(
    '\r\n;="', "--b\r\n", "--b--\r\n", 'Content-Disposition: form-data; name="a"', "\r\n\r\n", "Content-Type:"
)
pem = text_of("\n= +/", "-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----", "MIIB", "AQAB", "ssh-rsa ")

csv_text = text_of(
    "\r\n,;\"'\t\0", "login,nick\n", "login;email_verified\n", "a@b.example,", '"', "true", "\ufeff", "$2b$10$"
)
account = text_of(
    '{}[]",:\n',
    *('{"users":[', "[{", '"credentials":[{', '"type":"password"', '"secretData":"{}"', '"email":"a@b.example"'),
    *(
        '"passwordHash":"AAAA"',
        '"mfa_factors":[]',
        '"custom_password_hash":{"algorithm":"scrypt","cost":-1}',
        '"login"',
    ),
)
foreign_hash = text_of(
    *("$=,./+{}", "$2b$10$", "pbkdf2_sha256$", "$pbkdf2-sha512$", "i=1000,l=64", "$scrypt$", "ln=14,r=8,p=1", "99"),
    *(
        "$argon2id$v=19$",
        "m=65536,t=3,p=4",
        "$6$rounds=",
        "$5$",
        "{SSHA512}",
        "$salted-sha256$prefix$",
        "c2FsdA",
        "==",
    ),
)


def import_rows(source: ImportFormat) -> Read:
    return lambda body: list(open_import_file(io.BytesIO(body), source).rows)


def token_person(claims: dict[str, object]) -> object:
    refuse_unlisted_audience(ISSUER, claims, ("game",))
    refuse_early_use(claims, 1)
    refuse_other_time(claims, 1, max_age=300)
    return person_of(ISSUER, metadata_without_discovery(ISSUER), claims, name="")


# Passkeys: what a browser sent, with bytes changed, cut out, repeated or put in, and other members in the JSON.

REGISTERED_PASSKEY: Final = cbor.encode({"fmt": "none", "attStmt": {}, "authData": ceremony_checks.MADE})
USED_PASSKEY: Final = ceremony_checks.authenticator_data(0x85, b"\xa1\x61x\x82\x01\x43abc")
CBOR_PIECES: Final = (
    b"\xf6",
    b"\xf7",
    b"\x5f",
    b"\xff",
    b"\xbf",
    b"\xc2\x41\x05",
    b"\x1b" + b"\xff" * 8,
    b"\x81" * 60,
)


@st.composite
def mutated(draw: st.DrawFn, whole: bytes) -> bytes:
    changed = bytearray(whole)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(changed)))
        end = draw(st.integers(start, min(start + 40, len(changed))))
        changed[start:end] = draw(
            st.sampled_from([*CBOR_PIECES, b"", bytes(changed[start:end]) * 2]) | st.binary(max_size=4)
        )
    return bytes(changed)


def passkey_response(name: str, whole: bytes) -> st.SearchStrategy[str]:
    kind = "webauthn.create" if name == "attestationObject" else "webauthn.get"
    client = st.dictionaries(st.sampled_from(["type", "challenge", "origin", "crossOrigin", "x"]), leaves, max_size=1)
    other = st.dictionaries(st.sampled_from(["userHandle", "signature", "transports", name]), leaves, max_size=1)
    members = st.dictionaries(st.sampled_from(["id", "rawId", "type", "response", "x"]), leaves, max_size=1)

    def build(data: bytes, client: dict[str, Any], other: dict[str, Any], members: dict[str, Any]) -> str:
        collected = ceremony_checks.client_data(kind, **client)
        response = {
            "clientDataJSON": to_base64url(collected),
            name: to_base64url(data),
            "signature": to_base64url(ceremony_checks.sign(data, collected)),
        }
        return ceremony_checks.credential(response | other, **members)

    return st.builds(build, mutated(whole), st.just({}) | client, st.just({}) | other, st.just({}) | members)


def register_passkey(text: str) -> None:
    ceremony = ceremony_checks.CEREMONY
    made = ceremony.verify_registration(ceremony.parse_registration(text))
    check_public_key(CoseKey.parse(msgspec.convert(cbor.decode(made.public_key), dict[int, Any])))
    assert made.credential_id == ceremony_checks.CREDENTIAL_ID


def sign_in_with_passkey(text: str) -> None:
    ceremony = ceremony_checks.CEREMONY
    answer = ceremony.parse_sign_in(text)
    ceremony.verify_sign_in(answer, cbor.encode(ceremony_checks.KEY))
    data = from_base64url(answer.answer.response.authenticator_data)
    assert data[:32] == ceremony_checks.MADE[:32]
    assert data[32] & ceremony_checks.USED == ceremony_checks.USED


DECODERS: Final = (
    Decoder("import csv", import_rows(ImportFormat.CSV), as_bytes(csv_text)),
    *(
        Decoder(f"import {source}", import_rows(source), as_bytes(account))
        for source in ImportFormat
        if source is not ImportFormat.CSV
    ),
    Decoder("password hash", parse_hash, foreign_hash),
    Decoder("hash parameters", parse_hash_config, text_of("{}:,\n=", "rounds", "mem_cost", "base64_signer_key", "8")),
    Decoder(
        "json",
        parse_json.decode_json,
        as_bytes(text_of('{}[]",:\\-.eE0', '"\\ud800"', "\\u0000", "1e999", "NaN", "9" * 30)),
    ),
    Decoder("query and form", parse_form.parse_urlencoded, as_bytes(form)),
    Decoder(
        "form as fields",
        lambda body: parse_form.collect_fields(parse_form.parse_urlencoded(body), GetGsidRequest),
        as_bytes(form),
    ),
    Decoder("multipart", lambda body: parse_form.parse_multipart(body, "b"), as_bytes(part)),
    Decoder("jwt", parse_jws, jws),
    Decoder("token of an issuer", lambda text: token_person(parse_foreign_jws(text).payload), jws),
    Decoder("claims of a token", token_person, members),
    Decoder("ticket of Steam", lambda found: ticket_params({"response": found}), document | steam_response),
    Decoder("ownership at Steam", lambda found: is_bought({"appownership": found}, STEAM_ID), document),
    Decoder("basic", read_basic, basic),
    Decoder("request signature", lambda text: is_signed_request(text, b"", text), text_of("=+/-_", "AAAA")),
    Decoder("public key", parse_rsa_public_key, pem),
    Decoder("address", parse_address, text_of(".:%[]/ 0", "::ffff:", "127.0.0.1", "fe80::1%eth0")),
    Decoder("fixed ips", lambda text: check_fixed_ips([text]), text_of(".:/% 0", "10.0.0.0/8", "::/0", "/33")),
    Decoder("web address", parse_web_url, address),
    Decoder("redirect uri", is_registrable_uri, address),
    Decoder("redirect uri asked for", lambda text: is_registered_redirect(REGISTERED, text), address),
    Decoder("origin", is_registrable_origin, address),
    Decoder("way back", restart_address, text_of("-_=.~", "eJw", "AAAA")),
    Decoder("condition", parse_condition, document),
    Decoder("role", lambda found: rules.parse_meta(found, place="meta"), document),
    Decoder("schema", lambda found: rules.parse_schema_section(found, RuleSection.PRIVATE), document),
    Decoder("login rules", rules.parse_login, document),
    Decoder("secret rules", rules.parse_secret, document),
    Decoder("params", lambda text: rules.parse_params(text, "params"), text_of("|:,\n", "a:10", "can_admin")),
    Decoder("holdings", lambda found: records.parse_private_data(found, place="data"), document),
    Decoder("assignments", lambda found: records.parse_assignments(found, place="roles"), document),
    Decoder("end", lambda found: parse_end(found, "end"), members),
    Decoder("application id", grammar.parse_application_id, leaves | text_of("0123456789_ x", "\u0661")),
    Decoder("application settings", lambda found: grammar.check_application_settings(found, "settings"), document),
    Decoder("service meta", lambda found: grammar.check_service_meta(found, "service_meta"), document),
    Decoder("config schema", lambda found: check_config_schema(found, "config_schema"), document),
    Decoder("rule", lambda text: read_rule(text, "rule"), leaves | text_of("._-", "private_data.", "user.kick")),
    Decoder("day", lambda text: parse_moment(text, "", is_end=True), moment),
    Decoder("end in the console", parse_end_field, moment),
    Decoder("end in a list", lambda text: read_end_of_list(text, 1, "line 1"), moment),
    Decoder("list of people", lambda text: parse_import_lines(text, ["user_id", "role"]), lines),
    Decoder("edits", parse_edits, text_of('[]{},:"', '[{"kind":', "null", "1e9")),
    Decoder("yaml", lambda content: read_document(content, ".yaml"), as_bytes(yaml)),
    Decoder(
        "toml",
        lambda content: read_document(content, ".toml"),
        as_bytes(text_of('[]="\n.#', "[[roles]]\n", "1979-05-27")),
    ),
    Decoder("passkey registration", register_passkey, passkey_response("attestationObject", REGISTERED_PASSKEY)),
    Decoder("passkey sign-in", sign_in_with_passkey, passkey_response("authenticatorData", USED_PASSKEY)),
    Decoder(
        "json file",
        lambda content: read_document(content, ".json"),
        as_bytes(text_of('{}[]",:', '"a":', "NaN", "1e999")),
    ),
)


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_ht_25_a_decoder_reads_or_refuses_in_its_own_words_and_soon(decoder: Decoder) -> None:
    @seed(SEED)
    @examples(60)
    @given(decoder.input)
    def search(value: Any) -> None:
        began = time.perf_counter()
        with suppress(GatehouseError):  # its own error
            decoder.read(value)
        assert time.perf_counter() - began < SOON

    search()


@seed(SEED)
@examples(60)
@example("0001-01-01T12:00")
@example("1970-01-01T00:00")
@given(moment)
def test_ro_19_a_date_that_is_read_as_an_end_is_one_and_never_for_ever(text: str) -> None:
    for read in (parse_end_field, lambda value: read_end_of_list(value, 1, "line 1")):
        with suppress(GatehouseError):
            end = read(text)
            assert "-" not in text or (end is not None and 0 < end.expired < LATEST)


# -- header values, through the running service ---------------------------------------------------------

HEADERS: Final = (
    *(
        "Authorization",
        "Cookie",
        "Accept-Language",
        "User-Agent",
        "X-Forwarded-For",
        "Forwarded",
        "Origin",
        "Referer",
    ),
    *(
        "If-None-Match",
        "Content-Type",
        "Factor",
        "Service-Jwt",
        "Signature",
        "Application-Id",
        "Request-Sign",
        "Range",
    ),
    *("Accept", "Sec-Purpose", "X-Request-Id", "Access-Control-Request-Method"),
)
PATHS: Final = (
    *(
        ("GET", "/sign-in"),
        ("GET", "/account"),
        ("GET", "/console/"),
        ("GET", "/proxy/oauth/keys"),
        ("GET", "/openapi.json"),
    ),
    *(("GET", "/proxy/oauth/userinfo"), ("GET", "/proxy/oauth/authorize?client_id=x"), ("POST", "/sign-in")),
    *(("POST", "/proxy/oauth/token"), ("POST", "/proxy/api/gameSession/getGsid"), ("POST", "/api/permissions/check")),
    *(("OPTIONS", "/proxy/oauth/token"), ("POST", "/proxy/api/login")),
)


def header_bytes(text: str) -> bytes:
    """What an HTTP library can send; test_http_protocol.py tests the rest."""
    return bytes(byte for byte in text.encode("utf-8", "replace")[:400] if byte >= 0x20 and byte != 0x7F).strip()


header_value = text_of(
    *(
        "=;,/ \t\"'*()<>%",
        "Bearer ",
        "Basic ",
        "gatehouse",
        "__Host-",
        "multipart/form-data; boundary=",
        "application/json",
    ),
    *("de;q=0.5", "127.0.0.1", "for=", "W/", "utf-8", "\xff", "eyJhbGciOiJub25lIn0."),
).map(header_bytes)


def test_ht_25_no_header_value_makes_the_service_fail(installed_sqlite_url: str, tmp_path: Path) -> None:
    with stepped_service(installed_sqlite_url, tmp_path) as bench:
        for method, path in PATHS:
            bench.run(bench.service.client.request(method, path))  # load what is imported lazily

        @seed(SEED)
        @examples(75)
        @given(
            st.sampled_from(PATHS),
            st.dictionaries(st.sampled_from(HEADERS), header_value, min_size=1, max_size=4),
            st.binary(max_size=40),
        )
        def search(asked: tuple[str, str], headers: dict[str, bytes], body: bytes) -> None:
            method, path = asked
            content = body if method == "POST" else None
            response = bench.run(bench.service.client.request(method, path, headers=headers, content=content))
            assert response.status_code < 500
            assert response.elapsed.total_seconds() < LONGEST

        search()
