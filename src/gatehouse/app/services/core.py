"""What every other service builds on: keys, passwords, the audit log, mail, calls to other servers."""

import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from pathlib import Path as FilePath
from typing import Final

from gatehouse import __version__
from gatehouse.accounts.administration import Administration
from gatehouse.accounts.decoys import DecoyHashes
from gatehouse.accounts.guests.model import GuestPolicy
from gatehouse.accounts.guests.sign_in import GuestExpiry
from gatehouse.accounts.own_account.erasure import Erasure
from gatehouse.accounts.own_account.label_rules import LabelRules
from gatehouse.accounts.password_rules import BreachedPasswordFile, PasswordRules
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.accounts.setup import Setup
from gatehouse.accounts.user_tokens import UserTokens
from gatehouse.app.live_settings import LiveSettings, SettingsEditor
from gatehouse.app.nodes import NodeReporter
from gatehouse.app.services.provider_settings import provided_labels
from gatehouse.audit.clearing import BreakClearing
from gatehouse.audit.continuous_verification import ContinuousVerifier
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import HeadCodec, HeadExporter
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.refusals import RefusalLog
from gatehouse.audit.retention import Retention
from gatehouse.audit.sealer import Sealer
from gatehouse.audit.sign_in_tally import SignInTally
from gatehouse.audit.verification import ChainVerifier
from gatehouse.fields.derive import copy_as
from gatehouse.images.conversion import ImageConverter
from gatehouse.images.loading import FETCH_LIMITS, ImageLoader
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.kernel.ids import new_node_id
from gatehouse.keys.audit_signer import AuditSigner
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.nodes import Node
from gatehouse.keys.rotation import MAX_CLOCK_SKEW, KeyRotation, RotationPolicy
from gatehouse.keys.sealing import MasterKeys, derive_key, parse_master_key
from gatehouse.languages import LANGUAGES
from gatehouse.mail.composer import Composer, MailBrand, mail_brand
from gatehouse.mail.delivery import MailTransport, PrintingTransport, Sender, SmtpSecurity, SmtpServer, SmtpTransport
from gatehouse.mail.outbox import OutboxWorker
from gatehouse.oauth.backchannel_logout import BackchannelLogoutWorker
from gatehouse.oauth.client_commands import Clients
from gatehouse.outbound.client import OutboundClient, SystemResolver, TcpConnector
from gatehouse.outbound.model import CallLimits
from gatehouse.permissions.commands.ban_copies import BanCopyRules
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model import central
from gatehouse.personal_data.data_jobs import DataJobs
from gatehouse.personal_data.requests import DataRequests
from gatehouse.settings.guests import GuestSettings
from gatehouse.settings.merge import LoadedSettings
from gatehouse.settings.model import Settings
from gatehouse.storage.database import Storage, connect_storage
from gatehouse.storage.promotion import record_timeline
from gatehouse.storage.runner import PoolLimits
from gatehouse.storage.statements import Verb
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter
from gatehouse.tokens.signer import Signer
from gatehouse.web.http.geoip import GeoIpLookup, open_geoip
from gatehouse.web.pages.translations import language_policy
from gatehouse.webhooks.delivery import DELIVERY_LIMITS, AuditLogConsumer, DeliveryWorker
from gatehouse.webhooks.head_publisher import HeadPublisher
from gatehouse.webhooks.service import Webhooks

MINUTE: Final = 60
DAY: Final = 86_400
INSTALLATION_ID_LENGTH: Final = 16
RSA_THREADS: Final = 2
MEGABYTE: Final = 2**20
SERVICE_ORIGIN: Final = AuditOrigin(actor="service")

PrintMessage = Callable[[str], object]


class CoreServices:
    """The first of a line of classes that end in Services.

    Every collaborator is a cached property that reads only `self`: it is built at its first use and never twice.
    """

    def __init__(
        self, loaded: LoadedSettings, *, storage: Storage, masters: MasterKeys, clock: Clock, instance_key: bytes
    ) -> None:
        self.live_settings: Final = LiveSettings(loaded, store=storage.settings, sealer=masters)
        self.dev: Final = loaded.dev
        self.opened_at: Final = clock.now()
        self.storage: Final = storage
        self.clock: Final = clock
        self.masters: Final = masters
        self.instance_key: Final = instance_key
        ban_rules = BanCopyRules(key=self.ban_key, recorder=self.recorder, clock=clock)
        storage.ban_copies.install(ban_rules.for_storage())

    @property
    def settings(self) -> Settings:
        """The settings that apply now; what depends on a stored one reads it at every use."""
        return self.live_settings.current.settings

    @cached_property
    def settings_editor(self) -> SettingsEditor:
        return SettingsEditor(
            live=self.live_settings,
            store=self.storage.settings,
            images=self.image_loader,
            recorder=self.recorder,
            clock=self.clock,
        )

    @property
    def base_url(self) -> str:
        return self.settings.server.base_url

    @property
    def is_https(self) -> bool:
        return self.base_url.startswith("https:")

    @cached_property
    def erasure(self) -> Erasure:
        return Erasure(store=self.storage.profile, recorder=self.recorder, clock=self.clock)

    @cached_property
    def label_rules(self) -> LabelRules:
        return LabelRules(
            store=self.storage.profile,
            recorder=self.recorder,
            origin=SERVICE_ORIGIN,
            clock=self.clock,
            rules=lambda: provided_labels(self.settings.providers) if self.live_settings.is_complete else None,
        )

    @cached_property
    def guest_expiry(self) -> GuestExpiry:
        store = self.storage.profile
        return GuestExpiry(
            store=store, recorder=self.recorder, clock=self.clock, policy=lambda: guest_policy(self.settings.guests)
        )

    def admits_guests(self, application_ids: tuple[int, ...]) -> bool:
        """Whether guests may sign in to these applications now."""
        return guest_policy(self.settings.guests).admits(application_ids)

    @cached_property
    def ban_key(self) -> bytes:
        """The key of the digests that bans find devices and accounts by."""
        return derive_key(self.instance_key, "ban-devices")

    # Audit log

    @cached_property
    def audit_key(self) -> bytes:
        return derive_key(self.instance_key, "audit")

    @cached_property
    def tally(self) -> SignInTally:
        return SignInTally(store=self.storage.tallies, clock=self.clock, key=derive_key(self.instance_key, "people"))

    @cached_property
    def recorder(self) -> Recorder:
        return Recorder(mac_key=self.audit_key, clock=self.clock, tally=self.tally)

    @cached_property
    def refusal_log(self) -> RefusalLog:
        return RefusalLog(
            store=self.storage.audit, recorder=self.recorder, max_refusals=self.settings.audit.refusals_kept
        )

    @cached_property
    def head_codec(self) -> HeadCodec:
        return HeadCodec(self.masters)

    @cached_property
    def head_exporter(self) -> HeadExporter:
        return head_exporter(self.instance_key)

    @cached_property
    def head_publisher(self) -> HeadPublisher:
        return HeadPublisher(
            store=self.storage.webhooks,
            audit=self.storage.audit,
            head_codec=self.head_codec,
            head_exporter=self.head_exporter,
            clock=self.clock,
            interval=self.settings.audit.head_minutes * MINUTE,
        )

    @cached_property
    def audit_signer(self) -> AuditSigner:
        return AuditSigner(keyring=self.keyring, clock=self.clock)

    @cached_property
    def audit_sealer(self) -> Sealer:
        return Sealer(
            store=self.storage.audit,
            key=self.audit_signer,
            head_codec=self.head_codec,
            recorder=self.recorder,
            mac_key=self.audit_key,
            clock=self.clock,
        )

    @cached_property
    def audit_retention(self) -> Retention:
        return Retention(store=self.storage.audit, key=self.audit_signer, head_codec=self.head_codec)

    def audit_verification(self, progress: Callable[[int], object] = lambda _: None) -> ChainVerifier:
        return ChainVerifier(
            store=self.storage.audit,
            mac_key=self.audit_key,
            key=self.audit_signer,
            head_codec=self.head_codec,
            head_exporter=self.head_exporter,
            progress=progress,
        )

    @cached_property
    def break_clearing(self) -> BreakClearing:
        return BreakClearing(
            store=self.storage.audit,
            head_codec=self.head_codec,
            recorder=self.recorder,
            make_verifier=self.audit_verification,
        )

    @cached_property
    def continuous_verifier(self) -> ContinuousVerifier:
        return ContinuousVerifier(make_verifier=self.audit_verification, clock=self.clock)

    @cached_property
    def keyring(self) -> Keyring:
        return Keyring(store=self.storage.keys, masters=self.masters, clock=self.clock)

    @cached_property
    def rotation_policy(self) -> RotationPolicy:
        keys, tokens = self.settings.keys, self.settings.tokens
        return RotationPolicy(
            interval=keys.rotate_days * DAY,
            publish_lead=keys.publish_lead_seconds,
            grace=tokens.expired_grace_days * DAY + MAX_CLOCK_SKEW,
            rsa_bits=keys.rsa_bits,
        )

    @cached_property
    def key_rotation(self) -> KeyRotation:
        return KeyRotation(
            store=self.storage.keys,
            masters=self.masters,
            recorder=self.recorder,
            clock=self.clock,
            policy=self.rotation_policy,
        )

    @cached_property
    def node_reporter(self) -> NodeReporter:
        return NodeReporter(store=self.storage.nodes, masters=self.masters, clock=self.clock, node=this_node())

    @cached_property
    def signer(self) -> Signer:
        executor = ThreadPoolExecutor(RSA_THREADS, thread_name_prefix="rsa")
        return Signer(keyring=self.keyring, clock=self.clock, executor=executor)

    # Passwords, administrators, clients

    @cached_property
    def passwords(self) -> Passwords:
        cost = self.settings.passwords
        return Passwords(
            PasswordCost(
                memory_kib=cost.memory_kib,
                time_cost=cost.time_cost,
                parallelism=cost.parallelism,
                workers=cost.workers,
            ),
            pepper=self.settings.security.password_pepper.reveal().encode(),
        )

    @cached_property
    def decoy_hashes(self) -> DecoyHashes:
        key = derive_key(self.instance_key, "decoy-hashes")
        return DecoyHashes(store=self.storage.accounts, key=key, clock=self.clock)

    @cached_property
    def password_rules(self) -> PasswordRules:
        path = self.settings.accounts.breached_passwords
        return PasswordRules(
            breached=BreachedPasswordFile(FilePath(path)) if path else None, service_words=self._service_words
        )

    def _service_words(self) -> Sequence[str]:
        return (self.base_url, self.settings.branding.name, self.settings.mail.from_name, "gatehouse")

    @cached_property
    def attempt_limiter(self) -> AttemptLimiter:
        return AttemptLimiter(store=self.storage.throttle, limit=AttemptLimit(), clock=self.clock)

    @cached_property
    def administration(self) -> Administration:
        return Administration(
            store=self.storage.accounts,
            passwords=self.passwords,
            rules=self.password_rules,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def setup(self) -> Setup:
        return Setup(
            store=self.storage.accounts, administration=self.administration, recorder=self.recorder, clock=self.clock
        )

    @cached_property
    def clients(self) -> Clients:
        return Clients(
            store=self.storage.clients,
            grants=self.storage.grants,
            master_keys=self.masters,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def image_converter(self) -> ImageConverter:
        return ImageConverter(self.clock)

    @cached_property
    def image_loader(self) -> ImageLoader:
        return ImageLoader(converter=self.image_converter, outbound=outbound_client(self.settings, FETCH_LIMITS))

    @cached_property
    def permission_loader(self) -> PermissionLoader:
        return PermissionLoader(
            store=self.storage.permissions,
            clock=self.clock,
            cache_bytes=self.settings.permissions.cache_mb * MEGABYTE,
        )

    @cached_property
    def user_tokens(self) -> UserTokens:
        return UserTokens(
            store=self.storage.accounts,
            signer=self.signer,
            recorder=self.recorder,
            clock=self.clock,
            issuer=self.base_url,
            lifetime=lambda: self.settings.tokens.user_jwt_days * DAY,
        )

    @cached_property
    def geoip(self) -> GeoIpLookup:
        return open_geoip(self.settings.accounts.geoip_file)

    # Mail

    def mail_is_logged(self) -> bool:
        """Whether mail is printed, which development mode does without a mail server; else it waits for one."""
        return self.dev and not self.settings.mail.host

    @cached_property
    def mail_composer(self) -> Composer:
        return Composer(
            sealer=self.masters,
            base_url=self.base_url,
            clock=self.clock,
            brand=self._mail_brand,
            languages=lambda: language_policy(self.settings.languages).available(LANGUAGES),
        )

    def _mail_brand(self) -> MailBrand:
        return mail_brand(self.settings.mail.from_name, self.settings.branding.accent)

    @cached_property
    def outbox_worker(self) -> OutboxWorker:
        return self.outbox_worker_printing(print_message if self.dev else None)

    def outbox_worker_printing(self, print_with: PrintMessage | None) -> OutboxWorker:
        """A worker that prints mail with the given function where no mail server is configured."""
        return OutboxWorker(
            store=self.storage.mail,
            find_transport=lambda: mail_transport(self.settings, print_with),
            sealer=self.masters,
            clock=self.clock,
        )

    # Calls to other servers

    @cached_property
    def data_jobs(self) -> DataJobs:
        return DataJobs(
            store=self.storage.personal_data,
            poster=outbound_client(self.settings),
            signer=self.signer,
            sealer=self.masters,
            recorder=self.recorder,
            clock=self.clock,
            issuer=self.base_url,
        )

    @cached_property
    def data_requests(self) -> DataRequests:
        return DataRequests(
            store=self.storage.personal_data, sealer=self.masters, recorder=self.recorder, clock=self.clock
        )

    @cached_property
    def backchannel_logout(self) -> BackchannelLogoutWorker:
        return BackchannelLogoutWorker(
            store=self.storage.logout_calls,
            clients=self.storage.clients,
            poster=outbound_client(self.settings),
            signer=self.signer,
            recorder=self.recorder,
            clock=self.clock,
            issuer=self.base_url,
        )

    @cached_property
    def webhook_deliveries(self) -> DeliveryWorker:
        store = self.storage.webhooks
        return DeliveryWorker(
            store=store,
            consumer=AuditLogConsumer(store=store, log=self.storage.audit, clock=self.clock),
            poster=outbound_client(self.settings, DELIVERY_LIMITS),
            secret_opener=self.masters,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def webhooks(self) -> Webhooks:
        return Webhooks(
            store=self.storage.webhooks,
            secret_sealer=self.masters,
            recorder=self.recorder,
            clock=self.clock,
            allowed_networks=self.settings.outbound.allow,
        )


def outbound_client(settings: Settings, limits: CallLimits | None = None) -> OutboundClient:
    """One for each worker: it limits concurrent calls, and slow calls of one worker must not delay another."""
    return OutboundClient(
        allowed=settings.outbound.allow,
        resolver=SystemResolver(),
        connector=TcpConnector(ca_file=settings.outbound.ca_file),
        limits=limits,
    )


def mail_transport(settings: Settings, print_with: PrintMessage | None) -> MailTransport | None:
    """The configured mail server; without one, the given printer; without that, none."""
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


def print_message(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def head_exporter(instance_key: bytes) -> HeadExporter:
    installation = derive_key(instance_key, "installation").hex()[:INSTALLATION_ID_LENGTH]
    return HeadExporter(key=derive_key(instance_key, "audit-head"), installation=installation)


def this_node() -> Node:
    return Node(
        node_id=new_node_id(),
        name=f"{socket.gethostname()} (process {os.getpid()})",
        master_keys="",
        version=__version__,
    )


def master_keys(settings: Settings) -> MasterKeys:
    return MasterKeys(
        parse_master_key(settings.security.master_key.reveal()),
        [parse_master_key(previous.reveal()) for previous in settings.security.previous_master_keys],
    )


@asynccontextmanager
async def open_database(loaded: LoadedSettings) -> AsyncIterator[Storage]:
    """Connect to the configured database, whatever its schema; a missing SQLite file is created."""
    database = loaded.settings.database
    async with AsyncExitStack() as stack:
        try:
            connecting = connect_storage(
                database.url.reveal(), limits=pool_limits(loaded.settings), listen_url=database.listen_url.reveal()
            )
            storage = await stack.enter_async_context(connecting)
        except Unavailable as error:
            raise Unavailable(f"{error} (database.url is {database.url.masked})") from error
        yield storage


def pool_limits(settings: Settings) -> PoolLimits:
    database = settings.database
    return copy_as(PoolLimits, database, min_size=database.pool_min, max_size=database.pool_max)


def guest_policy(wanted: GuestSettings) -> GuestPolicy:
    return GuestPolicy(
        enabled=wanted.enabled,
        application_ids=frozenset(map(int, wanted.applications)),
        created_per_hour=wanted.created_per_hour,
        total_per_hour=wanted.total_per_hour,
        idle_days=wanted.idle_days,
    )


async def bootstrap(services: CoreServices) -> None:
    """Create what every request needs; every step may be repeated and run concurrently."""
    now = services.clock.now()
    await services.live_settings.reload()
    await services.storage.permissions.install_central(central.application(now), central.schema(now), central.roles())
    await services.key_rotation.ensure_first_keys(origin=SERVICE_ORIGIN)
    await services.keyring.reload()


async def check_promotion(services: CoreServices) -> None:
    """Detect that the database was promoted meanwhile: it may have lost revocations (R3).

    Called at the start and when notices were missed; the runner itself checks each new connection.
    """
    runner = services.storage.runner
    timeline = await runner.timeline()
    if timeline:
        await runner.write(partial(record_promotion, services, timeline))
        runner.on_promotion(timeline, partial(record_promotion, services))


def record_promotion(services: CoreServices, timeline: str) -> Verb[bool]:
    return record_timeline(
        timeline,
        lossless=services.settings.database.standby_synchronous,
        epoch=services.clock.now() * 1_000,
        entry=services.recorder.record(AuditEvent.PROMOTED, SERVICE_ORIGIN, subject="installation"),
    )
