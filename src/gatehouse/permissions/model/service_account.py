"""A service account: a user without login and password that belongs to a project (R1)."""

from typing import Annotated, Final

from msgspec import Struct

from gatehouse.fields.model import CREATED, FIXED, Field, described_fields


class ServiceAccount(Struct, frozen=True, kw_only=True):
    user_id: Annotated[str, FIXED]
    project_id: Annotated[str, FIXED]
    name: Annotated[str, FIXED]
    comment: Annotated[str, Field()] = ""
    ip_ranges: Annotated[tuple[str, ...], Field()] = ()
    public_key: Annotated[str, Field()] = ""  # when there is one, each request is signed with its private half
    created_by: Annotated[str, FIXED]
    created_at: Annotated[int, CREATED]
    jti: str  # of the one token that is live
    revoked: Annotated[bool, Field()] = False
    version: Annotated[int, FIXED] = 1


SERVICE_ACCOUNT_FIELDS: Final = tuple(described_fields(ServiceAccount, Field))
CHANGEABLE_ACCOUNT_FIELDS: Final = tuple(field for field in SERVICE_ACCOUNT_FIELDS if field.field.patchable)
