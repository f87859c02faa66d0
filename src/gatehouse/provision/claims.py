"""What only one application can have (an API resource, protected sites): a file moves it in any order. Pure."""

from collections.abc import Iterable

from msgspec.structs import replace

from gatehouse.permissions.model.application import Application
from gatehouse.provision.model import AddApplication, ChangeApplication, Write

RESOURCE = "api.resource"
SITES = "protected_sites"
Claim = tuple[str, str]  # the field of an entry, and the resource or origin


def claims_of(application: Application) -> frozenset[Claim]:
    if application.removed:
        return frozenset()
    sites = frozenset((SITES, origin) for origin in application.protected_sites)
    return sites if application.api_resource is None else sites | {(RESOURCE, application.api_resource)}


def release_first(writes: Iterable[Write]) -> list[Write]:
    """Return the writes with what moves to another application taken from the old one before everything else."""
    writes = list(writes)
    moved = frozenset(claim for write in writes for claim in gained_claims(write)) & frozenset(
        claim for write in writes for claim in lost_claims(write)
    )
    releases: list[Write] = []
    others: list[Write] = []
    for write in writes:
        if isinstance(write, ChangeApplication) and lost_claims(write) & moved:
            released = without_claims(write.before, lost_claims(write))
            releases.append(ChangeApplication(write.before, released))
            others.append(ChangeApplication(released, write.after))
        else:
            others.append(write)
    return [*releases, *others]


def gained_claims(write: Write) -> frozenset[Claim]:
    match write:
        case AddApplication(model):
            return claims_of(model.application)
        case ChangeApplication(before, after):
            return claims_of(after) - claims_of(before)
    return frozenset()


def lost_claims(write: Write) -> frozenset[Claim]:
    return claims_of(write.before) - claims_of(write.after) if isinstance(write, ChangeApplication) else frozenset()


def without_claims(application: Application, claims: frozenset[Claim]) -> Application:
    sites = {origin: rule for origin, rule in application.protected_sites.items() if (SITES, origin) not in claims}
    keeps_api = (RESOURCE, application.api_resource) not in claims
    return replace(application, protected_sites=sites, api=application.api if keeps_api else None)
