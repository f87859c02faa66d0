"""The part of the composition root that is about devices without a browser (RFC 8628)."""

from gatehouse.app import guessing
from gatehouse.app.house import DAY, House
from gatehouse.interaction.dispatcher import Interactions
from gatehouse.oauth.client_authentication import ClientAuthentication
from gatehouse.oauth.consent import Consents
from gatehouse.oauth.device import DeviceDesk
from gatehouse.oauth.device_occasion import DeviceOccasion
from gatehouse.oauth.ports import ApplicationRules
from gatehouse.throttle.volume import Volume, VolumeLimit
from gatehouse.web.browser import Browsers
from gatehouse.web.oauth.denied_page import DeniedPage
from gatehouse.web.oauth.device import ASKING, DeviceAuthorizationEndpoint, DevicePages
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.routes.table import Endpoint


def device_occasion(house: House, *, rules: ApplicationRules, consents: Consents) -> DeviceOccasion:
    return DeviceOccasion(
        store=house.storage.device_requests,
        clients=house.storage.oauth,
        accounts=house.storage.accounts,
        consents=consents,
        rules=rules,
        recorder=house.recorder,
        clock=house.clock,
        family=house.settings.oauth.refresh_family_days * DAY,
    )


def device_endpoints(
    house: House,
    *,
    authentication: ClientAuthentication,
    interactions: Interactions,
    browsers: Browsers,
    denied_page: DeniedPage,
    pages: Pages,
) -> list[Endpoint]:
    desk = DeviceDesk(store=house.storage.device_requests, guesses=guessing.guesses(house), clock=house.clock)
    rates = house.settings.rates
    asked = DeviceAuthorizationEndpoint(
        authentication=authentication,
        desk=desk,
        volume=Volume({ASKING: VolumeLimit(rates.login)} if rates.enabled else {}, clock=house.clock),
        base_url=house.settings.server.base_url,
    )
    shown = DevicePages(
        desk=desk,
        clients=house.storage.oauth,
        interactions=interactions,
        browsers=browsers,
        denied_page=denied_page,
        pages=pages,
    )
    return [asked.endpoint(), *shown.endpoints()]
