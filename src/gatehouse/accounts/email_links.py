"""Links sent by email that prove, when opened, that the account's owner reads that mailbox.

A link works once, is replaced by a newer one of its kind, and works only while the account has the address it was
mailed to. The emails that strangers can cause are limited, and the response is the same with or without an account.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.address_proofs.model import (
    ENDS_NOTHING,
    EndedMethods,
    ProofNotices,
    ProvingBrowser,
    methods_that_end,
)
from gatehouse.accounts.errors import LinkDead
from gatehouse.accounts.model import EmailLink, FlowReference, LinkKind, OpenLink, User, login_key
from gatehouse.accounts.sign_in import DeviceCookies
from gatehouse.accounts.store import EmailLinkStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.kernel.ids import new_secret
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.kernel.times import DAY, MINUTE
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail
from gatehouse.throttle.limits import AttemptLimit, ThrottleSubject
from gatehouse.throttle.quotas import Quota, quota_limit

EMAIL_LINK_LIFETIME: Final = 1_800  # seconds for a link that a person has just requested
INVITATION_LIFETIME: Final = 7 * DAY  # seconds

# Few enough that no mailbox is flooded (LG-16). A window is as long as a link lives, so that an owner whose mailbox
# is flooded by others still finds a working link among the emails.
PER_ADDRESS_LIMIT: Final[AttemptLimit] = quota_limit(5, EMAIL_LINK_LIFETIME)
PER_SOURCE_LIMIT: Final[AttemptLimit] = quota_limit(100, 3_600)  # for an office, a school, a mobile carrier's gateway


SEALING_PURPOSE: Final = "email-link"
NO_USER_ID: Final = "none"
SaveLink = Callable[[User, EmailLink, AuditRecord, Sequence[OutboxMail]], Awaitable[None]]


class LinkPolicy(Struct, frozen=True, kw_only=True):
    path: str  # of the page that uses the link
    lifetime: int  # seconds
    template: MailTemplate
    event: AuditEvent
    is_shown: bool = False  # also to the administrator who sends it


LINK_POLICIES: Final = {
    LinkKind.VERIFY: LinkPolicy(
        path="/verify-email",
        lifetime=EMAIL_LINK_LIFETIME,
        template=MailTemplate.VERIFY,
        event=AuditEvent.VERIFICATION_SENT,
    ),
    LinkKind.RESET: LinkPolicy(
        path="/reset", lifetime=EMAIL_LINK_LIFETIME, template=MailTemplate.RESET, event=AuditEvent.RESET_ASKED
    ),
    LinkKind.CHANGE: LinkPolicy(
        path="/verify-email",
        lifetime=EMAIL_LINK_LIFETIME,
        template=MailTemplate.VERIFY,
        event=AuditEvent.EMAIL_CHANGE_ASKED,
    ),
    LinkKind.INVITE: LinkPolicy(
        path="/invite",
        lifetime=INVITATION_LIFETIME,
        template=MailTemplate.INVITE,
        event=AuditEvent.USER_INVITED,
        is_shown=True,
    ),
}


class PreparedLink(SecretRecord, frozen=True, kw_only=True):
    """A link and the email that carries it, to be stored in one transaction."""

    link: EmailLink
    path: SecretText  # what the link opens, with its secret
    shown_path: SecretText = ""  # a copy of it to show, which proves nothing (R9)
    mails: Sequence[OutboxMail]


class LinkRequester(SecretRecord, frozen=True, kw_only=True):
    """An unauthenticated client that requests an email."""

    source: str
    lang: str
    origin: AuditOrigin
    device_cookie: SecretText = ""  # if its browser sent one
    browser: str = ""  # digest of a secret that only its browser has
    flow: FlowReference = FlowReference()  # the sign-in flow that it belongs to


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is sealed in a link: who asked for it, and for what."""

    browser: str
    flow: FlowReference


class EmailLinks:
    def __init__(
        self,
        *,
        store: EmailLinkStore,
        composer: Composer,
        recorder: Recorder,
        quota: Quota,
        device_cookies: DeviceCookies,
        sealer: SecretSealer,
        clock: Clock,
    ) -> None:
        self._sealer = sealer
        self._store = store
        self._device_cookies = device_cookies
        self._composer = composer
        self._recorder = recorder
        self._quota = quota
        self._clock = clock

    async def may_email(self, login: str, source: str, *, device_cookie: str = "") -> bool:
        """Count an email to that address, requested from that source, and return whether it may be sent.

        A browser that signed in to that account before has a quota of its own, which others cannot use up (LG-09).
        The client is not told about a refusal.
        """
        key = login_key(login)
        device = self._device_cookies.recognize(device_cookie, key) if device_cookie else None
        return await self._quota.consume(
            [
                ThrottleSubject(("letter-to", key, *([] if device is None else [device])), PER_ADDRESS_LIMIT),
                ThrottleSubject(("letter-from", source), PER_SOURCE_LIMIT),
            ]
        )

    async def send(self, kind: LinkKind, owner: User, origin: AuditOrigin) -> str:
        """Send a link to the account's own address; return the path of the copy to show, if its kind has one."""
        return await self._send(self._store.send_link, kind, owner, origin)

    async def send_or_simulate(
        self, kind: LinkKind, owner: User | None, login: str, requester: LinkRequester
    ) -> None:
        """Send a link if there is an account; otherwise do the same work without effect (LG-05)."""
        if owner is not None:
            await self._send(self._store.send_link, kind, owner, requester.origin, requester)
        else:
            placeholder = User(user_id=NO_USER_ID, login=login, nick="", lang=requester.lang, reg_time=0)
            await self._send(self._store.simulate_send, kind, placeholder, requester.origin, requester)

    async def _send(
        self,
        save: SaveLink,
        kind: LinkKind,
        owner: User,
        origin: AuditOrigin,
        requester: LinkRequester | None = None,
    ) -> str:
        prepared = self.prepare(kind, to=owner.login or "", lang=owner.lang, origin=origin, requester=requester)
        entry = self._recorder.record(LINK_POLICIES[kind].event, origin, subject=owner.user_id)
        await save(owner, prepared.link, entry, prepared.mails)
        return prepared.shown_path

    async def show(self, kind: LinkKind, owner: User, entry: AuditRecord) -> str:
        """Return the path of a link that is not mailed, and so proves nothing."""
        secret, now = new_secret(), self._clock.now()
        link = EmailLink(
            kind=kind,
            digest=sha256(new_secret()),
            shown=sha256(secret),
            created_at=now,
            expires_at=now + LINK_POLICIES[kind].lifetime,
        )
        await self._store.send_link(owner, link, entry, ())
        return path_of(kind, secret)

    def prepare(
        self, kind: LinkKind, *, to: str, lang: str, origin: AuditOrigin, requester: LinkRequester | None = None
    ) -> PreparedLink:
        """Return a new link and its email; with `requester` it keeps the sign-in flow that it was asked for in."""
        policy = LINK_POLICIES[kind]
        secret, shown = new_secret(), new_secret() if policy.is_shown else ""
        path = path_of(kind, secret)
        now = self._clock.now()
        values = {
            "path": path,
            "minutes": str(policy.lifetime // MINUTE),
            "days": str(policy.lifetime // DAY),
            "address": origin.address,
        }
        needed = {name: value for name, value in values.items() if name in policy.template.needs}
        return PreparedLink(
            link=EmailLink(
                kind=kind,
                digest=sha256(secret),
                shown=sha256(shown) if shown else b"",
                sealed=self._seal(requester),
                created_at=now,
                expires_at=now + policy.lifetime,
            ),
            path=path,
            shown_path=path_of(kind, shown) if shown else "",
            mails=(self._composer.compose(policy.template, to=to, lang=lang, **needed),),
        )

    def _seal(self, requester: LinkRequester | None) -> bytes:
        if requester is None or not requester.flow.handle:
            return b""
        asked = _Asked(browser=requester.browser, flow=requester.flow)
        return self._sealer.seal(msgspec.json.encode(asked), purpose=SEALING_PURPOSE)

    def flow_of(self, link: OpenLink, browser: str) -> tuple[FlowReference, bool]:
        """Return the flow that the link was asked for in, and whether this browser asked."""
        plain = self._sealer.try_open(link.sealed, purpose=SEALING_PURPOSE) if link.sealed else None
        if plain is None:
            return FlowReference(), False
        asked = msgspec.json.decode(plain, type=_Asked)
        return asked.flow, constant_time_equal(asked.browser, browser)

    async def find(self, kind: LinkKind, secret: str) -> OpenLink:
        """Return the link, for the page that asks before it is used. Raises LinkDead."""
        link = await self._store.find_link(kind, sha256(secret), self._clock.now())
        if link is None:
            raise LinkDead(f"no open {kind} link")
        return link

    # -- the first proof of an address (R10) ----------------------------------------------------------

    async def find_ending_of(self, link: OpenLink, browser: ProvingBrowser) -> EndedMethods:
        """Return what ends when this browser uses the link; nothing with one that proves nothing."""
        return ENDS_NOTHING if link.is_shown else await self.find_ending(link.owner, browser)

    async def find_ending(self, user: User, browser: ProvingBrowser) -> EndedMethods:
        """Return what ends when this browser proves the address, for the page that asks before."""
        return methods_that_end(user, await self._store.held_methods(user.user_id, self._clock.now()), browser)

    def proof_notices(
        self,
        user: User,
        origin: AuditOrigin,
        device: str,
        entries: Sequence[AuditRecord],
        mails: Sequence[OutboxMail] = (),
    ) -> ProofNotices:
        """Return how to make the records and emails of a proof: these, and those about what ended."""

        def make(ended: EndedMethods) -> tuple[Sequence[AuditRecord], Sequence[OutboxMail]]:
            if not ended.names:
                return entries, mails
            details = {"ended": ", ".join(ended.names)}
            if ended.identities:
                details["providers"] = ", ".join(sorted({identity.provider for identity in ended.identities}))
            record = self._recorder.record(AuditEvent.METHODS_ENDED, origin, subject=user.user_id, details=details)
            mail = self._composer.compose(
                MailTemplate.METHODS_ENDED,
                to=user.login or "",
                lang=user.lang,
                ended=" ".join(ended.names),
                address=origin.address,
                device=device,
            )
            return (*entries, record), (*mails, mail)

        return make


def path_of(kind: LinkKind, secret: str) -> str:
    return f"{LINK_POLICIES[kind].path}?token={secret}"


def as_owner(origin: AuditOrigin, owner: User) -> AuditOrigin:
    """Return the origin with the link's owner as actor: only they read that mailbox."""
    return replace(origin, actor=owner.user_id)
