"""Public keys of applications: accepted formats, sources and ids."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec_key
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gatehouse.keys.key_objects import public_der, public_pem
from gatehouse.permissions.authentication.application_keys import (
    ApplicationKeyDirectory,
    KeyFiles,
    application_id_of,
    new_service_key,
    parse_public_key,
)
from gatehouse.permissions.errors import KeyNotFound, Malformed
from gatehouse.permissions.model.application import ApplicationKey, KeySource
from tests.support.clock import MovableClock
from tests.support.keys import NOW, KeysInMemory, a_keyring, first_keys
from tests.support.tokens import APPLICATION, application_private_key

OTHER = 50002


def the_pem() -> str:
    return public_pem(application_private_key().public_key())


def a_huge_pem() -> str:
    """A key of 16384 bits without a known private half."""
    return public_pem(RSAPublicNumbers(e=65537, n=(1 << 16_383) + 1).public_key())


class PublicKeysInMemory:
    """The ApplicationKeyStore methods about public keys."""

    def __init__(self) -> None:
        self.keys: list[ApplicationKey] = []
        self.live = {APPLICATION, OTHER}

    async def is_application_live(self, application_id: int) -> bool:
        return application_id in self.live

    async def application_keys(self, application_id: int) -> list[ApplicationKey]:
        return [key for key in self.keys if key.application_id == application_id and application_id in self.live]

    async def application_key(self, kid: str) -> ApplicationKey | None:
        return next((key for key in self.keys if key.kid == kid and key.application_id in self.live), None)


@pytest.fixture
def store() -> PublicKeysInMemory:
    return PublicKeysInMemory()


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
async def keys(store: PublicKeysInMemory, clock: MovableClock, tmp_path: Path) -> ApplicationKeyDirectory:
    keyring = await a_keyring(KeysInMemory(first_keys()), clock)
    files = KeyFiles(tmp_path, clock=clock)
    return ApplicationKeyDirectory(store=store, files=files, keyring=keyring, clock=clock)  # type: ignore[arg-type]


def put(directory: Path, application_id: int, name: str, text: str | bytes) -> None:
    (directory / str(application_id)).mkdir(exist_ok=True)
    raw = text.encode() if isinstance(text, str) else text
    (directory / str(application_id) / name).write_bytes(raw)


def a_kept_key(kid: str, source: KeySource = KeySource.CUSTOM, created_at: int = NOW) -> ApplicationKey:
    return ApplicationKey(kid=kid, application_id=APPLICATION, source=source, pem=the_pem(), created_at=created_at)


def test_a_public_key_is_kept_in_one_spelling() -> None:
    assert parse_public_key(the_pem().replace("\n", "\r\n"), "key") == the_pem()
    assert parse_public_key(f"\n{the_pem()}\n\n", "key") == the_pem()


def private_pem() -> str:
    return (
        application_private_key()
        .private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        .decode()
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "as text"),
        (7, "as text"),
        ("", "not a public key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "not a public key"),
        (public_pem(generate_ec_key(SECP256R1()).public_key()), "not an RSA key"),
        (private_pem(), "private key"),
        ("A" * 5_000, "longer"),
        (a_huge_pem(), "16384"),
    ],
    ids=["none", "number", "empty", "broken", "ec", "private", "long", "huge"],
)
def test_ap_07_only_a_sound_public_key_is_taken_as_one(text: object, words: str) -> None:
    with pytest.raises(Malformed, match=words) as error:
        new_service_key(text, application_id=APPLICATION, now=NOW)
    assert "data.service_meta.public_key" in error.value.detail
    assert "MII" not in error.value.detail


def test_a_service_key_that_is_saved_again_keeps_its_id() -> None:
    key = new_service_key(the_pem(), application_id=APPLICATION, now=NOW)
    assert key.source is KeySource.SERVICE_META
    assert new_service_key(the_pem(), application_id=APPLICATION, now=NOW + 9, before=key) is key
    assert new_service_key(the_pem(), application_id=APPLICATION, now=NOW).kid != key.kid


async def test_keys_are_published_in_the_order_of_the_interface(
    keys: ApplicationKeyDirectory, store: PublicKeysInMemory, tmp_path: Path
) -> None:
    put(tmp_path, APPLICATION, "any.pem", the_pem())
    store.keys = [a_kept_key("c1"), a_kept_key("c0", created_at=NOW - 1)]
    store.keys.append(a_kept_key("s", KeySource.SERVICE_META, NOW + 1))
    from_file, *stored = await keys.list_published(APPLICATION)
    assert [key.key_id for key in stored] == ["s", "c0", "c1"]
    assert {key.pem for key in (from_file, *stored)} == {the_pem()}
    assert await keys.list_published(OTHER) == ()


async def test_unknown_and_removed_applications_look_alike(
    keys: ApplicationKeyDirectory, store: PublicKeysInMemory, tmp_path: Path
) -> None:
    put(tmp_path, APPLICATION, "any.pem", the_pem())
    [key] = await keys.list_published(APPLICATION)
    store.keys = [a_kept_key("c1")]
    store.live.remove(APPLICATION)
    for application_id in (APPLICATION, 99):
        with pytest.raises(KeyNotFound):
            await keys.list_published(application_id)
    for kid in (key.key_id, "c1", "unknown", "", "f99-" + "0" * 24):
        with pytest.raises(KeyNotFound):
            await keys.get_published_key(kid)
        assert await keys.find_public_key(kid) is None


async def test_a_key_file_vouches_for_the_application_of_its_directory(
    keys: ApplicationKeyDirectory, tmp_path: Path
) -> None:
    put(tmp_path, APPLICATION, "key.pem", the_pem())
    put(tmp_path, OTHER, "key.pem", the_pem())
    [ours], [theirs] = await keys.list_published(APPLICATION), await keys.list_published(OTHER)
    assert ours.key_id != theirs.key_id
    found_key, other = await keys.find_public_key(ours.key_id), await keys.find_public_key(theirs.key_id)
    assert found_key is not None
    assert other is not None
    assert (found_key.application_id, other.application_id) == (APPLICATION, OTHER)
    assert public_der(found_key.public) == public_der(application_private_key().public_key())
    assert await keys.get_published_key(ours.key_id) == ours


async def test_the_id_of_a_key_file_does_not_come_from_its_name(
    keys: ApplicationKeyDirectory, clock: MovableClock, tmp_path: Path
) -> None:
    put(tmp_path, APPLICATION, "f50002-000000000000000000000000.pem", the_pem())
    [key] = await keys.list_published(APPLICATION)
    assert application_id_of(key.key_id) == APPLICATION
    (tmp_path / str(APPLICATION) / "f50002-000000000000000000000000.pem").rename(
        tmp_path / str(APPLICATION) / "other.pem"
    )
    await clock.advance(5)
    assert await keys.list_published(APPLICATION) == (key,)


async def test_files_that_are_no_keys_are_passed_over(keys: ApplicationKeyDirectory, tmp_path: Path) -> None:
    put(tmp_path, APPLICATION, "a.pem", private_pem())
    put(tmp_path, APPLICATION, "b.pem", b"\xff\xfe")
    put(tmp_path, APPLICATION, "c.txt", the_pem())
    (tmp_path / str(APPLICATION) / "d.pem").mkdir()
    (tmp_path / str(APPLICATION) / "e.pem").symlink_to(tmp_path / "nowhere")
    assert await keys.list_published(APPLICATION) == ()
    put(tmp_path, OTHER, "z.pem", the_pem())
    assert len(await keys.list_published(OTHER)) == 1


async def test_a_directory_is_looked_at_again_after_a_while(
    keys: ApplicationKeyDirectory, clock: MovableClock, tmp_path: Path
) -> None:
    assert await keys.list_published(APPLICATION) == ()
    put(tmp_path, APPLICATION, "key.pem", the_pem())
    assert await keys.list_published(APPLICATION) == ()
    await clock.advance(5)
    assert len(await keys.list_published(APPLICATION)) == 1


async def test_the_kid_of_our_own_tokens_is_answered_too(keys: ApplicationKeyDirectory) -> None:
    token_keys = [key for key in first_keys() if key.purpose == "tokens"]
    others = [key for key in first_keys() if key.purpose != "tokens"]
    for key in token_keys:
        assert "PUBLIC KEY" in (await keys.get_published_key(key.kid)).pem
    assert others
    for key in others:
        with pytest.raises(KeyNotFound):
            await keys.get_published_key(key.kid)
    assert await keys.find_public_key(token_keys[0].kid) is None
