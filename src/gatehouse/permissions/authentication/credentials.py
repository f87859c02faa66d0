"""The credentials of a request, and those that an endpoint accepts (interface §4.1, R6)."""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from gatehouse.kernel.addresses import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySignature:
    """A `Signature` header and everything it covers."""

    signature: str = field(repr=False)
    application_id: str  # `Application-Id`: the application whose access key made it
    method: str
    path: bytes
    query: bytes = field(repr=False)
    body: bytes = field(repr=False)
    ip: str  # these two are part of the query or the body
    ts: int

    @property
    def message(self) -> bytes:
        return b"\n".join((self.method.encode(), self.path, self.query, self.body))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCredentials:
    """The received credentials, not verified yet. An empty text was not sent."""

    bearer: str = field(default="", repr=False)
    jwt: str = field(default="", repr=False)  # of the body
    factor: str = field(default="", repr=False)
    service_jwt: str = field(default="", repr=False)
    signed: KeySignature | None = None
    request_sign: str = field(default="", repr=False)
    body: bytes = field(default=b"", repr=False)  # the data that request_sign covers
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialPolicy:
    """The credentials that one action of an endpoint accepts; all others are refused."""

    audience: bool = False  # a user JWT for one application, if the request is about that one
    key: bool = False  # an access key, or a Signature by one, in the factor's place
    expired_beside_service: bool = False  # an expired user JWT, within the grace time
    expired_beside_key: bool = False
    no_jwt: bool = False  # the service may call for itself
    exchanged: ExchangedJwtPolicy = ExchangedJwtPolicy.NEVER
    any_service: bool = False  # a service JWT of any application
    service_accounts: bool = True


DEFAULT_POLICY: Final = CredentialPolicy()
ABOUT_APPLICATION: Final = CredentialPolicy(audience=True)  # one that is named by application_id, and not saved
ABOUT_ONE_PERSON: Final = CredentialPolicy(audience=True, key=True)  # check, explain
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
