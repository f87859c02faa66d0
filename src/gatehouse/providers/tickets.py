"""Sign-in with a ticket or token that a game platform gave its client (R10); no browser takes part."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from gatehouse.accounts.errors import SignInRefused
from gatehouse.accounts.model import SignInMethod
from gatehouse.accounts.own_account.identities import IdentityAccounts, IdentitySignIn
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.accounts.sign_in import SOURCE_LIMIT
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.sign_in_tally import SignInTally
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput, Unavailable
from gatehouse.providers.kinds import ProviderProtocol
from gatehouse.providers.model import Provider, ProviderProblem, TicketRefused, VerifiedTicket
from gatehouse.providers.sign_in import log_problem
from gatehouse.throttle.limits import AttemptLimiter, ThrottleSubject

MAX_TICKET_LENGTH: Final = 8_192  # characters


class TicketAttempt(SecretRecord, frozen=True, kw_only=True):
    platform: str  # the ID of the provider
    ticket: SecretText
    application_id: int
    source: str
    lang: str


class TicketVerifier(Protocol):
    """How tickets of one protocol are verified."""

    async def verify(self, provider: Provider, audiences: Sequence[str], ticket: str) -> VerifiedTicket:
        """Return whose ticket it is, if it is for one of the audiences. Raises TicketRefused, ProviderUnavailable."""


class PlatformSignIn:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        providers: Callable[[], Mapping[str, Provider]],
        verifiers: Mapping[ProviderProtocol, TicketVerifier],
        identities: IdentityAccounts,
        limiter: AttemptLimiter,
        tally: SignInTally,
        clock: Clock,
    ) -> None:
        """`providers` returns the enabled ones of now."""
        self._store = store
        self._providers = providers
        self._verifiers = verifiers
        self._identities = identities
        self._limiter = limiter
        self._tally = tally
        self._clock = clock

    async def sign_in(self, attempt: TicketAttempt, *, origin: AuditOrigin) -> IdentitySignIn:
        """Use the ticket and return the account of its owner; create it if the provider may.

        Raises BadInput, TooMany, SignInRefused, Unavailable when the platform does not answer, and NotSignedIn when
        the ticket is right but opens no account.
        """
        provider = self._find(attempt)
        subject = ThrottleSubject(("platform", attempt.source), SOURCE_LIMIT, is_shared=True)
        counted = await self._limiter.begin_attempt([subject])
        try:
            verified = await self._verify(provider, attempt)
        except SignInRefused:
            self._tally.count_refused(SignInMethod.PLATFORM)
            raise
        except Unavailable:
            await self._limiter.cancel_attempt(counted)
            raise
        await self._limiter.mark_succeeded(counted)
        return await self._identities.sign_in(verified.person, provider.rules, lang=attempt.lang, origin=origin)

    def _find(self, attempt: TicketAttempt) -> Provider:
        provider = self._providers().get(attempt.platform)
        if provider is None or not provider.audiences.get(attempt.application_id):
            raise BadInput("platform: the application takes no tickets of this provider")
        if not 0 < len(attempt.ticket) <= MAX_TICKET_LENGTH:
            raise BadInput(f"ticket: must have 1 to {MAX_TICKET_LENGTH} characters")
        return provider

    async def _verify(self, provider: Provider, attempt: TicketAttempt) -> VerifiedTicket:
        """Verify the ticket and use it up, before anything is issued or created for it."""
        audiences = provider.audiences[attempt.application_id]
        try:
            with log_problem(provider):
                verifier = self._verifiers[provider.preset.protocol]
                verified = await verifier.verify(provider, audiences, attempt.ticket)
                await self._use(verified)
        except TicketRefused:
            raise SignInRefused from None
        except ProviderProblem as problem:
            raise Unavailable(str(problem)) from None
        return verified

    async def _use(self, verified: VerifiedTicket) -> None:
        if not await self._store.use_ticket(verified.digest, self._clock.now(), verified.ends_at):
            raise TicketRefused("the ticket was used before")
