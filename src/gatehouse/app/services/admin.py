"""What the API and account pages share with the console."""

from msgspec import Struct

from gatehouse.admin.application_clients import ApplicationClients
from gatehouse.admin.games import GameSessionListStore
from gatehouse.admin.own_permissions import OwnPermissionsLoader, OwnPermissionsStore
from gatehouse.admin.schema_versions import SchemaVersionStore
from gatehouse.admin.visibility import ConsoleAccess, VisibilityLoader, VisibilityStore
from gatehouse.admin.visible_game_sessions import VisibleGameSessions
from gatehouse.app.services.core import Core
from gatehouse.app.services.permissions import PermissionServices
from gatehouse.images.loading import ImageLoader
from gatehouse.oauth.client_commands import Clients


class AdminServices(Struct, frozen=True, kw_only=True, eq=False):
    visibility_loader: VisibilityLoader
    console_access: ConsoleAccess
    game_session_lists: GameSessionListStore
    visible_game_sessions: VisibleGameSessions
    schema_versions: SchemaVersionStore
    application_clients: ApplicationClients
    own_permissions: OwnPermissionsLoader


def build_admin(
    core: Core, permissions: PermissionServices, *, clients: Clients, images: ImageLoader
) -> AdminServices:
    runner, clock = core.storage.runner, core.clock
    authenticator, loader = permissions.authenticator, permissions.loader
    visibility = VisibilityLoader(VisibilityStore(runner))
    game_sessions = GameSessionListStore(runner)
    return AdminServices(
        visibility_loader=visibility,
        console_access=ConsoleAccess(
            authenticator=authenticator, permission_loader=loader, visibility_loader=visibility
        ),
        game_session_lists=game_sessions,
        visible_game_sessions=VisibleGameSessions(sessions=game_sessions, clock=clock),
        schema_versions=SchemaVersionStore(runner),
        application_clients=ApplicationClients(
            clients=clients,
            images=images,
            applications=core.storage.applications,
            clock=clock,
            base_url=core.base_url,
        ),
        own_permissions=OwnPermissionsLoader(
            store=OwnPermissionsStore(runner), authenticator=authenticator, permission_loader=loader, clock=clock
        ),
    )
