"""Steam: OpenID 2.0, verified by asking Steam itself (OpenID Authentication 2.0 §11)."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from gatehouse.accounts.identities import ForeignPerson
from gatehouse.kernel.clock import Clock
from gatehouse.outbound.targets import web_origin_of
from gatehouse.providers.answers import ProviderCalls
from gatehouse.providers.model import Provider, ProviderAuthorization, ProviderCanceled, ProviderUnavailable

NAMESPACE: Final = "http://specs.openid.net/auth/2.0"
ANY_IDENTITY: Final = f"{NAMESPACE}/identifier_select"
SIGNED_FIELDS: Final = frozenset(
    {"op_endpoint", "return_to", "response_nonce", "assoc_handle", "claimed_id", "identity"}
)
NONCE_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)[!-~]{0,235}", re.ASCII)
MAX_NONCE_AGE: Final = 300  # seconds
STEAM_ID: Final = re.compile(r"7656119\d{10}", re.ASCII)


class SteamOpenId(Struct, kw_only=True, eq=False):
    calls: ProviderCalls
    clock: Clock

    async def authorization_url(self, provider: Provider, request: ProviderAuthorization) -> str:
        fields = {
            "openid.ns": NAMESPACE,
            "openid.mode": "checkid_setup",
            "openid.claimed_id": ANY_IDENTITY,
            "openid.identity": ANY_IDENTITY,
            "openid.return_to": return_address(request),
            "openid.realm": web_origin_of(request.redirect_uri),
        }
        return f"{login_endpoint(provider)}?{urlencode(fields)}"

    async def fetch_person(
        self, provider: Provider, request: ProviderAuthorization, answer: Mapping[str, str]
    ) -> ForeignPerson:
        """Return who signed in, after Steam confirmed its own answer. Raises ProviderProblem."""
        fields = {name: value for name, value in answer.items() if name.startswith("openid.")}
        if fields.get("openid.mode") != "id_res":
            raise ProviderCanceled("Steam answered without a sign-in")
        self._refuse_other_answer(provider, request, fields)
        endpoint = login_endpoint(provider)
        confirmed = await self.calls.post_form(endpoint, {**fields, "openid.mode": "check_authentication"})
        lines = confirmed.body.decode(errors="replace").splitlines()
        if not confirmed.is_success or "is_valid:true" not in lines:
            raise ProviderUnavailable("Steam did not confirm its answer")
        steam_id = fields["openid.claimed_id"].removeprefix(f"{provider.issuer}/openid/id/")
        if not STEAM_ID.fullmatch(steam_id):
            raise ProviderUnavailable("the answer names no one")
        return ForeignPerson(issuer=f"{provider.issuer}/openid", subject=steam_id, carries_claims=False)

    def _refuse_other_answer(
        self, provider: Provider, request: ProviderAuthorization, fields: Mapping[str, str]
    ) -> None:
        """Everything that is used must be signed, from Steam, for this request, and new."""
        signed = frozenset(fields.get("openid.signed", "").split(","))
        if fields.get("openid.ns") != NAMESPACE or not signed >= SIGNED_FIELDS:
            raise ProviderUnavailable("the answer does not sign what it must")
        if fields.get("openid.op_endpoint") != login_endpoint(provider):
            raise ProviderUnavailable("the answer is from another server")
        if fields.get("openid.return_to") != return_address(request):
            raise ProviderUnavailable("the answer is for another request")
        if fields.get("openid.claimed_id", "") != fields.get("openid.identity"):
            raise ProviderUnavailable("the answer names two people")
        match = NONCE_TIME.fullmatch(fields.get("openid.response_nonce", ""))
        age = self.clock.now() - parse_nonce_time(match[1]) if match else MAX_NONCE_AGE + 1
        if abs(age) > MAX_NONCE_AGE:
            raise ProviderUnavailable("the answer is too old")


def login_endpoint(provider: Provider) -> str:
    return f"{provider.issuer}/openid/login"


def return_address(request: ProviderAuthorization) -> str:
    """OpenID 2.0 has no state: it is part of the address that the answer comes to."""
    return f"{request.redirect_uri}?{urlencode({'state': request.state})}"


def parse_nonce_time(written: str) -> int:
    try:
        return int(datetime.strptime(written, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return 0
