"""Mailed links lead to the pages that spend them."""

import pytest

from gatehouse.accounts.links import A_WEEK, HALF_AN_HOUR, TERMS
from gatehouse.accounts.model import LinkKind
from gatehouse.web.pages.paths import Path


@pytest.mark.parametrize(
    ("kind", "path", "lifetime"),
    [
        (LinkKind.VERIFY, Path.VERIFY_EMAIL, HALF_AN_HOUR),
        (LinkKind.RESET, Path.RESET, HALF_AN_HOUR),
        (LinkKind.INVITE, Path.INVITE, A_WEEK),
    ],
)
def test_a_link_leads_to_its_page_and_lives_as_long_as_it_says(kind: LinkKind, path: Path, lifetime: int) -> None:
    assert (TERMS[kind].path, TERMS[kind].lifetime) == (path, lifetime)


def test_every_kind_has_its_terms() -> None:
    assert set(TERMS) == set(LinkKind)
