"""Groups of commands about one kind of record: what each is called, and which file has it."""

from typing import Final

from gatehouse.cli.groups import CommandGroup

user: Final = CommandGroup(
    "user",
    help="Create, list, show, block and erase accounts, end sessions and issue tokens for scripts.",
    places={
        "ban": "user_bans:ban",
        "bans": "user_bans:bans",
        "block": "user:block",
        "create": "user:create",
        "erase": "user:erase",
        "export": "user_export:export_user",
        "gdpr": "user_export:gdpr",
        "invitations": "user_invite:invitations",
        "invite": "user_invite:invite",
        "lift-ban": "user_bans:lift_ban",
        "list": "lists:LIST_USERS",
        "revoke-all": "user:revoke_all",
        "role": "user_roles:role",
        "search": "lists:LIST_USERS",
        "show": "lists:show_user",
        "token": "user:token",
        "unblock": "user:unblock",
        "withdraw-invitation": "user_invite:withdraw_invitation",
    },
)
application: Final = CommandGroup(
    "application",
    help="Manage applications and their secrets, and show earlier schema versions.",
    places={
        "change": "applications:change",
        "create": "applications:create",
        "email-secret": "applications:email_secret",
        "list": "lists:LIST_APPLICATIONS",
        "remove": "applications:remove",
        "search": "lists:LIST_APPLICATIONS",
        "show": "lists:SHOW_APPLICATION",
        "versions": "applications:versions",
    },
)
project: Final = CommandGroup(
    "project",
    help="Manage projects, and delete removed ones permanently.",
    places={
        "change": "project:change",
        "create": "project:create",
        "erase": "project:erase",
        "list": "lists:LIST_PROJECTS",
        "remove": "project:remove",
        "search": "lists:LIST_PROJECTS",
        "show": "lists:SHOW_PROJECT",
    },
)
group: Final = CommandGroup(
    "group",
    help="Manage groups of projects.",
    places={
        "change": "project_groups:change",
        "create": "project_groups:create",
        "list": "lists:LIST_GROUPS",
        "remove": "project_groups:remove",
        "search": "lists:LIST_GROUPS",
        "show": "lists:SHOW_GROUP",
    },
)
role: Final = CommandGroup(
    "role",
    help="Manage roles of applications.",
    places={
        "change": "roles:change",
        "create": "roles:create",
        "list": "lists:LIST_ROLES",
        "remove": "roles:remove",
        "search": "lists:LIST_ROLES",
        "show": "lists:SHOW_ROLE",
    },
)
