"""What authorize may answer, as tests read it."""

import re
from typing import Final

import httpx2
from sqlalchemy import Table, func, select

from gatehouse.accounts.model import Auth, Strength, User
from gatehouse.app.people import people
from gatehouse.audit.model import Origin
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.model import Grant
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import interactions
from gatehouse.storage.tables.oauth import grants
from gatehouse.tokens.claims import IdClaims
from tests.support.oauth import REDIRECT, answer_in
from tests.support.service import Service
from tests.support.visitor import Visitor

LOGIN: Final = "anna@studio.example"
CODE: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)  # 256 bit


def is_page(answer: httpx2.Response) -> bool:
    """An error page: nobody is sent anywhere."""
    return (
        answer.status_code == 400
        and "location" not in answer.headers
        and answer.headers["content-type"].startswith("text/html")
        and "Something's wrong with this sign-in link" in answer.text
    )


def back_with(answer: httpx2.Response, redirect_uri: str = REDIRECT) -> dict[str, str]:
    """What an answer tells the client at its redirect URI."""
    assert answer.status_code == 303, (answer.status_code, answer.text)
    location = answer.headers["location"]
    assert location.startswith(redirect_uri), location
    assert "#" not in location
    return answer_in(location)


def error_in(answer: httpx2.Response, redirect_uri: str = REDIRECT) -> str:
    """The error an answer tells the client; it carries no code."""
    told = back_with(answer, redirect_uri)
    assert "code" not in told
    assert told["error_description"]
    return told["error"]


def wants_sign_in(answer: httpx2.Response) -> bool:
    return answer.status_code == 303 and answer.headers["location"].startswith("/sign-in?interaction=")


def begun_in(answer: httpx2.Response) -> str:
    """The handle of the way that an answer sends a person on."""
    return answer_in(answer.headers["location"])["interaction"]


async def enter_limited(service: Service, user: User, visitor: Visitor) -> None:
    """What spending a short-lived token leaves in the browser."""
    opened = await people(service.house).sessions.open(
        user, Auth.LOGIN, origin=Origin(actor="test"), agent="", strength=Strength.LIMITED
    )
    visitor.client.cookies.set("gh_session", opened.secret)


async def grant_of(service: Service, code: str) -> Grant:
    holder = await service.house.storage.grants.by_code(sha256(code))
    assert holder is not None
    return holder.grant


async def count(service: Service, table: Table) -> int:
    counted = Statement(select(func.count().label("found")).select_from(table))

    def verb() -> Verb[int]:
        rows = yield counted()
        return int(rows[0].found)

    return await service.house.storage.runner.survey(verb)


async def grants_made(service: Service) -> int:
    return await count(service, grants)


async def ways_begun(service: Service) -> int:
    return await count(service, interactions)


async def id_token(service: Service, user: User, client_id: str, *, age: int = 0) -> str:
    """One that this client got for this user, that many seconds ago."""
    now = service.clock.now() - age
    return await service.house.signer.sign(
        IdClaims(
            iss=service.base_url,
            iat=now,
            exp=now + 3_600,
            sub=user.user_id,
            aud=(service.base_url, client_id),
            azp=client_id,
        )
    )
