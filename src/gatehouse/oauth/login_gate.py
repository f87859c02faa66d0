"""Whether the application behind a client still lets a person in (R3)."""

from gatehouse.accounts.model import User
from gatehouse.oauth.model import Client
from gatehouse.oauth.ports import ApplicationLoginRules


async def may_log_in_to_client(rules: ApplicationLoginRules, user: User, client: Client) -> bool:
    return client.application_id is None or await rules.may_log_in(user, (client.application_id,))
