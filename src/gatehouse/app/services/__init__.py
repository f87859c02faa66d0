"""Builds every collaborator of a process once, on one database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from gatehouse.app.instance_key import ensure_instance_key, refuse_wrong_master_key
from gatehouse.app.live_settings import SettingsEditor
from gatehouse.app.services.accounts import AccountServices, build_accounts
from gatehouse.app.services.admin import AdminServices, build_admin
from gatehouse.app.services.audit import AuditServices, build_audit
from gatehouse.app.services.commands import CommandServices, build_commands
from gatehouse.app.services.core import SERVICE_ORIGIN, Core, master_keys, open_database
from gatehouse.app.services.factors import FactorServices, build_factors
from gatehouse.app.services.games import GameServices, build_games
from gatehouse.app.services.images import ImageServices, build_images
from gatehouse.app.services.keys import KeyServices, build_keys
from gatehouse.app.services.limits import LimitServices, build_limits
from gatehouse.app.services.mail import MailServices, build_mail
from gatehouse.app.services.oauth import OAuthServices, build_oauth
from gatehouse.app.services.permissions import PermissionServices, build_permissions
from gatehouse.app.services.personal_data import PersonalDataServices, build_personal_data
from gatehouse.app.services.questions import ChangeServices, QuestionServices, build_changes, build_questions
from gatehouse.app.services.registration import RegistrationServices, build_registration
from gatehouse.app.services.sign_in import SignInServices, build_sign_in
from gatehouse.app.services.sites import SiteServices, build_sites
from gatehouse.app.services.webhooks import WebhookServices, build_webhooks
from gatehouse.forward_auth.sign_in import KIND as SITE
from gatehouse.forward_auth.sign_in import SiteSignInPurpose
from gatehouse.gamesessions.purpose import KIND as GAME
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.authorize.purpose import KIND as AUTHORIZE
from gatehouse.oauth.device_sign_in import KIND as DEVICE
from gatehouse.permissions.model import central
from gatehouse.settings.merge import LoadedSettings
from gatehouse.settings.model import Settings
from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND as ACCOUNT
from gatehouse.sign_in_flow.account_sign_in import AccountSignInPurpose
from gatehouse.sign_in_flow.flows import RefusablePurpose, SignInFlows
from gatehouse.storage.database import Storage
from gatehouse.storage.installation import BASE_URL
from gatehouse.storage.migrations import ensure_current
from gatehouse.web.http.geoip import GeoIpLookup, open_geoip


class Services(Struct, frozen=True, kw_only=True, eq=False):
    """Everything the server serves and the commands use."""

    core: Core
    limits: LimitServices
    keys: KeyServices
    audit: AuditServices
    mail: MailServices
    images: ImageServices
    geoip: GeoIpLookup
    settings_editor: SettingsEditor
    accounts: AccountServices
    factors: FactorServices
    registration: RegistrationServices
    personal_data: PersonalDataServices
    permissions: PermissionServices
    commands: CommandServices
    questions: QuestionServices
    changes: ChangeServices
    admin: AdminServices
    sign_in: SignInServices
    oauth: OAuthServices
    games: GameServices
    sites: SiteServices
    sign_in_flows: SignInFlows
    webhooks: WebhookServices

    @property
    def storage(self) -> Storage:
        return self.core.storage

    @property
    def clock(self) -> Clock:
        return self.core.clock

    @property
    def settings(self) -> Settings:
        return self.core.settings

    @property
    def base_url(self) -> str:
        return self.core.base_url


def build_services(core: Core) -> Services:
    """Build each part once, from those before it; nothing here starts a task or reads the database."""
    limits = build_limits(core)
    keys = build_keys(core)
    audit = build_audit(core, keys.keyring)
    mail = build_mail(core)
    images = build_images(core)
    geoip = open_geoip(core.settings.accounts.geoip_file)
    accounts = build_accounts(
        core, composer=mail.composer, images=images.loader, quota=limits.quota, signer=keys.signer
    )
    factors = build_factors(core, accounts, limits.attempts)
    permissions = build_permissions(core, keys, limits)
    sign_in = build_sign_in(
        core,
        limits=limits,
        composer=mail.composer,
        geoip=geoip,
        accounts=accounts,
        factors=factors,
        permissions=permissions,
    )
    oauth = build_oauth(
        core,
        keys=keys,
        audit=audit,
        converter=images.converter,
        accounts=accounts,
        permissions=permissions,
        guesses=limits.attempts,
        has_pending_terms=sign_in.terms.is_pending_for,
    )
    games = build_games(
        core,
        keys=keys,
        audit=audit,
        notifier=accounts.notifier,
        permissions=permissions,
        sign_in=sign_in,
        oauth=oauth,
    )
    sites = build_sites(core, permissions=permissions, sessions=accounts.sessions, signer=keys.signer)
    return Services(
        core=core,
        limits=limits,
        keys=keys,
        audit=audit,
        mail=mail,
        images=images,
        geoip=geoip,
        settings_editor=SettingsEditor(
            live=core.live_settings,
            store=core.storage.settings,
            images=images.loader,
            recorder=core.recorder,
            clock=core.clock,
        ),
        accounts=accounts,
        factors=factors,
        registration=build_registration(core, accounts, composer=mail.composer, password_sign_in=sign_in.passwords),
        personal_data=build_personal_data(core, keys.signer),
        permissions=permissions,
        commands=build_commands(
            core,
            keys=keys,
            images=images.loader,
            administration=accounts.administration,
            permissions=permissions,
        ),
        questions=build_questions(core, permissions),
        changes=build_changes(core, permissions),
        admin=build_admin(core, permissions, clients=oauth.clients.commands, images=images.loader),
        sign_in=sign_in,
        oauth=oauth,
        games=games,
        sites=sites,
        sign_in_flows=build_sign_in_flows(core, sign_in, oauth, games, sites),
        webhooks=build_webhooks(core, audit),
    )


def build_sign_in_flows(
    core: Core, sign_in: SignInServices, oauth: OAuthServices, games: GameServices, sites: SiteServices
) -> SignInFlows:
    for_applications: dict[str, RefusablePurpose] = {
        AUTHORIZE: oauth.authorize_purpose,
        DEVICE: oauth.device_purpose,
        GAME: games.purpose,
        SITE: SiteSignInPurpose(sites.sign_in),
    }
    return SignInFlows(
        store=core.storage.sign_in_flows,
        purposes={ACCOUNT: AccountSignInPurpose(), **for_applications},
        terms=sign_in.terms,
        with_terms=for_applications,
        failures=core.failed_sign_ins,
        clock=core.clock,
    )


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
        core = Core(resolved, storage=storage, masters=masters, clock=clock, instance_key=key)
        await core.live_settings.reload()
        services = build_services(core)
        try:
            await bootstrap(services)
            yield services
        finally:
            services.accounts.passwords.close()


async def resolve_base_url(loaded: LoadedSettings, storage: Storage, *, serving: bool) -> LoadedSettings:
    stored = await storage.installation.value(BASE_URL)
    if serving:
        if stored != loaded.settings.server.base_url:
            await storage.installation.set_value(BASE_URL, loaded.settings.server.base_url)
        return loaded
    return loaded if stored is None else loaded.with_stored_base_url(stored)


async def bootstrap(services: Services) -> None:
    """Create what every request needs; every step may be repeated and run concurrently."""
    now = services.clock.now()
    await services.storage.permissions.install_central(central.application(now), central.schema(now), central.roles())
    await services.keys.rotation.ensure_first_keys(origin=SERVICE_ORIGIN)
    await services.keys.keyring.reload()
