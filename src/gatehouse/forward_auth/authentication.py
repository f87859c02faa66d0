"""Answers a proxy's question about one request: who sends it, and whether they may (R9).

The proxy asks for every request, so the usual answer costs two reads and no signature: the signed JWT is cached.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.accounts.failed_sign_ins.model import FailureReason
from gatehouse.accounts.model import User
from gatehouse.accounts.sessions import Sessions
from gatehouse.forward_auth.errors import ApplicationRequired, OtherApplication, SiteUnknown
from gatehouse.forward_auth.model import SiteVisit
from gatehouse.forward_auth.sign_in import site_denial_reason
from gatehouse.forward_auth.store import SiteStore
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.cache import WeightedCache
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.permissions.model.protected_site import ProtectedSite
from gatehouse.permissions.questions.parsing import RuleReference
from gatehouse.permissions.site_access import SiteAccess
from gatehouse.tokens.claims import ForwardAuthClaims
from gatehouse.tokens.signer import Signer

TOKEN_SECONDS: Final = 300
MIN_SECONDS_LEFT: Final = 60  # of a cached token
MAX_ROLES_LENGTH: Final = 2_048  # characters of all roles: proxies read a few KB of headers
CACHE_BYTES: Final = 8 * 2**20


class SiteQuestion(Struct, frozen=True, kw_only=True):
    """What the proxy asks."""

    origin: str  # of the site that the person opened
    cookie: str  # the secret of the session on the site; empty without one
    application_id: int | None = None  # that the proxy expects the site to belong to
    rule: RuleReference | None = None  # that the request needs besides the one of the site
    address: Address | None = None  # of the person; None where it is not proven


class Visitor(Struct, frozen=True, kw_only=True):
    """Who opened the site, as its headers tell."""

    user_id: str
    nick: str
    email: str = ""  # verified
    roles: tuple[str, ...] = ()
    token: str  # the same, signed


class SiteAnswer(Struct, frozen=True, kw_only=True):
    site: ProtectedSite
    visitor: Visitor | None = None  # None: not signed in, or denied
    denied: User | None = None  # the person who is signed in without the permission
    reason: FailureReason = FailureReason.NOT_ADMITTED  # of the denial


class CachedToken(Struct, frozen=True):
    token: str
    expires_at: int


class SiteAuthentication:
    def __init__(
        self,
        *,
        store: SiteStore,
        sessions: Sessions,
        access: SiteAccess,
        signer: Signer,
        clock: Clock,
        issuer: str,
        requires_application: Callable[[], bool],
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._access = access
        self._signer = signer
        self._clock = clock
        self._issuer = issuer
        self._requires_application = requires_application
        self._tokens: WeightedCache[CachedToken] = WeightedCache(cache_bytes)

    async def answer(self, question: SiteQuestion) -> SiteAnswer:
        """Return the visitor.

        Raises SiteUnknown, OtherApplication for a proxy that expects another one, and ApplicationRequired for a proxy
        that names none while sites of two applications exist.
        """
        visit = await self._find_visit(question)
        site = visit.site if visit else await self._store.find_site(question.origin)
        if site is None:
            raise SiteUnknown
        if question.application_id not in (None, site.application_id):
            raise OtherApplication
        await self._refuse_unnamed_application(question, site)
        if visit is None:
            return SiteAnswer(site=site)
        await self._sessions.record_use(visit.signed_in.session)
        user = visit.signed_in.user
        decision = await self._access.decide(user.user_id, site, question.rule, question.address)
        if not decision.is_allowed:
            return SiteAnswer(site=site, denied=user, reason=site_denial_reason(decision))
        return SiteAnswer(site=site, visitor=await self._visitor(site, user, decision.roles, decision.keys_version))

    async def _refuse_unnamed_application(self, question: SiteQuestion, site: ProtectedSite) -> None:
        if question.application_id is not None or not self._requires_application():
            return
        if await self._store.has_other_applications(site.application_id):
            raise ApplicationRequired(
                f"a proxy asked about {site.origin} without application_id={site.application_id}"
            )

    async def _find_visit(self, question: SiteQuestion) -> SiteVisit | None:
        if not question.cookie:
            return None
        return await self._store.find_visit(sha256(question.cookie), question.origin, self._clock.now())

    async def _visitor(self, site: ProtectedSite, user: User, roles: tuple[str, ...], keys_version: int) -> Visitor:
        fits = roles_length(roles) <= MAX_ROLES_LENGTH
        now = self._clock.now()
        claims = ForwardAuthClaims(
            iss=self._issuer,
            iat=now,
            exp=now + TOKEN_SECONDS,
            sub=user.user_id,
            aud=site.origin,
            nick=user.nick,
            email=user.login if user.email_verified else None,
            roles=roles if fits else (),
            roles_omitted=not fits,
        )
        return Visitor(
            user_id=user.user_id,
            nick=user.nick,
            email=claims.email or "",
            roles=claims.roles,
            token=await self._token(claims, keys_version),
        )

    async def _token(self, claims: ForwardAuthClaims, keys_version: int) -> str:
        """Return a token with these claims; a cached one says the same and is valid for another minute."""
        content = (claims.aud, claims.nick, claims.email, claims.roles, claims.roles_omitted, keys_version)
        known = self._tokens.get(claims.sub, content)
        if known is not None and claims.iat <= known.expires_at - MIN_SECONDS_LEFT:
            return known.token
        token = await self._signer.sign(claims, keys_version=keys_version)
        self._tokens.put(claims.sub, content, CachedToken(token, claims.exp), len(token) + roles_length(claims.roles))
        return token


def roles_length(roles: Sequence[str]) -> int:
    return sum(len(role) + 1 for role in roles)
