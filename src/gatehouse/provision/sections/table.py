"""Every section there is, and in which order their changes are made: what others refer to comes first."""

from typing import Any, Final

from gatehouse.provision.sections.application_users import ApplicationUsersStage
from gatehouse.provision.sections.applications import ApplicationSection
from gatehouse.provision.sections.clients import ClientSection
from gatehouse.provision.sections.groups import GroupSection
from gatehouse.provision.sections.memberships import MembershipSection
from gatehouse.provision.sections.project_services import ProjectServicesStage
from gatehouse.provision.sections.projects import ProjectSection
from gatehouse.provision.sections.section import FileSection, PlanStage
from gatehouse.provision.sections.service_account_rights import ServiceAccountRightsStage
from gatehouse.provision.sections.service_accounts import ServiceAccountSection
from gatehouse.provision.sections.users import UserSection

USERS: Final = UserSection()
CLIENTS: Final = ClientSection()
PROJECTS: Final = ProjectSection()
APPLICATIONS: Final = ApplicationSection()
GROUPS: Final = GroupSection()
MEMBERSHIPS: Final = MembershipSection()
SERVICE_ACCOUNTS: Final = ServiceAccountSection()

# As a file writes them.
SECTIONS: Final[tuple[FileSection[Any], ...]] = (
    USERS,
    CLIENTS,
    PROJECTS,
    APPLICATIONS,
    GROUPS,
    MEMBERSHIPS,
    SERVICE_ACCOUNTS,
)
# As they are carried out: a service names groups and roles, a right is held on whatever there is.
STAGES: Final[tuple[PlanStage[Any], ...]] = (
    USERS,
    CLIENTS,
    PROJECTS,
    SERVICE_ACCOUNTS,
    APPLICATIONS,
    GROUPS,
    ProjectServicesStage(),
    MEMBERSHIPS,
    ServiceAccountRightsStage(),
    ApplicationUsersStage(),
)
