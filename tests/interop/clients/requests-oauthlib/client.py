"""requests-oauthlib implements only OAuth; its users verify the id_token with PyJWT, as here."""

import jwt
import requests
from relying_party import CALLBACK, CLIENT_ID, CLIENT_SECRET, ISSUER, SCOPE, Redirect, serve_handlers
from requests_oauthlib import OAuth2Session

metadata = requests.get(f"{ISSUER}/.well-known/openid-configuration", timeout=10).json()
keys = jwt.PyJWKClient(metadata["jwks_uri"])
session = OAuth2Session(CLIENT_ID, redirect_uri=CALLBACK, scope=SCOPE.split(), pkce="S256")


def login(_: str) -> Redirect:
    address, _state = session.authorization_url(metadata["authorization_endpoint"])
    return Redirect(address)


def callback(address: str) -> dict[str, str]:
    token = session.fetch_token(
        metadata["token_endpoint"],
        authorization_response=address,
        client_secret=CLIENT_SECRET,
        include_client_id=True,
    )
    return verified(token["id_token"])


def verified(id_token: str) -> dict[str, str]:
    key = keys.get_signing_key_from_jwt(id_token)
    algorithms = metadata["id_token_signing_alg_values_supported"]
    claims = jwt.decode(id_token, key, algorithms=algorithms, audience=CLIENT_ID, issuer=metadata["issuer"])
    return {"sub": claims["sub"], "id_token": id_token}


def userinfo(_: str) -> dict[str, str]:
    response = session.get(metadata["userinfo_endpoint"])
    response.raise_for_status()
    return response.json()


def refresh(_: str) -> dict[str, str]:
    token = session.refresh_token(metadata["token_endpoint"], auth=(CLIENT_ID, CLIENT_SECRET))
    return verified(token["id_token"])


serve_handlers({"/login": login, "/callback": callback, "/userinfo": userinfo, "/refresh": refresh})
