"""Sign-in flows, and what each kind leads to."""

from gatehouse.app.services.core import Core
from gatehouse.app.services.games import GameServices
from gatehouse.app.services.oauth import OAuthServices
from gatehouse.app.services.sign_in import SignInServices
from gatehouse.app.services.sites import SiteServices
from gatehouse.forward_auth.sign_in import KIND as SITE
from gatehouse.forward_auth.sign_in import SiteSignInPurpose
from gatehouse.gamesessions.purpose import KIND as GAME
from gatehouse.oauth.authorize.purpose import KIND as AUTHORIZE
from gatehouse.oauth.device_sign_in import KIND as DEVICE
from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND as ACCOUNT
from gatehouse.sign_in_flow.account_sign_in import AccountSignInPurpose
from gatehouse.sign_in_flow.flows import RefusablePurpose, SignInFlows


def build_sign_in_flows(
    core: Core, sign_in: SignInServices, oauth: OAuthServices, games: GameServices, sites: SiteServices
) -> SignInFlows:
    for_applications: dict[str, RefusablePurpose] = {
        AUTHORIZE: oauth.authorize_purpose,
        DEVICE: oauth.device_purpose,
        GAME: games.purpose,
        SITE: SiteSignInPurpose(sites.sign_in),
    }
    return SignInFlows(
        store=core.storage.sign_in_flows,
        purposes={ACCOUNT: AccountSignInPurpose(), **for_applications},
        terms=sign_in.terms,
        with_terms=for_applications,
        failures=core.failed_sign_ins,
        clock=core.clock,
    )
