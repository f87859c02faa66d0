"""Builds every collaborator of a process once, on one database.

A part is imported and built at its first use: a server uses all, a command few. A command does without most of the
program's modules, and their import would take longer than what it does.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from gatehouse.app.instance_key import ensure_instance_key, refuse_wrong_master_key
from gatehouse.app.services.core import SERVICE_ORIGIN, Core, master_keys, open_database
from gatehouse.kernel.clock import Clock
from gatehouse.settings.grammar import parse_origin
from gatehouse.settings.merge import LoadedSettings, SettingsRefused
from gatehouse.settings.model import Settings
from gatehouse.settings.sources import SettingProblem
from gatehouse.storage.database import Storage
from gatehouse.storage.installation import BASE_URL, PASSKEY_HOST
from gatehouse.storage.migrations import ensure_current

if TYPE_CHECKING:
    from gatehouse.accounts.model import User
    from gatehouse.app.services.accounts import AccountServices
    from gatehouse.app.services.admin import AdminServices
    from gatehouse.app.services.audit import AuditServices
    from gatehouse.app.services.commands import CommandServices
    from gatehouse.app.services.factors import FactorServices
    from gatehouse.app.services.games import GameServices
    from gatehouse.app.services.images import ImageServices
    from gatehouse.app.services.keys import KeyServices
    from gatehouse.app.services.limits import LimitServices
    from gatehouse.app.services.mail import MailServices
    from gatehouse.app.services.oauth import OAuthServices
    from gatehouse.app.services.permissions import PermissionServices
    from gatehouse.app.services.personal_data import PersonalDataServices
    from gatehouse.app.services.questions import ChangeServices, QuestionServices
    from gatehouse.app.services.registration import RegistrationServices
    from gatehouse.app.services.sign_in import SignInServices
    from gatehouse.app.services.sites import SiteServices
    from gatehouse.app.services.webhooks import WebhookServices
    from gatehouse.app.settings_editor import SettingsEditor
    from gatehouse.permissions.authentication.vouching import TokenOwner
    from gatehouse.sign_in_flow.flows import SignInFlows
    from gatehouse.web.http.geoip import GeoIpLookup


class Services:
    """Everything the server serves and the commands use. Building a part starts no task and reads no database."""

    def __init__(self, core: Core) -> None:
        self.core = core

    @cached_property
    def limits(self) -> "LimitServices":
        from gatehouse.app.services.limits import build_limits

        return build_limits(self.core)

    @cached_property
    def keys(self) -> "KeyServices":
        from gatehouse.app.services.keys import build_keys

        return build_keys(self.core)

    @cached_property
    def audit(self) -> "AuditServices":
        from gatehouse.app.services.audit import build_audit

        return build_audit(self.core, self.keys.keyring)

    @cached_property
    def mail(self) -> "MailServices":
        from gatehouse.app.services.mail import build_mail

        return build_mail(self.core)

    @cached_property
    def images(self) -> "ImageServices":
        from gatehouse.app.services.images import build_images

        return build_images(self.core)

    @cached_property
    def geoip(self) -> "GeoIpLookup":
        from gatehouse.web.http.geoip import open_geoip

        return open_geoip(self.settings.accounts.geoip_file)

    @cached_property
    def settings_editor(self) -> "SettingsEditor":
        from gatehouse.app.settings_editor import SettingsEditor

        return SettingsEditor(
            live=self.core.live_settings,
            store=self.storage.settings,
            images=self.images.loader,
            recorder=self.core.recorder,
            clock=self.clock,
        )

    @cached_property
    def accounts(self) -> "AccountServices":
        from gatehouse.app.services.accounts import build_accounts

        return build_accounts(
            self.core,
            composer=self.mail.composer,
            images=self.images.loader,
            quota=self.limits.quota,
            signer=self.keys.signer,
        )

    @cached_property
    def factors(self) -> "FactorServices":
        from gatehouse.app.services.factors import build_factors

        async def has_protected_role(user: "User") -> bool:  # permissions are built when they are needed
            return await self.permissions.login_rules.has_protected_role(user)

        return build_factors(self.core, self.accounts, self.limits.attempts, has_protected_role)

    @cached_property
    def registration(self) -> "RegistrationServices":
        from gatehouse.app.services.registration import build_registration

        return build_registration(
            self.core, self.accounts, composer=self.mail.composer, password_sign_in=self.sign_in.passwords
        )

    @cached_property
    def personal_data(self) -> "PersonalDataServices":
        from gatehouse.app.services.personal_data import build_personal_data

        return build_personal_data(self.core, self.keys.signer)

    @cached_property
    def permissions(self) -> "PermissionServices":
        from gatehouse.app.services.permissions import build_permissions

        async def find_token_owner(token: str, scope: str) -> "TokenOwner | None":
            from gatehouse.app.services.oauth import token_owner

            found = await self.oauth.tokens.api_tokens.find_for_own_api(token, scope)
            return None if found is None else token_owner(found)

        return build_permissions(self.core, self.keys, self.limits, find_token_owner)

    @cached_property
    def commands(self) -> "CommandServices":
        from gatehouse.app.services.commands import build_commands

        return build_commands(
            self.core,
            keys=self.keys,
            images=self.images.loader,
            administration=self.accounts.administration,
            permissions=self.permissions,
        )

    @cached_property
    def questions(self) -> "QuestionServices":
        from gatehouse.app.services.questions import build_questions

        return build_questions(self.core, self.permissions)

    @cached_property
    def changes(self) -> "ChangeServices":
        from gatehouse.app.services.questions import build_changes

        return build_changes(self.core, self.permissions)

    @cached_property
    def admin(self) -> "AdminServices":
        from gatehouse.app.services.admin import build_admin

        return build_admin(
            self.core, self.permissions, clients=self.oauth.clients.commands, images=self.images.loader
        )

    @cached_property
    def sign_in(self) -> "SignInServices":
        from gatehouse.app.services.sign_in import build_sign_in

        return build_sign_in(
            self.core,
            limits=self.limits,
            composer=self.mail.composer,
            geoip=self.geoip,
            accounts=self.accounts,
            factors=self.factors,
            permissions=self.permissions,
        )

    @cached_property
    def oauth(self) -> "OAuthServices":
        from gatehouse.app.services.oauth import build_oauth

        return build_oauth(
            self.core,
            keys=self.keys,
            audit=self.audit,
            converter=self.images.converter,
            accounts=self.accounts,
            permissions=self.permissions,
            guesses=self.limits.attempts,
            has_pending_terms=self.sign_in.terms.is_pending_for,
        )

    @cached_property
    def games(self) -> "GameServices":
        from gatehouse.app.services.games import build_games

        return build_games(
            self.core,
            keys=self.keys,
            audit=self.audit,
            notifier=self.accounts.notifier,
            permissions=self.permissions,
            sign_in=self.sign_in,
            oauth=self.oauth,
        )

    @cached_property
    def sites(self) -> "SiteServices":
        from gatehouse.app.services.sites import build_sites

        return build_sites(
            self.core, permissions=self.permissions, sessions=self.accounts.sessions, signer=self.keys.signer
        )

    @cached_property
    def sign_in_flows(self) -> "SignInFlows":
        from gatehouse.app.services.flows import build_sign_in_flows

        return build_sign_in_flows(self.core, self.sign_in, self.oauth, self.games, self.sites)

    @cached_property
    def webhooks(self) -> "WebhookServices":
        from gatehouse.app.services.webhooks import build_webhooks

        return build_webhooks(self.core, self.audit)

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

    def build_all(self) -> None:
        """Build every part now, for a server: none is imported by a request."""
        for name, part in vars(type(self)).items():
            if isinstance(part, cached_property):
                getattr(self, name)
        self.storage.build_all()

    def close(self) -> None:
        if "accounts" in vars(self):
            self.accounts.passwords.close()


@asynccontextmanager
async def open_services(
    loaded: LoadedSettings, *, clock: Clock, serving: bool, initialize: bool = False, uses_keys: bool = True
) -> AsyncIterator[Services]:
    """Open the database and yield the services on it.

    The master key is tried before anything is changed: a wrong one raises WrongMasterKey and leaves the database
    as it was (faults R-24). A serving process migrates an older schema and stores its base_url in the database; a
    command reads it from there. Only a serving process, or one with `initialize`, sets up an empty database; others
    raise SchemaBehind, because an empty database is more likely the wrong one than a new one. A command that signs
    and verifies nothing (`uses_keys`) does without the keys, unless the installation was never served.
    """
    masters = master_keys(loaded.settings)
    async with open_database(loaded) as storage:
        revision = await storage.runner.revision()
        if revision:
            await refuse_wrong_master_key(storage, masters)
        await ensure_current(
            storage.runner, loaded.settings.database.url.reveal(), migrate=serving or (initialize and not revision)
        )
        stored_base_url = await storage.installation.value(BASE_URL)
        resolved = await resolve_base_url(loaded, storage, stored_base_url, serving=serving)
        resolved = await resolve_passkey_host(resolved, storage, stored_base_url, serving=serving)
        key = await ensure_instance_key(storage, masters, clock)
        core = Core(resolved, storage=storage, masters=masters, clock=clock, instance_key=key)
        await core.live_settings.reload()
        services = Services(core)
        if serving:
            services.build_all()
        try:
            if uses_keys or stored_base_url is None:
                await bootstrap(services)
            yield services
        finally:
            services.close()


async def resolve_base_url(
    loaded: LoadedSettings, storage: Storage, stored: str | None, *, serving: bool
) -> LoadedSettings:
    if serving:
        if stored != loaded.settings.server.base_url:
            await storage.installation.set_value(BASE_URL, loaded.settings.server.base_url)
        return loaded
    return loaded if stored is None else loaded.with_stored_base_url(stored)


async def resolve_passkey_host(
    loaded: LoadedSettings, storage: Storage, former_base_url: str | None, *, serving: bool
) -> LoadedSettings:
    """Keep the host of the passkeys that there are, also after a move (R11).

    A serving process refuses another `passkeys.rp_id`: no passkey could be used any more.
    """
    base_url, wanted = loaded.settings.server.base_url, loaded.settings.passkeys.rp_id
    if not base_url:
        return loaded
    host = await storage.installation.value(PASSKEY_HOST)
    if host == (wanted or host_of(base_url)) or not await storage.installation.are_there_passkeys():
        return loaded
    if not host:  # passkeys from before the host was stored
        host = host_of(former_base_url or base_url)
        if serving:
            await storage.installation.set_value(PASSKEY_HOST, host)
    if serving and wanted not in ("", host):
        what = f"must be {host}, not {wanted}: there are passkeys, and they belong to {host}"
        raise SettingsRefused([SettingProblem(where="passkeys.rp_id", what=what)])
    return loaded.with_passkey_host(host)


def host_of(base_url: str) -> str:
    return parse_origin(base_url, "http", "https").host


async def bootstrap(services: Services) -> None:
    """Create what every request needs; every step may be repeated and run concurrently."""
    from gatehouse.permissions.model import central

    now = services.clock.now()
    await services.storage.permissions.install_central(central.application(now), central.schema(now), central.roles())
    await services.keys.rotation.ensure_first_keys(origin=SERVICE_ORIGIN)
    await services.keys.keyring.reload()
