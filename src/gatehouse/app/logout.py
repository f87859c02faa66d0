"""The part of the composition root that is about signing out for clients."""

from gatehouse.accounts.sessions import Sessions
from gatehouse.oauth.logout import LogoutRequests
from gatehouse.oauth.store import ClientStore
from gatehouse.tokens.verifying import TokenVerifier
from gatehouse.web.browser import BrowserSessions
from gatehouse.web.oauth.logout import LogoutEndpoints
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.routes.table import Endpoint


def logout_endpoints(
    *,
    clients: ClientStore,
    verifier: TokenVerifier,
    sessions: Sessions,
    browsers: BrowserSessions,
    pages: PageRenderer,
) -> list[Endpoint]:
    logouts = LogoutRequests(clients=clients, verifier=verifier)
    return LogoutEndpoints(logouts=logouts, sessions=sessions, browsers=browsers, pages=pages).endpoints()
