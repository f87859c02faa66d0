"""Builds every collaborator of a process once, on one database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property

from gatehouse.app.instance_key import ensure_instance_key, refuse_wrong_master_key
from gatehouse.app.services.core import bootstrap, master_keys, open_database
from gatehouse.app.services.games import GameServices
from gatehouse.forward_auth.authentication import SiteAuthentication
from gatehouse.forward_auth.sign_in import KIND as SITE
from gatehouse.forward_auth.sign_in import SiteSignIn, SiteSignInPurpose
from gatehouse.gamesessions.purpose import KIND as GAME
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.authorize.purpose import KIND as AUTHORIZE
from gatehouse.oauth.device_sign_in import KIND as DEVICE
from gatehouse.permissions.site_access import SiteAccess
from gatehouse.settings.merge import LoadedSettings
from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND as ACCOUNT
from gatehouse.sign_in_flow.account_sign_in import AccountSignInPurpose
from gatehouse.sign_in_flow.flows import RefusablePurpose, SignInFlows
from gatehouse.storage.database import Storage
from gatehouse.storage.installation import BASE_URL
from gatehouse.storage.migrations import ensure_current
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.web.api.oauth.authorize import AUTHORIZE_LIMIT_KEY
from gatehouse.web.api.oauth.device import DEVICE_LIMIT_KEY
from gatehouse.web.forward_auth.sign_in import SITE_LIMIT_KEY
from gatehouse.web.http.page_refusals import PAGE_RATES, PageRefusals
from gatehouse.web.http.routing import RateClass
from gatehouse.web.pages.game import GAME_SIGN_IN_LIMIT_KEY


class Services(GameServices):
    """Everything the server serves and the commands use."""

    @cached_property
    def sign_in_flows(self) -> SignInFlows:
        for_applications: dict[str, RefusablePurpose] = {
            AUTHORIZE: self.authorize_purpose,
            DEVICE: self.device_purpose,
            GAME: self.game_purpose,
            SITE: SiteSignInPurpose(self.site_sign_in),
        }
        return SignInFlows(
            store=self.storage.sign_in_flows,
            purposes={ACCOUNT: AccountSignInPurpose(), **for_applications},
            terms=self.terms,
            with_terms=for_applications,
            clock=self.clock,
        )

    # Protected sites

    @cached_property
    def site_access(self) -> SiteAccess:
        return SiteAccess(
            permission_loader=self.permission_loader, admits_guests=self.admits_guests, clock=self.clock
        )

    @cached_property
    def site_sign_in(self) -> SiteSignIn:
        return SiteSignIn(store=self.storage.sites, access=self.site_access, recorder=self.recorder, clock=self.clock)

    @cached_property
    def site_authentication(self) -> SiteAuthentication:
        return SiteAuthentication(
            store=self.storage.sites,
            sessions=self.sessions,
            access=self.site_access,
            signer=self.signer,
            clock=self.clock,
            issuer=self.base_url,
            requires_application=lambda: self.settings.forward_auth.require_application,
        )

    @cached_property
    def page_refusals(self) -> PageRefusals:
        return PageRefusals(refusals=self.refusal_log, rates=RateLimiter(PAGE_RATES, clock=self.clock))

    @cached_property
    def rate_limiter(self) -> RateLimiter:
        """Requests per minute of one network address."""
        rates = self.settings.rates
        per_minute = {one.value: getattr(rates, one.value) for one in RateClass}
        per_minute |= dict.fromkeys(
            (AUTHORIZE_LIMIT_KEY, GAME_SIGN_IN_LIMIT_KEY, DEVICE_LIMIT_KEY, SITE_LIMIT_KEY), rates.login
        )
        limits = {name: RateLimit(most) for name, most in per_minute.items()} if rates.enabled else {}
        return RateLimiter(limits, clock=self.clock)


@asynccontextmanager
async def open_services(
    loaded: LoadedSettings, *, clock: Clock, serving: bool, initialize: bool = False
) -> AsyncIterator[Services]:
    """Open the database and yield the services on it.

    The master key is tried before anything is changed: a wrong one raises WrongMasterKey and leaves the database
    as it was (faults R-24). A serving process migrates an older schema and stores its base_url in the database; a
    command reads it from there. Only a serving process, or one with `initialize`, sets up an empty database; others
    raise SchemaBehind, because an empty database is more likely the wrong one than a new one.
    """
    masters = master_keys(loaded.settings)
    async with open_database(loaded) as storage:
        revision = await storage.runner.revision()
        if revision:
            await refuse_wrong_master_key(storage, masters)
        await ensure_current(
            storage.runner, loaded.settings.database.url.reveal(), migrate=serving or (initialize and not revision)
        )
        resolved = await resolve_base_url(loaded, storage, serving=serving)
        key = await ensure_instance_key(storage, masters, clock)
        services = Services(resolved, storage=storage, masters=masters, clock=clock, instance_key=key)
        try:
            await bootstrap(services)
            yield services
        finally:
            services.passwords.close()


async def resolve_base_url(loaded: LoadedSettings, storage: Storage, *, serving: bool) -> LoadedSettings:
    stored = await storage.installation.value(BASE_URL)
    if serving:
        if stored != loaded.settings.server.base_url:
            await storage.installation.set_value(BASE_URL, loaded.settings.server.base_url)
        return loaded
    return loaded if stored is None else loaded.with_stored_base_url(stored)
