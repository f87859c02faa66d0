"""The part of the composition root that is about files which describe an installation."""

from gatehouse.app.services.core import Services
from gatehouse.provision.plan import Provisioning
from gatehouse.provision.sections.service_accounts import ServiceAccountTokens
from gatehouse.storage.provision import ProvisionStorage


def build_provisioning(services: Services) -> Provisioning:
    return Provisioning(
        store=ProvisionStorage(services.storage.runner),
        masters=services.masters,
        passwords=services.passwords,
        rules=services.password_rules,
        recorder=services.recorder,
        clock=services.clock,
        reachable=services.settings.outbound.allow,
        issue_token=ServiceAccountTokens(
            signer=services.signer,
            issuer=services.settings.server.base_url,
            days=services.settings.tokens.service_jwt_days,
        ).issue,
    )
