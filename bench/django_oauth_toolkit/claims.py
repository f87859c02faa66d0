"""The claims of a person: as in Gatehouse, email and nickname are in the id_token and at userinfo."""

from typing import ClassVar

from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.common import Request


class Validator(OAuth2Validator):
    oidc_claim_scope: ClassVar = {**OAuth2Validator.oidc_claim_scope, "nickname": "profile"}

    def get_additional_claims(self, request: Request) -> dict[str, object]:
        return {"email": request.user.email, "email_verified": True, "nickname": request.user.first_name}
