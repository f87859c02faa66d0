"""The settings of guests."""

from typing import Annotated

from msgspec import Struct

from gatehouse.settings.info import SettingField, days, number, text
from gatehouse.settings.providers import application_id


class GuestSettings(Struct, frozen=True, kw_only=True):
    """Guests: players without an account, who sign in with a device key."""

    enabled: Annotated[
        bool,
        SettingField("Let games sign in guests. They have no email: a guest is lost with the device.", stored=True),
    ] = False
    applications: Annotated[
        tuple[str, ...],
        text("IDs of the applications that guests may sign in to.", application_id, without="all", stored=True),
    ] = ()
    created_per_hour: Annotated[
        int,
        number("Maximum number of guests that one source creates in an hour.", 1, 1_000_000, "guests", stored=True),
    ] = 100
    total_per_hour: Annotated[
        int,
        number(
            "Maximum number of guests that all sources create in an hour; from half of it on they solve a puzzle.",
            2,
            100_000_000,
            "guests",
            stored=True,
        ),
    ] = 10_000
    idle_days: Annotated[
        int,
        days("Days without a sign-in after which a guest is erased; 0 keeps them.", low=0, high=3_650, stored=True),
    ] = 180
