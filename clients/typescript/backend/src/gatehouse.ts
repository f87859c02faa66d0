// SPDX-License-Identifier: Apache-2.0

import { Denied, GatehouseError, Unauthenticated } from "./errors.js";
import { checkBaseUrl, type Fetch } from "./http.js";
import { type Credential, PermissionCache, type Permissions, type Place } from "./permissions.js";
import { type Clock, KeyCache, SYSTEM_CLOCK, type User, UserJwtVerifier } from "./tokens.js";

const BEARER = /^bearer +([^\s,]+)$/i;

export interface GatehouseOptions {
  /** Exactly as the service calls itself: scheme and host, without a trailing slash. */
  readonly baseUrl: string;
  readonly applicationId: number;
  readonly credential: Credential;
  /** Refuse a JWT that comes without the factor it is bound to. */
  readonly needsFactor?: boolean;
  readonly mostUsers?: number;
  readonly fetch?: Fetch;
  readonly clock?: Clock;
}

/** The service as an application sees it: who a user is, and what they may do. Make one for the whole application. */
export class Gatehouse {
  readonly #verifier: UserJwtVerifier;
  readonly #permissions: PermissionCache;
  readonly #needsFactor: boolean;

  constructor(options: GatehouseOptions) {
    const { applicationId, credential } = options;
    const baseUrl = checkBaseUrl(options.baseUrl);
    const fetcher = options.fetch ?? fetch;
    const clock = options.clock ?? SYSTEM_CLOCK;
    const keys = new KeyCache(`${baseUrl}/api/permissions/keys`, fetcher, clock);
    const mostUsers = options.mostUsers ?? 10_000;
    this.#verifier = new UserJwtVerifier(baseUrl, applicationId, keys, clock);
    this.#permissions = new PermissionCache(baseUrl, applicationId, credential, { fetch: fetcher, clock, mostUsers });
    this.#needsFactor = options.needsFactor ?? false;
  }

  /** Return the owner of a user JWT. Throws Unauthenticated, or Denied when it is for another application. */
  async user(jwt: string, factor?: string): Promise<User> {
    if (factor === undefined && this.#needsFactor) throw new Unauthenticated("the JWT was sent without its factor");
    return this.#verifier.verify(jwt, factor);
  }

  /** The permissions of the user. Throws Unauthenticated when the JWT was revoked, Unavailable when unknown. */
  async permissions(user: User): Promise<Permissions> {
    return this.#permissions.get(user);
  }

  async allows(user: User, rule: string, place: Place = {}): Promise<boolean> {
    return (await this.permissions(user)).allows(rule, place);
  }

  /** Throws Denied unless the user has the permission. */
  async require(user: User, rule: string, place: Place = {}): Promise<void> {
    if (!(await this.allows(user, rule, place))) throw new Denied(`user ${user.userId} does not have ${rule}`);
  }

  /** Return the user of a request, by its headers `Authorization` and `Factor`, whose JWT was not revoked. */
  async authenticate(header: (name: string) => string | null | undefined): Promise<User> {
    const found = BEARER.exec(header("authorization") ?? "");
    if (!found?.[1]) throw new Unauthenticated("no Bearer token");
    const user = await this.user(found[1], header("factor") ?? undefined);
    await this.permissions(user);
    return user;
  }
}

/** Wrap a fetch-style handler (Hono, Bun, Deno, Next.js): it runs for users who have the rule, or for any user. */
export function withUser(
  gatehouse: Gatehouse,
  handler: (request: Request, user: User) => Response | Promise<Response>,
  rule?: string,
  place: (request: Request) => Place = () => ({}),
): (request: Request) => Promise<Response> {
  return async (request) => {
    let user: User;
    try {
      user = await gatehouse.authenticate((name) => request.headers.get(name));
      if (rule !== undefined) await gatehouse.require(user, rule, place(request));
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error;
      return Response.json(errorBody(error), { status: error.status, headers: { "Cache-Control": "no-store" } });
    }
    return handler(request, user);
  };
}

/** The parts of an Express request and response that the middleware uses. */
export interface ExpressRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  user?: unknown;
}
export interface ExpressResponse {
  status(code: number): { json(body: unknown): unknown };
}

/** Express middleware: sets `request.user` for users who have the rule, or for any user, and answers all others. */
export function requireUser<R extends ExpressRequest>(
  gatehouse: Gatehouse,
  rule?: string,
  place: (request: R) => Place = () => ({}),
): (request: R, response: ExpressResponse, next: (error?: unknown) => void) => Promise<void> {
  return async (request, response, next) => {
    try {
      const user = await gatehouse.authenticate((name) => singleHeader(request.headers[name]));
      if (rule !== undefined) await gatehouse.require(user, rule, place(request));
      request.user = user;
    } catch (error) {
      if (error instanceof GatehouseError) response.status(error.status).json(errorBody(error));
      else next(error);
      return;
    }
    next();
  };
}

function singleHeader(value: string | string[] | undefined): string | undefined {
  if (Array.isArray(value)) throw new Unauthenticated("a header is repeated");
  return value;
}

function errorBody(error: GatehouseError): { status: "ERROR"; error: string } {
  return { status: "ERROR", error: error.publicMessage };
}
