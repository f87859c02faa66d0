"""The part of the composition root that tells clients of sign-outs."""

from gatehouse.app.personal_data import outbound_client
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.backchannel import BackchannelLogoutWorker
from gatehouse.oauth.store import ClientStore, LogoutStore
from gatehouse.settings import Settings
from gatehouse.tokens.signing import Signer


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
