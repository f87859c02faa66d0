"""The sign-in to a protected site: from a session here to a session there (R9)."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import FailureReason
from gatehouse.accounts.session_model import Session
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.forward_auth.errors import BadSiteRequest, HandOverRefused, SiteAddressUnknown
from gatehouse.forward_auth.model import HAND_OVER_SECONDS, RETURN_PATH, HandOver, SiteSession, SiteSignInRequest
from gatehouse.forward_auth.store import SiteStore
from gatehouse.kernel.addresses import parse_address
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret
from gatehouse.permissions.documents.sites import is_site_origin
from gatehouse.permissions.login_rules import LoginRefusalReason
from gatehouse.permissions.model.protected_site import ProtectedSite
from gatehouse.permissions.site_access import SiteAccess, SiteDecision
from gatehouse.sign_in_flow.model import Destination, FlowStep, SignInFlow, SignInFlowGone, SignInProof, proof_of_flow

KIND: Final = "site"
DENIED_PATH: Final = "/proxy/auth/denied"
SITE_KEY: Final = "site"  # in `ask` and in addresses: the origin
PATH_KEY: Final = "to"
CHALLENGE_KEY: Final = "challenge"


def encode_site_request(request: SiteSignInRequest) -> Mapping[str, str]:
    """Encode the request for a sign-in flow or an address."""
    return {SITE_KEY: request.origin, PATH_KEY: request.path, CHALLENGE_KEY: request.challenge}


def decode_site_request(fields: Mapping[str, str]) -> SiteSignInRequest:
    """Read a request. Raises BadSiteRequest."""
    request = SiteSignInRequest(
        origin=fields.get(SITE_KEY, ""), path=fields.get(PATH_KEY, ""), challenge=fields.get(CHALLENGE_KEY, "")
    )
    if not request.is_valid:
        raise BadSiteRequest
    return request


class OpenedSiteSession(Struct, frozen=True, kw_only=True):
    secret: str  # of the cookie
    path: str  # where the person wanted to go


REASONS: Final[Mapping[LoginRefusalReason | None, FailureReason]] = {
    LoginRefusalReason.ACCOUNT_BLOCKED: FailureReason.BLOCKED,
    LoginRefusalReason.BANNED: FailureReason.BANNED,
}


def site_denial_reason(decision: SiteDecision) -> FailureReason:
    """Return what a failed sign-in to a site is counted as."""
    return REASONS.get(decision.refusal, FailureReason.NOT_ADMITTED)


class SiteSignIn:
    def __init__(
        self, *, store: SiteStore, access: SiteAccess, failures: FailedSignIns, recorder: Recorder, clock: Clock
    ) -> None:
        self._failures = failures
        self._store = store
        self._access = access
        self._recorder = recorder
        self._clock = clock

    async def find_site(self, origin: str) -> ProtectedSite:
        """Return the site. Raises SiteAddressUnknown."""
        site = await self._store.find_site(origin) if is_site_origin(origin) else None
        if site is None:
            raise SiteAddressUnknown
        return site

    async def visitor_login(self, origin: str, cookie: str) -> str:
        """Return the login of the person who is signed in on the site; empty when no one is."""
        visit = await self._store.find_visit(sha256(cookie), origin, self._clock.now()) if cookie else None
        return "" if visit is None else visit.signed_in.user.login or visit.signed_in.user.nick

    async def hand_over(self, request: SiteSignInRequest, proof: SignInProof, origin: AuditOrigin) -> str:
        """Return where the browser goes: to the site with a code, or to the page that says why not."""
        site = await self.find_site(request.origin)
        address = parse_address(origin.address) if origin.proven else None
        decision = await self._access.decide(proof.user_id, site, None, address)
        if not decision.is_allowed:
            self._failures.count(proof.user_id, site_denial_reason(decision), origin.address)
            return f"{DENIED_PATH}?{urlencode({SITE_KEY: site.origin})}"
        code, now = new_secret(), self._clock.now()
        await self._store.create_hand_over(
            HandOver(
                digest=sha256(code),
                request=request,
                user_id=proof.user_id,
                rev=proof.rev,
                session_id=proof.session_id,
                created_at=now,
                ends_at=now + HAND_OVER_SECONDS,
            )
        )
        return f"{site.origin}{RETURN_PATH}?{urlencode({'code': code})}"

    async def open_session(self, site_origin: str, code: str, cookie: str, origin: AuditOrigin) -> OpenedSiteSession:
        """Use the code of a hand-over in the browser that holds the cookie. Raises HandOverRefused."""
        secret = new_secret()

        def new(taken: HandOver, session: Session) -> tuple[SiteSession, AuditRecord]:
            return self._site_session(secret, taken, session), self._record(taken, origin)

        taken = await self._store.take_hand_over(
            sha256(code), site_origin, sha256(cookie).hex(), self._clock.now(), new
        )
        if taken is None:
            raise HandOverRefused
        return OpenedSiteSession(secret=secret, path=taken.request.path)

    def _site_session(self, secret: str, taken: HandOver, session: Session) -> SiteSession:
        return SiteSession(
            digest=sha256(secret),
            origin=taken.request.origin,
            user_id=taken.user_id,
            rev=taken.rev,
            session_id=taken.session_id,
            created_at=self._clock.now(),
            ends_at=session.ends_at,
        )

    def _record(self, taken: HandOver, origin: AuditOrigin) -> AuditRecord:
        by_person = replace(origin, actor=taken.user_id)
        details = {"site": taken.request.origin}
        return self._recorder.record(AuditEvent.SITE_SIGNED_IN, by_person, subject=taken.user_id, details=details)


class SiteSignInPurpose:
    """The sign-in for a site, as the sign-in flow uses it."""

    def __init__(self, site_sign_in: SiteSignIn) -> None:
        self._site_sign_in = site_sign_in

    async def destination(self, flow: SignInFlow) -> Destination:
        request = decode_site_request(flow.ask)
        try:
            site = await self._site_sign_in.find_site(request.origin)
        except SiteAddressUnknown as gone:
            raise SignInFlowGone from gone
        host = site.origin.partition("://")[2]
        return Destination(
            application=host,
            application_ids=(site.application_id,),
            returns_to=host,
            start=site.origin,
            form_action=site.origin,
        )

    async def next_step(self, flow: SignInFlow) -> FlowStep:
        """Ask nothing more, because administrators trust the site; a session from a game is not enough."""
        return FlowStep.LOGIN if proof_of_flow(flow).limited else FlowStep.DONE

    async def refuse(self, flow: SignInFlow, origin: AuditOrigin) -> str:  # noqa: ARG002 - no one waits
        return ""

    async def finish(self, flow: SignInFlow, origin: AuditOrigin) -> str:
        try:
            return await self._site_sign_in.hand_over(decode_site_request(flow.ask), proof_of_flow(flow), origin)
        except SiteAddressUnknown as gone:
            raise SignInFlowGone from gone
