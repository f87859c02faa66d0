"""idpyoidc, which certifies and runs federations: a handler that is told the issuer only."""

import os
import tempfile
from urllib.parse import parse_qsl

from idpyoidc.client.rp_handler import RPHandler
from relying_party import CALLBACK, CLIENT_ID, CLIENT_SECRET, ISSUER, SCOPE, Redirect, serve_handlers

os.chdir(tempfile.mkdtemp())  # it writes keys of its own there
CONFIG = {
    "issuer": ISSUER,
    "client_id": CLIENT_ID,
    "client_secret": CLIENT_SECRET,
    "client_type": "oidc",
    "client_authn_methods": ["client_secret_basic"],
    "redirect_uris": [CALLBACK],
    "scopes_supported": SCOPE.split(),
    "response_types_supported": ["code"],
    "id_token_signed_response_alg": "RS256",
    "add_ons": {
        "pkce": {
            "function": "idpyoidc.client.oauth2.add_on.pkce.add_support",
            "kwargs": {"code_challenge_length": 64, "code_challenge_method": "S256"},
        }
    },
    "services": {
        "discovery": {"class": "idpyoidc.client.oidc.provider_info_discovery.ProviderInfoDiscovery"},
        "authorization": {"class": "idpyoidc.client.oidc.authorization.Authorization"},
        "access_token": {"class": "idpyoidc.client.oidc.access_token.AccessToken"},
        "refresh_access_token": {"class": "idpyoidc.client.oidc.refresh_access_token.RefreshAccessToken"},
        "userinfo": {"class": "idpyoidc.client.oidc.userinfo.UserInfo"},
    },
}
handler = RPHandler(base_url=CALLBACK.rpartition("/")[0], client_configs={ISSUER: CONFIG})
session: dict[str, str] = {}


def login(_: str) -> Redirect:
    begun = handler.begin(issuer_id=ISSUER, req_args={"scope": SCOPE.split()})
    return Redirect(begun if isinstance(begun, str) else begun["url"])


def callback(address: str) -> dict[str, str]:
    done = handler.finalize(ISSUER, dict(parse_qsl(address.partition("?")[2])))
    if "state" not in done:
        raise RuntimeError(str(done))
    session.update(state=done["state"], token=done["token"])
    return {"sub": done["userinfo"]["sub"], "id_token": id_token()}


def id_token() -> str:
    client = handler.get_client_from_session_key(session["state"])
    return client.get_context().cstate.get(session["state"])["id_token"]


def userinfo(_: str) -> dict[str, str]:
    return handler.get_user_info(session["state"], access_token=session["token"]).to_dict()


def refresh(_: str) -> dict[str, str]:
    answer = handler.refresh_access_token(session["state"])
    session["token"] = answer["access_token"]
    return {"sub": answer["__verified_id_token"]["sub"], "id_token": answer["id_token"]}


serve_handlers({"/login": login, "/callback": callback, "/userinfo": userinfo, "/refresh": refresh})
