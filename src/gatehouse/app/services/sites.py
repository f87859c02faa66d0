"""Sign-in to sites behind a reverse proxy."""

from msgspec import Struct

from gatehouse.accounts.sessions import Sessions
from gatehouse.app.services.core import Core
from gatehouse.app.services.permissions import PermissionServices
from gatehouse.forward_auth.authentication import SiteAuthentication
from gatehouse.forward_auth.sign_in import SiteSignIn
from gatehouse.permissions.site_access import SiteAccess
from gatehouse.tokens.signer import Signer


class SiteServices(Struct, frozen=True, kw_only=True, eq=False):
    sign_in: SiteSignIn
    authentication: SiteAuthentication


def build_sites(core: Core, *, permissions: PermissionServices, sessions: Sessions, signer: Signer) -> SiteServices:
    store, clock = core.storage.sites, core.clock
    access = SiteAccess(permission_loader=permissions.loader, admits_guests=permissions.admits_guests, clock=clock)
    return SiteServices(
        sign_in=SiteSignIn(
            store=store, access=access, failures=core.failed_sign_ins, recorder=core.recorder, clock=clock
        ),
        authentication=SiteAuthentication(
            store=store,
            sessions=sessions,
            access=access,
            signer=signer,
            clock=clock,
            issuer=core.base_url,
            requires_application=lambda: core.settings.forward_auth.require_application,
        ),
    )
