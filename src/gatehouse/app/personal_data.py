"""The part of the composition root that is about people's data in applications."""

from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.keys.sealing import MasterKeys
from gatehouse.outbound.calling import Outbound
from gatehouse.outbound.model import Limits
from gatehouse.outbound.network import SystemResolver, TcpConnector
from gatehouse.personal_data.errands import DataErrands
from gatehouse.personal_data.requests import DataDesk
from gatehouse.personal_data.store import PersonalDataStore
from gatehouse.settings import Settings
from gatehouse.tokens.signing import Signer


def outbound(settings: Settings, limits: Limits | None = None) -> Outbound:
    return Outbound(
        allowed=settings.outbound.allow, resolver=SystemResolver(), connector=TcpConnector(), limits=limits
    )


def data_errands(
    settings: Settings,
    *,
    store: PersonalDataStore,
    signer: Signer,
    masters: MasterKeys,
    recorder: Recorder,
    clock: Clock,
) -> DataErrands:
    return DataErrands(
        store=store,
        poster=outbound(settings),
        signer=signer,
        sealing=masters,
        recorder=recorder,
        clock=clock,
        issuer=settings.server.base_url,
    )


def data_desk(*, store: PersonalDataStore, masters: MasterKeys, recorder: Recorder, clock: Clock) -> DataDesk:
    return DataDesk(store=store, sealing=masters, recorder=recorder, clock=clock)
