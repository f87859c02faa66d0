"""Serve a WSGI application of a module on a free port, checked against PEP 3333: `wsgi_server.py forum.app:app`."""

import importlib
import sys
from wsgiref.simple_server import make_server
from wsgiref.validate import validator

sys.path.insert(0, ".")
module, _, name = sys.argv[1].partition(":")
server = make_server("127.0.0.1", 0, validator(getattr(importlib.import_module(module), name)))
print("ready", server.server_port, flush=True)  # noqa: T201 - the test waits for it
server.serve_forever()
