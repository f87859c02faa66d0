"""Links that go out by mail and prove, when they are opened, that the account's owner reads that mailbox.

Single use; a new one of a kind ends the older ones; good only while the account has the address it was
mailed to. What strangers can have sent is limited, and looks the same whether there is an account or not.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gatehouse.accounts.errors import LinkDead
from gatehouse.accounts.logins import login_key
from gatehouse.accounts.model import Link, LinkKind, User
from gatehouse.accounts.store import LinkStore
from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin, Record
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import Mail, Template
from gatehouse.throttle.allowance import Allowance, at_most
from gatehouse.throttle.guesses import Subject
from gatehouse.throttle.model import GuessLimit

MINUTE: Final = 60
DAY: Final = 86_400

HALF_AN_HOUR: Final = 1_800  # seconds for which a link lives that a person has just asked for
A_WEEK: Final = 7 * DAY  # seconds for which an invitation stands

# So few that nobody's mailbox is flooded (LG-16). A window is as long as a link lives: whoever is flooded by
# somebody else still finds one among the letters that works.
PER_ADDRESS: Final[GuessLimit] = at_most(5, HALF_AN_HOUR)
PER_SOURCE: Final[GuessLimit] = at_most(100, 3_600)  # an office, a school, a mobile carrier's gateway


NOBODY: Final = "nobody"
Keep = Callable[[User, Link, Record, Sequence[Mail]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    path: str  # of the page that spends it
    lifetime: int  # seconds
    template: Template
    event: Event


TERMS: Final = {
    LinkKind.VERIFY: Terms(
        path="/verify-email", lifetime=HALF_AN_HOUR, template=Template.VERIFY, event=Event.VERIFICATION_SENT
    ),
    LinkKind.RESET: Terms(path="/reset", lifetime=HALF_AN_HOUR, template=Template.RESET, event=Event.RESET_ASKED),
    LinkKind.CHANGE: Terms(
        path="/verify-email", lifetime=HALF_AN_HOUR, template=Template.VERIFY, event=Event.EMAIL_CHANGE_ASKED
    ),
    LinkKind.INVITE: Terms(path="/invite", lifetime=A_WEEK, template=Template.INVITE, event=Event.USER_INVITED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A link and the letter that carries it, to be kept in one act."""

    link: Link
    mails: Sequence[Mail]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks for a letter: nobody knows him yet."""

    source: str
    lang: str
    origin: Origin


class Links:
    def __init__(
        self, *, store: LinkStore, composer: Composer, recorder: Recorder, allowance: Allowance, clock: Clock
    ) -> None:
        self._store = store
        self._composer = composer
        self._recorder = recorder
        self._allowance = allowance
        self._clock = clock

    async def may_write_to(self, login: str, source: str) -> bool:
        """Count a letter to that address that someone there caused; whoever is refused is not told."""
        return await self._allowance.take(
            [
                Subject(("letter-to", login_key(login)), PER_ADDRESS),
                Subject(("letter-from", source), PER_SOURCE),
            ]
        )

    async def send(self, kind: LinkKind, owner: User, origin: Origin) -> None:
        """Mail a link to the account's own address."""
        await self._send(self._store.send_link, kind, owner, origin)

    async def send_or_pretend(self, kind: LinkKind, owner: User | None, login: str, asker: Asker) -> None:
        """Mail a link if there is somebody to get it; else do the same for nothing (LG-05)."""
        if owner is not None:
            await self.send(kind, owner, asker.origin)
        else:
            nobody = User(user_id=NOBODY, login=login, nick="", lang=asker.lang, reg_time=0)
            await self._send(self._store.pretend, kind, nobody, asker.origin)

    async def _send(self, keep: Keep, kind: LinkKind, owner: User, origin: Origin) -> None:
        prepared = self.prepare(kind, to=owner.login or "", lang=owner.lang, origin=origin)
        entry = self._recorder.record(TERMS[kind].event, origin, subject=owner.user_id)
        await keep(owner, prepared.link, entry, prepared.mails)

    def prepare(self, kind: LinkKind, *, to: str, lang: str, origin: Origin) -> Prepared:
        terms = TERMS[kind]
        secret = new_secret()
        now = self._clock.now()
        values = {
            "path": f"{terms.path}?token={secret}",
            "minutes": str(terms.lifetime // MINUTE),
            "days": str(terms.lifetime // DAY),
            "address": origin.address,
        }
        told = {name: value for name, value in values.items() if name in terms.template.needs}
        return Prepared(
            link=Link(kind=kind, digest=sha256(secret), created_at=now, expires_at=now + terms.lifetime),
            mails=(self._composer.compose(terms.template, to=to, lang=lang, **told),),
        )

    async def owner(self, kind: LinkKind, secret: str) -> User:
        """Whose link it is, for the page that asks before it is spent. Raises LinkDead."""
        owner = await self._store.owner(kind, sha256(secret), self._clock.now())
        if owner is None:
            raise LinkDead(f"no open {kind} link")
        return owner


def by_the_owner(origin: Origin, owner: User) -> Origin:
    """What was done with a link was done by whoever reads the owner's mail."""
    return replace(origin, actor=owner.user_id)
