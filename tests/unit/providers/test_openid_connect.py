"""What is accepted of the discovery document of a provider."""

import pytest

from gatehouse.providers.openid_connect import is_endpoint


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("https://login.example/token", True),
        ("https://login.example/token?tenant=1", True),
        ("https://login.example/token#part", False),
        ("https://user@login.example/token", False),
        ("javascript:alert(1)", False),
        ("/token", False),
    ],
)
def test_endpoints_are_web_addresses_without_a_fragment(text: str, *, fits: bool) -> None:
    assert is_endpoint(text) is fits
