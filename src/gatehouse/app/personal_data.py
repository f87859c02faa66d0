"""The part of the composition root that is about people's data in applications."""

from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.keys.sealing import MasterKeys
from gatehouse.outbound.calling import OutboundClient
from gatehouse.outbound.model import CallLimits
from gatehouse.outbound.network import SystemResolver, TcpConnector
from gatehouse.personal_data.errands import DataJobs
from gatehouse.personal_data.requests import DataRequests
from gatehouse.personal_data.store import PersonalDataStore
from gatehouse.settings import Settings
from gatehouse.tokens.signing import Signer


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
