"""A sign-in by email is used once between processes, and every wrong code counts (EM-02, EM-03)."""

import pytest

from gatehouse.accounts.errors import EmailSignInGone
from gatehouse.accounts.model import EmailSignInProof, EmailSignInRequest
from gatehouse.accounts.second_factors.model import MAX_EMAIL_CODE_TRIES
from gatehouse.storage.database import Storage
from tests.support import racers
from tests.support.builders import NOW
from tests.support.racers import WON, race

TRIES = 20  # four processes, five attempts each
REQUEST = EmailSignInRequest(
    browser=b"browser",
    user_id="none",
    code=b"code",
    link=b"link",
    sealed=b"purpose",
    created_at=NOW,
    expires_at=NOW + 600,
)


async def test_em_02_code_and_link_are_used_once_between_processes(storage: Storage, migrated_url: str) -> None:
    await storage.registration.save_email_request(REQUEST, None, [], discards=False)
    assert race(racers.use_email_request, migrated_url) == {WON: 1, "EmailSignInGone": TRIES - 1}


async def test_em_03_wrong_codes_are_counted_between_processes(storage: Storage, migrated_url: str) -> None:
    await storage.registration.save_email_request(REQUEST, None, [], discards=False)
    wrong = MAX_EMAIL_CODE_TRIES - 1
    expected = {"EmailCodeWrong": wrong, "EmailSignInGone": TRIES - wrong}
    assert race(racers.try_wrong_sign_in_code, migrated_url) == expected
    with pytest.raises(EmailSignInGone):
        await storage.registration.use_email_request(EmailSignInProof(browser=b"browser", code=b"code"), NOW)
