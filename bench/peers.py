"""The same permissions in pycasbin and cedarpy, in the same run (goal P12).

Compared is what both support: roles with rules, without parameters, expiry and groups by condition.
"""

import json
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from tempfile import NamedTemporaryFile
from typing import Any, Final

from bench.figures import Figure, cost
from bench.permissions import APPLICATION, CONDITIONAL, ROLES, RULES

USER: Final = "1001"
MODEL: Final = """
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act
"""
POLICY: Final = """
permit(
    principal in Role::"role{role}", action == Action::"area{role}.rule{rule}",
    resource == Application::"{application}"
){when};
"""
BY_DOMAIN: Final = ' when { principal.domain == "studio.example" }'


def peers() -> list[Figure]:
    missing = [name for name in ("casbin", "cedarpy") if find_spec(name) is None]
    if missing:
        print(f"Not compared with {' and '.join(missing)}: `make bench` installs them.")
    return [
        *(pycasbin() if "casbin" not in missing else ()),
        *(cedar() if "cedarpy" not in missing else ()),
    ]


def speed_ratios(figures: Iterable[Figure]) -> Iterator[Figure]:
    """Our cached list and our checks compared with theirs (goal P12)."""
    known = {one.name: one.value for one in figures}
    check = known["check of 100 rules"] / 100
    for theirs, ours, name, least in (
        ("pycasbin: the same list", known["the same list again"], "permission list, cached: times pycasbin", 1_000),
        ("pycasbin: one check", check, "permission check: times pycasbin", 100),
        ("pycasbin, FastEnforcer: one check", check, "permission check: times pycasbin's FastEnforcer", None),
        ("cedarpy: one check", check, "permission check: times cedarpy", None),
    ):
        if theirs in known:
            yield Figure(name=name, value=known[theirs] / ours, unit="x", least=least)


def pycasbin() -> list[Figure]:
    import casbin  # noqa: PLC0415 - installed only for `make bench`

    with NamedTemporaryFile("w", suffix=".conf") as model:
        model.write(MODEL)
        model.flush()
        plain = fill_enforcer(casbin.Enforcer(model.name))
        fast = fill_enforcer(casbin.FastEnforcer(model.name, cache_key_order=[2, 1]))
    ask = (USER, f"area{ROLES - 1}.rule{RULES - 1}", "do")
    assert plain.enforce(*ask)  # noqa: S101 - a wrong answer would be no comparison
    assert fast.enforce(*ask)  # noqa: S101
    return [
        cost("pycasbin: the same list", lambda: plain.get_implicit_permissions_for_user(USER)),
        cost("pycasbin: one check", lambda: plain.enforce(*ask)),
        cost("pycasbin, FastEnforcer: one check", lambda: fast.enforce(*ask)),
    ]


def fill_enforcer(enforcer: Any) -> Any:  # noqa: ANN401 - casbin has no types
    for role in range(ROLES):
        enforcer.add_role_for_user(USER, f"role{role}")
        for rule in range(RULES):
            enforcer.add_policy(f"role{role}", f"area{role}.rule{rule}", "do")
    return enforcer


def cedar() -> list[Figure]:
    import cedarpy  # noqa: PLC0415

    policies = "".join(
        POLICY.format(role=role, rule=rule, application=APPLICATION, when=BY_DOMAIN if role < CONDITIONAL else "")
        for role in range(ROLES)
        for rule in range(RULES)
    )
    user = {"type": "User", "id": USER}
    entities = [
        {
            "uid": user,
            "attrs": {"domain": "studio.example"},
            "parents": [{"type": "Role", "id": f"role{n}"} for n in range(ROLES)],
        },
        *({"uid": {"type": "Role", "id": f"role{n}"}, "attrs": {}, "parents": []} for n in range(ROLES)),
    ]
    request = {
        "principal": f'User::"{USER}"',
        "action": f'Action::"area{ROLES - 1}.rule{RULES - 1}"',
        "resource": f'Application::"{APPLICATION}"',
        "context": {},
    }
    known = cedarpy.PolicySet.from_str(policies)  # parsed once, as our roles are compiled once
    people = cedarpy.Entities.from_json_str(json.dumps(entities))
    assert cedarpy.is_authorized(request, known, people).allowed  # noqa: S101
    return [cost("cedarpy: one check", lambda: cedarpy.is_authorized(request, known, people))]
