"""Risky settings are reported, and safe ones are not."""

from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.admin.risks import Posture, find_risks
from gatehouse.app.services.installation import posture
from gatehouse.kernel.addresses import parse_network
from gatehouse.settings.model import ServerSettings, Settings

SOUND = Posture(
    dev=False,
    base_url="https://id.studio.example",
    is_local=False,
    listens_locally=True,
    trusted_proxies=(parse_network("10.0.0.0/24"),),
    operations_locally=True,
    registration=False,
    allowed_domains=(),
    mail_host="mail.studio.example",
    mail_encrypted=True,
    rates_enabled=True,
    outbound=(),
    session_info=(),
    jwt_without_factor=False,
    sites_require_application=True,
    rotate_days=90,
    publish_lead_seconds=3_600,
    user_jwt_days=90,
    retention_days=365,
    log_level="info",
)
EVERYWHERE = (parse_network("0.0.0.0/0"),)
LOCAL = {"base_url": "http://localhost:8080", "is_local": True}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, []),
        ({"dev": True}, ["dev"]),
        ({"base_url": "http://id.studio.example"}, ["plain_http"]),
        ({**LOCAL, "trusted_proxies": ()}, []),
        ({**LOCAL, "trusted_proxies": (), "listens_locally": False}, ["no_proxy"]),
        ({"listens_locally": False}, []),
        ({"trusted_proxies": ()}, ["no_proxy"]),
        ({"trusted_proxies": EVERYWHERE}, ["wide_proxies"]),
        ({"operations_locally": False}, ["open_operations"]),
        ({"rates_enabled": False}, ["no_rates"]),
        ({"outbound": EVERYWHERE}, ["wide_outbound"]),
        ({"outbound": (parse_network("10.0.0.0/8"),)}, []),
        ({"session_info": EVERYWHERE}, ["wide_info"]),
        ({"jwt_without_factor": True}, ["without_factor"]),
        ({"sites_require_application": False}, ["sites_without_application"]),
        ({"registration": True}, ["registration"]),
        ({"registration": True, "allowed_domains": ("studio.example",)}, []),
        ({"mail_host": ""}, ["no_mail"]),
        ({"mail_encrypted": False}, ["mail_in_clear"]),
        ({"rotate_days": 6}, ["short_keys"]),
        ({"publish_lead_seconds": 60}, ["short_lead"]),
        ({"user_jwt_days": 365}, ["long_jwt"]),
        ({"retention_days": 30}, ["short_audit"]),
        ({"retention_days": 0}, []),
        ({"log_level": "debug", "dev": True, "mail_host": ""}, ["dev", "no_mail", "debug"]),
    ],
)
def test_a_risk_is_named_and_nothing_else(change: dict[str, Any], named: list[str]) -> None:
    assert [risk.name for risk in find_risks(replace(SOUND, **change))] == named


def test_defaults_lack_only_a_mail_server_and_the_address_of_the_proxy() -> None:
    settings = Settings(server=ServerSettings(base_url="https://id.studio.example"))
    assert [risk.name for risk in find_risks(posture(settings, dev=False))] == ["no_proxy", "no_mail"]
