"""Open the database of a URL, and its stores."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from gatehouse.kernel.errors import Misconfigured
from gatehouse.storage.migrations import ensure_current
from gatehouse.storage.runner import PoolLimits, Runner
from gatehouse.storage.sqlite.runner import SQLiteRunner, sqlite_path

if TYPE_CHECKING:
    from gatehouse.permissions.store import BanRules
    from gatehouse.storage.accounts.ban_aware import BanFollower
    from gatehouse.storage.accounts.ban_copies import BanCopies
    from gatehouse.storage.accounts.bans import BanStorage
    from gatehouse.storage.accounts.failed_sign_ins import FailedSignInStorage
    from gatehouse.storage.accounts.imports import ImportStorage
    from gatehouse.storage.accounts.login_tokens import LoginStorage
    from gatehouse.storage.accounts.own_account import OwnAccountStorage
    from gatehouse.storage.accounts.passkeys import PasskeyStorage
    from gatehouse.storage.accounts.phones import PhoneStorage
    from gatehouse.storage.accounts.registration import RegistrationStorage
    from gatehouse.storage.accounts.second_factors import SecondFactorStorage
    from gatehouse.storage.accounts.sessions import SessionStorage
    from gatehouse.storage.accounts.terms import TermsStorage
    from gatehouse.storage.accounts.users import AccountStorage
    from gatehouse.storage.audit import AuditStorage
    from gatehouse.storage.dry_run import DryRunStorage
    from gatehouse.storage.forward_auth import SiteStorage
    from gatehouse.storage.gamesessions import GameSessionStorage
    from gatehouse.storage.idempotency import IdempotencyStorage
    from gatehouse.storage.images import ImageStorage
    from gatehouse.storage.installation import InstallationStorage
    from gatehouse.storage.keys import KeyStorage
    from gatehouse.storage.mail import OutboxStorage
    from gatehouse.storage.nodes import NodeStorage
    from gatehouse.storage.oauth.clients import ClientCache, ClientStorage
    from gatehouse.storage.oauth.consents import ConsentStorage
    from gatehouse.storage.oauth.device_requests import DeviceStorage
    from gatehouse.storage.oauth.grants import GrantStorage
    from gatehouse.storage.oauth.logout_calls import LogoutStorage
    from gatehouse.storage.oauth.pushed_requests import PushedRequestStorage
    from gatehouse.storage.objects.writing import ObjectStorage
    from gatehouse.storage.permissions.applications import ApplicationStorage
    from gatehouse.storage.permissions.candidates import CandidateStorage
    from gatehouse.storage.permissions.facts import PermissionStorage
    from gatehouse.storage.permissions.groups import GroupStorage
    from gatehouse.storage.permissions.invitations import AccessInvitationStorage
    from gatehouse.storage.permissions.keys import ApplicationKeyStorage
    from gatehouse.storage.permissions.projects import ProjectStorage
    from gatehouse.storage.permissions.service_accounts import ServiceAccountStorage
    from gatehouse.storage.permissions.user_records import UserRecordStorage
    from gatehouse.storage.personal_data import PersonalDataStorage
    from gatehouse.storage.settings import SettingsStorage
    from gatehouse.storage.sign_in_flow import SignInFlowStorage
    from gatehouse.storage.tallies import TallyStorage
    from gatehouse.storage.throttle import AttemptStorage
    from gatehouse.storage.webhooks import WebhookStorage


class StoragePart:
    """A store of `Storage`, imported and built at its first use: a command uses few, and builds the tables of few."""

    def __init__(self, place: str, needs: tuple[str, ...]) -> None:
        self._place = place
        self._needs = needs

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, storage: "Storage | None", owner: type) -> Any:  # noqa: ANN401 - Storage says which
        if storage is None:
            return self
        made = self._build(storage.runner, *(getattr(storage, needed) for needed in self._needs))
        return vars(storage).setdefault(self._name, made)

    @cached_property
    def _build(self) -> Any:  # noqa: ANN401 - Storage says which
        module, _, name = self._place.partition(":")
        return getattr(import_module(f"gatehouse.storage.{module}"), name)


def refuse_to_follow_bans() -> "BanRules":
    raise RuntimeError("bans cannot be followed before their key is known")


def part(place: str, *needs: str) -> Any:  # noqa: ANN401 - Storage says which
    return StoragePart(place, needs)


class Storage:
    """The stores of all packages on one database."""

    access_invitations: "AccessInvitationStorage" = part("permissions.invitations:AccessInvitationStorage")
    accounts: "AccountStorage" = part("accounts.users:AccountStorage", "ban_follower")
    bans: "BanStorage" = part("accounts.bans:BanStorage", "ban_follower")
    application_keys: "ApplicationKeyStorage" = part("permissions.keys:ApplicationKeyStorage")
    applications: "ApplicationStorage" = part("permissions.applications:ApplicationStorage")
    audit: "AuditStorage" = part("audit:AuditStorage")
    consents: "ConsentStorage" = part("oauth.consents:ConsentStorage")
    candidates: "CandidateStorage" = part("permissions.candidates:CandidateStorage")
    personal_data: "PersonalDataStorage" = part("personal_data:PersonalDataStorage")
    device_requests: "DeviceStorage" = part("oauth.device_requests:DeviceStorage")
    game_sessions: "GameSessionStorage" = part("gamesessions:GameSessionStorage")
    grants: "GrantStorage" = part("oauth.grants:GrantStorage", "known_clients")
    groups: "GroupStorage" = part("permissions.groups:GroupStorage")
    idempotency: "IdempotencyStorage" = part("idempotency:IdempotencyStorage")
    objects: "ObjectStorage" = part("objects.writing:ObjectStorage")
    images: "ImageStorage" = part("images:ImageStorage")
    imports: "ImportStorage" = part("accounts.imports:ImportStorage", "ban_follower")
    installation: "InstallationStorage" = part("installation:InstallationStorage")
    sign_in_flows: "SignInFlowStorage" = part("sign_in_flow:SignInFlowStorage")
    keys: "KeyStorage" = part("keys:KeyStorage")
    logins: "LoginStorage" = part("accounts.login_tokens:LoginStorage")
    logout_calls: "LogoutStorage" = part("oauth.logout_calls:LogoutStorage")
    mail: "OutboxStorage" = part("mail:OutboxStorage")
    nodes: "NodeStorage" = part("nodes:NodeStorage")
    clients: "ClientStorage" = part("oauth.clients:ClientStorage", "known_clients")
    permissions: "PermissionStorage" = part("permissions.facts:PermissionStorage")
    passkeys: "PasskeyStorage" = part("accounts.passkeys:PasskeyStorage")
    profile: "OwnAccountStorage" = part("accounts.own_account:OwnAccountStorage", "ban_follower")
    pushed_requests: "PushedRequestStorage" = part("oauth.pushed_requests:PushedRequestStorage")
    projects: "ProjectStorage" = part("permissions.projects:ProjectStorage")
    registration: "RegistrationStorage" = part("accounts.registration:RegistrationStorage", "ban_follower")
    failed_sign_ins: "FailedSignInStorage" = part("accounts.failed_sign_ins:FailedSignInStorage")
    dry_runs: "DryRunStorage" = part("dry_run:DryRunStorage")
    phones: "PhoneStorage" = part("accounts.phones:PhoneStorage", "ban_follower")
    second_factors: "SecondFactorStorage" = part("accounts.second_factors:SecondFactorStorage")
    service_accounts: "ServiceAccountStorage" = part("permissions.service_accounts:ServiceAccountStorage")
    sessions: "SessionStorage" = part("accounts.sessions:SessionStorage")
    sites: "SiteStorage" = part("forward_auth:SiteStorage")
    settings: "SettingsStorage" = part("settings:SettingsStorage")
    tallies: "TallyStorage" = part("tallies:TallyStorage")
    terms: "TermsStorage" = part("accounts.terms:TermsStorage")
    throttle: "AttemptStorage" = part("throttle:AttemptStorage")
    user_records: "UserRecordStorage" = part("permissions.user_records:UserRecordStorage")
    webhooks: "WebhookStorage" = part("webhooks:WebhookStorage")

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._make_ban_rules: Callable[[], BanRules] = refuse_to_follow_bans

    def install_ban_rules(self, make: "Callable[[], BanRules]") -> None:
        """Set the rules of copies of bans, which need a key that is itself stored in the database."""
        self._make_ban_rules = make

    @cached_property
    def ban_copies(self) -> "BanCopies":
        from gatehouse.storage.accounts.ban_copies import BanCopies

        return BanCopies(self._ban_rules)

    def _ban_rules(self) -> "BanRules":
        return self._make_ban_rules()

    @cached_property
    def ban_follower(self) -> "BanFollower":
        """The same for other stores, imported when one of them changes an account."""
        return cast("BanFollower", DeferredBanFollower(self))

    @cached_property
    def known_clients(self) -> "ClientCache":
        from gatehouse.storage.oauth.clients import ClientCache

        return ClientCache(self.runner)

    def build_all(self) -> None:
        """Build every store now, for a server: none is imported by a request."""
        for name, stored in vars(Storage).items():
            if isinstance(stored, StoragePart):
                getattr(self, name)

    async def sweep(self, now: int) -> None:
        from gatehouse.storage.sweep import sweep_expired

        await sweep_expired(self.runner, now)


class DeferredBanFollower:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage.ban_copies, name)


@asynccontextmanager
async def open_storage(
    url: str, *, migrate: bool, limits: PoolLimits | None = None, listen_url: str = ""
) -> AsyncIterator[Storage]:
    """Open the database with exactly the schema this code knows. Raises SchemaTooNew or SchemaBehind."""
    async with connect_storage(url, limits=limits, listen_url=listen_url) as storage:
        await ensure_current(storage.runner, url, migrate=migrate)
        yield storage


@asynccontextmanager
async def connect_storage(
    url: str, *, limits: PoolLimits | None = None, listen_url: str = ""
) -> AsyncIterator[Storage]:
    """Open the database with any schema, for checks before anything is changed."""
    runner = await open_runner(url, limits or PoolLimits(), listen_url)
    try:
        yield Storage(runner)
    finally:
        await runner.close()


async def open_runner(url: str, limits: PoolLimits, listen_url: str) -> Runner:
    if url.startswith("sqlite:"):
        return SQLiteRunner(sqlite_path(url))
    if url.startswith(("postgresql:", "postgres:")):
        # asyncpg takes 3 MB, and SQLite does not need it.
        from gatehouse.storage.postgres.runner import PostgresRunner

        return await PostgresRunner.open(url, limits, listen_url)
    raise Misconfigured("database.url must start with sqlite:/// or postgresql://")
