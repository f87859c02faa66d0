"""The OpenID Foundation's certification plans, module by module under its own name.

Basic OP, Config OP, RP-Initiated Logout OP and Back-Channel Logout OP of the conformance suite, with the same setup:
a static client of profile oidc with client_secret_basic, response_type=code. Where a module needs a person to check a
page, the test checks it. The clock is advanced instead of waiting.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from gatehouse.audit.model import AuditOrigin
from tests.interop.certifier import BACK, LOGIN, Certifier
from tests.interop.conftest import WHOLE
from tests.interop.plans import BACK_CHANNEL, BASIC, CONFIG, LOGOUT, basic, configuration_and_logout
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.oauth import an_oidc_client
from tests.support.service import running_service
from tests.support.stub_server import StubServer, run_stub_server

OUTBOUND: Final = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
pytestmark = [pytest.mark.both_databases] if WHOLE else []
FILLED_IN_BY: Final = (basic, configuration_and_logout)  # importing them fills the plans


@pytest.fixture
async def op(installed_url: str, tmp_path: Path) -> AsyncIterator[Certifier]:
    async with AsyncExitStack() as stack:
        back_channel = await stack.enter_async_context(run_stub_server(StubServer()))
        service = await stack.enter_async_context(running_service(installed_url, tmp_path, environment=OUTBOUND))
        origin = AuditOrigin(actor="test")
        await service.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=origin
        )
        uri = f"http://127.0.0.1:{back_channel.port}/logout"
        fields: dict[str, Any] = {"post_logout_uris": (BACK,), "backchannel_logout_uri": uri, "first_party": False}
        client = await an_oidc_client(service, **fields)
        other = await an_oidc_client(service, "second")
        person = HttpBrowser(service)
        stack.push_async_callback(person.client.aclose)
        yield Certifier(service=service, client=client, other=other, person=person, back_channel=back_channel)


@pytest.mark.parametrize("name", BASIC)
async def test_basic_op(name: str, op: Certifier) -> None:
    await BASIC[name](op)


@pytest.mark.parametrize("name", CONFIG)
async def test_config_op(name: str, op: Certifier) -> None:
    await CONFIG[name](op)


@pytest.mark.parametrize("name", LOGOUT)
async def test_rp_initiated_logout_op(name: str, op: Certifier) -> None:
    await LOGOUT[name](op)


@pytest.mark.parametrize("name", BACK_CHANNEL)
async def test_back_channel_logout_op(name: str, op: Certifier) -> None:
    await BACK_CHANNEL[name](op)
