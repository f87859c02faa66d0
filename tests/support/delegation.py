"""A chat client, and the programs of another application that act for people through it (R11)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.oauth.grants.token_exchange import ACCESS_TOKEN
from gatehouse.oauth.vocabulary import GrantName
from gatehouse.permissions.model.application import Application
from gatehouse.tokens.claims import ActClaim, ApiTokenClaims
from tests.support.browser import PASSWORD
from tests.support.oauth import TOKEN, RelyingPartyClient, an_oidc_client, challenge_of, success_body
from tests.support.permission_builders import create_application
from tests.support.service import RunningService

RESOURCE: Final = "https://calendar.example/api"
AGENTS_RESOURCE: Final = "https://agents.example/api"
API: Final = {
    "resource": RESOURCE,
    "access": "any",
    "act": "accepted",
    "scopes": {name: {"title": f"{name} your calendar"} for name in ("read", "write", "share")},
}
VERIFIER: Final = "v" * 43


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """A chat client, the programs of another application, and the calendar that they use for people."""

    service: RunningService
    chat: RelyingPartyClient
    planner: RelyingPartyClient
    runner: RelyingPartyClient
    calendar: Application
    agents: Application

    def asked(self, **changes: str) -> dict[str, str]:
        """The fields of a request in which the chat asks for what the programs need."""
        return {
            "scope": f"openid offline_access read write delegate:{self.agents.application_id}",
            "resource": RESOURCE,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            **changes,
        }

    async def sign_in(self, anna: User, **changes: str) -> dict[str, Any]:
        """Sign Anna in to the chat, and let the programs act."""
        code = await self.chat.sign_in(anna.login or "", **self.asked(**changes))
        return await self.chat.tokens(code, code_verifier=VERIFIER)


async def some_agents(service: RunningService) -> Agents:
    storage = service.services.storage
    calendar = await create_application(storage, name="Calendar", api=API)
    agents = await create_application(
        storage, name="Studio Agents", api={**API, "resource": AGENTS_RESOURCE, "access": "own"}
    )
    hub = await create_application(storage, name="Hub")
    acting = {"application_id": agents.application_id, "may_act": True, "may_act_for_others": True}
    return Agents(
        service=service,
        chat=await an_oidc_client(service, "chat", application_id=hub.application_id),
        planner=await an_oidc_client(service, "planner", name="Planner", **acting),
        runner=await an_oidc_client(service, "runner", name="Runner", **acting),
        calendar=calendar,
        agents=agents,
    )


async def act(acting: RelyingPartyClient, subject_token: str, **fields: str) -> httpx2.Response:
    body = {
        "grant_type": GrantName.TOKEN_EXCHANGE.value,
        "subject_token": subject_token,
        "subject_token_type": ACCESS_TOKEN,
        "resource": RESOURCE,
        **fields,
    }
    sent = {name: value for name, value in body.items() if value}
    return await acting.service.client.post(TOKEN, data=sent, headers=acting.headers)


async def token_of_two_programs(agents: Agents) -> str:
    """A token of a new person, with which the runner acts through the planner."""
    anna = await agents.service.services.accounts.administration.create(
        login="act@studio.example", nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    first = success_body(await act(agents.planner, (await agents.sign_in(anna))["access_token"]))
    token: str = success_body(await act(agents.runner, first["access_token"]))["access_token"]
    return token


def wrong_acts(agents: Agents) -> Iterator[ApiTokenClaims]:
    """Claims of tokens whose `act` no API may accept, though they are signed."""
    now = agents.service.clock.now()
    right = ActClaim(sub="client:planner", client_id="planner")
    fields = {"iss": agents.service.base_url, "iat": now, "exp": now + 300, "aud": RESOURCE, "jti": "x"}
    for sub, acting in (
        ("7", ActClaim(sub="client:runner", client_id="planner")),
        ("7", ActClaim(sub="client:runner", client_id="runner")),
        ("7", ActClaim(sub="client:planner", client_id="planner", act=ActClaim(sub="7", client_id="runner"))),
        ("client:planner", right),
        ("7", four_deep(right)),
    ):
        yield ApiTokenClaims(**fields, sub=sub, client_id="planner", act=acting)  # type: ignore[arg-type]


def four_deep(act: ActClaim) -> ActClaim:
    for _ in range(3):
        act = ActClaim(sub=act.sub, client_id=act.client_id, act=act)
    return act
