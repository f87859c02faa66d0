// SPDX-License-Identifier: Apache-2.0
//
// Tokens for calling an API as a machine: the client credentials grant.

import { Unavailable } from "./errors.js";
import { basicAuthorization, checkBaseUrl, type Fetch, readJson, send } from "./http.js";
import { type Clock, SYSTEM_CLOCK } from "./tokens.js";

const RENEW_SECONDS_BEFORE = 30;

export interface TokenSourceOptions {
  readonly baseUrl: string;
  /** Of a confidential client; or the user ID of a service account. */
  readonly clientId: string;
  /** The client's; or the JWT of the service account. */
  readonly secret: string;
  /** The API; left out for Gatehouse itself, with the scope `authzen`. */
  readonly resource?: string;
  readonly scopes?: readonly string[];
  readonly fetch?: Fetch;
  readonly clock?: Clock;
}

/** Gets access tokens for one API, and keeps each until shortly before its end. Make one per API. */
export class TokenSource {
  readonly #options: TokenSourceOptions;
  readonly #clock: Clock;
  #token = "";
  #renewAt = -Infinity;
  #running: Promise<void> | undefined;

  constructor(options: TokenSourceOptions) {
    checkBaseUrl(options.baseUrl);
    this.#options = options;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
  }

  /** Return a valid access token. Throws Unavailable, also when the service refuses the credentials. */
  async token(): Promise<string> {
    if (this.#clock.monotonic() >= this.#renewAt) {
      this.#running ??= this.#renew().finally(() => (this.#running = undefined)); // one for any number of callers
      await this.#running;
    }
    return this.#token;
  }

  async #renew(): Promise<void> {
    const { baseUrl, clientId, secret, resource = "", scopes = [], fetch: fetcher = fetch } = this.#options;
    const askedAt = this.#clock.monotonic();
    const response = await send(fetcher, `${baseUrl}/proxy/oauth/token`, {
      method: "POST",
      headers: { Accept: "application/json", Authorization: basicAuthorization(clientId, secret) },
      body: new URLSearchParams({ grant_type: "client_credentials", resource, scope: scopes.join(" ") }),
    });
    const answer = await readJson(response);
    const { access_token: token, expires_in: lifetime } = answer;
    if (response.status !== 200 || typeof token !== "string" || typeof lifetime !== "number") {
      throw new Unavailable(`no token: ${response.status} ${String(answer["error"])}`);
    }
    this.#token = token;
    this.#renewAt = askedAt + lifetime - RENEW_SECONDS_BEFORE;
  }
}
