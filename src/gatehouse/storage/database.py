"""Open the database of a URL, and its stores."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from gatehouse.kernel.errors import Misconfigured
from gatehouse.storage.accounts.ban_copies import BanCopies
from gatehouse.storage.accounts.bans import BanStorage
from gatehouse.storage.accounts.failed_sign_ins import FailedSignInStorage
from gatehouse.storage.accounts.imports import ImportStorage
from gatehouse.storage.accounts.login_tokens import LoginStorage
from gatehouse.storage.accounts.own_account import OwnAccountStorage
from gatehouse.storage.accounts.passkeys import PasskeyStorage
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
from gatehouse.storage.migrations import ensure_current
from gatehouse.storage.nodes import NodeStorage
from gatehouse.storage.oauth.clients import ClientCache, ClientStorage
from gatehouse.storage.oauth.consents import ConsentStorage
from gatehouse.storage.oauth.device_requests import DeviceStorage
from gatehouse.storage.oauth.grants import GrantStorage
from gatehouse.storage.oauth.logout_calls import LogoutStorage
from gatehouse.storage.oauth.pushed_requests import PushedRequestStorage
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
from gatehouse.storage.runner import PoolLimits, Runner
from gatehouse.storage.settings import SettingsStorage
from gatehouse.storage.sign_in_flow import SignInFlowStorage
from gatehouse.storage.sqlite.runner import SQLiteRunner, sqlite_path
from gatehouse.storage.sweep import sweep_expired
from gatehouse.storage.tallies import TallyStorage
from gatehouse.storage.throttle import AttemptStorage
from gatehouse.storage.webhooks import WebhookStorage


class Storage(Struct, frozen=True, kw_only=True):
    """The stores of all packages on one database."""

    runner: Runner
    access_invitations: AccessInvitationStorage
    accounts: AccountStorage
    bans: BanStorage
    ban_copies: BanCopies
    application_keys: ApplicationKeyStorage
    applications: ApplicationStorage
    audit: AuditStorage
    consents: ConsentStorage
    candidates: CandidateStorage
    personal_data: PersonalDataStorage
    device_requests: DeviceStorage
    game_sessions: GameSessionStorage
    grants: GrantStorage
    groups: GroupStorage
    idempotency: IdempotencyStorage
    images: ImageStorage
    imports: ImportStorage
    installation: InstallationStorage
    sign_in_flows: SignInFlowStorage
    keys: KeyStorage
    logins: LoginStorage
    logout_calls: LogoutStorage
    mail: OutboxStorage
    nodes: NodeStorage
    clients: ClientStorage
    permissions: PermissionStorage
    passkeys: PasskeyStorage
    profile: OwnAccountStorage
    projects: ProjectStorage
    pushed_requests: PushedRequestStorage
    registration: RegistrationStorage
    failed_sign_ins: FailedSignInStorage
    dry_runs: DryRunStorage
    second_factors: SecondFactorStorage
    service_accounts: ServiceAccountStorage
    sessions: SessionStorage
    sites: SiteStorage
    settings: SettingsStorage
    tallies: TallyStorage
    terms: TermsStorage
    throttle: AttemptStorage
    user_records: UserRecordStorage
    webhooks: WebhookStorage

    async def sweep(self, now: int) -> None:
        await sweep_expired(self.runner, now)


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
        yield build_storage(runner)
    finally:
        await runner.close()


async def open_runner(url: str, limits: PoolLimits, listen_url: str) -> Runner:
    if url.startswith("sqlite:"):
        return SQLiteRunner(sqlite_path(url))
    if url.startswith(("postgresql:", "postgres:")):
        # asyncpg takes 3 MB, and SQLite does not need it.
        from gatehouse.storage.postgres.runner import PostgresRunner  # noqa: PLC0415

        return await PostgresRunner.open(url, limits, listen_url)
    raise Misconfigured("database.url must start with sqlite:/// or postgresql://")


def build_storage(runner: Runner) -> Storage:
    known_clients, ban_copies = ClientCache(runner), BanCopies()
    return Storage(
        runner=runner,
        access_invitations=AccessInvitationStorage(runner),
        accounts=AccountStorage(runner, ban_copies),
        bans=BanStorage(runner, ban_copies),
        ban_copies=ban_copies,
        application_keys=ApplicationKeyStorage(runner),
        applications=ApplicationStorage(runner),
        audit=AuditStorage(runner),
        consents=ConsentStorage(runner),
        candidates=CandidateStorage(runner),
        personal_data=PersonalDataStorage(runner),
        device_requests=DeviceStorage(runner),
        game_sessions=GameSessionStorage(runner),
        grants=GrantStorage(runner, known_clients),
        groups=GroupStorage(runner),
        idempotency=IdempotencyStorage(runner),
        images=ImageStorage(runner),
        imports=ImportStorage(runner, ban_copies),
        installation=InstallationStorage(runner),
        sign_in_flows=SignInFlowStorage(runner),
        keys=KeyStorage(runner),
        logins=LoginStorage(runner),
        logout_calls=LogoutStorage(runner),
        mail=OutboxStorage(runner),
        nodes=NodeStorage(runner),
        clients=ClientStorage(runner, known_clients),
        permissions=PermissionStorage(runner),
        passkeys=PasskeyStorage(runner),
        profile=OwnAccountStorage(runner, ban_copies),
        projects=ProjectStorage(runner),
        pushed_requests=PushedRequestStorage(runner),
        registration=RegistrationStorage(runner, ban_copies),
        failed_sign_ins=FailedSignInStorage(runner),
        dry_runs=DryRunStorage(runner),
        second_factors=SecondFactorStorage(runner),
        service_accounts=ServiceAccountStorage(runner),
        sessions=SessionStorage(runner),
        sites=SiteStorage(runner),
        settings=SettingsStorage(runner),
        tallies=TallyStorage(runner),
        terms=TermsStorage(runner),
        throttle=AttemptStorage(runner),
        user_records=UserRecordStorage(runner),
        webhooks=WebhookStorage(runner),
    )
