"""Every section there is, in the order in which changes are made: what others refer to comes first."""

from typing import Any, Final

from gatehouse.provision.sections.clients import ClientSection
from gatehouse.provision.sections.section import Section
from gatehouse.provision.sections.users import UserSection

SECTIONS: Final[tuple[Section[Any], ...]] = (
    UserSection(),
    ClientSection(),
)
