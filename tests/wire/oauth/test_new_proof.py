"""A request for a new proof is not satisfied by an earlier one (checklist AZ-25, R1)."""

import pytest

from gatehouse.accounts.model import User
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.oauth import RelyingPartyClient
from tests.support.service import RunningService
from tests.wire.oauth.authorize_responses import (
    LOGIN,
    count_grants,
    flow_handle,
    grant_of,
    redirect_error,
    redirect_parameters,
    set_limited_session,
    wants_sign_in,
)

ASKING = [{"prompt": "login"}, {"max_age": "0"}, {"id_token_hint": "x.y.z"}]


@pytest.mark.parametrize("changes", ASKING, ids=["prompt", "max_age", "hint"])
@pytest.mark.parametrize("seconds", [0, 7_200], ids=["the same second", "later"])
async def test_a_session_put_away_and_brought_back_is_not_a_new_proof(
    service: RunningService,
    signed_in_browser: HttpBrowser,
    web: RelyingPartyClient,
    changes: dict[str, str],
    seconds: int,
) -> None:
    session = signed_in_browser.cookies["gh_session"]
    await service.clock.advance(seconds)
    signed_in_browser.client.cookies.delete("gh_session")
    handle = flow_handle(await signed_in_browser.get(web.authorize_path(**changes)))
    signed_in_browser.client.cookies.set("gh_session", session)
    await signed_in_browser.get(f"/sign-in/as?interaction={handle}")
    assert wants_sign_in(await signed_in_browser.post("/sign-in/as", decision="continue"))
    assert await count_grants(service) == 0
    await signed_in_browser.follow()
    parameters = redirect_parameters(await signed_in_browser.post("/sign-in", login=LOGIN, password=PASSWORD))
    assert (await grant_of(service, parameters["code"])).auth_time == service.clock.now()


@pytest.mark.parametrize(
    "changes", [{"prompt": "login"}, {"max_age": "60"}, {}], ids=["prompt", "max_age", "nothing"]
)
async def test_a_short_lived_token_is_not_a_new_proof(
    service: RunningService, browser_client: HttpBrowser, anna: User, web: RelyingPartyClient, changes: dict[str, str]
) -> None:
    handle = flow_handle(await browser_client.get(web.authorize_path(**changes)))
    await service.clock.advance(30)
    await set_limited_session(service, anna, browser_client)
    await browser_client.get(f"/sign-in/as?interaction={handle}")
    answer = await browser_client.post("/sign-in/as", decision="continue")
    assert wants_sign_in(answer) if changes else "code" in redirect_parameters(answer)
    if "max_age" in changes:
        assert (
            redirect_error(await browser_client.get(web.authorize_path(prompt="none", **changes))) == "login_required"
        )
    assert await count_grants(service) == (0 if changes else 1)
