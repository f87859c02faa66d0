// SPDX-License-Identifier: Apache-2.0
//
// What users hold, read from `list_short` and cached for as long as each response allows (max_age, ETag), or until it
// changes while the change stream is open.

import type { ChangeNotice } from "./changes.js";
import { Denied, Unauthenticated, Unavailable } from "./errors.js";
import { type Fetch, type Json, readJson, send, sha256Hex } from "./http.js";
import type { Clock, User } from "./tokens.js";

const FOLLOWED_MAX_AGE = 300; // seconds an answer is used at most while the change stream is open
const BUCKET_DIGITS = 3;

export type Credential = { readonly accessKey: string } | { readonly serviceJwt: string };

/** The headers of a request that the application makes for itself. */
export function ownHeaders(credential: Credential): Record<string, string> {
  return "accessKey" in credential
    ? { Authorization: `Bearer ${credential.accessKey}` }
    : { "Service-Jwt": credential.serviceJwt };
}

/** A resource of a project. */
export interface Resource {
  readonly kind: "applications" | "services" | "groups";
  readonly id: string;
}

/** Where a permission is held: the root of the application, a project, or a resource of it. */
export interface Place {
  readonly project?: string;
  readonly resource?: Resource;
}

/** The permissions of one user. Places are compared as lists, because joined text would be ambiguous. */
export class Permissions {
  readonly #entries: ReadonlyMap<string, readonly string[]>;

  constructor(entries: readonly string[]) {
    this.#entries = new Map(entries.flatMap(parseEntry));
  }

  /** Whether the rule is held there; one held in a project counts on its resources, one of the root only there. */
  allows(rule: string, place: Place = {}): boolean {
    return lookupKeys(rule, place).some((key) => this.#entries.has(key));
  }

  /** The params of the narrowest place where the rule is held. */
  params(rule: string, place: Place = {}): readonly string[] {
    const found = lookupKeys(rule, place).find((key) => this.#entries.has(key));
    return (found === undefined ? undefined : this.#entries.get(found)) ?? [];
  }
}

function lookupKeys(rule: string, { project, resource }: Place): string[] {
  if (resource === undefined) return [JSON.stringify(project === undefined ? [rule] : [project, rule])];
  if (project === undefined) throw new TypeError("a resource needs a project");
  return [JSON.stringify([project, resource.kind, resource.id, rule]), JSON.stringify([project, rule])];
}

function parseEntry(entry: string): [string, string[]][] {
  const bar = entry.indexOf("|");
  const place = (bar < 0 ? entry : entry.slice(0, bar)).split("/");
  const isResource = place.length === 4 && ["applications", "services", "groups"].includes(place[1] ?? "");
  if (place.length > 2 && !isResource) return [];
  return [[JSON.stringify(place), bar < 0 || bar === entry.length - 1 ? [] : entry.slice(bar + 1).split(",")]];
}

interface CachedPermissions {
  readonly permissions: Permissions;
  readonly etag: string;
  readonly askedAt: number; // by the monotonic clock
  readonly maxAge: number; // seconds
  readonly endsAt: number; // Unix time at which something in it ends; 0 for never
  readonly userId: string;
  readonly userBucket: string;
  readonly isFollowed: boolean; // no change came while it was requested: it is valid until one comes
}

export class PermissionCache {
  readonly #url: string;
  readonly #applicationId: number;
  readonly #credential: Credential;
  readonly #fetch: Fetch;
  readonly #clock: Clock;
  readonly #most: number;
  readonly #entries = new Map<string, CachedPermissions>(); // the least recently used first
  readonly #running = new Map<string, Promise<CachedPermissions>>();
  #changes = 0; // notices so far
  /** When the change stream was opened; undefined while there is none. */
  liveSince: () => number | undefined = () => undefined;

  constructor(
    baseUrl: string,
    applicationId: number,
    credential: Credential,
    options: { fetch: Fetch; clock: Clock; mostUsers: number },
  ) {
    this.#url = `${baseUrl}/api/permissions/meta/data`;
    this.#applicationId = applicationId;
    this.#credential = credential;
    this.#fetch = options.fetch;
    this.#clock = options.clock;
    this.#most = options.mostUsers;
  }

  /** Use no entry again that the change may concern, until the service has confirmed it. */
  handleChange(notice: ChangeNotice): void {
    this.#changes += 1;
    for (const [jwt, known] of this.#entries) {
      const isConcerned = notice.userId === known.userId || notice.userBucket === known.userBucket;
      if (notice.concernsEveryone || isConcerned) {
        this.#entries.set(jwt, { ...known, askedAt: -Infinity, isFollowed: false });
      }
    }
  }

  /** Throws Unauthenticated or Denied as the service answers, Unavailable when it does not. */
  async get(user: User): Promise<Permissions> {
    const began = this.#clock.monotonic();
    let known = this.#entries.get(user.jwt);
    while (known === undefined || !this.#isFresh(known, began)) known = await this.#fetchShared(user);
    this.#markUsed(user.jwt);
    return known.permissions;
  }

  #isFresh(known: CachedPermissions, began: number): boolean {
    if (known.askedAt >= began) return true;
    const hasEnded = known.endsAt > 0 && known.endsAt <= this.#clock.now();
    const maxAge = this.#isFollowed(known) ? Math.max(known.maxAge, FOLLOWED_MAX_AGE) : known.maxAge;
    return began - known.askedAt < maxAge && !hasEnded;
  }

  /** Whether the change stream was open all the time since the entry was requested. */
  #isFollowed(known: CachedPermissions): boolean {
    const since = this.liveSince();
    return known.isFollowed && since !== undefined && known.askedAt >= since;
  }

  async #fetchShared(user: User): Promise<CachedPermissions> {
    const running = this.#running.get(user.jwt);
    if (running !== undefined) return running;
    const started = this.#request(user).finally(() => this.#running.delete(user.jwt));
    this.#running.set(user.jwt, started);
    return started;
  }

  async #request(user: User): Promise<CachedPermissions> {
    const userBucket = (await sha256Hex(user.userId)).slice(0, BUCKET_DIGITS);
    const changes = this.#changes;
    const askedAt = this.#clock.monotonic();
    const before = this.#entries.get(user.jwt);
    const { headers, body } = this.#credentials(user.jwt);
    if (before?.etag) headers["If-None-Match"] = before.etag;
    const ask = { action: "get", application_id: this.#applicationId, data: { type: "list_short" }, ...body };
    headers["Content-Type"] = "application/json";
    const response = await send(this.#fetch, this.#url, { method: "POST", headers, body: JSON.stringify(ask) });
    try {
      const answer =
        response.status === 304 && before !== undefined
          ? before
          : parseAnswer(response, await readJson(response), user.userId);
      // Stored before anything else can run, so that no notice is missed.
      const known = { ...answer, userBucket, askedAt, isFollowed: changes === this.#changes };
      this.#store(user.jwt, known);
      return known;
    } catch (error) {
      this.#entries.delete(user.jwt);
      throw error;
    }
  }

  #credentials(jwt: string): { headers: Record<string, string>; body: Json } {
    const headers = ownHeaders(this.#credential);
    if ("accessKey" in this.#credential) return { headers, body: { jwt } };
    return { headers: { ...headers, Authorization: `Bearer ${jwt}` }, body: {} };
  }

  #markUsed(jwt: string): void {
    const known = this.#entries.get(jwt); // not necessarily the one that was just used
    if (known !== undefined) this.#store(jwt, known);
  }

  #store(jwt: string, known: CachedPermissions): void {
    this.#entries.delete(jwt);
    this.#entries.set(jwt, known);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#most) break;
      this.#entries.delete(oldest);
    }
  }
}

type Answer = Pick<CachedPermissions, "permissions" | "etag" | "maxAge" | "endsAt" | "userId">;

function parseAnswer(response: Response, answer: Json, userId: string): Answer {
  const error = String(answer["error"] ?? response.status);
  if (response.status === 401 || error === "invalid token") throw new Unauthenticated("the service refused the JWT");
  if (response.status === 403 || response.status === 404) throw new Denied(error);
  if (response.status !== 200) throw new Unavailable(`the service answered ${response.status}`);
  const { data, user_id, max_age, expired } = answer;
  if (answer["status"] !== "OK") throw new Denied(error);
  if (user_id !== userId || !Array.isArray(data)) throw new Denied("the service answered for another user");
  return {
    permissions: new Permissions(data.map(String)),
    etag: response.headers.get("ETag") ?? "",
    userId,
    maxAge: typeof max_age === "number" ? max_age : 0,
    endsAt: typeof expired === "number" ? expired : 0,
  };
}
