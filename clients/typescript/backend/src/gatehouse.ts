// SPDX-License-Identifier: Apache-2.0

import { ChangeFollower } from "./changes.js";
import { Denied, Unauthenticated } from "./errors.js";
import { bearerToken, checkBaseUrl, type Fetch, type HeaderReader } from "./http.js";
import { type Credential, ownHeaders, PermissionCache, type Permissions, type Place } from "./permissions.js";
import { type Clock, KeyCache, SYSTEM_CLOCK, type User, UserJwtVerifier } from "./tokens.js";

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
  readonly #follower: ChangeFollower;

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
    this.#follower = new ChangeFollower({
      url: `${baseUrl}/api/permissions/changes?application_id=${applicationId}`,
      headers: ownHeaders(credential),
      handle: (notice) => this.#permissions.handleChange(notice),
      fetch: fetcher,
      clock,
    });
    this.#permissions.liveSince = () => this.#follower.liveSince;
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
  async authenticate(header: HeaderReader): Promise<User> {
    const user = await this.user(bearerToken(header), header("factor") ?? undefined);
    await this.permissions(user);
    return user;
  }

  /**
   * Follow the change stream until `close`; return whether it is open already. While it is open, permissions are cached
   * until they change, at most for five minutes. While it is cut, `max_age` counts, and it is opened again.
   */
  async followChanges(): Promise<boolean> {
    return this.#follower.start();
  }

  /** Stop following the change stream, whose connection keeps a Node process running. */
  async close(): Promise<void> {
    await this.#follower.close();
  }
}
