# ruff: noqa: INP001, T201
import sys

from gatehouse_login import device_factor, sign_in

base_url, app_id = sys.argv[1:3]
result = sign_in(
    base_url, app_id=int(app_id), factor=device_factor("device"), on_state=lambda state: print("...", state)
)
if result.outcome != "ok":
    sys.exit(f"Not signed in: {result.outcome} {result.public_text or result.error}")
print("Hello,", result.nick)
