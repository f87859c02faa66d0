"""From the settings to whoever writes and carries the mail."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path as FilePath
from typing import Final

from gatehouse.accounts.administration import Administration, Setup
from gatehouse.accounts.password_rules import BreachedPasswordFile, PasswordRules
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.accounts.sign_in import DeviceCookies, PasswordSignIn
from gatehouse.accounts.user_tokens import UserTokens
from gatehouse.app.instance_key import ensure_instance_key, refuse_wrong_master_key
from gatehouse.audit.chain import HeadCodec, HeadExporter
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditStore
from gatehouse.audit.recorder import Recorder, SignInTally
from gatehouse.audit.sealer import Retention, Sealer
from gatehouse.audit.verification import ChainVerifier
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.kernel.graphics import Color
from gatehouse.keys.keyring import AuditSigner, Keyring
from gatehouse.keys.rotation import MAX_CLOCK_SKEW, KeyRotation, RotationPolicy
from gatehouse.keys.sealing import MasterKeys, derive_key, parse_master_key
from gatehouse.mail.composer import DEFAULT_THEME, Composer, theme_for_accent
from gatehouse.mail.delivery import MailTransport, PrintingTransport, Sender, SmtpSecurity, SmtpServer, SmtpTransport
from gatehouse.mail.model import OutboxStore
from gatehouse.mail.outbox import OutboxWorker
from gatehouse.oauth.clients import Clients
from gatehouse.oauth.logout import BackchannelLogoutWorker
from gatehouse.oauth.store import ClientStore, LogoutStore
from gatehouse.outbound.client import OutboundClient, SystemResolver, TcpConnector
from gatehouse.outbound.model import CallLimits
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model import central
from gatehouse.personal_data.data_jobs import DataJobs
from gatehouse.personal_data.model import PersonalDataStore
from gatehouse.personal_data.requests import DataRequests
from gatehouse.settings import LoadedSettings, Settings
from gatehouse.storage.database import Storage, connect_storage
from gatehouse.storage.migrations import ensure_current
from gatehouse.storage.promotion import record_timeline
from gatehouse.storage.runner import PoolLimits
from gatehouse.storage.statements import Verb
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter
from gatehouse.tokens.signer import Signer
from gatehouse.webhooks.delivery import DELIVERY_LIMITS, AuditLogConsumer, DeliveryWorker, HeadPublisher
from gatehouse.webhooks.model import WebhookStore
from gatehouse.webhooks.service import Webhooks

PrintMessage = Callable[[str], object]


def mail_composer(settings: Settings, *, masters: MasterKeys, clock: Clock) -> Composer:
    accent = settings.branding.accent
    return Composer(
        sealer=masters,
        base_url=settings.server.base_url,
        name=settings.mail.from_name,
        clock=clock,
        theme=theme_for_accent(Color.parse(accent)) if accent else DEFAULT_THEME,
    )


def outbox_worker(
    settings: Settings, *, store: OutboxStore, masters: MasterKeys, clock: Clock, print_with: PrintMessage | None
) -> OutboxWorker:
    return OutboxWorker(store=store, transport=mail_transport(settings, print_with), sealer=masters, clock=clock)


def mail_transport(settings: Settings, print_with: PrintMessage | None) -> MailTransport | None:
    """The configured server; without one whoever is shown all mail, which is for --dev only; or nobody."""
    if settings.mail.host:
        return smtp_transport(settings)
    return None if print_with is None else PrintingTransport(print_with)


def smtp_transport(settings: Settings) -> SmtpTransport:
    mail = settings.mail
    server = SmtpServer(
        host=mail.host,
        port=mail.port,
        security=SmtpSecurity(mail.security),
        timeout=mail.timeout_seconds,
        username=mail.username,
        password=mail.password.reveal(),
    )
    return SmtpTransport(server, Sender(address=mail.from_address, name=mail.from_name))


# The part of the composition root that is about people's data in applications.


def outbound_client(settings: Settings, limits: CallLimits | None = None) -> OutboundClient:
    return OutboundClient(
        allowed=settings.outbound.allow, resolver=SystemResolver(), connector=TcpConnector(), limits=limits
    )


def data_jobs(
    settings: Settings,
    *,
    store: PersonalDataStore,
    signer: Signer,
    masters: MasterKeys,
    recorder: Recorder,
    clock: Clock,
) -> DataJobs:
    return DataJobs(
        store=store,
        poster=outbound_client(settings),
        signer=signer,
        sealer=masters,
        recorder=recorder,
        clock=clock,
        issuer=settings.server.base_url,
    )


def data_requests(*, store: PersonalDataStore, masters: MasterKeys, recorder: Recorder, clock: Clock) -> DataRequests:
    return DataRequests(store=store, sealer=masters, recorder=recorder, clock=clock)


# The part of the composition root that tells clients of sign-outs.


def backchannel_logout(
    settings: Settings,
    *,
    store: LogoutStore,
    clients: ClientStore,
    signer: Signer,
    recorder: Recorder,
    clock: Clock,
) -> BackchannelLogoutWorker:
    return BackchannelLogoutWorker(
        store=store,
        clients=clients,
        poster=outbound_client(settings),
        signer=signer,
        recorder=recorder,
        clock=clock,
        issuer=settings.server.base_url,
    )


# The part of the composition root that tells webhooks what happened.


def webhook_deliveries(
    settings: Settings,
    *,
    store: WebhookStore,
    log: AuditStore,
    masters: MasterKeys,
    recorder: Recorder,
    clock: Clock,
) -> DeliveryWorker:
    return DeliveryWorker(
        store=store,
        consumer=AuditLogConsumer(store=store, log=log, clock=clock),
        poster=outbound_client(settings, DELIVERY_LIMITS),
        secret_opener=masters,
        recorder=recorder,
        clock=clock,
    )


def webhooks(
    settings: Settings, *, store: WebhookStore, masters: MasterKeys, recorder: Recorder, clock: Clock
) -> Webhooks:
    return Webhooks(
        store=store, secret_sealer=masters, recorder=recorder, clock=clock, allowed_networks=settings.outbound.allow
    )


# Every room of the service, built on one database.


MINUTE: Final = 60
DAY: Final = 86_400
BASE_URL: Final = "base_url"
INSTALLATION_ID_LENGTH: Final = 16
RSA_THREADS: Final = 2
MEGABYTE: Final = 2**20
SERVICE_ORIGIN: Final = AuditOrigin(actor="service")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Every room, built once: what the server serves and the commands use."""

    settings: Settings
    setting_sources: Mapping[str, str]  # where each setting comes from
    dev: bool
    opened_at: int
    storage: Storage
    clock: Clock
    masters: MasterKeys
    instance_key: bytes
    tally: SignInTally
    recorder: Recorder
    passwords: Passwords
    password_rules: PasswordRules
    administration: Administration
    setup: Setup
    clients: Clients
    permission_loader: PermissionLoader
    keyring: Keyring
    key_rotation: KeyRotation
    signer: Signer
    user_tokens: UserTokens
    audit_sealer: Sealer
    outbox_worker: OutboxWorker
    data_requests: DataRequests
    data_jobs: DataJobs
    backchannel_logout: BackchannelLogoutWorker
    webhook_deliveries: DeliveryWorker

    @property
    def mail_is_logged(self) -> bool:
        """Without a mail server, letters are printed in development; elsewhere they wait for one."""
        return self.dev and not self.settings.mail.host

    @property
    def audit_key(self) -> bytes:
        return derive_key(self.instance_key, "audit")

    @property
    def head_notes(self) -> HeadExporter:
        return head_notes(self.instance_key)

    @property
    def head_offers(self) -> HeadPublisher:
        return HeadPublisher(
            store=self.storage.webhooks,
            audit=self.storage.audit,
            head_codec=HeadCodec(self.masters),
            head_exporter=self.head_notes,
            clock=self.clock,
            interval=self.settings.audit.head_minutes * MINUTE,
        )

    @property
    def audit_retention(self) -> Retention:
        return Retention(store=self.storage.audit, key=self.audit_seal, head_codec=HeadCodec(self.masters))

    def audit_verification(self, progress: Callable[[int], object] = lambda _: None) -> ChainVerifier:
        return ChainVerifier(
            store=self.storage.audit,
            mac_key=self.audit_key,
            key=self.audit_seal,
            head_codec=HeadCodec(self.masters),
            head_exporter=self.head_notes,
            progress=progress,
        )

    @property
    def audit_seal(self) -> AuditSigner:
        return AuditSigner(keyring=self.keyring, clock=self.clock)


@asynccontextmanager
async def open_services(
    loaded: LoadedSettings, *, clock: Clock, serving: bool, initialize: bool = False
) -> AsyncIterator[Services]:
    """Open the database and build every room on it.

    The master key is tried before anything is changed: a wrong one raises WrongMasterKey and leaves the
    database exactly as it was (faults R-24). A serving process migrates an older schema and tells the
    database its base_url; a command takes that from the database. An empty one is set up by whoever serves
    or founds, and is SchemaBehind to all others: it is more likely the wrong one than a new one.
    """
    masters = master_keys(loaded.settings)
    async with open_database(loaded) as storage:
        held = await storage.runner.revision()
        if held:
            await refuse_wrong_master_key(storage, masters)
        await ensure_current(
            storage.runner, loaded.settings.database.url.reveal(), migrate=serving or (initialize and not held)
        )
        known = await resolve_base_url(loaded, storage, serving=serving)
        key = await ensure_instance_key(storage, masters, clock)
        house = build_services(known, storage=storage, masters=masters, clock=clock, key=key)
        try:
            await bootstrap(house)
            yield house
        finally:
            house.passwords.close()


@asynccontextmanager
async def open_database(loaded: LoadedSettings) -> AsyncIterator[Storage]:
    """Reach the database that the settings name, whatever its schema; SQLite's file is made when it is missing."""
    named = loaded.settings.database
    async with AsyncExitStack() as stack:
        try:
            reaching = connect_storage(
                named.url.reveal(), limits=pool_limits(loaded.settings), listen_url=named.listen_url.reveal()
            )
            storage = await stack.enter_async_context(reaching)
        except Unavailable as error:
            raise Unavailable(f"{error} (database.url is {named.url.masked})") from error
        yield storage


async def resolve_base_url(loaded: LoadedSettings, storage: Storage, *, serving: bool) -> LoadedSettings:
    remembered = await storage.installation.value(BASE_URL)
    if serving:
        if remembered != loaded.settings.server.base_url:
            await storage.installation.set_value(BASE_URL, loaded.settings.server.base_url)
        return loaded
    return loaded if remembered is None else loaded.with_stored_base_url(remembered)


def build_services(
    loaded: LoadedSettings, *, storage: Storage, masters: MasterKeys, clock: Clock, key: bytes
) -> Services:
    settings, dev = loaded.settings, loaded.dev
    tally = SignInTally(store=storage.tallies, clock=clock)
    recorder = Recorder(mac_key=derive_key(key, "audit"), clock=clock, tally=tally)
    passwords = Passwords(
        PasswordCost(
            memory_kib=settings.passwords.memory_kib,
            time_cost=settings.passwords.time_cost,
            parallelism=settings.passwords.parallelism,
            workers=settings.passwords.workers,
        ),
        pepper=settings.security.password_pepper.reveal().encode(),
    )
    rules = password_rules(settings)
    administration = Administration(
        store=storage.accounts, passwords=passwords, rules=rules, recorder=recorder, clock=clock
    )
    keyring = Keyring(store=storage.keys, masters=masters, clock=clock)
    signer = Signer(keyring=keyring, clock=clock, executor=ThreadPoolExecutor(RSA_THREADS, thread_name_prefix="rsa"))
    return Services(
        settings=settings,
        setting_sources=loaded.sources,
        dev=dev,
        opened_at=clock.now(),
        storage=storage,
        clock=clock,
        masters=masters,
        instance_key=key,
        tally=tally,
        recorder=recorder,
        passwords=passwords,
        password_rules=rules,
        administration=administration,
        setup=Setup(store=storage.accounts, administration=administration, recorder=recorder, clock=clock),
        clients=Clients(
            store=storage.clients, grants=storage.grants, master_keys=masters, recorder=recorder, clock=clock
        ),
        permission_loader=PermissionLoader(
            store=storage.permissions, clock=clock, cache_bytes=settings.permissions.cache_mb * MEGABYTE
        ),
        keyring=keyring,
        key_rotation=KeyRotation(
            store=storage.keys, masters=masters, recorder=recorder, clock=clock, policy=rotation_policy(settings)
        ),
        signer=signer,
        user_tokens=UserTokens(
            store=storage.accounts,
            signer=signer,
            recorder=recorder,
            clock=clock,
            issuer=settings.server.base_url,
            lifetime=settings.tokens.user_jwt_days * DAY,
        ),
        outbox_worker=outbox_worker(
            settings, store=storage.mail, masters=masters, clock=clock, print_with=print_message if dev else None
        ),
        data_requests=data_requests(store=storage.personal_data, masters=masters, recorder=recorder, clock=clock),
        data_jobs=data_jobs(
            settings, store=storage.personal_data, signer=signer, masters=masters, recorder=recorder, clock=clock
        ),
        backchannel_logout=backchannel_logout(
            settings,
            store=storage.logout_calls,
            clients=storage.clients,
            signer=signer,
            recorder=recorder,
            clock=clock,
        ),
        webhook_deliveries=webhook_deliveries(
            settings, store=storage.webhooks, log=storage.audit, masters=masters, recorder=recorder, clock=clock
        ),
        audit_sealer=Sealer(
            store=storage.audit,
            key=AuditSigner(keyring=keyring, clock=clock),
            head_codec=HeadCodec(masters),
            recorder=recorder,
            mac_key=derive_key(key, "audit"),
            clock=clock,
        ),
    )


def print_message(text: str) -> None:
    sys.stderr.write(f"{text}\n")


async def bootstrap(services: Services) -> None:
    """What must be there before anyone is served; every step is safe to repeat and to race."""
    now = services.clock.now()
    await services.storage.permissions.install_central(central.application(now), central.schema(now), central.roles())
    await services.key_rotation.ensure_first_keys(origin=SERVICE_ORIGIN)
    await services.keyring.reload()


async def check_promotion(services: Services) -> None:
    """A database that was promoted meanwhile may have lost revocations (R3).

    Asked at the start and whenever notices were missed; each new connection is looked at by the runner itself.
    """
    runner = services.storage.runner
    timeline = await runner.timeline()
    if timeline:
        await runner.write(partial(record_promotion, services, timeline))
        runner.on_promotion(timeline, partial(record_promotion, services))


def record_promotion(services: Services, timeline: str) -> Verb[bool]:
    return record_timeline(
        timeline,
        lossless=services.settings.database.standby_synchronous,
        epoch=services.clock.now() * 1_000,
        entry=services.recorder.record(AuditEvent.PROMOTED, SERVICE_ORIGIN, subject="installation"),
    )


def head_notes(key: bytes) -> HeadExporter:
    installation = derive_key(key, "installation").hex()[:INSTALLATION_ID_LENGTH]
    return HeadExporter(key=derive_key(key, "audit-head"), installation=installation)


def master_keys(settings: Settings) -> MasterKeys:
    return MasterKeys(
        parse_master_key(settings.security.master_key.reveal()),
        [parse_master_key(previous.reveal()) for previous in settings.security.previous_master_keys],
    )


def pool_limits(settings: Settings) -> PoolLimits:
    database = settings.database
    return PoolLimits(
        min_size=database.pool_min,
        max_size=database.pool_max,
        acquire_seconds=database.acquire_seconds,
        statement_cache=database.statement_cache,
        idle_transaction_seconds=database.idle_transaction_seconds,
        lock_seconds=database.lock_seconds,
        statement_seconds=database.statement_seconds,
    )


def password_rules(settings: Settings) -> PasswordRules:
    path = settings.accounts.breached_passwords
    return PasswordRules(
        breached=BreachedPasswordFile(FilePath(path)) if path else None,
        service_words=(settings.server.base_url, settings.branding.name, settings.mail.from_name, "gatehouse"),
    )


def rotation_policy(settings: Settings) -> RotationPolicy:
    return RotationPolicy(
        interval=settings.keys.rotate_days * DAY,
        publish_lead=settings.keys.publish_lead_seconds,
        grace=settings.tokens.expired_grace_days * DAY + MAX_CLOCK_SKEW,
        rsa_bits=settings.keys.rsa_bits,
    )


# The part of the composition root that counts guesses at passwords; nothing here keeps anything between calls.


def guesses(services: Services) -> AttemptLimiter:
    return AttemptLimiter(store=services.storage.throttle, limit=AttemptLimit(), clock=services.clock)


def devices(services: Services) -> DeviceCookies:
    return DeviceCookies(key=derive_key(services.instance_key, "device"), clock=services.clock)


def sign_in(services: Services) -> PasswordSignIn:
    return PasswordSignIn(
        store=services.storage.accounts,
        passwords=services.passwords,
        limiter=guesses(services),
        device_cookies=devices(services),
        tally=services.tally,
    )
