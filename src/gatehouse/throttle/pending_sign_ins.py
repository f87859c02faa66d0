"""The names of the limits that count pending sign-ins, one for each way to begin one."""

from typing import Final

AUTHORIZE_LIMIT_KEY: Final = "authorize"
DEVICE_LIMIT_KEY: Final = "device"
GAME_SIGN_IN_LIMIT_KEY: Final = "game"
SITE_LIMIT_KEY: Final = "site_sign_in"
