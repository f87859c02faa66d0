"""Attacks on JWT verification, tried on every class of token (checklist UI-16 to UI-25).

Where an attack is not about the signature, the signature is right: the forger has the proper key, and the check that
the test is named after must refuse the token.
"""

import base64
import hashlib
import hmac
import json
import tracemalloc
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import permutations

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gatehouse.keys.encoding import decode_base64url, encode_base64url
from gatehouse.keys.jwks import jwks_document
from gatehouse.keys.key_objects import HmacKey
from gatehouse.keys.keyring import open_key
from gatehouse.keys.model import Algorithm, KeyPurpose
from gatehouse.tokens.claims import (
    Claims,
    ExchangedUserClaims,
    ExpiredToken,
    GeneratedServiceClaims,
    IdClaims,
    InvalidToken,
    OidcIdClaims,
    RefreshClaims,
    ServiceAccountClaims,
    StaticServiceClaims,
    UserJwtClaims,
)
from tests.support.cpu_time import await_within_cpu_seconds
from tests.support.keys import NOW, first_keys, key_of, master_keys
from tests.support.tokens import (
    APPLICATION_KID,
    CLASSES,
    ISSUER,
    OUTBOUND,
    TokenSetup,
    application_private_key,
    example_claims,
    forge,
    header_for,
    kid_for,
    payload_for,
    private_for,
    private_of,
    signature_by,
    token_setup,
    unsigned_token,
    with_signature,
)

every_class = pytest.mark.parametrize("kind", CLASSES)
JSON_WRONG_TIMES = ["{now}.5", '"{now}"', "1e400", "true", "null", "-1", "[{now}]", "9" * 5_000, "1e10", "NaN"]


@pytest.fixture
async def setup() -> AsyncIterator[TokenSetup]:
    with ThreadPoolExecutor(1) as executor:
        yield await token_setup(executor)


async def expect_refusal(setup: TokenSetup, token: str, kind: type[Claims]) -> None:
    with pytest.raises(InvalidToken):
        await setup.verifier.verify(token, kind)
    if kind in (GeneratedServiceClaims, StaticServiceClaims):
        with pytest.raises(InvalidToken):
            await setup.verifier.verify_service_jwt(token)


async def valid_token(setup: TokenSetup, kind: type[Claims]) -> str:
    return forge(kind) if kind is GeneratedServiceClaims else await setup.signer.sign(example_claims(kind))


@every_class
async def test_the_forger_is_right_when_nothing_is_forged(kind: type[Claims], setup: TokenSetup) -> None:
    await setup.verifier.verify(forge(kind), kind)


@pytest.mark.parametrize(("kind", "other"), list(permutations(CLASSES, 2)))
async def test_no_token_class_is_accepted_as_another(
    kind: type[Claims], other: type[Claims], setup: TokenSetup
) -> None:
    token = await valid_token(setup, kind)
    with pytest.raises(InvalidToken):
        await setup.verifier.verify(token, other)


@pytest.mark.parametrize("claim", ["azp", "nonce", "at_hash"])
async def test_ui_28_user_jwt_with_a_claim_of_an_id_token_is_refused(claim: str, setup: TokenSetup) -> None:
    await expect_refusal(
        setup, forge(UserJwtClaims, payload=payload_for(UserJwtClaims) | {claim: "web"}), UserJwtClaims
    )


@pytest.mark.parametrize("claim", ["uid", "slt", "rev"])
async def test_ui_28_id_token_with_a_claim_of_a_user_jwt_is_refused(claim: str, setup: TokenSetup) -> None:
    """Even one whose audience is an application that shares its number with a client."""
    payload = payload_for(OidcIdClaims) | {claim: payload_for(UserJwtClaims)[claim]}
    await expect_refusal(setup, forge(OidcIdClaims, payload=payload), OidcIdClaims)


@pytest.mark.parametrize("aud", ["https://shop.example", ISSUER])
@pytest.mark.parametrize("outbound", OUTBOUND)
async def test_fa_08_a_jwt_for_others_is_accepted_back_as_nothing(
    outbound: type[Claims], aud: str, setup: TokenSetup
) -> None:
    """This includes one for an application or site that claims our own address."""
    token = await setup.signer.sign(example_claims(outbound, aud=aud))
    for kind in (*CLASSES, *OUTBOUND):
        with pytest.raises(InvalidToken):
            await setup.verifier.verify(token, kind)
    with pytest.raises(InvalidToken):
        await setup.verifier.verify_service_jwt(token)


@pytest.mark.parametrize(
    ("kind", "other"), [pair for pair in permutations(CLASSES, 2) if kid_for(pair[0]) != kid_for(pair[1])]
)
async def test_no_key_signs_for_another_token_class(
    kind: type[Claims], other: type[Claims], setup: TokenSetup
) -> None:
    """The header and signature of the other class around this class's claims."""
    message = unsigned_token(header_for(other), payload_for(kind) | {"kid": header_for(other)["kid"]})
    await expect_refusal(setup, with_signature(message, signature_by(private_for(other), message)), kind)


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind is not GeneratedServiceClaims])
async def test_no_token_class_accepts_an_algorithm_of_another(kind: type[Claims], setup: TokenSetup) -> None:
    """Signed by a key of the right purpose, whose algorithm the class does not allow."""
    for key in first_keys():
        if key.purpose is kind.purpose and key.alg not in kind.algs:
            private = open_key(key, master_keys()).private
            message = unsigned_token({"alg": key.alg, "kid": key.kid}, payload_for(kind) | {"kid": key.kid})
            await expect_refusal(setup, with_signature(message, signature_by(private, message)), kind)


async def test_a_longer_spelling_of_an_ecdsa_signature_is_refused(setup: TokenSetup) -> None:
    token = await setup.signer.sign(example_claims(IdClaims), alg=Algorithm.ES256)
    message, _, signature = token.rpartition(".")
    bare = decode_base64url(signature.encode())
    await expect_refusal(setup, with_signature(message, bare[:32] + b"\x00" + bare[32:]), IdClaims)
    await setup.verifier.verify(with_signature(message, bare), IdClaims)


async def test_an_unpublished_purpose_never_signs_tokens(setup: TokenSetup) -> None:
    key = key_of(KeyPurpose.AUDIT, Algorithm.EDDSA)
    header = {"alg": "EdDSA", "kid": key.kid, "typ": "JWT"}
    message = unsigned_token(header, payload_for(RefreshClaims) | {"kid": key.kid})
    token = with_signature(message, signature_by(private_of(KeyPurpose.AUDIT, Algorithm.EDDSA), message))
    await expect_refusal(setup, token, RefreshClaims)


@every_class
@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", None, [], ["none"], {}, 0, True])
async def test_ui_16_no_spelling_of_none_is_an_algorithm(alg: object, kind: type[Claims], setup: TokenSetup) -> None:
    message = unsigned_token(header_for(kind) | {"alg": alg}, payload_for(kind))
    original = forge(kind).rpartition(".")[2]
    for token in (
        f"{message}.",
        message,
        f"{message}.{original}",
        forge(kind, header=header_for(kind) | {"alg": alg}),
    ):
        await expect_refusal(setup, token, kind)


@every_class
async def test_ui_16_a_header_without_an_algorithm_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    header = header_for(kind)
    del header["alg"]
    await expect_refusal(setup, forge(kind, header=header), kind)


def public_secrets(kind: type[Claims]) -> list[bytes]:
    """Every byte string that a careless verifier might use as an HMAC key."""
    private = private_for(kind)
    if isinstance(private, HmacKey):  # it has no public half; the kid is what callers know of it
        return [kid_for(kind).encode(), b""]
    public = private.public_key()
    pems = [public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)]
    ders = [public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)]
    more = []
    if isinstance(public, RSAPublicKey):
        pems.append(public.public_bytes(Encoding.PEM, PublicFormat.PKCS1))
        ders.append(public.public_bytes(Encoding.DER, PublicFormat.PKCS1))
        more.append(public.public_numbers().n.to_bytes(256))
    jwk = jwks_document([key_of(kind.purpose, kind.algs[0])]).body
    return [*pems, *(pem.strip() for pem in pems), *ders, *more, jwk, b""]


@every_class
@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
async def test_ui_17_the_public_key_is_no_hmac_secret(alg: str, kind: type[Claims], setup: TokenSetup) -> None:
    message = unsigned_token(header_for(kind) | {"alg": alg}, payload_for(kind))
    for secret in public_secrets(kind):
        mac = hmac.digest(secret, message.encode(), f"sha{alg[2:]}")
        await expect_refusal(setup, with_signature(message, mac), kind)


@every_class
async def test_ui_17_only_the_algorithm_of_the_key_is_accepted(kind: type[Claims], setup: TokenSetup) -> None:
    for alg in {*Algorithm, "HS256", "RS384", "RS512", "PS256", "ES384", "Ed25519", "rs256", "RS256 "} - {
        kind.algs[0]
    }:
        await expect_refusal(setup, forge(kind, header=header_for(kind) | {"alg": alg}), kind)


@every_class
@pytest.mark.parametrize(
    "kid",
    [
        "../../dev/null",
        "' OR 1=1--",
        "key;sleep",
        ["a"],
        {"a": 1},
        None,
        "",
        "x" * 65,
        "x" * 10_000,
        "a\x00b",
        "a\n",
        "é",
        7,
        True,
    ],
)
async def test_ui_18_a_kid_we_could_not_have_given_is_refused_unasked(
    kid: object, kind: type[Claims], setup: TokenSetup
) -> None:
    loads = setup.store.loads
    await expect_refusal(setup, forge(kind, header=header_for(kind) | {"kid": kid}), kind)
    await expect_refusal(
        setup, forge(kind, header={"alg": str(kind.algs[0])}, payload=payload_for(kind) | {"kid": kid}), kind
    )
    assert (setup.store.loads, setup.applications.lookups) == (loads, 0)


@every_class
async def test_ui_18_a_token_without_any_kid_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    payload = payload_for(kind)
    payload.pop("kid", None)
    await expect_refusal(setup, forge(kind, header={"alg": str(kind.algs[0]), "typ": "JWT"}, payload=payload), kind)


@every_class
@pytest.mark.parametrize("member", ["jwk", "jku", "x5u", "x5c"])
async def test_ui_20_a_key_brought_along_in_the_header_is_refused(
    member: str, kind: type[Claims], setup: TokenSetup
) -> None:
    foreign_key = generate_private_key(65537, 2048) if member == "jwk" else application_private_key()
    numbers = foreign_key.public_key().public_numbers()
    own = base64.b64encode(foreign_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    brought = {
        "jwk": {"kty": "RSA", "e": "AQAB", "n": encode_base64url(numbers.n.to_bytes(256)).decode()},
        "jku": "https://canary.example/keys",
        "x5u": "https://canary.example/certificate",
        "x5c": [own.decode()],
    }
    header = header_for(kind) | {"alg": "RS256", member: brought[member]}
    message = unsigned_token(header, payload_for(kind))
    await expect_refusal(setup, with_signature(message, signature_by(foreign_key, message)), kind)
    await expect_refusal(setup, forge(kind, header=header_for(kind) | {member: brought[member]}), kind)


@every_class
@pytest.mark.parametrize(
    "more",
    [
        {"crit": ["exp"], "exp": NOW + 100},
        {"crit": ["exp"]},
        {"crit": ["bork"]},
        {"crit": []},
        {"b64": False},
        {"b64": True},
        {"typ": "at+jwt"},
        {"typ": "jwt"},
        {"typ": "JOSE"},
        {"typ": ["JWT"]},
        {"typ": None},
        {"cty": "JWT"},
        {"zip": "DEF"},
        {"x5t": "AA"},
        {"x5t#S256": "AA"},
        {"enc": "A256GCM"},
        {"exp": NOW + 100},
        {"": ""},
    ],
)
async def test_ui_21_a_header_with_anything_else_is_refused(
    more: dict[str, object], kind: type[Claims], setup: TokenSetup
) -> None:
    await expect_refusal(setup, forge(kind, header=header_for(kind) | more), kind)


@every_class
async def test_ui_21_a_changed_typ_claim_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    right = payload_for(kind).get("typ", "absent")
    others: list[object] = ["id_token", "service_jwt", "", "JWT", None, ["id_token"], 1, "SERVICE_JWT"]
    for typ in others:
        if typ != right:
            await expect_refusal(setup, forge(kind, payload=payload_for(kind) | {"typ": typ}), kind)


@every_class
async def test_ui_21_a_missing_typ_claim_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    payload = payload_for(kind)
    if kind in (UserJwtClaims, OidcIdClaims):
        payload["typ"] = ""
    else:
        del payload["typ"]
    await expect_refusal(setup, forge(kind, payload=payload), kind)


@every_class
@pytest.mark.parametrize("claim", ["exp", "iat"])
@pytest.mark.parametrize("wrong", JSON_WRONG_TIMES)
async def test_ui_22_a_time_that_is_no_plain_integer_is_refused(
    wrong: str, claim: str, kind: type[Claims], setup: TokenSetup
) -> None:
    payload = payload_for(kind)
    time_then = payload.pop(claim)
    raw = json.dumps(payload)[:-1] + f', "{claim}": {wrong.replace("{now}", str(time_then))}}}'
    await expect_refusal(setup, forge(kind, payload=raw.encode()), kind)


@every_class
@pytest.mark.parametrize("claim", ["exp", "iat", "iss"])
async def test_ui_22_a_token_without_its_times_or_issuer_is_refused(
    claim: str, kind: type[Claims], setup: TokenSetup
) -> None:
    payload = payload_for(kind)
    del payload[claim]
    await expect_refusal(setup, forge(kind, payload=payload), kind)


@every_class
async def test_ui_22_a_token_from_the_future_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    payload = payload_for(kind) | {"iat": NOW + 61, "exp": NOW + 200}
    await expect_refusal(setup, forge(kind, payload=payload), kind)
    await setup.verifier.verify(forge(kind, payload=payload | {"iat": NOW + 60}), kind)


async def test_ui_22_a_service_jwt_is_not_valid_before_its_time(setup: TokenSetup) -> None:
    kind = GeneratedServiceClaims
    await expect_refusal(setup, forge(kind, payload=payload_for(kind) | {"nbf": NOW + 61}), kind)
    await expect_refusal(setup, forge(kind, payload=payload_for(kind) | {"nbf": float(NOW)}), kind)
    await setup.verifier.verify(forge(kind, payload=payload_for(kind) | {"nbf": NOW + 60}), kind)


@every_class
@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "5000"},
        {"iss": "500011"},
        {"iss": "1"},
        {"iss": 50001},
        {"iss": "https://sso.example."},
        {"iss": "https://sso"},
        {"iss": [ISSUER]},
        {"iss": ["50001"]},
        {"iss": None},
        {"iss": ""},
        {"aud": "https://sso"},
        {"aud": "https://sso.example/"},
        {"aud": [ISSUER, ISSUER]},
        {"aud": ["https://shop.example"]},
        {"aud": []},
        {"aud": {"a": ISSUER}},
        {"aud": 50001},
        {"aud": ""},
        {"sub": ["1234567890"]},
        {"sub": {"a": 1}},
        {"sub": 1234567890},
    ],
)
async def test_ui_22_a_wrong_issuer_audience_or_subject_is_refused(
    wrong: dict[str, object], kind: type[Claims], setup: TokenSetup
) -> None:
    if kind is OidcIdClaims and str(wrong.get("aud")) in {"https://sso", "https://sso.example/"}:
        return  # any client: those who read a hint compare it with theirs
    await expect_refusal(setup, forge(kind, payload=payload_for(kind) | wrong), kind)


@pytest.mark.parametrize("member", ["sub", "exp", "iss", "typ"])
async def test_ui_22_a_member_given_twice_is_refused(member: str, setup: TokenSetup) -> None:
    """Our own keys sign no such payload: what they signed was encoded here."""
    kind = GeneratedServiceClaims
    payload = payload_for(kind)
    twice = json.dumps({member: payload.get(member, "x")})[1:-1]
    raw = f"{{{twice}, {twice}, {json.dumps(payload)[1:]}"
    await expect_refusal(setup, forge(kind, payload=raw.encode()), kind)


@every_class
async def test_ui_22_a_header_member_given_twice_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    header = f'{{"alg": "{kind.algs[0]}", {json.dumps(header_for(kind))[1:]}'
    await expect_refusal(setup, forge(kind, header=header.encode()), kind)


@pytest.mark.parametrize(
    "member", ['"x": "\\u0000"', '"x": "\\ud800"', '"x": 1.5', '"x": {"y": 1, "y": 1}', '"x": Infinity']
)
async def test_ui_22_content_that_readers_understand_differently_is_refused(member: str, setup: TokenSetup) -> None:
    kind = GeneratedServiceClaims
    raw = f"{{{member}, {json.dumps(payload_for(kind))[1:]}"
    await expect_refusal(setup, forge(kind, payload=raw.encode()), kind)


@every_class
@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b"\xff", b'{"typ": 1}', b'{"exp": 1e400}', b"[" * 5_000])
async def test_nothing_is_read_of_a_payload_without_the_right_signature(
    payload: bytes, kind: type[Claims], setup: TokenSetup
) -> None:
    message = unsigned_token(header_for(kind), payload)
    signed_by_another = generate_private_key(65537, 2048).sign(message.encode(), PKCS1v15(), SHA256())
    with pytest.raises(InvalidToken) as refused:
        await setup.verifier.verify(with_signature(message, signed_by_another), kind)
    assert refused.value.detail == "the signature is wrong"


def oversized_tokens_of(kind: type[Claims]) -> dict[str, str]:
    token = forge(kind)
    head, body, signature = token.split(".")
    megabyte = "A" * 1_000_000
    deep = b'{"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    return {
        "1 MB header": f"{megabyte}.{body}.{signature}",
        "1 MB payload": f"{head}.{megabyte}.{signature}",
        "1 MB signature": f"{head}.{body}.{megabyte}",
        "just over the cap": forge(kind, payload=payload_for(kind) | {"x": "A" * 12_300}),
        "10,000 dots": "." * 10_000,
        "JWE": f"{head}.{body}.{signature}.{body}.{signature}",
        "JSON": json.dumps({"payload": body, "protected": head, "signature": signature}),
        "trailing newline": token + "\n",
        "trailing dot": token + ".",
        "trailing text": token + "A",
        "padding": token + "=",
        "leading space": " " + token,
        "two tokens": f"{token},{token}",
        "nested arrays": forge(kind, payload=deep),
        "detached payload": f"{head}..{signature}",
        "not ASCII": token + "é",
        "lone surrogate": token + "\ud800",
        "list payload": forge(kind, payload=b"[]"),
        "empty payload": forge(kind, payload=b""),
        "invalid UTF-8": forge(kind, payload=b'{"a":"\xff"}'),
        "byte order mark": forge(kind, payload=b"\xef\xbb\xbf" + json.dumps(payload_for(kind)).encode()),
        "empty": "",
    }


@every_class
async def test_ui_23_malformed_and_oversized_texts_are_refused_quickly(kind: type[Claims], setup: TokenSetup) -> None:
    for token in oversized_tokens_of(kind).values():
        await await_within_cpu_seconds(0.05, partial(expect_refusal, setup, token, kind))


async def test_ui_23_a_thousand_oversized_tokens_leave_no_memory_behind(setup: TokenSetup) -> None:
    tokens = list(oversized_tokens_of(UserJwtClaims).values())
    for token in tokens:
        await expect_refusal(setup, token, UserJwtClaims)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(1_000):
        await expect_refusal(setup, tokens[number % len(tokens)], UserJwtClaims)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 100_000


@every_class
async def test_ui_23_another_spelling_of_the_same_bytes_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    head, body, signature = forge(kind).split(".")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet[alphabet.index(signature[-1]) | 1]
    assert last != signature[-1]
    assert base64.urlsafe_b64decode(f"{signature}==") == base64.urlsafe_b64decode(f"{signature[:-1]}{last}==")
    for spelling in (
        f"{signature[:-1]}{last}",
        f"{signature}==",
        f"{signature[:5]}!{signature[5:]}",
        f"{signature[:5]}\n{signature[5:]}",
    ):
        await expect_refusal(setup, f"{head}.{body}.{spelling}", kind)


@every_class
async def test_a_change_of_any_character_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    token = forge(kind)
    for position in range(0, len(token), 7):
        other = "A" if token[position] != "A" else "B"
        await expect_refusal(setup, token[:position] + other + token[position + 1 :], kind)


@pytest.mark.parametrize("signature", [b"", b"\x00" * 64, b"\x00" * 63, b"\xff" * 64, b"\x00" * 256, b"\x00" * 65])
@every_class
async def test_a_signature_of_nothing_is_refused(signature: bytes, kind: type[Claims], setup: TokenSetup) -> None:
    for alg in kind.algs:
        own = (key.kid for key in first_keys() if key.purpose is kind.purpose and key.alg is alg)
        kid = APPLICATION_KID if kind is GeneratedServiceClaims else next(own, kid_for(kind))
        message = unsigned_token({"alg": alg, "kid": kid, "typ": "JWT"}, payload_for(kind) | {"kid": kid})
        await expect_refusal(setup, with_signature(message, signature), kind)


@every_class
async def test_ui_24_a_token_ends_at_the_second_it_names(kind: type[Claims], setup: TokenSetup) -> None:
    for exp in (NOW, NOW - 1):
        with pytest.raises(ExpiredToken):
            await setup.verifier.verify(forge(kind, payload=payload_for(kind) | {"exp": exp, "iat": NOW - 9}), kind)
    await setup.verifier.verify(forge(kind, payload=payload_for(kind) | {"exp": NOW + 1}), kind)


async def test_ui_25_ten_thousand_random_kids_read_no_keys_from_the_store(setup: TokenSetup) -> None:
    loads = setup.store.loads
    signature = encode_base64url(b"\x00" * 64).decode()
    for number in range(10_000):
        kid = hashlib.sha256(str(number).encode()).hexdigest()[:12]
        message = unsigned_token({"alg": "EdDSA", "kid": kid}, {})
        with pytest.raises(InvalidToken):
            await setup.verifier.verify(f"{message}.{signature}", RefreshClaims)
    assert setup.store.loads == loads
    assert setup.applications.lookups == 0
    assert sum(map(len, setup.keyring._opened.values())) == len(setup.store.stored.keys)


@pytest.mark.parametrize("kind", [UserJwtClaims, ExchangedUserClaims, ServiceAccountClaims])
async def test_a_token_about_two_people_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    await expect_refusal(setup, forge(kind, payload=payload_for(kind) | {"sub": "9999999999"}), kind)


# Applications' libraries add claims to the first; clients map claims into the second (R3).
OPEN = (GeneratedServiceClaims, IdClaims, OidcIdClaims)


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind not in OPEN])
async def test_a_claim_its_class_does_not_have_is_refused(kind: type[Claims], setup: TokenSetup) -> None:
    await expect_refusal(setup, forge(kind, payload=payload_for(kind) | {"admin": True}), kind)
