"""How a program signs people in through one client: configuration and code, with this client's own values.

The OpenID Connect programs are those of tests/interop, cut down to what one has to write.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Final
from urllib.parse import quote

import msgspec

from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.permissions.model.application import Application

OMITTED_SCOPES: Final = frozenset({"trust"})

DISCOVERY: Final = Template("$discovery")
ENVIRONMENT: Final = Template("""\
OIDC_ISSUER=$issuer
OIDC_CLIENT_ID=$client_id
${secret_line}OIDC_REDIRECT_URI=$redirect_shell
OIDC_SCOPE="$scope"
""")
BY_HAND: Final = Template("""\
REDIRECT=$redirect_shell
VERIFIER=$$(openssl rand -hex 32)
CHALLENGE=$$(printf %s "$$VERIFIER" | openssl dgst -sha256 -binary | openssl base64 -A | tr '+/' '-_' | tr -d '=')
echo "$issuer/proxy/oauth/authorize?response_type=code&client_id=$client_id\
&redirect_uri=$encoded_redirect&scope=$encoded_scope&state=$$(openssl rand -hex 16)\
&code_challenge=$$CHALLENGE&code_challenge_method=S256"

# Open that address. With the code that comes back:
curl -s '$issuer/proxy/oauth/token' $proof -d grant_type=authorization_code \\
  -d "code=$$CODE" --data-urlencode "redirect_uri=$$REDIRECT" -d "code_verifier=$$VERIFIER"
""")
NATIVE: Final = Template("""\
REDIRECT=$redirect_shell
VERIFIER=$$(openssl rand -hex 32)
CHALLENGE=$$(printf %s "$$VERIFIER" | openssl dgst -sha256 -binary | openssl base64 -A | tr '+/' '-_' | tr -d '=')
echo "$issuer/proxy/oauth/authorize?response_type=code&response_mode=query&client_id=$client_id\
&redirect_uri=$encoded_redirect&scope=$encoded_scope&state=$$(openssl rand -hex 16)&nonce=$$(openssl rand -hex 16)\
&code_challenge=$$CHALLENGE&code_challenge_method=S256"

# Open that address. With the code that comes back:
PROOF=$$(printf %s "$$REDIRECT$$OIDC_CLIENT_SECRET" | sha1sum | cut -d' ' -f1)
curl -s '$issuer/proxy/oauth/token' -H "Authorization: Bearer $$PROOF" \\
  -d grant_type=authorization_code -d "code=$$CODE" --data-urlencode "redirect_uri=$$REDIRECT" \\
  -d "code_verifier=$$VERIFIER"
""")
OPENID_CLIENT: Final = Template("""\
import * as oidc from "openid-client";

const config = await oidc.discovery(new URL($issuer_text), $client_id_text, $js_proof);

export async function login(session) {
  session.checks = {
    pkceCodeVerifier: oidc.randomPKCECodeVerifier(),
    expectedNonce: oidc.randomNonce(),
    expectedState: oidc.randomState(),
  };
  return oidc.buildAuthorizationUrl(config, {
    redirect_uri: $redirect_text,
    scope: $scope_text,
    nonce: session.checks.expectedNonce,
    state: session.checks.expectedState,
    code_challenge: await oidc.calculatePKCECodeChallenge(session.checks.pkceCodeVerifier),
    code_challenge_method: "S256",
  }); // send the browser there
}

export async function callback(session, address) {
  const tokens = await oidc.authorizationCodeGrant(config, address, session.checks);
  return tokens.claims().sub;
}
""")
AUTHLIB: Final = Template("""\
import os

from authlib.integrations.django_client import OAuth
from django.http import JsonResponse

gatehouse = OAuth().register(
    "gatehouse",
    client_id=$client_id_text,
    $py_proof,
    server_metadata_url=$discovery_text,
    client_kwargs={"scope": $scope_text, "code_challenge_method": "S256"},
)


def login(request):
    return gatehouse.authorize_redirect(request, $redirect_text)


def callback(request):
    token = gatehouse.authorize_access_token(request)
    return JsonResponse({"sub": token["userinfo"]["sub"]})
""")
MOD_AUTH_OPENIDC: Final = Template("""\
OIDCProviderMetadataURL $discovery
OIDCClientID $client_id
OIDCClientSecret "the-secret-you-kept"
OIDCRedirectURI $redirect
OIDCCryptoPassphrase "a-random-text-of-your-own"
OIDCScope "$scope"
OIDCPKCEMethod S256

<Location />
  AuthType openid-connect
  Require valid-user
</Location>
""")
OAUTH2_PROXY: Final = Template("""\
provider = "oidc"
oidc_issuer_url = $issuer_text
client_id = $client_id_text
client_secret = "the-secret-you-kept"
redirect_url = $redirect_text
scope = $scope_text
code_challenge_method = "S256"
cookie_secret = "what openssl rand -hex 16 prints"
email_domains = ["*"]
upstreams = ["http://127.0.0.1:3000/"]
""")
PERMISSIONS: Final = Template("""\
import os

from gatehouse.client import AccessKey, Gatehouse, GatehouseMiddleware, permission_required

gatehouse = Gatehouse($issuer_text, application_id=$application_id, credential=AccessKey(os.environ["GATEHOUSE_KEY"]))
# app.add_middleware(GatehouseMiddleware, gatehouse=gatehouse)
# @permission_required("user.kick") above an endpoint
""")
GAME: Final = Template("""\
from gatehouse_login import sign_in

result = sign_in($issuer_text, app_id=$application_id, factor="a random text kept on this device")
print("Hello,", result.nick if result.outcome == "ok" else result.outcome)
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """The texts are `applications.recipe_<name>` and `…_text`."""

    name: str
    text: str


def client_recipe(client: Client, application: Application, *, base_url: str) -> Sequence[Snippet]:
    values = template_values(client, application, base_url)
    return [
        Snippet(name=name, text=text.substitute(values).rstrip("\n"))
        for name, text in snippet_templates(client, application)
    ]


def snippet_templates(client: Client, application: Application) -> Iterator[tuple[str, Template]]:
    yield "discovery", DISCOVERY
    yield "environment", ENVIRONMENT
    if client.profile is ClientProfile.NATIVE:
        yield "native", NATIVE
    else:
        yield "by_hand", BY_HAND
        yield "openid_client", OPENID_CLIENT
        yield "authlib", AUTHLIB
    if client.profile is ClientProfile.OIDC and not client.public:
        yield "mod_auth_openidc", MOD_AUTH_OPENIDC
        yield "oauth2_proxy", OAUTH2_PROXY
    yield "permissions", PERMISSIONS
    if has_game_login(application):
        yield "game", GAME


def template_values(client: Client, application: Application, issuer: str) -> Mapping[str, str]:
    redirect = example_redirect(client)
    scope = " ".join(scope for scope in client.scopes if scope not in OMITTED_SCOPES)
    discovery = f"{issuer}/.well-known/openid-configuration"
    return {
        "issuer": issuer,
        "client_id": client.client_id,
        "redirect": redirect,
        "redirect_shell": shlex.quote(redirect),
        "scope": scope,
        "discovery": discovery,
        "application_id": str(application.application_id),
        "encoded_redirect": quote(redirect, safe=""),
        "encoded_scope": quote(scope, safe=""),
        "issuer_text": json_string(issuer),
        "client_id_text": json_string(client.client_id),
        "redirect_text": json_string(redirect),
        "scope_text": json_string(scope),
        "discovery_text": json_string(discovery),
        **client_auth_values(client, is_plain=issuer.startswith("http:")),
    }


def client_auth_values(client: Client, *, is_plain: bool) -> Mapping[str, str]:
    """How it proves itself: with PKCE alone when it is public. `is_plain`: without TLS, on one's own machine."""
    insecure = ", { execute: [oidc.allowInsecureRequests] }" if is_plain else ""
    if client.public:
        return {
            "secret_line": "",
            "proof": f"-d client_id={client.client_id}",
            "js_proof": f"undefined, oidc.None(){insecure}",
            "py_proof": 'token_endpoint_auth_method="none"',
        }
    return {
        "secret_line": "OIDC_CLIENT_SECRET=the-secret-you-kept\n",
        "proof": f'-u "{client.client_id}:$OIDC_CLIENT_SECRET"',
        "js_proof": f"process.env.OIDC_CLIENT_SECRET{', undefined' if is_plain else ''}{insecure}",
        "py_proof": 'client_secret=os.environ["OIDC_CLIENT_SECRET"]',
    }


def example_redirect(client: Client) -> str:
    if client.redirect_uris:
        return client.redirect_uris[0]
    return f"https://{client.redirect_hosts[0]}/callback" if client.redirect_hosts else "http://127.0.0.1/callback"


def json_string(text: str) -> str:
    """A string as JSON, which is one in Python, JavaScript and TOML as well."""
    return msgspec.json.encode(text).decode()


def has_game_login(application: Application) -> bool:
    game = application.settings.get("game")
    return not isinstance(game, Mapping) or game.get("enabled") is not False
