"""Who is calling, what they may do, and the commands and questions about permissions."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from gatehouse.accounts.bans.devices import SignInDevices
from gatehouse.accounts.bans.model import UserBan
from gatehouse.admin.application_clients import ApplicationClients
from gatehouse.admin.games import GameSessionListStore
from gatehouse.admin.paging import PageRequest
from gatehouse.admin.schema_versions import SchemaVersionStore
from gatehouse.admin.visibility import ConsoleAccess, VisibilityLoader, VisibilityStore
from gatehouse.admin.visible_game_sessions import VisibleGameSessions
from gatehouse.app.services.core import DAY, CoreServices
from gatehouse.oauth.exchange import GrantLiveness
from gatehouse.permissions.authentication.access_keys import AccessKeyVerifier
from gatehouse.permissions.authentication.application_keys import ApplicationKeyDirectory, KeyFiles
from gatehouse.permissions.authentication.authenticator import PRINCIPAL_RATE_CLASS, Authenticator
from gatehouse.permissions.authentication.jwt_exchange import JwtExchange
from gatehouse.permissions.authentication.jwts import CallerJwtVerifier
from gatehouse.permissions.authentication.service_jwts import ServiceJwtVerifier, ServiceTokens
from gatehouse.permissions.changes.feed import ChangeFeed
from gatehouse.permissions.changes.readers import ChangeReaders
from gatehouse.permissions.changes.streams import ChangeStreams
from gatehouse.permissions.commands.access_keys import AccessKeyCommands
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.commands.application_credentials import CustomKeyCommands
from gatehouse.permissions.commands.applications import ApplicationCommands
from gatehouse.permissions.commands.bans import BanCommands
from gatehouse.permissions.commands.full_removal import FullRemoval
from gatehouse.permissions.commands.groups import GroupCommands
from gatehouse.permissions.commands.memberships import MembershipCommands
from gatehouse.permissions.commands.projects import ProjectCommands
from gatehouse.permissions.commands.publishing import ProjectPublisher
from gatehouse.permissions.commands.service_accounts import ServiceAccountCommands
from gatehouse.permissions.commands.service_tokens import EmailSecretCommands, ServiceTokenCommands
from gatehouse.permissions.commands.user_schemas import UserRecordCommands
from gatehouse.permissions.commands.users import UserLabelCommands
from gatehouse.permissions.documents.apis import ReservedResources
from gatehouse.permissions.login_rules import LoginRules
from gatehouse.permissions.model.schema_version import MAX_VERSIONS, PastSchema, SchemaVersion
from gatehouse.permissions.questions.check import Checks, QuestionAccess
from gatehouse.permissions.questions.explain import Explainer, GuardedExplainer
from gatehouse.permissions.questions.members import MemberSearch
from gatehouse.permissions.questions.person_input import PersonInputLoader
from gatehouse.permissions.questions.proposals import DryRuns
from gatehouse.permissions.questions.roles import RoleList
from gatehouse.permissions.questions.simulate import Simulation
from gatehouse.permissions.questions.user_record_views import UserRecordViews
from gatehouse.permissions.rights.ban_ranks import BanRanks
from gatehouse.storage.permissions.full_removal import FullRemovalStorage
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.tokens.verifier import TokenVerifier


class PermissionServices(CoreServices):
    # Authentication

    @cached_property
    def application_keys(self) -> ApplicationKeyDirectory:
        directory = self.settings.applications.keys_dir
        return ApplicationKeyDirectory(
            store=self.storage.application_keys,
            files=KeyFiles(Path(directory) if directory else None, clock=self.clock),
            keyring=self.keyring,
            clock=self.clock,
        )

    @cached_property
    def token_verifier(self) -> TokenVerifier:
        return TokenVerifier(
            issuer=self.base_url,
            keyring=self.keyring,
            application_keys=self.application_keys,
            clock=self.clock,
        )

    @cached_property
    def service_jwts(self) -> ServiceJwtVerifier:
        return ServiceJwtVerifier(store=self.storage.application_keys, jwts=self.caller_jwts)

    @cached_property
    def access_key_verifier(self) -> AccessKeyVerifier:
        return AccessKeyVerifier(
            store=self.storage.application_keys,
            masters=self.masters,
            limiter=self.attempt_limiter,
            clock=self.clock,
        )

    @cached_property
    def principal_rate_limiter(self) -> RateLimiter:
        """Lets one principal send as many requests as one address may, from however many addresses (PA-15)."""
        rates = self.settings.rates
        return RateLimiter({PRINCIPAL_RATE_CLASS: RateLimit(rates.admin)} if rates.enabled else {}, clock=self.clock)

    @cached_property
    def sign_in_devices(self) -> SignInDevices:
        return SignInDevices(store=self.storage.bans, key=self.ban_key, clock=self.clock)

    @cached_property
    def caller_jwts(self) -> CallerJwtVerifier:
        return CallerJwtVerifier(self.token_verifier)

    @cached_property
    def authenticator(self) -> Authenticator:
        return Authenticator(
            permission_loader=self.permission_loader,
            user_jwts=self.caller_jwts,
            service_jwts=self.service_jwts,
            access_keys=self.access_key_verifier,
            is_grant_live=GrantLiveness(store=self.storage.grants, clock=self.clock).is_live,
            find_device_bans=self.find_device_bans,
            volume=self.principal_rate_limiter,
            clock=self.clock,
            grace=self.settings.tokens.expired_grace_days * DAY,
        )

    @cached_property
    def jwt_exchange(self) -> JwtExchange:
        return JwtExchange(
            authenticator=self.authenticator,
            find_refusal=self.login_rules.find_refusal,
            signer=self.signer,
            clock=self.clock,
        )

    @cached_property
    def login_rules(self) -> LoginRules:
        """What every kind of sign-in checks about applications."""
        return LoginRules(
            store=self.storage.permissions,
            permission_loader=self.permission_loader,
            service_jwts=self.service_jwts,
            ban_ranks=self.ban_ranks,
            admits_guests=self.admits_guests,
            clock=self.clock,
        )

    async def find_device_bans(self, user_id: str, factor: str) -> tuple[UserBan, ...]:
        """Return the bans of the device whose authors could ban the person."""
        return await self.ban_ranks.covering(user_id, await self.sign_in_devices.find_bans(factor))

    # The change stream

    @cached_property
    def change_feed(self) -> ChangeFeed:
        """Listens from its first use on, which only a serving process makes."""
        feed = ChangeFeed(log=self.storage.audit, clock=self.clock)
        self.storage.audit.listen_for_seals(lambda _: feed.notify())
        return feed

    @cached_property
    def change_readers(self) -> ChangeReaders:
        return ChangeReaders(authenticator=self.authenticator, applications=self.storage.applications)

    @cached_property
    def change_streams(self) -> ChangeStreams:
        settings = self.settings.permissions
        return ChangeStreams(
            feed=self.change_feed,
            masters=self.masters,
            clock=self.clock,
            per_caller=settings.streams_per_caller,
            most=settings.streams_most,
        )

    # Commands

    @cached_property
    def reserved_resources(self) -> ReservedResources:
        return ReservedResources(
            base_url=self.base_url, document_hosts=lambda: self.settings.oauth.client_document_hosts
        )

    @cached_property
    def application_commands(self) -> ApplicationCommands:
        return ApplicationCommands(
            store=self.storage.applications,
            projects=self.storage.projects,
            images=self.image_loader,
            masters=self.masters,
            recorder=self.recorder,
            clock=self.clock,
            reachable=self.settings.outbound.allow,
            reserved=self.reserved_resources,
            base_url=self.base_url,
        )

    @cached_property
    def application_clients(self) -> ApplicationClients:
        return ApplicationClients(
            clients=self.clients,
            images=self.image_loader,
            applications=self.storage.applications,
            clock=self.clock,
            base_url=self.base_url,
        )

    @cached_property
    def custom_key_commands(self) -> CustomKeyCommands:
        return CustomKeyCommands(
            store=self.storage.application_keys,
            applications=self.storage.applications,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def access_key_commands(self) -> AccessKeyCommands:
        return AccessKeyCommands(
            store=self.storage.application_keys,
            applications=self.storage.applications,
            masters=self.masters,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def service_tokens(self) -> ServiceTokens:
        return ServiceTokens(
            store=self.storage.application_keys,
            signer=self.signer,
            recorder=self.recorder,
            clock=self.clock,
            issuer=self.base_url,
            days=lambda: self.settings.tokens.service_jwt_days,
        )

    @cached_property
    def service_token_commands(self) -> ServiceTokenCommands:
        return ServiceTokenCommands(tokens=self.service_tokens, applications=self.storage.applications)

    @cached_property
    def email_secrets(self) -> EmailSecretCommands:
        return EmailSecretCommands(
            store=self.storage.permissions,
            applications=self.storage.applications,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def service_accounts(self) -> ServiceAccountCommands:
        return ServiceAccountCommands(
            store=self.storage.service_accounts,
            people=self.storage.permissions,
            projects=self.storage.projects,
            records=self.storage.user_records,
            signer=self.signer,
            recorder=self.recorder,
            clock=self.clock,
            issuer=self.base_url,
            days=lambda: self.settings.tokens.service_jwt_days,
        )

    @cached_property
    def schema_commands(self) -> SchemaCommands:
        return SchemaCommands(store=self.storage.applications, recorder=self.recorder, clock=self.clock)

    @cached_property
    def user_record_commands(self) -> UserRecordCommands:
        return UserRecordCommands(
            store=self.storage.user_records,
            people=self.storage.permissions,
            projects=self.storage.projects,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def user_label_commands(self) -> UserLabelCommands:
        return UserLabelCommands(
            accounts=self.storage.accounts, administration=self.administration, projects=self.storage.projects
        )

    @cached_property
    def ban_ranks(self) -> BanRanks:
        return BanRanks(permission_loader=self.permission_loader, clock=self.clock)

    @cached_property
    def ban_commands(self) -> BanCommands:
        return BanCommands(
            store=self.storage.bans,
            applications=self.storage.applications,
            projects=self.storage.projects,
            permission_loader=self.permission_loader,
            ranks=self.ban_ranks,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def project_commands(self) -> ProjectCommands:
        return ProjectCommands(store=self.storage.projects, models=self.storage.permissions, recorder=self.recorder)

    @cached_property
    def project_publisher(self) -> ProjectPublisher:
        return ProjectPublisher(
            store=self.storage.projects, people=self.storage.permissions, recorder=self.recorder, clock=self.clock
        )

    @cached_property
    def membership_commands(self) -> MembershipCommands:
        return MembershipCommands(
            projects=self.storage.projects,
            records=self.storage.user_records,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def group_commands(self) -> GroupCommands:
        return GroupCommands(
            store=self.storage.groups,
            projects=self.storage.projects,
            people=self.storage.permissions,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def full_removal(self) -> FullRemoval:
        return FullRemoval(store=FullRemovalStorage(self.storage.runner), recorder=self.recorder)

    # Questions

    @cached_property
    def question_access(self) -> QuestionAccess:
        return QuestionAccess(
            authenticator=self.authenticator,
            permission_loader=self.permission_loader,
            person_inputs=self.person_inputs,
        )

    @cached_property
    def person_inputs(self) -> PersonInputLoader:
        return PersonInputLoader(
            permission_loader=self.permission_loader, guests=self.storage.profile, clock=self.clock
        )

    @cached_property
    def checks(self) -> Checks:
        return Checks(
            question_access=self.question_access, permission_loader=self.permission_loader, clock=self.clock
        )

    @cached_property
    def explainer(self) -> Explainer:
        return Explainer(applications=self.storage.applications, clock=self.clock)

    @cached_property
    def guarded_explainer(self) -> GuardedExplainer:
        return GuardedExplainer(
            explainer=self.explainer,
            question_access=self.question_access,
            authenticator=self.authenticator,
            permission_loader=self.permission_loader,
            projects=self.storage.projects,
        )

    @cached_property
    def member_search(self) -> MemberSearch:
        return MemberSearch(candidate_store=self.storage.candidates, projects=self.storage.projects, clock=self.clock)

    @cached_property
    def dry_runs(self) -> DryRuns:
        return DryRuns(
            store=self.storage.dry_runs,
            people=self.storage.permissions,
            groups=self.storage.groups,
            projects=self.storage.projects,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def simulation(self) -> Simulation:
        return Simulation(dry_runs=self.dry_runs, candidate_store=self.storage.candidates, clock=self.clock)

    @cached_property
    def role_list(self) -> RoleList:
        return RoleList(store=self.storage.applications, clock=self.clock)

    @cached_property
    def user_record_views(self) -> UserRecordViews:
        return UserRecordViews(
            authenticator=self.authenticator,
            permission_loader=self.permission_loader,
            person_inputs=self.person_inputs,
            applications=self.storage.applications,
            projects=self.storage.projects,
            clock=self.clock,
        )

    @cached_property
    def visible_game_sessions(self) -> VisibleGameSessions:
        return VisibleGameSessions(sessions=self.game_session_lists, clock=self.clock)

    @cached_property
    def game_session_lists(self) -> GameSessionListStore:
        return GameSessionListStore(self.storage.runner)

    @cached_property
    def visibility_loader(self) -> VisibilityLoader:
        return VisibilityLoader(VisibilityStore(self.storage.runner))

    @cached_property
    def console_access(self) -> ConsoleAccess:
        return ConsoleAccess(
            authenticator=self.authenticator,
            permission_loader=self.permission_loader,
            visibility_loader=self.visibility_loader,
        )

    # Past schemas

    @cached_property
    def schema_version_storage(self) -> SchemaVersionStore:
        return SchemaVersionStore(self.storage.runner)

    async def schema_versions(self, application_id: int) -> Sequence[SchemaVersion]:
        """All that are kept, the newest first."""
        return (await self.schema_version_storage.versions(application_id, PageRequest(size=MAX_VERSIONS))).rows

    async def schema_version(self, application_id: int, version: int) -> PastSchema:
        """Raises ApplicationNotFound, VersionNotFound."""
        application = await self.storage.applications.application(application_id)
        return await self.schema_version_storage.version(application, version)
