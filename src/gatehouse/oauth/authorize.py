"""Authorize: who is asking, for what, and whether a person has to be asked first (interface §4.2, R3)."""

from dataclasses import replace
from enum import Enum, auto
from typing import Final

from gatehouse.accounts.model import SignedIn, User
from gatehouse.audit.model import Origin
from gatehouse.interaction.model import Proof, proof_of_session
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.authorization_request import AuthorizationRequest, Parameters, Prompt, read_request
from gatehouse.oauth.client_rules import CLIENT_ID
from gatehouse.oauth.consent import Consents
from gatehouse.oauth.errors import ClientNotFound
from gatehouse.oauth.granting import Granting
from gatehouse.oauth.model import Client
from gatehouse.oauth.ports import ApplicationRules
from gatehouse.oauth.redirects import is_registered, reserved_name, with_query
from gatehouse.oauth.refusals import (
    AuthorizeRefused,
    InteractionRequired,
    LoginRequired,
    NotLetIn,
    NotRedirected,
)
from gatehouse.oauth.store import ClientStore
from gatehouse.tokens.claims import IdClaims
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.verifying import Verifier

EVER: Final = 10**10  # seconds: a hint stays one long after the token has ended (OpenID Connect Core §3.1.2.2)


class Way(Enum):
    """What comes next for the person."""

    ON = auto()  # back to the client
    SIGN_IN = auto()
    CHOOSE = auto()  # which account
    CONSENT = auto()


class Authorize:
    def __init__(
        self,
        *,
        clients: ClientStore,
        consents: Consents,
        granting: Granting,
        rules: ApplicationRules,
        verifier: Verifier,
        clock: Clock,
        issuer: str,
    ) -> None:
        self._clients = clients
        self._consents = consents
        self._granting = granting
        self._rules = rules
        self._verifier = verifier
        self._clock = clock
        self._issuer = issuer

    async def client_of(self, asked: Parameters) -> Client:
        """The client, once the address it wants the answer at is known to be its own. Raises NotRedirected."""
        if {"client_id", "redirect_uri"} & asked.repeated:
            raise NotRedirected("client_id or redirect_uri is given more than once")
        if CLIENT_ID.fullmatch(asked["client_id"]) is None:
            raise NotRedirected("unknown client_id")
        try:
            client = await self._clients.client(asked["client_id"])
        except ClientNotFound as error:
            raise NotRedirected("the client is unknown or removed") from error
        wanted = asked["redirect_uri"]
        if not is_registered(client, wanted):
            reserved = reserved_name(wanted)
            why = (
                f"reserved parameter {reserved} in the query of redirect_uri"
                if reserved
                else "redirect_uri is not registered for this client"
            )
            raise NotRedirected(why, client=client, received=wanted)
        return client

    async def read(self, asked: Parameters, client: Client) -> AuthorizationRequest:
        """The request, checked. Raises AuthorizeRefused, which is told at the client's redirect_uri."""
        request = read_request(asked, client)
        if not request.id_token_hint:
            return request
        hinted = await self._hinted(request.id_token_hint, client)
        if hinted and request.subject not in ("", hinted):
            raise LoginRequired("id_token_hint and claims name different users")
        return replace(request, subject=hinted or request.subject, hint_is_unknown=not hinted)

    async def way(self, request: AuthorizationRequest, client: Client, signed_in: SignedIn | None) -> Way:
        """What is left to ask of the person, if the client lets us ask (prompt=none does not)."""
        way = await self._way(request, client, signed_in)
        if way is not Way.ON and request.wants(Prompt.NONE):
            raise LoginRequired if way is Way.SIGN_IN else InteractionRequired
        return way

    async def _way(self, request: AuthorizationRequest, client: Client, signed_in: SignedIn | None) -> Way:
        if signed_in is None:
            return Way.SIGN_IN
        proof = proof_of_session(signed_in.session)
        if not self.will_do(request, client, proof):
            return Way.SIGN_IN
        if request.wants(Prompt.SELECT_ACCOUNT):
            return Way.CHOOSE
        await self.refuse_outsiders(request, client, signed_in.user)
        return Way.CONSENT if await self.must_ask(request, client, signed_in.user) else Way.ON

    def will_do(self, request: AuthorizationRequest, client: Client, proof: Proof) -> bool:
        """Whether the proof is one to sign in to this client with.

        A session from a short-lived token signs in to first-party clients only, cannot consent, and is no proof
        of a moment (R1).
        """
        if proof.is_new and not proof.limited:
            return True
        if proof.limited and (not client.first_party or request.wants(Prompt.CONSENT) or request.max_age is not None):
            return False
        is_recent = request.max_age is None or self._clock.now() - proof.proved_at <= request.max_age
        return is_recent and not request.needs_new_proof

    async def refuse_outsiders(self, request: AuthorizationRequest, client: Client, user: User) -> None:
        """Another person than the client asked for, or one whom the client's application does not let in."""
        if request.subject and request.subject != user.user_id:
            raise LoginRequired("id_token_hint or claims name another user")
        application = () if client.application_id is None else (client.application_id,)
        if not await self._rules.may_log_in(user, application):
            raise NotLetIn

    async def must_ask(self, request: AuthorizationRequest, client: Client, user: User) -> bool:
        """Whether the person has to say yes first: for a new set of scopes, or because the client wants it."""
        return request.wants(Prompt.CONSENT) or await self._consents.is_needed(user.user_id, client, request.scopes)

    async def grant(self, request: AuthorizationRequest, client: Client, proof: Proof, origin: Origin) -> str:
        """Make the grant; returns the address that takes its code to the client."""
        code = await self._granting.begin(client, proof, request, origin)
        return self._address(request.redirect_uri, {"code": code}, request.state)

    def refusal(self, redirect_uri: str, state: str, refused: AuthorizeRefused) -> str:
        """The address that tells the client no."""
        told = {"error": refused.code, "error_description": refused.description}
        return self._address(redirect_uri, told, state)

    def _address(self, redirect_uri: str, told: dict[str, str], state: str) -> str:
        """With the state unchanged, and who answers, against mix-up (RFC 9207)."""
        kept = {"state": state} if state else {}
        return with_query(redirect_uri, {**told, **kept, "iss": self._issuer})

    async def _hinted(self, id_token: str, client: Client) -> str:
        """Whom the hint names; "" for one that cannot be verified, or was made for another client."""
        try:
            claims = await self._verifier.verify(id_token, IdClaims, expired_by=EVER)
        except InvalidToken:
            return ""
        return claims.sub if claims.azp == client.client_id else ""
