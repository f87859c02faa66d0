"""The commands that change permissions: for the API, the console and the command line."""

from msgspec import Struct

from gatehouse.accounts.administration import Administration
from gatehouse.app.services.core import Core
from gatehouse.app.services.keys import KeyServices
from gatehouse.app.services.permissions import PermissionServices
from gatehouse.images.loading import ImageLoader
from gatehouse.permissions.commands.access_keys import AccessKeyCommands
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.commands.application_credentials import CustomKeyCommands
from gatehouse.permissions.commands.applications import ApplicationCommands
from gatehouse.permissions.commands.bans import BanCommands
from gatehouse.permissions.commands.full_removal import FullRemoval
from gatehouse.permissions.commands.groups import GroupCommands
from gatehouse.permissions.commands.memberships import MembershipCommands
from gatehouse.permissions.commands.objects import ObjectCommands
from gatehouse.permissions.commands.projects import ProjectCommands
from gatehouse.permissions.commands.publishing import ProjectPublisher
from gatehouse.permissions.commands.service_accounts import ServiceAccountCommands
from gatehouse.permissions.commands.service_tokens import EmailSecretCommands, ServiceTokenCommands
from gatehouse.permissions.commands.user_schemas import UserRecordCommands
from gatehouse.permissions.commands.users import UserLabelCommands
from gatehouse.permissions.documents.apis import ReservedResources
from gatehouse.storage.permissions.full_removal import FullRemovalStorage


class CommandServices(Struct, frozen=True, kw_only=True, eq=False):
    projects: ProjectCommands
    publishing: ProjectPublisher
    memberships: MembershipCommands
    groups: GroupCommands
    full_removal: FullRemoval
    applications: ApplicationCommands
    reserved_resources: ReservedResources
    schemas: SchemaCommands
    custom_keys: CustomKeyCommands
    access_keys: AccessKeyCommands
    service_tokens: ServiceTokenCommands
    email_secrets: EmailSecretCommands
    service_accounts: ServiceAccountCommands
    user_records: UserRecordCommands
    user_labels: UserLabelCommands
    objects: ObjectCommands
    bans: BanCommands


def build_commands(
    core: Core,
    *,
    keys: KeyServices,
    images: ImageLoader,
    administration: Administration,
    permissions: PermissionServices,
) -> CommandServices:
    storage, masters, recorder, clock = core.storage, core.masters, core.recorder, core.clock
    projects, applications, people = storage.projects, storage.applications, storage.permissions
    reserved = ReservedResources(
        base_url=core.base_url, document_hosts=lambda: core.settings.oauth.client_document_hosts
    )
    return CommandServices(
        projects=ProjectCommands(store=projects, models=people, recorder=recorder),
        publishing=ProjectPublisher(store=projects, people=people, recorder=recorder, clock=clock),
        memberships=MembershipCommands(
            projects=projects, records=storage.user_records, recorder=recorder, clock=clock
        ),
        groups=GroupCommands(store=storage.groups, projects=projects, people=people, recorder=recorder, clock=clock),
        full_removal=FullRemoval(store=FullRemovalStorage(storage.runner), recorder=recorder),
        applications=ApplicationCommands(
            store=applications,
            projects=projects,
            images=images,
            masters=masters,
            recorder=recorder,
            clock=clock,
            reachable=core.settings.outbound.allow,
            reserved=reserved,
            base_url=core.base_url,
        ),
        reserved_resources=reserved,
        schemas=SchemaCommands(store=applications, recorder=recorder, clock=clock),
        custom_keys=CustomKeyCommands(
            store=storage.application_keys, applications=applications, recorder=recorder, clock=clock
        ),
        access_keys=AccessKeyCommands(
            store=storage.application_keys,
            applications=applications,
            masters=masters,
            recorder=recorder,
            clock=clock,
        ),
        service_tokens=ServiceTokenCommands(tokens=permissions.service_tokens, applications=applications),
        email_secrets=EmailSecretCommands(store=people, applications=applications, recorder=recorder, clock=clock),
        service_accounts=ServiceAccountCommands(
            store=storage.service_accounts,
            people=people,
            projects=projects,
            records=storage.user_records,
            signer=keys.signer,
            recorder=recorder,
            clock=clock,
            issuer=core.base_url,
            days=lambda: core.settings.tokens.service_jwt_days,
        ),
        user_records=UserRecordCommands(
            store=storage.user_records, people=people, projects=projects, recorder=recorder, clock=clock
        ),
        user_labels=UserLabelCommands(accounts=storage.accounts, administration=administration, projects=projects),
        objects=ObjectCommands(store=storage.objects, projects=projects, recorder=recorder),
        bans=BanCommands(
            store=storage.bans,
            applications=applications,
            projects=projects,
            permission_loader=permissions.loader,
            ranks=permissions.ban_ranks,
            recorder=recorder,
            clock=clock,
        ),
    )
