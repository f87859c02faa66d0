"""The part of the composition root that is about files which describe an installation."""

from gatehouse.app.house import Services
from gatehouse.provision.provisioning import Provisioning
from gatehouse.provision.service_account_tokens import ServiceAccountTokens
from gatehouse.storage.provision import ProvisionStorage


def build_provisioning(house: Services) -> Provisioning:
    return Provisioning(
        store=ProvisionStorage(house.storage.runner),
        masters=house.masters,
        passwords=house.passwords,
        rules=house.password_rules,
        recorder=house.recorder,
        clock=house.clock,
        reachable=house.settings.outbound.allow,
        issue_token=ServiceAccountTokens(
            signer=house.signer,
            issuer=house.settings.server.base_url,
            days=house.settings.tokens.service_jwt_days,
        ).issue,
    )
