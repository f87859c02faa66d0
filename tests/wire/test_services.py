"""A process builds each collaborator once, so that caches and counters are not split over copies."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gatehouse.accounts.sign_in import DeviceCookies
from gatehouse.admin.names import NameStore
from gatehouse.audit.refusals import RefusalLog
from gatehouse.mail.composer import Composer
from gatehouse.oauth.client_auth import ClientSecretVerifier
from gatehouse.permissions.authentication.access_keys import AccessKeyVerifier
from gatehouse.permissions.authentication.application_keys import ApplicationKeyDirectory
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.login_rules import LoginRules
from gatehouse.throttle.limits import AttemptLimiter
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.tokens.verifier import TokenVerifier
from gatehouse.web.console.path_table import CONSOLE_PATHS
from gatehouse.web.http.browser import BrowserSessions
from gatehouse.web.http.geoip_file import GeoIpFile
from tests.support.console import ADA, ConsoleBrowsers, apply_document
from tests.support.geoip import write_geoip
from tests.support.service import running_service

COUNTED: tuple[type[Any], ...] = (
    TokenVerifier,
    AttemptLimiter,
    RateLimiter,
    Composer,
    GeoIpFile,
    ApplicationKeyDirectory,
    AccessKeyVerifier,
    Authenticator,
    LoginRules,
    ClientSecretVerifier,
    RefusalLog,
    DeviceCookies,
    BrowserSessions,
    NameStore,
)
# One table by network address, one by principal and one by host of a client's document: many addresses must not
# evict a principal's count (PA-15).
MORE = {RateLimiter: 5}


def count_constructions(monkeypatch: pytest.MonkeyPatch, counts: Counter[str], kind: type[Any]) -> None:
    build = kind.__init__

    def count_and_build(self: object, *args: object, **named: object) -> None:
        counts[kind.__name__] += 1
        build(self, *args, **named)

    monkeypatch.setattr(kind, "__init__", count_and_build)


async def test_each_collaborator_is_built_once(
    installed_sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()
    for kind in COUNTED:
        count_constructions(monkeypatch, counts, kind)
    geoip = write_geoip(tmp_path / "country.mmdb", {"127.0.0.0/8": {"country": {"iso_code": "SE"}}})
    environment = {"GATEHOUSE__ACCOUNTS__GEOIP_FILE": str(geoip)}
    async with running_service(installed_sqlite_url, tmp_path, environment=environment) as service:
        await apply_document(service)
        browsers = ConsoleBrowsers(service)
        ada = await browsers(ADA)
        for section in ("", *CONSOLE_PATHS):
            assert (await ada.get(f"/console/{section}".rstrip("/"))).status_code in {200, 404}
        assert (await ada.get("/account")).status_code == 200
        await browsers.close()
    assert counts == {kind.__name__: MORE.get(kind, 1) for kind in COUNTED}
