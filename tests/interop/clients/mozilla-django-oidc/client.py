"""A Django site with mozilla-django-oidc, which does not use refresh tokens: it signs in again instead."""

import sys
from typing import Any

import django
import requests
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path
from relying_party import CLIENT_ID, CLIENT_SECRET, HOME, ISSUER, serve

metadata = requests.get(f"{ISSUER}/.well-known/openid-configuration", timeout=10).json()
settings.configure(
    SECRET_KEY="a secret of the cookies of this test",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "mozilla_django_oidc",
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "mozilla_django_oidc.middleware.SessionRefresh",
    ],
    AUTHENTICATION_BACKENDS=["mozilla_django_oidc.auth.OIDCAuthenticationBackend"],
    OIDC_RP_CLIENT_ID=CLIENT_ID,
    OIDC_RP_CLIENT_SECRET=CLIENT_SECRET,
    OIDC_RP_SIGN_ALGO="ES256",
    OIDC_USE_PKCE=True,
    OIDC_RP_SCOPES="openid email profile",
    OIDC_OP_AUTHORIZATION_ENDPOINT=metadata["authorization_endpoint"],
    OIDC_OP_TOKEN_ENDPOINT=metadata["token_endpoint"],
    OIDC_OP_USER_ENDPOINT=metadata["userinfo_endpoint"],
    OIDC_OP_JWKS_ENDPOINT=metadata["jwks_uri"],
    OIDC_STORE_ID_TOKEN=True,
    OIDC_STORE_ACCESS_TOKEN=True,
    LOGIN_URL="/oidc/authenticate/",
    LOGIN_REDIRECT_URL=f"{HOME}/done",
    LOGIN_REDIRECT_URL_FAILURE=f"{HOME}/failed",
)
django.setup()
call_command("migrate", verbosity=0)

from mozilla_django_oidc.auth import OIDCAuthenticationBackend  # noqa: E402 - wants a configured Django


def backend() -> Any:
    return OIDCAuthenticationBackend()


@login_required
def login(request: HttpRequest) -> HttpResponse:
    return done(request)


@login_required
def done(request: HttpRequest) -> HttpResponse:
    id_token = request.session["oidc_id_token"]
    key = backend().retrieve_matching_jwk(id_token)
    claims = backend().get_payload_data(id_token, key)
    return JsonResponse({"sub": claims["sub"], "id_token": id_token, "email": request.user.email})


@login_required
def userinfo(request: HttpRequest) -> HttpResponse:
    return JsonResponse(backend().get_userinfo(request.session["oidc_access_token"], None, None))


def refresh(request: HttpRequest) -> HttpResponse:
    """Expire its session: the middleware then sends prompt=none, without any interaction."""
    request.session["oidc_id_token_expiration"] = 0
    return HttpResponse(status=302, headers={"Location": "/done"})


def failed(_: HttpRequest) -> HttpResponse:
    return JsonResponse({"failed": repr(sys.exc_info()[1])}, status=500)


handler500 = failed
urlpatterns = [
    path("oidc/", include("mozilla_django_oidc.urls")),
    path("login", login),
    path("done", done),
    path("userinfo", userinfo),
    path("refresh", refresh),
    path("failed", failed),
]
serve(get_wsgi_application())
