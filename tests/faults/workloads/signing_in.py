"""A browser that signs in once and then gets codes without prompts; and the application that redeems them."""

from contextlib import suppress
from hashlib import sha256
from typing import Final
from urllib.parse import urlencode

import httpx2

from tests.faults.clients import CheckedReply, CheckedRequest, FaultClient, JudgedAnswer, error_of
from tests.faults.fault_setup import RelyingClient
from tests.faults.history import Act, Result
from tests.support.browser import PASSWORD, hidden_fields
from tests.support.oauth import AUTHORIZE, REDIRECT, TOKEN, query_of

SIGN_IN: Final = "/sign-in"
REVOKE: Final = "/proxy/oauth/token/revoke"
USERINFO: Final = "/proxy/oauth/userinfo"


def digest_name(secret: str) -> str:
    """The name of a secret in a history."""
    return sha256(secret.encode()).hexdigest()[:16]


async def sign_in(client: FaultClient, login: str) -> None:
    """Sign in at any node that listens, until it succeeds; the session is valid at all of them."""
    client.login = login
    while not client.is_over():
        for node in client.pool.nodes:
            with suppress(httpx2.TransportError):
                if await has_signed_in(client, node, login):
                    return
        await client.pause()


async def has_signed_in(client: FaultClient, node: str, login: str) -> bool:
    page = await client.http.get(node + SIGN_IN)
    fields = {**hidden_fields(page.text), "login": login, "password": PASSWORD}
    response = await client.http.post(node + SIGN_IN, data=fields)
    assert response.status_code in (303, 503) or page.status_code == 503, response.text
    return response.status_code == 303


async def request_code(client: FaultClient, relying: RelyingClient) -> str | None:
    """Return a code, or None."""
    fields = {
        "response_type": "code",
        "client_id": relying.client_id,
        "redirect_uri": REDIRECT,
        "scope": "openid offline_access email",
        "state": "st",
    }
    request = CheckedRequest(
        op=Act.ISSUE,
        key=client.name,
        path=f"{AUTHORIZE}?{urlencode(fields)}",
        method="GET",
        event="grant.made",
        judge=judge_code,
        request={},
    )
    reply = await client.ask(request)
    if reply.operation.result is Result.FAIL:  # its session has ended
        await sign_in(client, client.login)
    return code_in(reply.answer)


def judge_code(response: httpx2.Response) -> JudgedAnswer:
    code = code_in(response)
    if code is None:
        return JudgedAnswer(
            result=Result.FAIL, note=f"{response.status_code} {response.headers.get('location', '')}"[:80]
        )
    return JudgedAnswer(result=Result.OK, value=digest_name(code))


def code_in(response: httpx2.Response | None) -> str | None:
    location = "" if response is None else response.headers.get("location", "")
    return query_of(location).get("code") if location.startswith(REDIRECT) else None


def redeem_request(relying: RelyingClient, code: str, *, op: Act = Act.REDEEM, **more: object) -> CheckedRequest:
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT}
    return token_request(relying, fields, op=op, key=digest_name(code), **more)


def refresh_request(relying: RelyingClient, token: str, *, op: Act = Act.REFRESH) -> CheckedRequest:
    fields = {"grant_type": "refresh_token", "refresh_token": token, "redirect_uri": REDIRECT}
    return token_request(relying, fields, op=op, key=digest_name(token))


def token_request(
    relying: RelyingClient, fields: dict[str, str], *, op: Act, key: str, **more: object
) -> CheckedRequest:
    request = {"data": fields, "headers": relying.headers}
    return CheckedRequest(op=op, key=key, path=TOKEN, judge=judge_tokens, request=request, **more)  # type: ignore[arg-type]


def judge_tokens(response: httpx2.Response) -> JudgedAnswer:
    if not response.is_success:
        return JudgedAnswer(result=Result.FAIL, note=error_of(response))
    return JudgedAnswer(result=Result.OK, value=digest_name(response.json()["refresh_token"]))


def refresh_token_in(reply: CheckedReply) -> str | None:
    return reply.json["refresh_token"] if reply.ok else None
