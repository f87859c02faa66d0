// SPDX-License-Identifier: Apache-2.0
//
// Middleware for Express and for fetch-style handlers (Hono, Bun, Deno, Next.js): adds the user or the access token to a
// request and answers those that are not allowed.

import { GatehouseError, Unauthenticated } from "./errors.js";
import type { Gatehouse } from "./gatehouse.js";
import { bearerToken, type HeaderReader } from "./http.js";
import type { Place } from "./permissions.js";
import type { ProtectedResource, ResourceToken } from "./protected_resource.js";
import type { User } from "./tokens.js";

const RETRY_AFTER = "2"; // seconds

/** The parts of an Express request and response that the middleware uses. */
export interface ExpressRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  user?: unknown;
  token?: unknown;
}
export interface ExpressResponse {
  set(name: string, value: string): unknown;
  status(code: number): { json(body: unknown): unknown };
}
type ExpressMiddleware<R> = (request: R, response: ExpressResponse, next: (error?: unknown) => void) => Promise<void>;

/** Wrap a fetch-style handler: it runs for users who have the rule, or for any user. */
export function withUser(
  gatehouse: Gatehouse,
  handler: (request: Request, user: User) => Response | Promise<Response>,
  rule?: string,
  place: (request: Request) => Place = () => ({}),
): (request: Request) => Promise<Response> {
  const check = async (request: Request): Promise<User> => {
    const user = await gatehouse.authenticate(headerOf(request));
    if (rule !== undefined) await gatehouse.require(user, rule, place(request));
    return user;
  };
  return wrapHandler(check, handler);
}

/** Express middleware: sets `request.user` for users who have the rule, or for any user, and answers all others. */
export function requireUser<R extends ExpressRequest>(
  gatehouse: Gatehouse,
  rule?: string,
  place: (request: R) => Place = () => ({}),
): ExpressMiddleware<R> {
  return checkBefore(async (request) => {
    const user = await gatehouse.authenticate(expressHeaderOf(request));
    if (rule !== undefined) await gatehouse.require(user, rule, place(request));
    request.user = user;
  });
}

/** Wrap a fetch-style handler: it runs for access tokens of this API that have all of the scopes. */
export function withToken(
  resource: ProtectedResource,
  handler: (request: Request, token: ResourceToken) => Response | Promise<Response>,
  ...scopes: readonly string[]
): (request: Request) => Promise<Response> {
  const check = async (request: Request): Promise<ResourceToken> =>
    resource.verify(bearerToken(headerOf(request)), ...scopes);
  return wrapHandler(check, handler, (error) => resource.challenge(error));
}

/** Express middleware: sets `request.token` for access tokens of this API that have all of the scopes. */
export function requireToken<R extends ExpressRequest>(
  resource: ProtectedResource,
  ...scopes: readonly string[]
): ExpressMiddleware<R> {
  const check = async (request: R): Promise<void> => {
    request.token = await resource.verify(bearerToken(expressHeaderOf(request)), ...scopes);
  };
  return checkBefore(check, (error) => resource.challenge(error));
}

/** Answer a request for the metadata document, at `resource.metadataPath`; pages of other origins may read it. */
export function metadataResponse(resource: ProtectedResource): Response {
  return Response.json(resource.metadata(), { headers: { "Access-Control-Allow-Origin": "*" } });
}

/** Express handler that does the same. */
export function sendMetadata(resource: ProtectedResource): (request: unknown, response: ExpressResponse) => void {
  return (_request, response) => {
    response.set("Access-Control-Allow-Origin", "*");
    response.status(200).json(resource.metadata());
  };
}

/** Makes the value of WWW-Authenticate. */
type Challenge = (error: GatehouseError) => string;

function wrapHandler<T>(
  check: (request: Request) => Promise<T>,
  handler: (request: Request, checked: T) => Response | Promise<Response>,
  challenge?: Challenge,
): (request: Request) => Promise<Response> {
  return async (request) => {
    try {
      const checked = await check(request);
      return await handler(request, checked);
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error;
      return Response.json(errorBody(error), { status: error.status, headers: errorHeaders(error, challenge) });
    }
  };
}

function checkBefore<R>(
  check: (request: R) => Promise<void>,
  challenge?: Challenge,
): ExpressMiddleware<R> {
  return async (request, response, next) => {
    try {
      await check(request);
    } catch (error) {
      if (!(error instanceof GatehouseError)) return next(error);
      for (const [name, value] of Object.entries(errorHeaders(error, challenge))) response.set(name, value);
      response.status(error.status).json(errorBody(error));
      return;
    }
    next();
  };
}

function headerOf(request: Request): HeaderReader {
  return (name) => request.headers.get(name);
}

function expressHeaderOf(request: ExpressRequest): HeaderReader {
  return (name) => {
    const value = request.headers[name];
    if (Array.isArray(value)) throw new Unauthenticated("a header is repeated");
    return value;
  };
}

function errorBody(error: GatehouseError): { status: "ERROR"; error: string } {
  return { status: "ERROR", error: error.publicMessage };
}

function errorHeaders(error: GatehouseError, challenge?: Challenge): Record<string, string> {
  const headers: Record<string, string> = { "Cache-Control": "no-store" };
  if (error.status === 401) headers["WWW-Authenticate"] = challenge?.(error) ?? "Bearer";
  if (error.status === 403 && challenge !== undefined) headers["WWW-Authenticate"] = challenge(error);
  if (error.status === 503) headers["Retry-After"] = RETRY_AFTER;
  return headers;
}
