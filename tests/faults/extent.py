"""How much of each fault is tried: `make test` a little of it, `make faults` all."""

import os
from typing import Final

WHOLE: Final = "FAULT_ROUNDS" in os.environ  # noqa: TID251 - said to the tests, not to the service
