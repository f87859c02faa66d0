"""django-oauth-toolkit, unmodified, with one client, one person who is signed in without a form, and SQLite.

    python server.py PORT DATABASE CLIENT_ID CLIENT_SECRET REDIRECT_URI

It runs under gunicorn with threads and keep-alive connections, with the settings of its documentation except for the
client secret: hashed like a password, which is the default, it would dominate the result. Django is configured before
modules with models are imported.
"""

import secrets
import sys

import django
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings
from gunicorn.app.base import BaseApplication

EMAIL, NICK = "anna@studio.example", "Anna"
THREADS = 4
FOREVER = 10**9  # requests on one connection, seconds between two


def configure(database: str) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    settings.configure(
        ALLOWED_HOSTS=["localhost"],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": database,
                "CONN_MAX_AGE": None,
                "OPTIONS": {
                    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
                    "transaction_mode": "IMMEDIATE",
                    "timeout": 20,
                },
            }
        },
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "oauth2_provider",
        ],
        LOGIN_URL="/sign-in",
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": key.private_bytes(
                Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
            ).decode(),
            "OAUTH2_VALIDATOR_CLASS": "claims.Validator",
            "PKCE_REQUIRED": False,
            "SCOPES": dict.fromkeys(("openid", "email", "profile", "offline_access"), "…"),
        },
        ROOT_URLCONF="urls",
        SECRET_KEY=secrets.token_hex(),
        USE_TZ=True,
    )
    django.setup()


def fill(client_id: str, client_secret: str, redirect_uri: str) -> None:
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from oauth2_provider.models import get_application_model

    call_command("migrate", verbosity=0)
    person = get_user_model().objects.create(username=EMAIL, email=EMAIL, first_name=NICK)
    get_application_model().objects.create(
        algorithm="RS256",
        authorization_grant_type="authorization-code",
        client_id=client_id,
        client_secret=client_secret,
        client_type="confidential",
        hash_client_secret=False,
        redirect_uris=redirect_uri,
        skip_authorization=True,
        user=person,
    )


class Server(BaseApplication):
    def __init__(self, port: str) -> None:
        self._port = port
        super().__init__()

    def load_config(self) -> None:
        for name, value in {
            "bind": f"127.0.0.1:{self._port}",
            "worker_class": "gthread",
            "threads": THREADS,
            "keepalive": FOREVER,
            "timeout": 0,  # a worker is stopped while another server is measured, and not replaced for that
            "loglevel": "error",
            "when_ready": lambda _: print(f"ready http://localhost:{self._port}", flush=True),
        }.items():
            self.cfg.set(name, value)

    def load(self) -> object:
        from django.core.wsgi import get_wsgi_application

        return get_wsgi_application()


if __name__ == "__main__":
    port, database, *client = sys.argv[1:]
    configure(database)
    fill(*client)
    Server(port).run()
