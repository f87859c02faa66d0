"""Parse the responses of the authorization endpoint."""

import re
from typing import Final

import httpx2
from sqlalchemy import Table, func, select

from gatehouse.accounts.model import SessionStrength, SignInMethod, User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.model import Grant
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import interactions
from gatehouse.storage.tables.oauth import grants
from gatehouse.tokens.claims import IdClaims
from tests.support.browser import HttpBrowser
from tests.support.oauth import REDIRECT, query_of
from tests.support.service import RunningService

LOGIN: Final = "anna@studio.example"
CODE: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)  # 256 bit


def is_error_page(response: httpx2.Response) -> bool:
    """Whether it is an error page without a redirect."""
    return (
        response.status_code == 400
        and "location" not in response.headers
        and response.headers["content-type"].startswith("text/html")
        and "Something's wrong with this sign-in link" in response.text
    )


def redirect_parameters(response: httpx2.Response, redirect_uri: str = REDIRECT) -> dict[str, str]:
    """The parameters of a redirect to the client."""
    assert response.status_code == 303, (response.status_code, response.text)
    location = response.headers["location"]
    assert location.startswith(redirect_uri), location
    assert "#" not in location
    return query_of(location)


def redirect_error(response: httpx2.Response, redirect_uri: str = REDIRECT) -> str:
    """The error of a redirect to the client, which must not contain a code."""
    parameters = redirect_parameters(response, redirect_uri)
    assert "code" not in parameters
    assert parameters["error_description"]
    return parameters["error"]


def wants_sign_in(response: httpx2.Response) -> bool:
    return response.status_code == 303 and response.headers["location"].startswith("/sign-in?interaction=")


def flow_handle(response: httpx2.Response) -> str:
    """The handle of the sign-in flow that the response redirects to."""
    return query_of(response.headers["location"])["interaction"]


async def set_limited_session(service: RunningService, user: User, browser: HttpBrowser) -> None:
    """Give the browser the session that a short-lived token creates."""
    opened = await service.services.accounts.sessions.open(
        user, SignInMethod.LOGIN, origin=AuditOrigin(actor="test"), agent="", strength=SessionStrength.LIMITED
    )
    browser.client.cookies.set("gh_session", opened.secret)


async def grant_of(service: RunningService, code: str) -> Grant:
    holder = await service.services.storage.grants.find_grant_by_code(sha256(code))
    assert holder is not None
    return holder.grant


async def count_rows(service: RunningService, table: Table) -> int:
    counted = Statement(lambda: select(func.count().label("found")).select_from(table))

    def verb() -> Verb[int]:
        rows = yield counted()
        return int(rows[0].found)

    return await service.services.storage.runner.snapshot_read(verb)


async def count_grants(service: RunningService) -> int:
    return await count_rows(service, grants)


async def count_sign_in_flows(service: RunningService) -> int:
    return await count_rows(service, interactions)


async def issue_id_token(service: RunningService, user: User, client_id: str, *, age: int = 0) -> str:
    """An id_token that this client got for this user, that many seconds ago."""
    now = service.clock.now() - age
    return await service.services.keys.signer.sign(
        IdClaims(
            iss=service.base_url,
            iat=now,
            exp=now + 3_600,
            sub=user.user_id,
            aud=(service.base_url, client_id),
            azp=client_id,
        )
    )
