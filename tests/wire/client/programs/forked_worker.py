"""Ask about the user of a JWT before and after a fork: `forked_worker.py JWT`."""

import os
import sys

from gatehouse.client import AccessKey, SyncGatehouse

gatehouse = SyncGatehouse(
    os.environ["GATEHOUSE_URL"],  # noqa: TID251 - of the application
    application_id=int(os.environ["GATEHOUSE_APPLICATION"]),  # noqa: TID251
    credential=AccessKey(os.environ["GATEHOUSE_KEY"]),  # noqa: TID251
)
user = gatehouse.user(sys.argv[1])
print("parent", gatehouse.allows(user, "user.kick"), flush=True)  # noqa: T201
child = os.fork()
if child == 0:
    print("child", gatehouse.allows(user, "user.kick"), flush=True)  # noqa: T201
    gatehouse.close()
    os._exit(0)
os.waitpid(child, 0)
print("parent", gatehouse.allows(user, "user.kick"), flush=True)  # noqa: T201
