"""What each ceremony checks: records of earlier versions stay valid, and one wrong part refuses a response."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from fido2 import cbor
from fido2.cose import ES256, ES512, RS1, RS256, EdDSA

from gatehouse.accounts.second_factors.ceremony import MAX_ENCODED_BYTES, WebAuthn
from gatehouse.accounts.second_factors.model import PasskeyRefused
from gatehouse.accounts.second_factors.webauthn import RelyingParty
from gatehouse.kernel.digests import sha256
from tests.support.authenticator import from_base64url, to_base64url
from tests.support.builders import a_passkey, a_user

ORIGIN: Final = "https://id.example:8443"
CEREMONY: Final = WebAuthn(RelyingParty(name="Gatehouse", origin=ORIGIN, host="id.example"))
CHALLENGE: Final = bytes(range(32))
CREDENTIAL_ID: Final = b"sixteen-bytes-of"
PRESENT, VERIFIED, ELIGIBLE, BACKED_UP, ATTESTED, EXTENDED = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80
USED: Final = PRESENT | VERIFIED

# Made with webauthn 3.0.1, which earlier versions used: keys as they are in databases, and what browsers sent.
CREATED: Final = (
    "eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIiwiY2hhbGxlbmdlIjoiQUFFQ0F3UUZCZ2NJQ1FvTERBME9EeEFSRWhNVUZSWVhHQmthR3h3ZEhoOCIs"
    "Im9yaWdpbiI6Imh0dHBzOi8vaWQuZXhhbXBsZTo4NDQzIiwiY3Jvc3NPcmlnaW4iOmZhbHNlfQ"
)
SIGNED_IN: Final = (
    "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiQUFFQ0F3UUZCZ2NJQ1FvTERBME9EeEFSRWhNVUZSWVhHQmthR3h3ZEhoOCIsIm9y"
    "aWdpbiI6Imh0dHBzOi8vaWQuZXhhbXBsZTo4NDQzIiwiY3Jvc3NPcmlnaW4iOmZhbHNlfQ"
)
USED_SEVEN_TIMES: Final = "b7_CG43gtdONK_b-wEJpDfDLrqj0m_LTmJmViZ6BwTAdAAAABw"
RECORDS: Final = {
    "ES256": (
        ("pQECAyYgASFYIEualjJz27g61XICp9_UQ_XhbmheZIi57nUP5437TXX7IlggkxfwSizE1EQbLyMdLt3NHwj0tjZkvbrekDN7V-p0kew"),
        (
            "o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YViUb7_CG43gtdONK_b-wEJpDfDLrqj0m_LTmJmViZ6BwTBdAAAAAAAAAAAAAAAA"
            "AAAAAAAAAAAAEHNpeHRlZW4tYnl0ZXMtb2alAQIDJiABIVggS5qWMnPbuDrVcgKn39RD9eFuaF5kiLnudQ_njftNdfsiWCCTF_BK"
            "LMTURBsvIx0u3c0fCPS2NmS9ut6QM3tX6nSR7A"
        ),
        ("MEYCIQDtbgdZ2fuyigl0ViDGlHOhTFyoF2BHN_mW9FUIlN39nwIhAJGl8Jq0Mph7R_V63LBC-sVC3QgGwyNY8-ZLGj430wmn"),
    ),
    "EdDSA": (
        ("pAEBAycgBiFYICtb1IakamRT19LVa81j4_UvamMa4UDTC831eRTgA70M"),
        (
            "o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVhxb7_CG43gtdONK_b-wEJpDfDLrqj0m_LTmJmViZ6BwTBdAAAAAAAAAAAAAAAA"
            "AAAAAAAAAAAAEHNpeHRlZW4tYnl0ZXMtb2akAQEDJyAGIVggK1vUhqRqZFPX0tVrzWPj9S9qYxrhQNMLzfV5FOADvQw"
        ),
        ("4xV_bcXxTCA_Js7Axz7oBPrOgTMB3bw7m-Xd728hl9dEhLu6__U0dF5KOhsEYTyQ3m5so8bBFG2DJEHAje1ODg"),
    ),
    "RS256": (
        (
            "pAEDAzkBACBZAQDJA1KHqaPPxhKVKXq-au04402CVzpJEv3eS4eRcE9uIX1EWKZemKQQ2jr3pKOB7NJno9Tazn085GkPwOafcHj4"
            "eUyQmrYmQYnqpesQzwtJCweo5nClHwhHZhVjWt5tA3ZBGgAaeZMOYLinw56M-Z98abXInJU5VpK6XwEhN6G6Q0gYbAZ0u6_-Odq8"
            "XEDB0JM2faBe2KhKheD-g8E-yuBEoHLdOCmSxlYGLvQpwYGOaqRRNg_x0QR5v2JVuGxEnla9WbuUm3-uTMq_706zHUCryumy6wxy"
            "IHhTIsNBKI3PXo50GXlXsF0bI5OvtifsI33PdbyqbrfWuTlsuZD97BJHIUMBAAE"
        ),
        (
            "o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVkBV2-_whuN4LXTjSv2_sBCaQ3wy66o9Jvy05iZlYmegcEwXQAAAAAAAAAAAAAA"
            "AAAAAAAAAAAAABBzaXh0ZWVuLWJ5dGVzLW9mpAEDAzkBACBZAQDJA1KHqaPPxhKVKXq-au04402CVzpJEv3eS4eRcE9uIX1EWKZe"
            "mKQQ2jr3pKOB7NJno9Tazn085GkPwOafcHj4eUyQmrYmQYnqpesQzwtJCweo5nClHwhHZhVjWt5tA3ZBGgAaeZMOYLinw56M-Z98"
            "abXInJU5VpK6XwEhN6G6Q0gYbAZ0u6_-Odq8XEDB0JM2faBe2KhKheD-g8E-yuBEoHLdOCmSxlYGLvQpwYGOaqRRNg_x0QR5v2JV"
            "uGxEnla9WbuUm3-uTMq_706zHUCryumy6wxyIHhTIsNBKI3PXo50GXlXsF0bI5OvtifsI33PdbyqbrfWuTlsuZD97BJHIUMBAAE"
        ),
        (
            "T-nbn5EwT3VyF3FiTUkf2GKuTLVr-3Pcow_7iK5VwJK5km6vSudniifO4u2vGHlxe3DIq0ywkAeBmkeyl_hTuFnmR4OMreT_jtFy"
            "EI4S2JNjKwA_CklRhMy1D34bbUQ7_eUKzX6GzYESpI52KcdEhbTI0xnOE7IL3n8zZuIMyvDTiKLPXRE950d1Nj4aQHuhvzoTIMWZ"
            "mJedyve-PYzk0pB8c1RprelZ0lNeLGoLgxChJaZh3vVupOucfOVoGP10Rt7ccI-h1OhTEb_6wdfBcMKxYUoCbbMkshHWAOyg59Lk"
            "5Qf1uHjrj3XBEXPu0rztSTfg0TFxK8vmIhoIKK2oEA"
        ),
    ),
}
OPTIONS: Final = (
    (
        '{"rp": {"name": "Gatehouse", "id": "id.example"}, "user": {"id": "MTAwMDAwMDAwMQ", "name": "anna@stu'
        'dio.example", "displayName": "Anna"}, "challenge": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "p'
        'ubKeyCredParams": [{"type": "public-key", "alg": -8}, {"type": "public-key", "alg": -7}, {"type": "p'
        'ublic-key", "alg": -257}], "timeout": 300000, "excludeCredentials": [{"id": "Af8", "type": "public-k'
        'ey", "transports": ["usb", "cable"]}], "authenticatorSelection": {"residentKey": "preferred", "requi'
        'reResidentKey": false, "userVerification": "required"}, "attestation": "none"}'
    ),
    (
        '{"challenge": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "timeout": 300000, "rpId": "id.example"'
        ', "allowCredentials": [{"id": "Af8", "type": "public-key", "transports": ["usb", "cable"]}], "userVe'
        'rification": "required"}'
    ),
)


def credential(response: dict[str, Any], /, **members: Any) -> str:
    name = to_base64url(CREDENTIAL_ID)
    return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response, **members})


def client_data(kind: str, **members: Any) -> bytes:
    collected = {"type": kind, "challenge": to_base64url(CHALLENGE), "origin": ORIGIN, "crossOrigin": False}
    return json.dumps(collected | members).encode()


def authenticator_data(flags: int = USED, tail: bytes = b"") -> bytes:
    return sha256("id.example") + bytes([flags]) + (7).to_bytes(4, "big") + tail


def attested(key: bytes, credential_id: bytes = CREDENTIAL_ID) -> bytes:
    return bytes(16) + len(credential_id).to_bytes(2, "big") + credential_id + key


PRIVATE: Final = ec.derive_private_key(7, ec.SECP256R1())
KEY: Final = ES256.from_cryptography_key(PRIVATE.public_key())
MADE: Final = authenticator_data(USED | ATTESTED, attested(cbor.encode(KEY)))


def sign(data: bytes, client: bytes) -> bytes:
    return PRIVATE.sign(data + sha256(client), ec.ECDSA(SHA256()))


def register(
    data: Any = MADE, *, client: bytes | None = None, attestation: bytes | None = None, **members: Any
) -> bytes:
    """Register and return the stored key."""
    if attestation is None:
        attestation = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
    response = {
        "clientDataJSON": to_base64url(client_data("webauthn.create") if client is None else client),
        "attestationObject": to_base64url(attestation),
    }
    return CEREMONY.verify_registration(CEREMONY.parse_registration(credential(response, **members))).public_key


def sign_in(data: bytes | None = None, *, client: bytes | None = None, **members: Any) -> int:
    data = authenticator_data() if data is None else data
    client = client_data("webauthn.get") if client is None else client
    response = {
        "clientDataJSON": to_base64url(client),
        "authenticatorData": to_base64url(data),
        "signature": to_base64url(sign(data, client)),
    }
    response |= members.pop("response", {})
    answer = CEREMONY.parse_sign_in(credential(response, **members))
    return CEREMONY.verify_sign_in(answer, cbor.encode(KEY))


@pytest.mark.parametrize("algorithm", RECORDS)
def test_a_record_of_an_earlier_version_signs_in_and_is_still_made_the_same(algorithm: str) -> None:
    key, attestation, signature = RECORDS[algorithm]
    made = CEREMONY.verify_registration(
        CEREMONY.parse_registration(
            credential(
                {
                    "clientDataJSON": CREATED,
                    "attestationObject": attestation,
                    "transports": ["internal", "hybrid", "smart-card", "new"],
                },
                authenticatorAttachment="platform",
                clientExtensionResults={},
            )
        )
    )
    assert to_base64url(made.public_key) == key
    assert made.credential_id == CREDENTIAL_ID
    assert (made.sign_count, made.transports) == (0, ("internal", "hybrid", "smart-card"))
    response = {
        "clientDataJSON": SIGNED_IN,
        "authenticatorData": USED_SEVEN_TIMES,
        "signature": signature,
        "userHandle": "MTAwMDAwMDAwMQ",
    }
    answer = CEREMONY.parse_sign_in(credential(response))
    assert (answer.challenge, answer.user_handle) == (CHALLENGE, b"1000000001")
    assert CEREMONY.verify_sign_in(answer, from_base64url(key)) == 7
    for other in RECORDS.keys() - {algorithm}:
        with pytest.raises(PasskeyRefused):
            CEREMONY.verify_sign_in(answer, from_base64url(RECORDS[other][0]))


def test_options_are_those_of_earlier_versions() -> None:
    user = a_user(user_id="1000000001", nick="Anna", login="anna@studio.example")
    passkey = a_passkey(credential_id=b"\x01\xff", transports=("usb", "cable"))
    made = (CEREMONY.registration_options(user, CHALLENGE, [passkey]), CEREMONY.sign_in_options(CHALLENGE, [passkey]))
    assert tuple(map(json.loads, made)) == tuple(map(json.loads, OPTIONS))


def test_responses_without_a_fault_are_accepted() -> None:
    """Each test below changes one part of these."""
    assert register() == cbor.encode(KEY)
    assert sign_in() == 7


CLIENT_FAULTS: Final[dict[str, dict[str, Any]]] = {
    "type": {"type": "payment.get"},
    "type of another kind": {"type": 1},
    "challenge with padding": {"challenge": to_base64url(CHALLENGE) + "="},
    "challenge that is a number": {"challenge": 1_000_000_000},
    "challenge that is a list": {"challenge": list(CHALLENGE)},
    "origin on another port": {"origin": "https://id.example"},
    "origin of a subdomain": {"origin": "https://www.id.example:8443"},
    "origin with a slash": {"origin": f"{ORIGIN}/"},
    "origin in a list": {"origin": [ORIGIN]},
    "no origin": {"origin": None},
    "cross-origin": {"crossOrigin": True},
    "cross-origin as a number": {"crossOrigin": 0},
    "cross-origin as text": {"crossOrigin": "false"},
}


@pytest.mark.parametrize("fault", CLIENT_FAULTS)
def test_client_data_with_a_fault_is_refused(fault: str) -> None:
    members = CLIENT_FAULTS[fault]
    for ceremony in (register, sign_in):
        kind = "webauthn.create" if ceremony is register else "webauthn.get"
        with pytest.raises(PasskeyRefused):
            ceremony(client=client_data(kind, **members))


@pytest.mark.parametrize("client", [b"", b"null", b"[]", b"\xff{}", b"[" * 20_000, b'{"type":'])
def test_client_data_that_is_no_object_is_refused(client: bytes) -> None:
    for ceremony in (register, sign_in):
        with pytest.raises(PasskeyRefused):
            ceremony(client=client)


def test_members_of_client_data_that_are_not_read_are_ignored() -> None:
    more = {"tokenBinding": {"status": "supported"}, "topOrigin": "x", "other_keys_can_be_added_here": "", "x": [1]}
    register(client=client_data("webauthn.create", **more))
    assert sign_in(client=client_data("webauthn.get", **more)) == 7
    no_flag = json.loads(client_data("webauthn.get"))
    del no_flag["crossOrigin"]
    assert sign_in(client=json.dumps(no_flag).encode()) == 7


@pytest.mark.parametrize(
    "members",
    [
        {"type": "password"},
        {"type": None},
        {"id": "AA"},
        {"rawId": "AA"},
        {"id": to_base64url(CREDENTIAL_ID) + "==", "rawId": to_base64url(CREDENTIAL_ID) + "=="},
        {"id": 1_000_000_000, "rawId": 1_000_000_000},
        {"authenticatorAttachment": "elsewhere"},
    ],
)
def test_a_credential_with_a_fault_is_refused(members: dict[str, Any]) -> None:
    for ceremony in (register, sign_in):
        with pytest.raises(PasskeyRefused):
            ceremony(**members)


@pytest.mark.parametrize(
    "members",
    [
        {"userHandle": 1_000_000_000},
        {"signature": 1_000_000_000},
        {"signature": ""},
        {"signature": to_base64url(bytes(70))},
        {"authenticatorData": 1_000_000_000},
        {"clientDataJSON": 1_000_000_000},
        {"clientDataJSON": None},
    ],
)
def test_a_response_with_a_fault_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(PasskeyRefused):
        sign_in(response=members)


def test_the_credential_id_is_that_of_the_authenticator() -> None:
    for credential_id in (b"", b"another-id-of-16", bytes(1_024)):
        data = authenticator_data(USED | ATTESTED, attested(cbor.encode(KEY), credential_id))
        name = to_base64url(credential_id)
        with pytest.raises(PasskeyRefused):
            register(data)
        if credential_id != b"another-id-of-16":
            with pytest.raises(PasskeyRefused):
                register(data, id=name, rawId=name)


FLAGS: Final = {
    "not present": VERIFIED,
    "not verified": PRESENT,
    "neither": 0,
    "backed up, not eligible": USED | BACKED_UP,
    "extensions that are not there": USED | EXTENDED,
}


@pytest.mark.parametrize("fault", FLAGS)
def test_flags_with_a_fault_are_refused(fault: str) -> None:
    with pytest.raises(PasskeyRefused):
        register(authenticator_data(FLAGS[fault] | ATTESTED, attested(cbor.encode(KEY))))
    with pytest.raises(PasskeyRefused):
        sign_in(authenticator_data(FLAGS[fault]))


def test_backup_flags_that_agree_are_accepted() -> None:
    for flags in (USED | ELIGIBLE, USED | ELIGIBLE | BACKED_UP):
        assert sign_in(authenticator_data(flags)) == 7


@pytest.mark.parametrize(
    "data",
    [
        b"",
        authenticator_data()[:-1],
        authenticator_data() + b"\0",
        b"\0" * 37,
        sha256("example") + authenticator_data()[32:],
        authenticator_data(USED | ATTESTED),
        authenticator_data(USED | EXTENDED, cbor.encode({"x": bytes(MAX_ENCODED_BYTES)})),
    ],
)
def test_authenticator_data_with_a_fault_are_refused(data: bytes) -> None:
    with pytest.raises(PasskeyRefused):
        sign_in(data)
    with pytest.raises(PasskeyRefused):
        register(data)


def test_a_registration_without_a_credential_is_refused() -> None:
    with pytest.raises(PasskeyRefused, match="no credential"):
        register(authenticator_data())


ONE, TWO = cbor.encode("credProtect") + b"\x02", cbor.encode("minPinLength") + b"\x04"


@pytest.mark.parametrize("extensions", [b"\xa0", b"\xa2" + ONE + TWO, b"\xa2" + TWO + ONE])
def test_extensions_are_ignored_in_any_order(extensions: bytes) -> None:
    assert sign_in(authenticator_data(USED | EXTENDED, extensions)) == 7
    register(authenticator_data(USED | ATTESTED | EXTENDED, attested(cbor.encode(KEY)) + extensions))


LOOSE: Final = {
    "a key twice": b"\xa2" + ONE + ONE,
    "true and 1": bytes.fromhex("a2 01 01 f5 02"),
    "trailing bytes": b"\xa1" + ONE + b"\0",
    "a string that is cut": b"\xa1\x61x" + b"\x54abc",
    "a number in a long form": b"\xa1\x61x\x19\x00\x02",
    "null": b"\xa1\x61x\xf6",
    "an unknown simple value": b"\xa1\x61x\xf8",
    "a float": b"\xa1\x61x\xf9\x00\x00",
    "a tag": b"\xa1\x61x\xc1\x00",
    "an endless map": b"\xbf\xff",
    "an endless string": b"\xa1\x61x\x5f\x41a\xff",
    "text that is not UTF-8": b"\xa1\x61\xff\x00",
    "a map as a key": b"\xa1\xa0\x00",
    "more than there is": b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
    "deep lists": b"\x81" * 10_000 + b"\0",
    "half a number": b"\xa1\x61x\x19\x00",
}


@pytest.mark.parametrize("fault", LOOSE)
def test_cbor_that_is_not_strict_is_refused_everywhere_and_soon(fault: str) -> None:
    began = time.process_time()
    with pytest.raises(PasskeyRefused):
        sign_in(authenticator_data(USED | EXTENDED, LOOSE[fault]))
    with pytest.raises(PasskeyRefused):
        register(authenticator_data(USED | ATTESTED | EXTENDED, attested(cbor.encode(KEY)) + LOOSE[fault]))
    with pytest.raises(PasskeyRefused):
        register(attestation=b"\xa3" + cbor.encode("fmt") + LOOSE[fault])
    with pytest.raises(PasskeyRefused):
        register(attestation=LOOSE[fault])
    assert time.process_time() - began < 1


NONE: Final = cbor.encode({"fmt": "none", "attStmt": {}, "authData": MADE})


@pytest.mark.parametrize(
    "attestation",
    [
        b"\x01",
        b"\x81\x01",
        b"\xa0",
        cbor.encode({"fmt": "none", "authData": MADE}),
        cbor.encode({"fmt": "none", "attStmt": {}, "authData": 1_000_000_000}),
        cbor.encode({"fmt": "none", "attStmt": {}, "authData": list(MADE)}),
        cbor.encode({"fmt": "none", "attStmt": 1_000_000_000, "authData": MADE}),
        cbor.encode({"fmt": "none", "attStmt": {"x": 1}, "authData": MADE}),
        cbor.encode({"fmt": ["none"], "attStmt": {}, "authData": MADE}),
        cbor.encode({"fmt": "android-key", "attStmt": {}, "authData": MADE}),
        cbor.encode({"fmt": "unknown", "attStmt": {}, "authData": MADE}),
        *(
            cbor.encode({"fmt": kind, "attStmt": {}, "authData": MADE})
            for kind in ("packed", "fido-u2f", "tpm", "apple", "android-safetynet")
        ),
        NONE + bytes(1),
        cbor.encode({"fmt": "none", "attStmt": {}, "authData": MADE, "x": bytes(MAX_ENCODED_BYTES)}),
        b"\xa4" + NONE[1:] + cbor.encode("fmt") + cbor.encode("none"),  # twice
        NONE.replace(b"X\x94", b"X\x95"),  # one byte longer than it is
    ],
)
def test_an_attestation_with_a_fault_is_refused(attestation: bytes) -> None:
    with pytest.raises(PasskeyRefused):
        register(attestation=attestation)


def test_an_attestation_by_the_key_itself_is_verified() -> None:
    client = client_data("webauthn.create")
    for signature, algorithm, is_accepted in (
        (sign(MADE, client), -7, True),
        (sign(MADE, b"other"), -7, False),
        (sign(MADE, client), -8, False),
    ):
        attestation = cbor.encode(
            {"fmt": "packed", "attStmt": {"alg": algorithm, "sig": signature}, "authData": MADE}
        )
        if is_accepted:
            assert register(attestation=attestation) == cbor.encode(KEY)
        else:
            with pytest.raises(PasskeyRefused):
                register(attestation=attestation)


def test_an_attestation_by_a_certificate_is_verified() -> None:
    subject = x509.Name(
        x509.NameAttribute(oid, text)
        for oid, text in (
            (NameOID.COUNTRY_NAME, "SE"),
            (NameOID.ORGANIZATION_NAME, "Maker"),
            (NameOID.ORGANIZATIONAL_UNIT_NAME, "Authenticator Attestation"),
            (NameOID.COMMON_NAME, "Key"),
        )
    )
    vendor = ec.derive_private_key(9, ec.SECP256R1())
    builder = x509.CertificateBuilder(
        subject, subject, vendor.public_key(), 1, datetime(2026, 1, 1, tzinfo=UTC), datetime(2046, 1, 1, tzinfo=UTC)
    )
    certificate = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True).sign(
        vendor, SHA256()
    )
    signed = MADE + sha256(client_data("webauthn.create"))
    for key, is_accepted in ((vendor, True), (PRIVATE, False)):
        statement = {
            "alg": -7,
            "sig": key.sign(signed, ec.ECDSA(SHA256())),
            "x5c": [certificate.public_bytes(Encoding.DER)],
        }
        attestation = cbor.encode({"fmt": "packed", "attStmt": statement, "authData": MADE})
        if is_accepted:
            assert register(attestation=attestation) == cbor.encode(KEY)
        else:
            with pytest.raises(PasskeyRefused):
                register(attestation=attestation)


def ed25519_key() -> dict[int, Any]:
    return dict(EdDSA.from_cryptography_key(ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()))


def rsa_key(bits: int) -> dict[int, Any]:
    return dict(RS256.from_cryptography_key(rsa.generate_private_key(65_537, bits).public_key()))


P521: Final = ec.derive_private_key(7, ec.SECP521R1()).public_key()
BAD_KEYS: Final[dict[str, Callable[[], Any]]] = {
    "no algorithm": lambda: {1: 2, -1: 1, -2: KEY[-2], -3: KEY[-3]},
    "no type": lambda: {3: -7, -1: 1, -2: KEY[-2], -3: KEY[-3]},
    "type of another algorithm": lambda: KEY | {1: 3},
    "an algorithm that was not offered": lambda: dict(ES512.from_cryptography_key(P521)),
    "SHA-1": lambda: rsa_key(2_048) | {3: RS1.ALGORITHM},
    "an unknown algorithm": lambda: KEY | {3: -9_999},
    "an algorithm that is text": lambda: KEY | {3: "-7"},
    "another curve": lambda: dict(ES512.from_cryptography_key(P521)) | {3: -7},
    "another curve's name": lambda: KEY | {-1: 2},
    "no y": lambda: {label: value for label, value in KEY.items() if label != -3},
    "not on the curve": lambda: KEY | {-2: bytes(31) + b"\x05"},
    "the point at infinity": lambda: KEY | {-2: bytes(32), -3: bytes(32)},
    "a coordinate that is too large": lambda: KEY | {-2: b"\xff" * 32},
    "a list of bytes": lambda: KEY | {-2: list(KEY[-2])},
    "a number": lambda: KEY | {-2: 1},
    "a short Ed25519 key": lambda: ed25519_key() | {-2: bytes(31)},
    "Ed448": lambda: ed25519_key() | {-1: 7, -2: bytes(57)},
    "RSA with 1024 bits": lambda: rsa_key(1_024),
    "RSA with 1024 bits and zeros before them": lambda: {**(short := rsa_key(1_024)), -1: bytes(200) + short[-1]},
    "RSA with 16384 bits": lambda: rsa_key(2_048) | {-1: b"\xff" * 2_048},
    "RSA with an even exponent": lambda: rsa_key(2_048) | {-2: b"\x02"},
    "a list": lambda: [1, 2, 3],
    "the byte of an uncompressed point": lambda: 4,
}


@pytest.mark.parametrize("fault", BAD_KEYS)
def test_a_key_that_could_never_sign_in_is_refused(fault: str) -> None:
    with pytest.raises(PasskeyRefused):
        register(authenticator_data(USED | ATTESTED, attested(cbor.encode(BAD_KEYS[fault]()))))


def test_a_key_whose_members_are_in_another_order_is_accepted() -> None:
    pairs = b"".join(cbor.encode(label) + cbor.encode(KEY[label]) for label in (-3, -2, -1, 3, 1))
    assert register(authenticator_data(USED | ATTESTED, attested(b"\xa5" + pairs))) == cbor.encode(KEY)
