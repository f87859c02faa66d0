"""The library that applications import: verifies user JWTs and reads what their owners may do.

Asks the service over HTTP and caches responses no longer than it allows. Imports no other package, so that an
application that uses it carries no part of the server; never decides by itself what a person may do.
"""

from gatehouse.client.authzen import Authzen, Entity, Evaluation
from gatehouse.client.clock import Clock
from gatehouse.client.credentials import AccessKey, Credential, PermissionQuery, ServiceJwt, ServiceKey, sign_request
from gatehouse.client.errors import ClientError, Denied, MissingScope, Unauthenticated, Unavailable
from gatehouse.client.gatehouse import Gatehouse
from gatehouse.client.management import CallRefused, Management, Person
from gatehouse.client.middleware import GatehouseMiddleware
from gatehouse.client.permissions import Permissions, Resource
from gatehouse.client.protected_resource import ProtectedResource, ProtectedResourceMiddleware, ResourceToken
from gatehouse.client.requirement import Requirement, permission_required, require, scopes_required
from gatehouse.client.sync import SyncAuthzen, SyncGatehouse, SyncManagement, SyncProtectedResource, SyncTokenSource
from gatehouse.client.token_source import TokenSource
from gatehouse.client.transport import Reply, Request, StandardTransport, Transport
from gatehouse.client.verification import User, peer_address
from gatehouse.client.wsgi import GatehouseWsgiMiddleware, ProtectedResourceWsgiMiddleware

__all__ = [
    "AccessKey",
    "Authzen",
    "CallRefused",
    "ClientError",
    "Clock",
    "Credential",
    "Denied",
    "Entity",
    "Evaluation",
    "Gatehouse",
    "GatehouseMiddleware",
    "GatehouseWsgiMiddleware",
    "Management",
    "MissingScope",
    "PermissionQuery",
    "Permissions",
    "Person",
    "ProtectedResource",
    "ProtectedResourceMiddleware",
    "ProtectedResourceWsgiMiddleware",
    "Reply",
    "Request",
    "Requirement",
    "Resource",
    "ResourceToken",
    "ServiceJwt",
    "ServiceKey",
    "StandardTransport",
    "SyncAuthzen",
    "SyncGatehouse",
    "SyncManagement",
    "SyncProtectedResource",
    "SyncTokenSource",
    "TokenSource",
    "Transport",
    "Unauthenticated",
    "Unavailable",
    "User",
    "peer_address",
    "permission_required",
    "require",
    "scopes_required",
    "sign_request",
]
