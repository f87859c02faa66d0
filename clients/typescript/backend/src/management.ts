// SPDX-License-Identifier: Apache-2.0
//
// The management API for scripts: people, lists and settings, with the rights of one token. Fields have the names of
// the API.

import { CallRefused, Denied, type GatehouseError, Unauthenticated, Unavailable } from "./errors.js";
import { asObject, checkBaseUrl, type Fetch, type Json, readJson, send } from "./http.js";

const PAGE_SIZE = 100;

export type ListedKind = "application" | "project" | "group" | "client" | "serviceAccount" | "activity";

/** What of an account can be set; null clears a field. */
export interface PersonFields {
  readonly login?: string;
  readonly nick?: string;
  readonly lang?: string;
  readonly country?: string | null;
  readonly name?: string | null;
  readonly given_name?: string | null;
  readonly family_name?: string | null;
  readonly username?: string | null;
  readonly zoneinfo?: string | null;
  readonly email_verified?: boolean;
  readonly tags?: readonly string[];
  readonly purchases?: readonly string[];
}

/** An account. Callers who may only read an application get user_id and nick. */
export interface Person extends Omit<PersonFields, "login"> {
  readonly user_id: string;
  readonly nick: string;
  readonly login?: string | null;
  readonly registered?: string;
  readonly blocked?: boolean;
  readonly version?: number;
}

export interface PersonFilters {
  readonly login?: string;
  readonly tag?: string;
  /** ISO 8601. */
  readonly registered_since?: string;
  readonly blocked?: boolean;
}

export interface CallOptions {
  readonly applicationId?: number;
  /** A repeated create with the same key within a day returns the first answer and creates nothing. */
  readonly idempotencyKey?: string;
}

export interface ManagementOptions {
  readonly baseUrl: string;
  /** The JWT of a service account or of an administrator. */
  readonly token: string;
  /** The one that an administrator's JWT is bound to. */
  readonly factor?: string;
  /** How many entries a list reads with one request. */
  readonly pageSize?: number;
  readonly fetch?: Fetch;
}

export class Management {
  readonly #prefix: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #pageSize: number;
  readonly #fetch: Fetch;

  constructor(options: ManagementOptions) {
    this.#prefix = `${checkBaseUrl(options.baseUrl)}/api/permissions/`;
    this.#headers = {
      Authorization: `Bearer ${options.token}`,
      "Content-Type": "application/json",
      ...(options.factor === undefined ? {} : { Factor: options.factor }),
    };
    this.#pageSize = options.pageSize ?? PAGE_SIZE;
    this.#fetch = options.fetch ?? fetch;
  }

  /**
   * Send any call of the API and return the whole answer. Throws Unauthenticated, Denied, CallRefused, or Unavailable
   * when it may be tried again.
   */
  async call(path: string, action: string, data: object = {}, options: CallOptions = {}): Promise<Json> {
    const { applicationId, idempotencyKey } = options;
    const response = await send(this.#fetch, this.#prefix + path, {
      method: "POST",
      headers: idempotencyKey === undefined ? this.#headers : { ...this.#headers, "Idempotency-Key": idempotencyKey },
      body: JSON.stringify({ action, data, application_id: applicationId }), // undefined is left out
    });
    const answer = await readJson(response);
    if (response.status !== 200 || answer["status"] !== "OK") {
      throw refusal(response.status, String(answer["error"] ?? ""));
    }
    return answer;
  }

  /** The accounts that match, the newest first, page by page. */
  searchPeople(query = "", filters: PersonFilters = {}): AsyncGenerator<Person, void, undefined> {
    return this.#pages<Person>("user", "search", query, filters);
  }

  /** What the token's owner may read of one kind, page by page. */
  list(kind: ListedKind, query = "", filters: Json = {}): AsyncGenerator<Json, void, undefined> {
    return this.#pages<Json>(kind, "list", query, filters);
  }

  async getPerson(userId: string): Promise<Person> {
    return this.#person("get", { user_id: userId });
  }

  /** Create an account; no email is sent. */
  async createPerson(fields: PersonFields & { password?: string }, options: CallOptions = {}): Promise<Person> {
    return this.#person("create", fields, options);
  }

  /** Change the given fields; with `version`, only if it is still that one. */
  async savePerson(userId: string, fields: PersonFields & { version?: number }): Promise<Person> {
    return this.#person("save", { user_id: userId, ...fields });
  }

  /** Create an account and send an invitation; the link is returned too, until someone has signed in. */
  async invitePerson(fields: { login: string; nick: string; lang?: string }): Promise<{ user: Person; link: string }> {
    const { data } = await this.call("user", "invite", fields);
    return asObject(data) as unknown as { user: Person; link: string };
  }

  async blockPerson(userId: string): Promise<Person> {
    return this.#person("block", { user_id: userId });
  }

  async unblockPerson(userId: string): Promise<Person> {
    return this.#person("unblock", { user_id: userId });
  }

  /** End every session and token of the account. */
  async endSessions(userId: string): Promise<void> {
    await this.call("user", "end_sessions", { user_id: userId });
  }

  async resetFactors(userId: string, reason = ""): Promise<void> {
    await this.call("user", "reset_factors", { user_id: userId, reason });
  }

  async erasePerson(userId: string): Promise<void> {
    await this.call("user", "erase", { user_id: userId });
  }

  /** Store settings by name; null restores the default. */
  async saveSettings(settings: Json): Promise<void> {
    await this.call("settings", "save", { settings });
  }

  async #person(action: string, data: object, options: CallOptions = {}): Promise<Person> {
    const { data: person } = await this.call("user", action, data, options);
    return asObject(person) as unknown as Person;
  }

  async *#pages<T>(path: string, action: string, query: string, filters: object): AsyncGenerator<T, void, undefined> {
    let after: unknown;
    do {
      const answer = await this.call(path, action, { query, filters, limit: this.#pageSize, after });
      yield* answer["data"] as T[];
      after = answer["after"];
    } while (typeof after === "string");
  }
}

export function refusal(status: number, message: string): GatehouseError {
  if (status === 401) return new Unauthenticated(message);
  if (status === 403) return new Denied(message);
  if (status >= 500 || status === 429) return new Unavailable(message);
  return new CallRefused(status, message);
}
