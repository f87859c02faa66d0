"""Authlib in a Django site."""

import sys
from typing import Any

import django
from authlib.integrations.django_client import OAuth, token_update
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from relying_party import CALLBACK, CLIENT_ID, CLIENT_SECRET, ISSUER, SCOPE, serve

settings.configure(
    SECRET_KEY="a secret of the cookies of this test",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
)
django.setup()
gatehouse = OAuth().register(
    "gatehouse",
    client_id=CLIENT_ID,
    client_secret=CLIENT_SECRET,
    server_metadata_url=f"{ISSUER}/.well-known/openid-configuration",
    client_kwargs={"scope": SCOPE, "code_challenge_method": "S256"},
)
given: dict[str, Any] = {}


@receiver(token_update)
def remember(token: dict[str, Any], **_: object) -> None:
    given.update(token)


def login(request: HttpRequest) -> HttpResponse:
    return gatehouse.authorize_redirect(request, CALLBACK)


def callback(request: HttpRequest) -> HttpResponse:
    given.update(gatehouse.authorize_access_token(request))
    return JsonResponse({"sub": given["userinfo"]["sub"], "id_token": given["id_token"]})


def userinfo(_: HttpRequest) -> HttpResponse:
    return JsonResponse(gatehouse.userinfo(token=given))


def refresh(_: HttpRequest) -> HttpResponse:
    """Use an expired token, which makes Authlib refresh."""
    metadata = gatehouse.load_server_metadata()
    gatehouse.get(metadata["userinfo_endpoint"], token={**given, "expires_at": 1}).raise_for_status()
    claims = gatehouse.parse_id_token(given, nonce=given["userinfo"]["nonce"])
    return JsonResponse({"sub": claims["sub"], "id_token": given["id_token"]})


def failed(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - Django's signature
    return JsonResponse({"failed": repr(sys.exc_info()[1])}, status=500)


handler500 = failed
urlpatterns = [path("login", login), path("callback", callback), path("userinfo", userinfo), path("refresh", refresh)]
serve(get_wsgi_application())
