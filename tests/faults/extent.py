"""How much of each fault is tried: `make test` a little of it, `make faults` all."""

import os
from typing import Final

# Said to the tests, not to the service.
ROUNDS: Final = int(os.environ.get("FAULT_ROUNDS", "2"))  # noqa: TID251
WHOLE: Final = "FAULT_ROUNDS" in os.environ  # noqa: TID251
