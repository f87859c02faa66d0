"""Links in emails lead to the pages that redeem them."""

import pytest

from gatehouse.accounts.email_links import EMAIL_LINK_LIFETIME, INVITATION_LIFETIME, LINK_POLICIES
from gatehouse.accounts.model import LinkKind
from gatehouse.web.pages.paths import Path


@pytest.mark.parametrize(
    ("kind", "path", "lifetime"),
    [
        (LinkKind.VERIFY, Path.VERIFY_EMAIL, EMAIL_LINK_LIFETIME),
        (LinkKind.RESET, Path.RESET, EMAIL_LINK_LIFETIME),
        (LinkKind.INVITE, Path.INVITE, INVITATION_LIFETIME),
    ],
)
def test_a_link_leads_to_its_page_and_lives_as_long_as_it_says(kind: LinkKind, path: Path, lifetime: int) -> None:
    assert (LINK_POLICIES[kind].path, LINK_POLICIES[kind].lifetime) == (path, lifetime)


def test_every_link_kind_has_a_policy() -> None:
    assert set(LINK_POLICIES) == set(LinkKind)
