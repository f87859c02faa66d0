"""`gatehouse apply`: files that describe an installation; loaded by commands only."""

from functools import partial

from gatehouse.app.services import Services
from gatehouse.images.upload_limit import OPERATOR
from gatehouse.provision.model import ShowProgress, show_no_progress
from gatehouse.provision.plan import Provisioning
from gatehouse.provision.sections.service_accounts import ServiceAccountTokens
from gatehouse.storage.provision import ProvisionStorage


def build_provisioning(services: Services, show_progress: ShowProgress = show_no_progress) -> Provisioning:
    return Provisioning(
        store=ProvisionStorage(services.storage.runner, services.storage.ban_copies),
        masters=services.core.masters,
        passwords=services.accounts.passwords,
        rules=services.accounts.password_rules,
        recorder=services.core.recorder,
        clock=services.clock,
        reachable=services.settings.outbound.allow,
        reserved=services.commands.reserved_resources,
        settings=services.core.live_settings,
        load_image=partial(services.images.loader.load, uploader=OPERATOR),
        show_progress=show_progress,
        issue_token=ServiceAccountTokens(
            signer=services.keys.signer,
            issuer=services.base_url,
            days=lambda: services.settings.tokens.service_jwt_days,
        ).issue,
    )
