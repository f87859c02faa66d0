"""The discovery document of a provider: what is accepted of it, and how often it is asked for."""

import asyncio

import pytest

from gatehouse.accounts.identities import IdentityRules
from gatehouse.providers.answers import ProviderCalls
from gatehouse.providers.model import Provider, ProviderUnavailable
from gatehouse.providers.openid_connect import OpenIdConnect, is_endpoint
from tests.support.clock import MovableClock

ISSUER = Provider(
    provider_id="one",
    kind="oidc",
    name="One",
    issuer="https://login.example",
    rules=IdentityRules(provider_id="one", provider_name="One"),
)


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


class ProviderAway(ProviderCalls):
    """A provider that fails at once."""

    def __init__(self) -> None:
        self.calls = 0

    async def get_object(self, url: str, *, token: str = "") -> dict[str, object]:  # noqa: ARG002 - a provider's
        self.calls += 1
        raise ProviderUnavailable("down")


@pytest.mark.parametrize("steps", range(8))
async def test_a_request_at_any_step_of_a_failing_read_asks_no_second_time(steps: int) -> None:
    away = ProviderAway()
    connect = OpenIdConnect(calls=away, clock=MovableClock())
    first = asyncio.create_task(connect.metadata(ISSUER))
    for _ in range(steps):
        await asyncio.sleep(0)
    for request in (connect.metadata(ISSUER), first):
        with pytest.raises(ProviderUnavailable):
            await request
    assert away.calls == 1
