"""The service of the machine: two applications, a provider, a game platform, guests, and those who administer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.rules import application_scope
from tests.fuzz.stepped_service import UNLIMITED
from tests.support.builders import ORIGIN
from tests.support.oauth import RelyingPartyClient, an_oidc_client
from tests.support.permission_builders import a_role
from tests.support.platforms import GAME_CLIENT, SteamWebApi, TokenIssuer, run_steam, run_token_issuer
from tests.support.service import RunningService
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

VENDOR: Final = "vendor"  # signs people in by browser and by tokens for the game
STEAM: Final = "steam"  # by tickets only
SHOP: Final = "shop"  # an application of the project
OTHER: Final = "other"  # an application without a project
ROLE: Final = "player"  # of the shop, with RULE
RULE: Final = "user.kick"
PROVIDER_TAG: Final = "artist"  # of people whom the provider counts among its artists
PROVIDER_CLAIM: Final = "groups"
PROVIDER_GROUP: Final = "art"
PURCHASE: Final = "steam:480"  # which Steam says that its people own
ANNA: Final = "anna"
SAM: Final = "sam"
NAMES: Final = (ANNA, SAM)
ARTISTS: Final = frozenset({ANNA})
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
    service: RunningService
    studio: Studio
    issuer: TokenIssuer  # VENDOR
    steam: SteamWebApi
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
async def an_installation(service: RunningService) -> AsyncIterator[Installation]:
    studio = await a_studio(service)
    shop = studio.shop.application_id
    await put_roles(studio, a_role(ROLE, meta=role_meta(user_kick=True)))
    async with run_steam() as steam, run_token_issuer("google", service.clock) as issuer:
        tags = {f"providers.{VENDOR}.tags": [f"{PROVIDER_CLAIM}={PROVIDER_GROUP}:{PROVIDER_TAG}"]}
        settings = {**steam.settings(shop), **issuer.settings(f"{shop}:{GAME_CLIENT}"), **tags}
        await service.services.settings_editor.save(settings, ORIGIN)
        can_ban = {application_scope(PROJECT, shop): holdings_with_rules("app.can_ban")}
        yield Installation(
            service=service,
            studio=studio,
            issuer=issuer,
            steam=steam,
            clients={
                name: await an_oidc_client(service, client_id=name, application_id=application.application_id)
                for name, application in {SHOP: studio.shop, OTHER: studio.other}.items()
            },
            administrator=await create_administrator(studio),
            moderator=await create_person_with(studio, can_ban),
        )
