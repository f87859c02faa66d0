"""The part of the composition root that is about signing out for clients."""

from gatehouse.accounts.sessions import Sessions
from gatehouse.oauth.logout import Logouts
from gatehouse.oauth.store import ClientStore
from gatehouse.tokens.verifying import Verifier
from gatehouse.web.browser import Browsers
from gatehouse.web.oauth.logout import LogoutEndpoints
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.routes.table import Endpoint


def logout_endpoints(
    *, clients: ClientStore, verifier: Verifier, sessions: Sessions, browsers: Browsers, pages: Pages
) -> list[Endpoint]:
    logouts = Logouts(clients=clients, verifier=verifier)
    return LogoutEndpoints(logouts=logouts, sessions=sessions, browsers=browsers, pages=pages).endpoints()
