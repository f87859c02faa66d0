"""An application wants to know something about a person: allow or deny, equally easily (R3)."""

from enum import StrEnum
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import SignedIn
from gatehouse.audit.model import Record
from gatehouse.interaction.dispatcher import Interactions
from gatehouse.interaction.errors import InteractionGone
from gatehouse.interaction.model import Interaction, Step, proof_of, sign_in_of
from gatehouse.oauth.consent import Consents
from gatehouse.oauth.occasion import KIND, AuthorizeOccasion, request_of
from gatehouse.oauth.store import ClientStore
from gatehouse.web.browser import Browser, Browsers, FormExpired
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import ConsentContext
from gatehouse.web.pages.desk import Guarded, page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.way import Way
from gatehouse.web.parse import read_form, read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint


class Decision(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


class ConsentQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""


class ConsentForm(Guarded, frozen=True, kw_only=True):
    interaction: str
    decision: Decision


class Owners(Protocol):
    """The permission room's word about whose an application is."""

    async def owner(self, application_id: int) -> str:
        """The title of its project; empty when it belongs to none."""


class ConsentPage:
    def __init__(
        self,
        *,
        consents: Consents,
        owners: Owners,
        occasion: AuthorizeOccasion,
        clients: ClientStore,
        interactions: Interactions,
        browsers: Browsers,
        way: Way,
    ) -> None:
        self._consents = consents
        self._owners = owners
        self._occasion = occasion
        self._clients = clients
        self._interactions = interactions
        self._browsers = browsers
        self._way = way

    async def show(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        handle = read_query(request, ConsentQuery).interaction
        try:
            interaction, signed_in = await self._standing(browser, handle)
        except InteractionGone:
            return self._way.expired(request, handle)
        destination = await self._interactions.destination(interaction)
        wanted = request_of(interaction)
        context = ConsentContext(
            csrf=self._browsers.csrf(browser),
            interaction=handle,
            application=destination.application,
            owner=await self._owner(wanted.client_id),
            returns_to=destination.returns_to,
            nick=signed_in.user.nick,
            login=signed_in.user.login or "",
            scopes=wanted.scopes,
        )
        return self._way.show(request, browser, destination, context)

    async def decide(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        form = await read_form(request, ConsentForm)
        try:
            self._browsers.check_form(request, browser, form.csrf)
            interaction, _ = await self._standing(browser, form.interaction)
            if form.decision is Decision.ALLOW:
                return see_other(await self._allowed(request, interaction))
            await self._interactions.drop(interaction, self._denial(request, interaction))
            return see_other(self._occasion.denied(interaction))
        except FormExpired:
            return self._way.stale(request, form.interaction)
        except InteractionGone:
            return self._way.expired(request, form.interaction)

    async def _owner(self, client_id: str) -> str:
        client = await self._clients.client(client_id)
        return "" if client.application_id is None else await self._owners.owner(client.application_id)

    async def _allowed(self, request: Request, interaction: Interaction) -> str:
        wanted = request_of(interaction)
        user_id = proof_of(interaction).user_id
        origin = origin_of(request, user_id)
        client = await self._clients.client(wanted.client_id)
        await self._consents.give(user_id, client, wanted.scopes, origin)
        return await self._interactions.finish(await self._interactions.agreed(interaction), origin)

    def _denial(self, request: Request, interaction: Interaction) -> Record:
        wanted, user_id = request_of(interaction), proof_of(interaction).user_id
        return self._consents.denial(user_id, wanted.client_id, wanted.scopes, origin_of(request, user_id))

    async def _standing(self, browser: Browser, handle: str) -> tuple[Interaction, SignedIn]:
        """The way at this step, of the very session that this browser still has. Raises InteractionGone."""
        interaction = await self._interactions.find(handle, browser=browser.name)
        signed_in = browser.signed_in
        if interaction.kind != KIND or interaction.step is not Step.CONSENT or signed_in is None:
            raise InteractionGone
        if proof_of(interaction).sign_in != sign_in_of(signed_in.session):
            raise InteractionGone
        return interaction, signed_in

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint("GET", Path.CONSENT, self.show, name="consent.show", summary="Show the consent page"),
            page_endpoint("POST", Path.CONSENT, self.decide, name="consent.decide", summary="Allow or deny access"),
        ]
