"""What every other service is built on: the settings, the database, the clock, the keys of the installation."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from gatehouse.app.live_settings import LiveSettings
from gatehouse.audit.model import AuditOrigin
from gatehouse.fields.derive import copy_as
from gatehouse.kernel.addresses import LOOPBACK, Network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.keys.sealing import MasterKeys, derive_key, parse_master_key
from gatehouse.settings.grammar import parse_origin
from gatehouse.settings.merge import LoadedSettings
from gatehouse.settings.model import Settings
from gatehouse.storage.database import Storage, connect_storage
from gatehouse.storage.runner import PoolLimits
from gatehouse.storage.statements import Verb

if TYPE_CHECKING:
    from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
    from gatehouse.audit.recorder import Recorder
    from gatehouse.audit.sign_in_tally import SignInTally
    from gatehouse.outbound.client import OutboundClient
    from gatehouse.outbound.forecast import CallForecast
    from gatehouse.outbound.model import CallLimits
    from gatehouse.permissions.store import BanRules

MINUTE: Final = 60
DAY: Final = 86_400
SERVICE_ORIGIN: Final = AuditOrigin(actor="service")


class Core:
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
        self.audit_key: Final = self.derive_key("audit")
        storage.install_ban_rules(self._ban_rules)

    # Imported with their first use, as the parts of Services.

    @cached_property
    def tally(self) -> "SignInTally":
        from gatehouse.audit.sign_in_tally import SignInTally

        return SignInTally(store=self.storage.tallies, clock=self.clock, key=self.derive_key("people"))

    @cached_property
    def failed_sign_ins(self) -> "FailedSignIns":
        from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns

        return FailedSignIns(store=self.storage.failed_sign_ins, clock=self.clock)

    @cached_property
    def recorder(self) -> "Recorder":
        from gatehouse.audit.recorder import Recorder

        return Recorder(mac_key=self.audit_key, clock=self.clock, tally=self.tally)

    def _ban_rules(self) -> "BanRules":
        from gatehouse.permissions.commands.ban_copies import BanCopyRules

        return BanCopyRules(key=self.ban_key, recorder=self.recorder, clock=self.clock).for_storage()

    @property
    def settings(self) -> Settings:
        """The settings that apply now; what depends on a stored one reads it at every use."""
        return self.live_settings.current.settings

    @property
    def base_url(self) -> str:
        return self.settings.server.base_url

    @property
    def is_https(self) -> bool:
        return self.base_url.startswith("https:")

    @property
    def provider_loopback(self) -> tuple[Network, ...]:
        """Loopback, if the endpoints of sign-in providers may be there: with --dev, served on loopback (R6)."""
        is_local = self.dev and self.base_url and parse_origin(self.base_url, "http", "https").is_loopback
        return LOOPBACK if is_local else ()

    @property
    def ban_key(self) -> bytes:
        """The key of the digests that bans find devices and accounts by."""
        return self.derive_key("ban-devices")

    def derive_key(self, purpose: str) -> bytes:
        """Return the installation's key for one purpose."""
        return derive_key(self.instance_key, purpose)


def outbound_client(
    settings: Settings, limits: "CallLimits | None" = None, *, more_allowed: tuple[Network, ...] = ()
) -> "OutboundClient":
    """One for each worker: it limits concurrent calls, and slow calls of one worker must not delay another.

    `more_allowed` are networks beside those of the settings.
    """
    from gatehouse.outbound.client import OutboundClient, SystemResolver, TcpConnector

    return OutboundClient(
        allowed=(*settings.outbound.allow, *more_allowed),
        resolver=SystemResolver(),
        connector=TcpConnector(ca_file=settings.outbound.ca_file),
        limits=limits,
    )


def call_forecast(settings: Settings, *, more_allowed: tuple[Network, ...] = ()) -> "CallForecast":
    """Says what such a client refuses; names without an answer hold only its own threads up."""
    from gatehouse.outbound.client import SystemResolver
    from gatehouse.outbound.forecast import LOOKUP_THREADS, CallForecast

    pool = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="forecast")
    return CallForecast(allowed=(*settings.outbound.allow, *more_allowed), resolver=SystemResolver(pool))


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


async def check_promotion(core: Core) -> None:
    """Detect that the database was promoted meanwhile: it may have lost revocations (R3).

    Called at the start and when notices were missed; the runner itself checks each new connection.
    """
    runner = core.storage.runner
    timeline = await runner.timeline()
    if timeline:
        await runner.write(partial(record_promotion, core, timeline))
        runner.on_promotion(timeline, partial(record_promotion, core))


def record_promotion(core: Core, timeline: str) -> Verb[bool]:
    from gatehouse.audit.events import AuditEvent
    from gatehouse.storage.promotion import record_timeline

    return record_timeline(
        timeline,
        lossless=core.settings.database.standby_synchronous,
        epoch=core.clock.now() * 1_000,
        entry=core.recorder.record(AuditEvent.PROMOTED, SERVICE_ORIGIN, subject="installation"),
    )
