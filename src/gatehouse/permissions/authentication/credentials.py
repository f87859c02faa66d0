"""The credentials of a request, and those that an endpoint accepts (interface §4.1, R6)."""

from enum import Enum, auto
from typing import Final

from msgspec import Struct

from gatehouse.fields.secrets import SecretBytes, SecretRecord, SecretText
from gatehouse.kernel.addresses import Address


class KeySignature(SecretRecord, frozen=True, kw_only=True):
    """A `Signature` header and everything it covers."""

    signature: SecretText
    application_id: str  # `Application-Id`: the application whose access key made it
    method: str
    path: bytes
    query: SecretBytes
    body: SecretBytes
    ip: str  # these two are part of the query or the body
    ts: int

    @property
    def message(self) -> bytes:
        return b"\n".join((self.method.encode(), self.path, self.query, self.body))


class RequestCredentials(SecretRecord, frozen=True, kw_only=True):
    """The received credentials, not verified yet. An empty text was not sent."""

    bearer: SecretText = ""
    jwt: SecretText = ""  # of the body
    factor: SecretText = ""
    service_jwt: SecretText = ""
    signed: KeySignature | None = None
    request_sign: SecretText = ""
    body: SecretBytes = b""  # the data that request_sign covers
    address: Address | None = None  # the client's, if the connection proves it (R4)
    source: str = ""  # the client as the throttles count them

    @property
    def access_key(self) -> str:
        """The Bearer when it is an access key, which has no dots (R6)."""
        return "" if "." in self.bearer else self.bearer

    @property
    def user_jwt(self) -> str:
        """The JWT of the header, or of the body beside an access key."""
        return self.bearer if "." in self.bearer else self.jwt


class ExchangedJwtPolicy(Enum):
    """Where a JWT of exchangeToken is accepted (R2)."""

    NEVER = auto()
    BESIDE_SERVICE = auto()  # with a service JWT or access key
    ALONE = auto()


class CredentialPolicy(Struct, frozen=True, kw_only=True):
    """The credentials that one action of an endpoint accepts; all others are refused."""

    audience: bool = False  # a user JWT for one application, if the request is about that one
    key: bool = False  # an access key, or a Signature by one, in the factor's place
    expired_beside_service: bool = False  # an expired user JWT, within the grace time
    expired_beside_key: bool = False
    no_jwt: bool = False  # the service may call for itself
    exchanged: ExchangedJwtPolicy = ExchangedJwtPolicy.NEVER
    any_service: bool = False  # a service JWT of any application
    service_accounts: bool = True
    scope: str = ""  # a token that a machine got for this scope, in the access key's place (R11)


DEFAULT_POLICY: Final = CredentialPolicy()
ABOUT_APPLICATION: Final = CredentialPolicy(audience=True)  # one that is named by application_id, and not saved
ABOUT_ONE_PERSON: Final = CredentialPolicy(audience=True, key=True)  # explain
CHECK: Final = CredentialPolicy(audience=True, key=True, no_jwt=True)
USER_INFO: Final = CredentialPolicy(any_service=True, exchanged=ExchangedJwtPolicy.ALONE)
RECORD_SAVE: Final = CredentialPolicy(audience=True, expired_beside_service=True)  # meta/data
RECORD_GET: Final = CredentialPolicy(
    audience=True,
    key=True,
    expired_beside_service=True,
    expired_beside_key=True,
    exchanged=ExchangedJwtPolicy.BESIDE_SERVICE,
)
ROLES_OF_RECORD_GET: Final = CredentialPolicy(  # meta/data get of type roles
    audience=True,
    key=True,
    expired_beside_service=True,
    expired_beside_key=True,
    exchanged=ExchangedJwtPolicy.BESIDE_SERVICE,
    no_jwt=True,
)
EXCHANGE_JWT: Final = CredentialPolicy(key=True, service_accounts=False)
