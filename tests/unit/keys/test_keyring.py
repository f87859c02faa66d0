import asyncio

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from gatehouse.kernel.errors import Unavailable
from gatehouse.keys.keyring import Keyring, open_key
from gatehouse.keys.model import (
    Algorithm,
    KeyPurpose,
    MacAlgorithm,
    NoSigningKey,
    SigningKey,
    StoredKeys,
    Tampered,
    WrongMasterKey,
)
from gatehouse.keys.sealing import MasterKeys
from tests.support.clock import MovableClock
from tests.support.keys import (
    MASTER,
    NOW,
    OTHER_MASTER,
    KeysInMemory,
    a_key,
    a_keyring,
    first_keys,
    key_of,
    master_keys,
)

TOKENS, ES256 = KeyPurpose.TOKENS, Algorithm.ES256


def damage_key(key: SigningKey) -> SigningKey:
    return replace(key, sealed_private=key.sealed_private[:-1] + bytes([key.sealed_private[-1] ^ 1]))


async def test_the_key_that_signs_is_the_one_of_purpose_and_algorithm() -> None:
    keyring = await a_keyring(KeysInMemory(first_keys()), MovableClock())
    for key in first_keys():
        assert keyring.signing_key(key.purpose, key.alg, NOW).record == key


async def test_newer_of_two_signing_keys_signs() -> None:
    older, younger = a_key(), a_key(signs_from=NOW - 10)
    keyring = await a_keyring(KeysInMemory([younger, older]), MovableClock())
    assert keyring.signing_key(TOKENS, ES256, NOW).record == younger
    assert keyring.signing_key(TOKENS, ES256, NOW - 11).record == older


async def test_nothing_is_signed_without_a_key() -> None:
    keyring = await a_keyring(KeysInMemory([a_key(signs_from=NOW + 1)]), MovableClock())
    with pytest.raises(NoSigningKey):
        keyring.signing_key(TOKENS, ES256, NOW)


async def test_a_published_key_verifies_and_a_retired_one_does_not() -> None:
    coming, retired = a_key(signs_from=NOW + 60), replace(a_key(), verifies_until=NOW + 1)
    keyring = await a_keyring(KeysInMemory([coming, retired]), MovableClock())
    assert await keyring.verification_key(TOKENS, coming.kid, NOW) is not None
    assert await keyring.verification_key(TOKENS, retired.kid, NOW) is not None
    assert await keyring.verification_key(TOKENS, retired.kid, NOW + 1) is None


async def test_ui_12_only_token_keys_that_are_not_retired_are_published() -> None:
    old, coming, removed = a_key(), a_key(signs_from=NOW + 60), replace(a_key(), verifies_until=NOW)
    old = replace(old, signs_until=NOW - 1)
    others = [a_key(KeyPurpose.REFRESH, MacAlgorithm.HS256), a_key(KeyPurpose.AUDIT, Algorithm.EDDSA)]
    keyring = await a_keyring(KeysInMemory([old, coming, removed, *others]), MovableClock())
    assert {key.kid for key in keyring.published_keys(NOW)} == {old.kid, coming.kid}


async def test_ui_25_unknown_kids_read_the_version_and_no_keys() -> None:
    store = KeysInMemory([a_key()])
    keyring = await a_keyring(store, MovableClock())
    for number in range(1_000):
        assert await keyring.verification_key(TOKENS, f"unknown{number}", NOW) is None
    assert (store.loads, store.versions_read) == (1, 1_000)
    store.replace_keys(a_key())
    await asyncio.gather(*(keyring.verification_key(TOKENS, f"other{number}", NOW) for number in range(100)))
    assert store.loads == 2
    assert len(keyring._opened[TOKENS]) == 2


async def test_a_key_made_elsewhere_is_found_when_its_first_token_comes() -> None:
    store, clock = KeysInMemory([a_key()]), MovableClock()
    keyring = await a_keyring(store, clock)
    new = a_key()
    store.replace_keys(new)
    keys = await asyncio.gather(*(keyring.verification_key(TOKENS, new.kid, NOW) for _ in range(5)))
    assert all(key is not None and key.record == new for key in keys)


async def test_a_view_catches_up_with_another_version_and_reads_nothing_for_its_own() -> None:
    key = a_key()
    store, clock = KeysInMemory([key]), MovableClock()
    keyring = await a_keyring(store, clock)
    await keyring.ensure_version(store.stored.version)
    assert store.loads == 1
    store.replace_keys(replace(key, verifies_until=NOW))
    await keyring.ensure_version(store.stored.version)
    assert await keyring.verification_key(TOKENS, key.kid, NOW) is None


async def test_an_opened_key_is_kept_when_only_its_times_change() -> None:
    key = a_key()
    store, clock = KeysInMemory([key]), MovableClock()
    keyring = await a_keyring(store, clock)
    before = keyring.signing_key(TOKENS, ES256, NOW)
    store.replace_keys(replace(key, signs_until=NOW + 50))
    await keyring.reload()
    after = keyring.signing_key(TOKENS, ES256, NOW)
    assert after.private is before.private
    assert after.record.signs_until == NOW + 50


async def test_r_25_a_damaged_key_is_refused_with_one_alarm_and_the_others_serve() -> None:
    good, bad = a_key(), damage_key(a_key(KeyPurpose.REFRESH, MacAlgorithm.HS256))
    store, clock = KeysInMemory([good, bad]), MovableClock()
    with capture_logs() as logs:
        keyring = await a_keyring(store, clock)
        await keyring.reload()
    assert [(entry["log_level"], entry["key_id"]) for entry in logs] == [("critical", bad.kid)]
    assert keyring.signing_key(TOKENS, ES256, NOW).record == good
    assert await keyring.verification_key(KeyPurpose.REFRESH, bad.kid, NOW) is None
    with pytest.raises(NoSigningKey):
        keyring.signing_key(KeyPurpose.REFRESH, MacAlgorithm.HS256, NOW)


@pytest.mark.parametrize("part", ["public", "kid", "purpose", "alg"])
async def test_a_record_changed_in_the_database_is_refused(part: str) -> None:
    good, bad = a_key(), a_key(KeyPurpose.TOKENS, Algorithm.EDDSA)
    other_keyring = a_key(KeyPurpose.REFRESH, Algorithm.EDDSA)
    changed = replace(bad, **{part: {"alg": ES256}.get(part, getattr(other_keyring, part))})
    with capture_logs() as logs:
        keyring = await a_keyring(KeysInMemory([good, changed]), MovableClock())
    assert await keyring.verification_key(changed.purpose, changed.kid, NOW) is None
    assert [entry["event"] for entry in logs] == ["signing key refused"]


async def test_a_key_is_found_only_among_those_of_its_purpose() -> None:
    keys = [a_key(), a_key(KeyPurpose.REFRESH, MacAlgorithm.HS256), a_key(KeyPurpose.AUDIT, Algorithm.EDDSA)]
    keyring = await a_keyring(KeysInMemory(keys), MovableClock())
    for key in keys:
        found = [purpose for purpose in KeyPurpose if await keyring.verification_key(purpose, key.kid, NOW)]
        assert found == [key.purpose]


async def test_a_secret_key_has_32_bytes_and_no_public_half() -> None:
    key = a_key(KeyPurpose.REFRESH, MacAlgorithm.HS256)
    short = master_keys().seal(bytes(31), purpose=key.sealed_for)
    for refused in (replace(key, sealed_private=short), replace(key, public=a_key().public)):
        with pytest.raises(Tampered):
            open_key(refused, master_keys())
    assert open_key(key, master_keys()).public is None


async def test_a_mended_key_serves_again() -> None:
    good, other = a_key(), a_key(KeyPurpose.REFRESH, Algorithm.EDDSA)
    store = KeysInMemory([good, damage_key(other)])
    with capture_logs():
        keyring = await a_keyring(store, MovableClock())
    store.replace_keys(other)
    await keyring.reload()
    assert await keyring.verification_key(KeyPurpose.REFRESH, other.kid, NOW) is not None


async def test_r_24_the_wrong_master_key_is_an_error_and_the_old_view_stays() -> None:
    store, clock = KeysInMemory([a_key()]), MovableClock()
    other_keyring = Keyring(store=store, masters=MasterKeys(OTHER_MASTER), clock=clock)
    with pytest.raises(WrongMasterKey):
        await other_keyring.reload()
    assert other_keyring.published_keys(NOW) == ()


async def test_no_private_key_is_printed() -> None:
    keyring = await a_keyring(KeysInMemory(first_keys()), MovableClock())
    assert "private" not in repr(keyring.signing_key(TOKENS, ES256, NOW)).lower()
    assert key_of(TOKENS, ES256).kid in repr(keyring.signing_key(TOKENS, ES256, NOW))


async def test_views_that_find_another_version_together_share_one_reading() -> None:
    store = KeysInMemory([a_key()])
    keyring = await a_keyring(store, MovableClock())
    store.replace_keys(a_key())
    await asyncio.gather(*(keyring.ensure_version(store.stored.version) for _ in range(50)))
    assert store.loads == 2


async def test_a_reading_that_began_before_a_version_was_seen_does_not_count_for_it() -> None:
    store = KeysInMemory([a_key()])
    keyring = await a_keyring(store, MovableClock())
    reading = asyncio.create_task(keyring.reload())
    await asyncio.sleep(0)  # it has loaded what is stored now
    key = a_key()
    store.replace_keys(key)
    await keyring.ensure_version(store.stored.version)
    await reading
    assert {key.kid for key in keyring.published_keys(NOW)} >= {key.kid}


async def test_keyring_is_unavailable_when_the_current_keys_cannot_be_opened() -> None:
    store = KeysInMemory([a_key()])
    keyring = await a_keyring(store, MovableClock())
    sealed = MasterKeys(OTHER_MASTER, [MASTER]).rewrap
    [key] = store.stored.keys
    store.replace_keys(replace(key, sealed_private=sealed(key.sealed_private, purpose=key.sealed_for)))
    with pytest.raises(Unavailable):
        await keyring.ensure_version(store.stored.version)


async def test_distrusted_keys_are_counted_and_replaced_ones_are_not() -> None:
    replaced = replace(a_key(), signs_until=NOW, verifies_until=NOW + 60)
    ended = [replace(a_key(purpose, Algorithm.EDDSA), signs_until=NOW, verifies_until=NOW) for purpose in KeyPurpose]
    keyring = await a_keyring(KeysInMemory([a_key(), replaced, *ended]), MovableClock())
    assert keyring.distrust_count == 2  # of tokens and of refresh tokens, not of the audit log


async def test_a_reading_that_failed_counts_for_no_one_who_waited_for_it() -> None:
    class FailingKeys(KeysInMemory):
        async def load_keys(self) -> StoredKeys:
            await super().load_keys()
            if self.loads > 1:
                raise Unavailable
            return self.stored

    store = FailingKeys([a_key()])
    keyring = await a_keyring(store, MovableClock())
    store.replace_keys(a_key())
    reads = (keyring.ensure_version(store.stored.version) for _ in range(3))
    answers = await asyncio.gather(*reads, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable] * 3
