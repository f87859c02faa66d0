"""The service of the machine: two applications, a provider, a game platform, guests, and those who administer."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.rules import application_scope
from tests.fuzz.stepped_service import UNLIMITED
from tests.support.builders import ORIGIN
from tests.support.clock import MovableClock
from tests.support.oauth import RelyingPartyClient, an_oidc_client
from tests.support.permission_builders import a_role
from tests.support.platforms import GAME_CLIENT, SteamWebApi, TokenIssuer, run_steam, run_token_issuer
from tests.support.service import RunningService
from tests.support.stub_server import ReceivedRequest
from tests.support.studio import (
    PROJECT,
    Person,
    Studio,
    a_studio,
    create_administrator,
    create_person_with,
    holdings_with_rules,
    put_roles,
    role_meta,
)
from tests.support.vendors import Vendor

VENDOR: Final = "vendor"  # signs people in by browser and by tokens for the game
STEAM: Final = "steam"  # by tickets, and by browser, which carries no claims
SHOP: Final = "shop"  # an application of the project
OTHER: Final = "other"  # an application without a project
ROLE: Final = "player"  # of the shop, with RULE
RULE: Final = "user.kick"
PROVIDER_TAG: Final = "artist"  # of people whom the provider counts among its artists
PROVIDER_CLAIM: Final = "groups"
PROVIDER_GROUP: Final = "art"
PURCHASE: Final = "steam:480"  # which Steam says that its people own
SANCTION: Final = "cheater"  # a kept tag of people whom Steam banned
ANNA: Final = "anna"
SAM: Final = "sam"
NAMES: Final = (ANNA, SAM)
ARTISTS: Final = frozenset({ANNA})
CHEATERS: Final = frozenset({SAM})
MANY: Final = "100000"
ENVIRONMENT: Final = {
    **UNLIMITED,
    "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8",
    "GATEHOUSE__ACCOUNTS__REGISTRATION": "true",
    "GATEHOUSE__ACCOUNTS__EMAIL_SIGN_IN": "true",
    "GATEHOUSE__GUESTS__ENABLED": "true",
    "GATEHOUSE__GUESTS__CREATED_PER_HOUR": MANY,
    "GATEHOUSE__GUESTS__TOTAL_PER_HOUR": MANY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    service: RunningService  # the node that administrators use
    nodes: Mapping[str, RunningService]  # that each person uses
    studio: Studio
    issuer: TokenIssuer  # VENDOR
    steam: SteamWebApi
    steam_pages: Vendor  # of the same Steam
    clients: dict[str, RelyingPartyClient]  # of each application
    administrator: Person
    moderator: Person  # may ban from the shop

    @property
    def applications(self) -> dict[str, Application]:
        return {SHOP: self.studio.shop, OTHER: self.studio.other}

    def application_id(self, name: str) -> int:
        """Return the ID of an application; 0 for none."""
        return self.applications[name].application_id if name else 0


@asynccontextmanager
async def an_installation(service: RunningService, other: RunningService) -> AsyncIterator[Installation]:
    """`other`: the node that Sam uses; it may be the same."""
    studio = await a_studio(service)
    shop = studio.shop.application_id
    await put_roles(studio, a_role(ROLE, meta=role_meta(user_kick=True)))
    async with run_steam() as steam, run_token_issuer("google", service.clock) as issuer:
        steam_pages = add_sign_in_pages(steam, service.clock)
        tags = {
            f"providers.{VENDOR}.tags": [f"{PROVIDER_CLAIM}={PROVIDER_GROUP}:{PROVIDER_TAG}"],
            f"providers.{STEAM}.tags": [f"vacbanned=true:{SANCTION}:keep"],
        }
        settings = {**steam.settings(shop), **issuer.settings(f"{shop}:{GAME_CLIENT}"), **tags}
        await service.services.settings_editor.save(settings, ORIGIN)
        await reload_settings([other])
        can_ban = {application_scope(PROJECT, shop): holdings_with_rules("app.can_ban")}
        yield Installation(
            service=service,
            nodes={ANNA: service, SAM: other},
            studio=studio,
            issuer=issuer,
            steam=steam,
            steam_pages=steam_pages,
            clients={
                name: await an_oidc_client(service, client_id=name, application_id=application.application_id)
                for name, application in {SHOP: studio.shop, OTHER: studio.other}.items()
            },
            administrator=await create_administrator(studio),
            moderator=await create_person_with(studio, can_ban),
        )


async def reload_settings(nodes: Iterable[RunningService]) -> None:
    """Let the nodes read the settings now, as they do every second."""
    for node in nodes:
        await node.services.core.live_settings.reload()


def add_sign_in_pages(steam: SteamWebApi, clock: MovableClock) -> Vendor:
    """Let Steam's server also sign people in by browser."""
    pages = Vendor(kind="steam", clock=clock, server=steam.server)

    def respond(request: ReceivedRequest) -> bytes:
        return (pages if "/openid/" in request.line else steam).respond(request)

    steam.server.respond = respond
    return pages
