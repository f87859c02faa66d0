import json

from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey
from msgspec.structs import replace

from gatehouse.keys.jwks import KeySetPublisher, base64url_number, jwks_document
from gatehouse.keys.model import KeyPurpose
from tests.support.clock import MovableClock
from tests.support.keys import NOW, KeysInMemory, a_key, a_keyring, first_keys

TOKEN_KEYS = {"RS256": {"kty", "n", "e"}, "ES256": {"kty", "crv", "x", "y"}, "EdDSA": {"kty", "crv", "x"}}


async def test_ui_12_the_key_set_shows_public_members_of_token_keys_only() -> None:
    clock = MovableClock()
    keyring = await a_keyring(KeysInMemory(first_keys()), clock)
    keys = json.loads(KeySetPublisher(keyring=keyring, clock=clock).document().body)["keys"]
    assert {key["alg"]: key.keys() - {"kid", "use", "alg"} for key in keys} == TOKEN_KEYS
    assert {key["use"] for key in keys} == {"sig"}
    assert {key["kid"] for key in keys} == {key.kid for key in first_keys() if key.purpose is KeyPurpose.TOKENS}


def test_another_library_reads_the_same_keys() -> None:
    tokens = [key for key in first_keys() if key.purpose is KeyPurpose.TOKENS]
    theirs = KeySet.import_key_set(json.loads(jwks_document(tokens).body))
    for key in tokens:
        read = theirs.get_by_kid(key.kid)
        assert isinstance(read, RSAKey | ECKey | OKPKey)
        assert read.as_der(private=False) == key.public


async def test_the_document_follows_the_keys_and_their_time() -> None:
    first, clock = replace(a_key(), verifies_until=NOW + 10), MovableClock()
    store = KeysInMemory([first])
    keyring = await a_keyring(store, clock)
    publisher = KeySetPublisher(keyring=keyring, clock=clock)
    alone = publisher.document()
    assert publisher.document() is alone
    store.replace_keys(a_key())
    await keyring.reload()
    both = publisher.document()
    await clock.advance(10)
    rest = publisher.document()
    assert [len(json.loads(each.body)["keys"]) for each in (alone, both, rest)] == [1, 2, 1]
    assert len({alone.etag, both.etag, rest.etag}) == 3
    assert all(each.etag[0] == each.etag[-1] == '"' for each in (alone, both, rest))


def test_key_set_is_empty_without_keys() -> None:
    assert jwks_document(()).body == b'{"keys":[]}'


def test_coordinates_keep_their_leading_zeros_and_other_numbers_have_none() -> None:
    assert base64url_number(65537) == "AQAB"
    assert base64url_number(1, 32) == "A" * 42 + "E"
