"""The part of the composition root that tells clients of sign-outs."""

from gatehouse.app.personal_data import outbound
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.backchannel import BackchannelLogout
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
) -> BackchannelLogout:
    return BackchannelLogout(
        store=store,
        clients=clients,
        poster=outbound(settings),
        signer=signer,
        recorder=recorder,
        clock=clock,
        issuer=settings.server.base_url,
    )
