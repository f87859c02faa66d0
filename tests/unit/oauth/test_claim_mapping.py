"""Claims about a person's roles and permissions in applications."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from gatehouse.oauth.mapped_claims import MAX_CLAIM_ENTRIES, ApplicationHoldings, MappedClaims
from gatehouse.oauth.model import ClaimContent, ClaimSource, Client
from tests.support.builders import a_client, a_user


@dataclass(frozen=True)
class ClaimsOfApplication7:
    roles: tuple[str, ...] = ("editor",)
    groups: tuple[str, ...] = ("Testers",)
    rules: tuple[str, ...] = ("doc.can_edit",)


class Holdings:
    def __init__(self, claims: ClaimsOfApplication7) -> None:
        self._held = claims
        self.asked: list[list[int]] = []

    async def holdings_by_application(
        self,
        user_id: str,  # noqa: ARG002 - as the store takes it
        application_ids: Collection[int],
    ) -> Mapping[int, ApplicationHoldings]:
        self.asked.append(list(application_ids))
        return {7: self._held}


def client_with_claims(**claims: tuple[int, ClaimContent]) -> Client:
    sources = {name: ClaimSource(application_id=number, told=content) for name, (number, content) in claims.items()}
    return replace(a_client(), claims=sources)


async def test_each_claim_tells_what_it_was_made_for_and_one_question_asks_for_all() -> None:
    holdings = Holdings(ClaimsOfApplication7())
    client = client_with_claims(
        r=(7, ClaimContent.ROLES), g=(7, ClaimContent.GROUPS), p=(7, ClaimContent.RULES), gone=(8, ClaimContent.ROLES)
    )
    assert await MappedClaims(holdings).claims(a_user(), client) == {
        "r": ("editor",),
        "g": ("Testers",),
        "p": ("doc.can_edit",),
        "gone": (),
    }
    assert holdings.asked == [[7, 8]]


async def test_a_client_without_mapped_claims_asks_nothing() -> None:
    holdings = Holdings(ClaimsOfApplication7())
    assert await MappedClaims(holdings).claims(a_user(), a_client()) == {}
    assert holdings.asked == []


async def test_a_list_too_long_for_a_token_is_left_out_rather_than_cut() -> None:
    long = tuple(map(str, range(MAX_CLAIM_ENTRIES)))
    client = client_with_claims(r=(7, ClaimContent.ROLES), g=(7, ClaimContent.GROUPS))
    assert (await MappedClaims(Holdings(ClaimsOfApplication7(roles=long))).claims(a_user(), client))["r"] == long
    assert await MappedClaims(Holdings(ClaimsOfApplication7(roles=(*long, "x")))).claims(a_user(), client) == {
        "g": ("Testers",)
    }
