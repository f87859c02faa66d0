"""Examples of the OpenAPI document: bodies by title, for each endpoint of the permissions interface that has some."""

from collections.abc import Mapping
from typing import Final

PERSON: Final = {"user_id": "1000000002"}
LIST: Final = {"action": "list", "data": {"query": "", "limit": 50}}

PERMISSION_EXAMPLES: Final[Mapping[str, Mapping[str, Mapping[str, object]]]] = {
    "user": {
        "get": {"action": "get", "data": PERSON},
        "create": {
            "action": "create",
            "data": {"login": "bob@studio.example", "nick": "Bob", "tags": ["staff"]},
        },
        "save": {"action": "save", "data": {**PERSON, "nick": "Rob", "version": 1}},
        "block": {"action": "block", "data": PERSON},
        "unblock": {"action": "unblock", "data": PERSON},
        "invite": {"action": "invite", "data": {"login": "bob@studio.example"}},
        "end_sessions": {"action": "end_sessions", "data": PERSON},
        "reset_factors": {"action": "reset_factors", "data": {**PERSON, "reason": "lost phone"}},
        "export": {"action": "export", "data": PERSON},
        "erase": {"action": "erase", "data": PERSON},
        "search": {"action": "search", "data": {"query": "bob", "filters": {"blocked": False}, "limit": 50}},
    },
    "user_import": {
        "plan": {
            "action": "plan",
            "data": {"lines": ["login,nick,email_verified", "anna@studio.example,Anna,true"]},
        },
        "import": {
            "action": "import",
            "data": {"format": "jsonl", "lines": ['{"login": "cleo@studio.example", "nick": "Cleo"}']},
        },
    },
    "application": {
        "declare an API": {
            "action": "save",
            "data": {
                "application_id": 50001,
                "api": {
                    "resource": "https://api.sky.example/matches",
                    "scopes": {"match.report": {"title": "Report match results", "description": "For servers"}},
                    "access": "listed",
                    "clients": ["match-server"],
                    "token_seconds": 300,
                },
            },
        },
        "protect sites": {
            "action": "save",
            "data": {"application_id": 50001, "protected_sites": {"https://wiki.example": "page.read"}},
        },
        "list": {**LIST, "data": {"query": "sky", "filters": {"project_id": "sky_raiders"}, "limit": 50}},
    },
    "project": {"list": LIST, "erase": {"action": "erase", "data": {"id": "sky_raiders"}}},
    "group": {"list": {**LIST, "data": {"filters": {"project_id": "sky_raiders"}, "limit": 50}}},
    "client": {
        "create": {
            "action": "create",
            "application_id": 50001,
            "data": {
                "client_id": "hub",
                "name": "Raiders Hub",
                "profile": "oidc",
                "redirect_uris": ["https://hub.example/callback"],
                "scopes": ["openid", "email", "profile", "roles"],
                "client_uri": "https://hub.example/",
                "policy_uri": "https://hub.example/privacy",
                "tos_uri": "https://hub.example/terms",
            },
        },
        "list": LIST,
    },
    "service_account": {"list": {**LIST, "data": {"filters": {"project_id": "sky_raiders"}, "limit": 50}}},
    "activity": {
        "list": {**LIST, "data": {"filters": {"event": "role.saved", "since": "2026-05-01T00:00:00Z"}, "limit": 50}}
    },
    "service_token": {
        "create": {"action": "create", "application_id": 50001, "data": {"comment": "nightly", "days": 30}},
        "delete": {"action": "delete", "application_id": 50001, "data": {"jti": "018f3c1e9a7b4d0c8e2f6a5b3c1d9e0f"}},
    },
    "email_secret": {
        "create": {"action": "create", "application_id": 50001},
        "delete": {"action": "delete", "application_id": 50001, "data": {"ref": "3f9a1c2b"}},
    },
    "game_session": {"close": {"action": "close", "data": {"ref": "5b1c9d0e-7a41", "reason": "stuck"}}},
    "settings": {
        "get": {"action": "get", "data": {"part": "policies"}},
        "save": {"action": "save", "data": {"settings": {"branding.name": "Lanternfish"}}},
        "rotate_key": {
            "action": "rotate_key",
            "data": {"purpose": "tokens", "alg": "ES256", "manner": "planned"},
        },
        "test_email": {"action": "test_email"},
    },
}
