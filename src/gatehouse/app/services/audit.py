"""The audit log: refusals, sealing, verification, retention."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gatehouse.app.services.core import Core
from gatehouse.audit.clearing import BreakClearing
from gatehouse.audit.continuous_verification import ContinuousVerifier, PositionCodec
from gatehouse.audit.head import HeadCodec, HeadExporter
from gatehouse.audit.refusals import RefusalLog
from gatehouse.audit.retention import Retention
from gatehouse.audit.sealer import Sealer
from gatehouse.audit.verification import ChainVerifier
from gatehouse.keys.audit_signer import AuditSigner
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.sealing import derive_key
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.http.page_refusals import PAGE_RATES, PageRefusals

INSTALLATION_ID_LENGTH: Final = 16

ShowProgress = Callable[[int], object]
MakeVerifier = Callable[..., ChainVerifier]


class AuditServices(Struct, frozen=True, kw_only=True, eq=False):
    refusals: RefusalLog
    page_refusals: PageRefusals
    head_codec: HeadCodec
    head_exporter: HeadExporter
    signer: AuditSigner
    sealer: Sealer
    retention: Retention
    break_clearing: BreakClearing
    continuous_verifier: ContinuousVerifier
    make_verifier: MakeVerifier  # with a function that is called with the progress, if it is to be shown


def build_audit(core: Core, keyring: Keyring) -> AuditServices:
    store, recorder, clock = core.storage.audit, core.recorder, core.clock
    codec, exporter = HeadCodec(core.masters), head_exporter(core.instance_key)
    signer = AuditSigner(keyring=keyring, clock=clock)
    refusals = RefusalLog(store=store, recorder=recorder, max_refusals=core.settings.audit.refusals_kept)

    def make_verifier(progress: ShowProgress = lambda _: None) -> ChainVerifier:
        return ChainVerifier(
            store=store,
            mac_key=core.audit_key,
            key=signer,
            head_codec=codec,
            head_exporter=exporter,
            progress=progress,
        )

    return AuditServices(
        refusals=refusals,
        page_refusals=PageRefusals(refusals=refusals, rates=RateLimiter(PAGE_RATES, clock=clock)),
        head_codec=codec,
        head_exporter=exporter,
        signer=signer,
        sealer=Sealer(
            store=store,
            key=signer,
            head_codec=codec,
            recorder=recorder,
            mac_key=core.audit_key,
            clock=clock,
        ),
        retention=Retention(store=store, key=signer, head_codec=codec),
        break_clearing=BreakClearing(store=store, head_codec=codec, recorder=recorder, make_verifier=make_verifier),
        continuous_verifier=ContinuousVerifier(
            store=store,
            head_codec=codec,
            position_codec=PositionCodec(core.masters),
            make_verifier=make_verifier,
            clock=clock,
        ),
        make_verifier=make_verifier,
    )


def head_exporter(instance_key: bytes) -> HeadExporter:
    installation = derive_key(instance_key, "installation").hex()[:INSTALLATION_ID_LENGTH]
    return HeadExporter(key=derive_key(instance_key, "audit-head"), installation=installation)
