# ruff: noqa: INP001, T201
import sys

from gatehouse_login import sign_in

base_url, app_id, factor = sys.argv[1:4]
result = sign_in(base_url, app_id=int(app_id), factor=factor, on_state=lambda state: print("...", state))
if result.outcome != "ok":
    sys.exit(f"Not signed in: {result.outcome} {result.public_text or result.error}")
print("Hello,", result.nick)
