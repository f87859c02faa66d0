"""OAuth clients on the running service, and the relying party behind each: it signs people in over HTTP.

shop = await a_native_client(service)            # or an_oidc_client, a_public_client
code = await shop.sign_in("anna@studio.example") # authorize, sign-in form, consent, back with a code
tokens = await shop.tokens(code)                 # the token endpoint
code = await shop.granted(anna)                  # the same code without any page, straight into storage
"""

import json
import re
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from html import unescape
from secrets import token_urlsafe
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import httpx2
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.digests import sha256 as digest_of
from gatehouse.kernel.ids import new_record_id
from gatehouse.oauth.model import DEFAULT_SCOPES, Client, ClientProfile, Grant
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.builders import NOW, ORIGIN, a_record
from tests.support.service import RunningService

REDIRECT: Final = "https://shop.example/callback"
ALL_SCOPES: Final = " ".join(DEFAULT_SCOPES)
TOKEN: Final = "/proxy/oauth/token"
AUTHORIZE: Final = "/proxy/oauth/authorize"
FORM: Final = re.compile(r'<form method="post" action="([^"]*)".*?</form>', re.DOTALL)
MAX_STEPS: Final = 8
DAY: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class RelyingPartyClient:
    """An OAuth client, its secret (empty for a public client), and the requests it makes."""

    service: RunningService
    client: Client
    secret: str = field(repr=False)
    redirect_uri: str = REDIRECT

    def authorize_fields(self, **changes: str) -> dict[str, str]:
        """The fields of a complete authorization request; a field passed as "" is left out."""
        fields = {
            "response_type": "code",
            "response_mode": "query",
            "client_id": self.client.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": ALL_SCOPES,
            "state": "st",
            "nonce": "n1",
            **changes,
        }
        return {name: value for name, value in fields.items() if value}

    def authorize_path(self, **changes: str) -> str:
        return f"{AUTHORIZE}?{urlencode(self.authorize_fields(**changes))}"

    async def sign_in(self, login: str, password: str = PASSWORD, **changes: str) -> str:
        """Complete the authorization in a new browser; return the code."""
        browser_client = HttpBrowser(self.service)
        try:
            return self.code_from(await self.walk_authorize(browser_client, login, password, **changes))
        finally:
            await browser_client.client.aclose()

    async def walk_authorize(self, browser: HttpBrowser, login: str, password: str = PASSWORD, **changes: str) -> str:
        """Complete the authorization in the given browser; return the redirect back to the client."""
        page = await browser.get(self.authorize_path(**changes))
        for _ in range(MAX_STEPS):
            if page.is_redirect:
                location = page.headers["location"]
                if location.startswith(self.redirect_uri):
                    return str(location)
                page = await browser.get(location.removeprefix(self.service.base_url))
            else:
                page = await browser.post(form_action(page), **form_answers(page, login, password))
        raise AssertionError(f"not redirected back: {page.status_code} {page.text}")

    def code_from(self, location: str) -> str:
        answer = query_of(location)
        assert "code" in answer, answer
        return answer["code"]

    async def issue_code(self, user: User, **changes: Any) -> str:
        """Store a code for this user without any page; `changes` are fields of its grant."""
        code = token_urlsafe(32)
        now = self.service.clock.now()
        grant = a_grant(
            client_id=self.client.client_id,
            user_id=user.user_id,
            rev=user.rev,
            redirect_uri=self.redirect_uri,
            code=digest_of(code),
            auth_time=now,
            created_at=now,
            code_ends_at=now + 60,
            ends_at=now + 90 * DAY,
        )
        assert await self.service.services.storage.grants.create_grant(
            replace(grant, **changes), a_record(AuditEvent.GRANT_MADE)
        )
        return code

    @property
    def headers(self) -> dict[str, str]:
        """Client authentication at the token endpoint; a public client names itself in the body instead."""
        if self.client.profile is ClientProfile.NATIVE:
            return {"Authorization": f"Bearer {native_proof(self.redirect_uri, self.secret)}"}
        return {} if self.client.public else {"Authorization": basic_auth(self.client.client_id, self.secret)}

    def fields(self, **more: str) -> dict[str, str]:
        named = {"client_id": self.client.client_id} if self.client.public else {}
        fields = {"redirect_uri": self.redirect_uri, **named, **more}
        return {name: value for name, value in fields.items() if value}

    async def redeem(self, code: str, **changes: str) -> httpx2.Response:
        fields = self.fields(grant_type="authorization_code", code=code, **changes)
        return await self.service.client.post(TOKEN, data=fields, headers=self.headers)

    async def refresh(self, refresh_token: str, **changes: str) -> httpx2.Response:
        fields = self.fields(grant_type="refresh_token", refresh_token=refresh_token, **changes)
        return await self.service.client.post(TOKEN, data=fields, headers=self.headers)

    async def tokens(self, code: str, **changes: str) -> dict[str, Any]:
        """Redeem a code, which must succeed; return the tokens."""
        return success_body(await self.redeem(code, **changes))

    async def userinfo(self, access_token: str) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {access_token}"}
        return await self.service.client.get("/proxy/oauth/userinfo", headers=headers)


async def a_native_client(service: RunningService, client_id: str = "web", **fields: Any) -> RelyingPartyClient:
    """A client as interface §4.2 defines it; redirect host shop.example."""
    defaults = {"profile": ClientProfile.NATIVE, "redirect_hosts": ("shop.example",), "first_party": True}
    return await a_relying_party(service, client_id, **(defaults | fields))


async def an_oidc_client(service: RunningService, client_id: str = "shelf", **fields: Any) -> RelyingPartyClient:
    """A standard OpenID Connect client with a secret."""
    defaults = {
        "profile": ClientProfile.OIDC,
        "redirect_uris": (REDIRECT,),
        "first_party": True,
        "may_exchange": False,
    }
    return await a_relying_party(service, client_id, **(defaults | fields))


async def a_public_client(service: RunningService, client_id: str = "app", **fields: Any) -> RelyingPartyClient:
    """A standard OpenID Connect client without a secret."""
    return await an_oidc_client(service, client_id, **({"public": True} | fields))


async def a_relying_party(service: RunningService, client_id: str, **fields: Any) -> RelyingPartyClient:
    client = Client(**{"client_id": client_id, "name": "Web shop", "created_at": service.clock.now(), **fields})
    secret = await service.services.oauth.clients.commands.create(client, ORIGIN)
    stored = await service.services.storage.clients.client(client_id)
    return RelyingPartyClient(service=service, client=stored, secret=secret or "", redirect_uri=REDIRECT)


def a_grant(**fields: Any) -> Grant:
    grant = Grant(
        grant_id=new_record_id(fields.get("created_at", NOW)),
        client_id="web",
        user_id="1000000001",
        rev=0,
        session_id="s1",
        scopes=DEFAULT_SCOPES,
        redirect_uri=REDIRECT,
        nonce="n1",
        auth="login",
        auth_time=NOW,
        code=b"code",
        code_ends_at=NOW + 60,
        created_at=NOW,
        ends_at=NOW + 90 * DAY,
    )
    return replace(grant, **fields)


def native_proof(redirect_uri: str, secret: str) -> str:
    """The Bearer value of interface §5.1."""
    return sha1(f"{redirect_uri}{secret}".encode(), usedforsecurity=False).hexdigest()


def basic_auth(client_id: str, secret: str) -> str:
    return f"Basic {b64encode(f'{client_id}:{secret}'.encode()).decode()}"


def challenge_of(verifier: str) -> str:
    """The S256 challenge of a verifier."""
    return base64url(sha256(verifier.encode()).digest())


def base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def claims_of(jwt: str) -> dict[str, Any]:
    """The payload of a JWT, unverified."""
    return part_of(jwt, 1)


def header_of(jwt: str) -> dict[str, Any]:
    return part_of(jwt, 0)


def part_of(jwt: str, number: int) -> dict[str, Any]:
    text = jwt.split(".")[number]
    part: dict[str, Any] = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return part


def success_body(response: httpx2.Response) -> dict[str, Any]:
    """The body of a response that must be a success."""
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def oauth_error(response: httpx2.Response) -> tuple[int, str]:
    """Status and error of a response that must be an OAuth error."""
    body = response.json()
    assert body.keys() == {"error", "error_description"}, body
    return response.status_code, body["error"]


def query_of(location: str) -> dict[str, str]:
    """The query parameters of a redirect to a client."""
    return dict(parse_qsl(location.partition("?")[2], keep_blank_values=True))


def form_action(page: httpx2.Response) -> str:
    """The action of the first form of the page, which on our pages is the one that continues."""
    match = FORM.search(page.text)
    assert match is not None, f"{page.status_code} {page.url}\n{page.text}"
    return unescape(match[1])


def form_answers(page: httpx2.Response, login: str, password: str) -> Mapping[str, str]:
    """The values a person enters into the first form of the page."""
    match = FORM.search(page.text)
    assert match is not None
    hidden = hidden_fields(match[0])
    if 'name="password"' in match[0]:
        return {**hidden, "login": login, "password": password}
    return {**hidden, "decision": "allow"} if 'name="decision"' in match[0] else hidden
