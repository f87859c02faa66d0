"""What the OpenAPI document says about ids and names: their spelling, beside the type that is read.

Nothing is decided here. A type is read as it always was, and documents/grammar.py refuses by name what is spelled
wrongly; these only say beforehand what it will take.
"""

from typing import Annotated

from msgspec import Meta

from gatehouse.permissions.documents.grammar import (
    APPLICATION_ID,
    GROUP_ID,
    MAX_ID,
    MAX_TITLE_LENGTH,
    TITLE,
)

ApplicationNumber = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MAX_ID})]
ApplicationDigits = Annotated[str, Meta(extra_json_schema={"pattern": f"^{APPLICATION_ID.pattern}$"})]
ApplicationId = ApplicationNumber | ApplicationDigits
GroupId = Annotated[str, Meta(extra_json_schema={"pattern": f"^{GROUP_ID.pattern}$"})]
Title = Annotated[str, Meta(extra_json_schema={"pattern": f"^{TITLE.pattern}$", "maxLength": MAX_TITLE_LENGTH})]
