"""An application and its keys (interface §2.3, R6)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Struct, field

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.fields.model import FIXED, Field, described_fields
from gatehouse.fields.secrets import SecretBytes, SecretRecord
from gatehouse.permissions.documents.fields import RecordField
from gatehouse.permissions.documents.grammar import MAX_NAME_LENGTH, check_name
from gatehouse.permissions.model.common_fields import DESCRIPTION, FORM


class KeySource(StrEnum):
    SERVICE_META = "service_meta"  # service_meta.public_key
    CUSTOM = "custom"


class ApplicationKey(Struct, frozen=True, kw_only=True):
    kid: str  # made by the server, always unique
    application_id: int
    source: KeySource
    pem: str
    created_at: int


# An application (interface §2.3).


PRIVATE_KEY_PURPOSE: Final = "application-private-key"
FIRST_GENERATED_ID: Final = 50_001

# Rules of the schema, plus for each role its entries and the params that each of them ends up with. Large enough for
# 2,000 rules in 60 roles; everything that is computed from an application is bounded by it.
MAX_APPLICATION_SIZE: Final = 200_000
# Estimated bytes of an application in memory, compiled: the default of permissions.cache_mb holds the largest one.
MAX_APPLICATION_MEMORY: Final = 48 * 2**20


class Application(SecretRecord, frozen=True, kw_only=True):
    """A `RecordField` is read by itself; other patchable fields have rules of their own."""

    application_id: Annotated[int, FIXED]
    name: Annotated[
        str,
        RecordField("Name of the application.", section=FORM, hint=False, maximum=MAX_NAME_LENGTH, read=check_name),
    ]
    description: Annotated[str, DESCRIPTION] = ""
    project_id: Annotated[str | None, Field("Its project, by ID or alias.", option="--project")] = None
    removed: Annotated[bool, FIXED] = False
    accepts_sample_factor: bool = False  # older ones do: their players would have to sign in again (gamesessions)
    settings: Annotated[Mapping[str, object], Field("JSON file with the settings.")] = field(default_factory=dict)
    service_meta: Annotated[  # without private_key
        Mapping[str, object], Field("JSON file with the description of its service.")
    ] = field(default_factory=dict)
    sealed_private_key: SecretBytes | None = None  # service_meta.private_key: never answered
    service_key: ApplicationKey | None = None  # service_meta.public_key, as it is published
    protected_sites: Annotated[  # the rule that each origin asks for (R9)
        Mapping[str, str], Field("JSON file with the permission of each protected origin.")
    ] = field(default_factory=dict)
    api: Annotated[  # the API it declares (R9), as documents/apis.py checks it
        Mapping[str, object] | None, Field("JSON file with the API it declares.")
    ] = None
    created_at: int
    version: Annotated[int, FIXED] = 1
    logo: str = ""  # ID of the image, if there is one

    @property
    def is_central(self) -> bool:
        return self.application_id == CENTRAL_APPLICATION

    @property
    def api_resource(self) -> str | None:
        """The audience of access tokens for its API; no two live applications declare the same."""
        return None if self.api is None else str(self.api["resource"])

    @property
    def is_published(self) -> bool:
        """Other projects may connect it once its service has a name (R5)."""
        return bool(self.service_meta.get("name"))

    def is_connectable_to(self, project_id: str) -> bool:
        """Whether the project may connect it: its own, or a published one (R5)."""
        return not self.removed and (self.project_id == project_id or self.is_published)


APPLICATION_FIELDS: Final = tuple(described_fields(Application, Field))
CHANGEABLE_APPLICATION_FIELDS: Final = tuple(
    application_field for application_field in APPLICATION_FIELDS if application_field.field.patchable
)
READ_APPLICATION_FIELDS: Final = tuple(described_fields(Application, RecordField))
