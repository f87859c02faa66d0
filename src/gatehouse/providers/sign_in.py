"""A sign-in through a provider: the request, its answer, and the account it leads to."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

import structlog

from gatehouse.accounts.identities import ForeignPerson
from gatehouse.accounts.model import User
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256, sha256
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.ids import new_secret
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.keys.encoding import decode_base64url, encode_base64url
from gatehouse.providers.kinds import ProviderProtocol
from gatehouse.providers.model import (
    Provider,
    ProviderAuthorization,
    ProviderCanceled,
    ProviderProblem,
    ProviderRequestGone,
)

log = structlog.get_logger(__name__)

REQUEST_SECONDS: Final = 600
SIGN_IN_WITH: Final = "/sign-in/with"
SEALING_PURPOSE: Final = "provider_request"
MAX_STATE_LENGTH: Final = 100


class ProviderClient(Protocol):
    """How providers of one protocol are asked."""

    async def authorization_url(self, provider: Provider, request: ProviderAuthorization) -> str:
        """Return where the browser goes. Raises ProviderUnavailable."""

    async def fetch_person(
        self, provider: Provider, request: ProviderAuthorization, answer: Mapping[str, str]
    ) -> ForeignPerson:
        """Return who signed in, from the answer that the browser brought. Raises ProviderProblem."""


class TakenRequest(SecretRecord, frozen=True, kw_only=True):
    """A request to a provider whose answer came; it was used up."""

    provider: Provider
    request: ProviderAuthorization
    handle: SecretText  # of the sign-in flow that goes on; "" for the account page
    link_to: str  # the account that the identity is to be linked to; "" to sign in
    link_rev: int  # of that account when the request was made
    tested_in: str  # the session of the administrator who tests the provider; "" to sign in


class ProviderSignIn:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        providers: Callable[[], Mapping[str, Provider]],
        configured: Callable[[], Mapping[str, Provider]],
        clients: Mapping[ProviderProtocol, ProviderClient],
        sealer: SecretSealer,
        key: bytes,
        clock: Clock,
        base_url: str,
    ) -> None:
        """`providers` returns the enabled ones of now, `configured` all, which can be tested.

        `key` derives nonce and verifier of a request.
        """
        self._store = store
        self._providers = providers
        self._configured = configured
        self._clients = clients
        self._sealer = sealer
        self._key = key
        self._clock = clock
        self._base_url = base_url

    def offered_by(self, application_id: int) -> list[Provider]:
        """Return the providers that the application offers; 0 for the account pages."""
        return [provider for provider in self._providers().values() if provider.is_offered_by(application_id)]

    def all_providers(self) -> Mapping[str, Provider]:
        return self._providers()

    def find(self, provider_id: str) -> Provider:
        """Raises NotFound for one that does not exist, is turned off, or has no sign-in in a browser."""
        provider = self._providers().get(provider_id)
        if provider is None or not provider.has_browser_sign_in:
            raise NotFound("no such provider")
        return provider

    def find_configured(self, provider_id: str) -> Provider:
        """Return the provider, also one that is turned off. Raises NotFound."""
        provider = self._configured().get(provider_id)
        if provider is None or not provider.has_browser_sign_in:
            raise NotFound("no such provider")
        return provider

    async def start(
        self,
        provider: Provider,
        *,
        browser: bytes,
        handle: str = "",
        link_to: User | None = None,
        again: bool = False,
        tested_in: str = "",
    ) -> str:
        """Store a request, bound to the browser and usable once; return where the browser goes.

        `again` asks the provider not to answer from its own session; with `tested_in`, a session, the answer is shown
        there and signs no one in. Raises ProviderUnavailable.
        """
        request = self._request(provider, new_secret(), again=again)
        with log_problem(provider):
            url = await self._clients[provider.preset.protocol].authorization_url(provider, request)
        details = {
            "provider": provider.provider_id,
            "issuer": provider.issuer,  # fixed: an answer after the provider was replaced is refused
            "browser": browser.hex(),
            "handle": self._seal(handle),
            "again": "1" if again else "",
            "link_to": link_to.user_id if link_to else "",
            "link_rev": str(link_to.rev) if link_to else "0",
            "tested_in": tested_in,
        }
        now = self._clock.now()
        await self._store.save_provider_request(sha256(request.state), details, now, now + REQUEST_SECONDS)
        return url

    async def take_request(self, provider: Provider, state: str, *, browser: bytes) -> TakenRequest:
        """Use the request of an answer. Raises ProviderRequestGone.

        An answer to another browser, or through another provider than was asked, is refused and its request used
        up: someone may be mixing two up.
        """
        details = None
        if 0 < len(state) <= MAX_STATE_LENGTH:
            details = await self._store.take_provider_request(sha256(state), self._clock.now())
        if details is None or not constant_time_equal(details["browser"], browser.hex()):
            raise ProviderRequestGone
        if (details["provider"], details["issuer"]) != (provider.provider_id, provider.issuer):
            raise ProviderRequestGone("the request was made to another provider")
        return TakenRequest(
            provider=provider,
            request=self._request(provider, state, again=bool(details["again"])),
            handle=self._open(details["handle"]),
            link_to=details["link_to"],
            link_rev=int(details["link_rev"]),
            tested_in=details.get("tested_in", ""),
        )

    async def fetch_person(self, taken: TakenRequest, answer: Mapping[str, str]) -> ForeignPerson:
        """Return whom the provider vouches for. Raises ProviderProblem."""
        provider = taken.provider
        with log_problem(provider):
            if answer.get("error"):
                raise ProviderCanceled(f"the provider answered {answer['error'][:100]!r}")
            return await self._clients[provider.preset.protocol].fetch_person(provider, taken.request, answer)

    def redirect_uri(self, provider: Provider) -> str:
        return f"{self._base_url}{callback_path(provider.provider_id)}"

    def _request(self, provider: Provider, state: str, *, again: bool) -> ProviderAuthorization:
        return ProviderAuthorization(
            state=state,
            nonce=self._derive("nonce", state),
            code_verifier=self._derive("verifier", state),
            redirect_uri=self.redirect_uri(provider),
            again=again,
        )

    def _derive(self, purpose: str, state: str) -> str:
        """Return a secret of the request that is not stored; without the key no one can compute it."""
        return hmac_sha256(self._key, f"{purpose} {state}".encode()).hex()

    def _seal(self, handle: str) -> str:
        return (
            encode_base64url(self._sealer.seal(handle.encode(), purpose=SEALING_PURPOSE)).decode() if handle else ""
        )

    def _open(self, sealed: str) -> str:
        plain = self._sealer.try_open(decode_base64url(sealed.encode()), purpose=SEALING_PURPOSE) if sealed else b""
        if plain is None:
            raise ProviderRequestGone("the handle is damaged")
        return plain.decode()


@contextmanager
def log_problem(provider: Provider) -> Iterator[None]:
    """Log why a provider proved no identity: the page does not say it."""
    try:
        yield
    except ProviderProblem as problem:
        log.warning("provider sign-in failed", provider=provider.provider_id, reason=str(problem))
        raise


def callback_path(provider_id: str) -> str:
    """Each provider has an address of its own, so that answers cannot be mixed up."""
    return f"{SIGN_IN_WITH}/{provider_id}/callback"
