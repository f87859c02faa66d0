"""A person who registers someone else's address loses access to the account once the owner takes it."""

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import JOINED_KEY, SELF_REGISTERED, User
from gatehouse.accounts.second_factors.model import EmailNotVerified
from tests.support.builders import ORIGIN, a_record, a_user
from tests.support.service import RunningService


@pytest.fixture
async def registered_user(service: RunningService) -> User:
    user = a_user(meta={JOINED_KEY: SELF_REGISTERED}, password_hash="$argon2id$x")
    await service.services.storage.accounts.create_user(user, a_record())
    return user


async def test_lg_19_an_unproved_address_that_was_registered_adds_no_factor(
    service: RunningService, registered_user: User
) -> None:
    them = service.services
    with pytest.raises(EmailNotVerified):
        await them.factors.totp.begin_enrollment(registered_user)
    with pytest.raises(EmailNotVerified):
        await them.factors.passkeys.registration_options(registered_user, browser=b"browser")
    with pytest.raises(EmailNotVerified):
        await them.factors.email_codes.enable(registered_user, origin=ORIGIN)
    proved = replace(registered_user, email_verified=True)
    assert (await them.factors.totp.begin_enrollment(proved)).secret
    assert await them.factors.passkeys.registration_options(proved, browser=b"browser")


async def test_an_account_made_by_an_administrator_may_add_factors_at_once(
    service: RunningService, anna: User
) -> None:
    assert not anna.email_verified
    assert (await service.services.factors.totp.begin_enrollment(anna)).secret
