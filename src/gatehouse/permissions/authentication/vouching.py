"""The application that vouches for a request, by a service JWT, an access key or a Signature (R6)."""

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

from gatehouse.kernel.addresses import Address
from gatehouse.permissions.authentication.access_keys import VerifiedSignature
from gatehouse.permissions.authentication.credentials import RequestCredentials
from gatehouse.permissions.errors import WrongCredentials
from gatehouse.permissions.model.access_key import AccessKey


class CallerKind(StrEnum):
    """What vouches for the caller."""

    FACTOR = "factor"
    SERVICE_JWT = "service_jwt"
    ACCESS_KEY = "access_key"
    SIGNATURE = "signature"
    SERVICE_ACCOUNT = "service_account"
    TOKEN = "token"  # noqa: S105 - a name
    EXCHANGED = "exchanged"


class TokenOwner(Struct, frozen=True, kw_only=True):
    """Who got the token of a request for themselves: a client of an application, or a service account (R11)."""

    application_id: int | None = None  # of the client
    user_id: str = ""  # of the service account
    project_id: str = ""
    ip_ranges: tuple[str, ...] = ()


class VouchingApplication(Struct, frozen=True, kw_only=True):
    """The application that vouches for the request, by whatever means."""

    application_id: int
    by_jwt: bool = False
    key: AccessKey | None = None
    signed: VerifiedSignature | None = None
    by_token: bool = False  # of client_credentials (R11)

    @property
    def kind(self) -> CallerKind:
        if self.by_jwt:
            return CallerKind.SERVICE_JWT
        if self.by_token:
            return CallerKind.TOKEN
        return CallerKind.SIGNATURE if self.key is None else CallerKind.ACCESS_KEY


def merge_vouching(applications: Collection[VouchingApplication]) -> VouchingApplication | None:
    if len({application.application_id for application in applications}) > 1:
        raise WrongCredentials("credentials of two applications in one request")
    whole: VouchingApplication | None = None
    for application in applications:
        whole = application if whole is None else merge_pair(whole, application)
    return whole


def merge_pair(first: VouchingApplication, second: VouchingApplication) -> VouchingApplication:
    return VouchingApplication(
        application_id=first.application_id,
        by_jwt=first.by_jwt or second.by_jwt,
        key=first.key or second.key,
        signed=first.signed or second.signed,
        by_token=first.by_token or second.by_token,
    )


def client_address(credentials: RequestCredentials, vouching: VouchingApplication | None) -> Address | None:
    """The person's address: only one that the service signed, never the service's own (R5)."""
    if vouching is None:
        return credentials.address
    return None if vouching.signed is None else vouching.signed.address
