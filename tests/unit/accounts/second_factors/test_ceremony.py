"""The relying party's name and options in WebAuthn ceremonies."""

import json

import pytest

from gatehouse.accounts.second_factors.ceremony import WebAuthn
from gatehouse.accounts.second_factors.model import BadPasskeyName, FactorMissing, PasskeyRefused
from gatehouse.accounts.second_factors.passkeys import challenge_digest, check_passkey_name, credential_id_of
from gatehouse.accounts.second_factors.webauthn import RelyingParty
from tests.support.authenticator import from_base64url
from tests.support.builders import a_passkey, a_user

RUBBISH = dict.fromkeys(("clientDataJSON", "attestationObject", "authenticatorData", "signature"), "AA")
PARTY = RelyingParty(name="Gatehouse", origin="https://id.example:8443", host="id.example")
CEREMONY = WebAuthn(PARTY)
CHALLENGE = bytes(range(32))
PASSKEY = a_passkey(credential_id=b"\x01\xff", transports=("usb",))


@pytest.mark.parametrize(
    ("host", "possible"),
    [("id.studio.example", True), ("localhost", True), ("127.0.0.1", False), ("[::1]", False)],
)
def test_passkeys_are_for_named_hosts(host: str, possible: bool) -> None:  # noqa: FBT001
    assert RelyingParty(name="Gatehouse", origin=f"https://{host}:8443", host=host).supports_passkeys is possible


def test_a_registration_asks_for_a_verified_person_and_leaves_out_what_they_have() -> None:
    user = a_user(nick="Anna", login="anna@studio.example")
    options = json.loads(CEREMONY.registration_options(user, CHALLENGE, [PASSKEY]))
    assert options["rp"] == {"name": "Gatehouse", "id": "id.example"}
    assert options["user"]["name"] == "anna@studio.example"
    assert from_base64url(options["user"]["id"]) == user.user_id.encode()
    assert from_base64url(options["challenge"]) == CHALLENGE
    assert options["attestation"] == "none"
    assert options["authenticatorSelection"]["userVerification"] == "required"
    assert options["authenticatorSelection"]["residentKey"] == "preferred"
    assert options["excludeCredentials"] == [{"id": "Af8", "type": "public-key", "transports": ["usb"]}]


def test_a_sign_in_asks_for_the_given_passkeys_or_any() -> None:
    named, any_of_them = (json.loads(CEREMONY.sign_in_options(CHALLENGE, allowed)) for allowed in ([PASSKEY], []))
    assert [credential["id"] for credential in named["allowCredentials"]] == ["Af8"]
    assert any_of_them["allowCredentials"] == []
    assert named["userVerification"] == any_of_them["userVerification"] == "required"
    assert named["rpId"] == "id.example"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 50_000,
        '{"id": "x", "rawId": "x", "type": "public-key", "response": {}}',
        json.dumps({"id": "AA", "rawId": "AA", "type": "public-key", "response": RUBBISH}),
    ],
)
def test_whatever_a_browser_sends_is_refused_in_words(text: str) -> None:
    for read in (CEREMONY.parse_registration, CEREMONY.parse_sign_in):
        with pytest.raises(PasskeyRefused):
            read(text)


def test_a_challenge_is_bound_to_browser_and_account() -> None:
    user, browser = a_user(), bytes(32)
    digests = {
        challenge_digest(CHALLENGE, browser, user),
        challenge_digest(CHALLENGE, browser, None),
        challenge_digest(CHALLENGE, browser, a_user()),
        challenge_digest(CHALLENGE, bytes([1]) * 32, user),
        challenge_digest(bytes(32), browser, user),
    }
    assert len(digests) == 5


def test_a_passkey_is_named_in_one_spelling() -> None:
    assert credential_id_of(PASSKEY.passkey_id) == PASSKEY.credential_id
    for junk in ("Af8=", "Af9", "!", "\u00fc", "\ud800"):
        with pytest.raises(FactorMissing):
            credential_id_of(junk)


@pytest.mark.parametrize("name", ["", "  ", "x" * 65, "a\nb", "\u202elaptop", "zero\u200bwidth"])
def test_a_name_is_one_visible_line(name: str) -> None:
    with pytest.raises(BadPasskeyName):
        check_passkey_name(name)
    assert check_passkey_name(" Anna\u0308s Laptop ") == "Annäs Laptop"
