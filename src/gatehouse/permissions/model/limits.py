"""How many keys and groups there can be: errors name these limits."""

from typing import Final

MAX_ACCESS_KEYS: Final = 2  # per application; interface §8
MAX_CUSTOM_KEYS: Final = 10  # per application
MAX_GROUPS: Final = 500  # of one project: whose conditions are asked for each of its people
