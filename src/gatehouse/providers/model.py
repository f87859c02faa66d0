"""Sign-in providers as they are configured, what one says about a person, and the errors."""

from collections.abc import Mapping

from msgspec import Struct, field

from gatehouse.accounts.identities import ForeignPerson, IdentityRules
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.errors import GatehouseError, Refused
from gatehouse.providers.kinds import PRESETS, ProviderPreset, ProviderProtocol


class Provider(SecretRecord, frozen=True, kw_only=True):
    """A provider as an administrator configured it."""

    provider_id: str
    kind: str
    name: str
    issuer: str
    tenant: str = ""
    client_id: str = ""
    client_secret: SecretText = ""
    team_id: str = ""
    key_id: str = ""
    private_key: SecretText = ""  # base64 of PKCS #8
    scopes: tuple[str, ...] = ()
    application_ids: frozenset[int] = frozenset()  # that offer it; all if empty
    audiences: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # of the tickets that an application takes
    ticket_identity: str = ""  # of Steam tickets: for whom the game asked for them
    publisher_key: SecretText = ""  # of the Steam Web API
    keys_url: str = ""  # of the key set, if there is no discovery document
    rules: IdentityRules

    @property
    def preset(self) -> ProviderPreset:
        return PRESETS[self.kind]

    @property
    def has_browser_sign_in(self) -> bool:
        return self.preset.protocol is not ProviderProtocol.TOKENS

    @property
    def signs_people_in(self) -> bool:
        return self.has_browser_sign_in or any(self.audiences.values())

    def is_offered_by(self, application_id: int) -> bool:
        """0 is the account page, which offers what every application does."""
        offered = not self.application_ids or application_id in self.application_ids
        return offered and self.has_browser_sign_in


class ProviderAuthorization(SecretRecord, frozen=True, kw_only=True):
    """A request to a provider that is under way; nonce and verifier follow from its state."""

    state: SecretText
    nonce: SecretText
    code_verifier: SecretText
    redirect_uri: str
    again: bool = False  # the person is signed in here and must authenticate anew


class VerifiedTicket(Struct, frozen=True, kw_only=True):
    """What a platform says about a ticket that it issued."""

    person: ForeignPerson
    digest: bytes  # the same for every spelling of the ticket
    ends_at: int  # it is refused from then on, whether it was used or not


class ProviderProblem(GatehouseError):
    """Why a provider did not prove an identity; the kinds differ in what a person can do."""


class ProviderUnavailable(ProviderProblem):
    """It did not answer, or answered something that is not valid; the detail is for the log."""

    public = "The provider did not answer as expected."


class TicketRefused(ProviderUnavailable):
    """The ticket or token proves nothing here; trying again with the same one does not help."""


class ProviderCanceled(ProviderProblem, Refused):
    """The person refused there, or the provider refused them."""

    public = "The sign-in was canceled."


class ProviderRequestGone(ProviderProblem, Refused):
    """The answer does not belong to a request of this browser, or was used before."""

    public = "This sign-in has expired or was opened in another browser. Start again."
