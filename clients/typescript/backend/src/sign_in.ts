// SPDX-License-Identifier: Apache-2.0
//
// Sign people in with OpenID Connect: authorization code with PKCE, state, nonce and iss (RFC 9207).

import { SignInFailed, Unauthenticated } from "./errors.js";
import {
  basicAuthorization,
  checkBaseUrl,
  encodeBase64url,
  equalTexts,
  type Fetch,
  type Json,
  readJson,
  send,
  sha256,
} from "./http.js";
import { checkTimes, type Clock, KeyCache, SYSTEM_CLOCK, verifySignature } from "./tokens.js";

const SECRET_BYTES = 32;

/** What belongs to one sign-in. Keep it in the session of the browser that began it, and use it once. */
export interface PendingSignIn {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface SignedIn {
  /** The user ID. */
  readonly subject: string;
  /** The verified claims of the id_token. */
  readonly claims: Json;
  readonly idToken: string;
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
}

export interface SignInOptions {
  readonly baseUrl: string;
  readonly clientId: string;
  /** Leave it out for a public client. */
  readonly clientSecret?: string;
  readonly redirectUri: string;
  readonly scope?: string;
  readonly fetch?: Fetch;
  readonly clock?: Clock;
}

export class SignIn {
  readonly #options: SignInOptions;
  readonly #fetch: Fetch;
  readonly #clock: Clock;
  readonly #keys: KeyCache;

  constructor(options: SignInOptions) {
    checkBaseUrl(options.baseUrl);
    this.#options = options;
    this.#fetch = options.fetch ?? fetch;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#keys = new KeyCache(`${options.baseUrl}/proxy/oauth/keys`, this.#fetch, this.#clock);
  }

  /** Return the address to redirect the browser to, and what to keep in its session. */
  async begin(more: Readonly<Record<string, string>> = {}): Promise<{ url: string; pending: PendingSignIn }> {
    const pending = { state: randomText(), nonce: randomText(), verifier: randomText() };
    const query = new URLSearchParams({
      ...more,
      response_type: "code",
      client_id: this.#options.clientId,
      redirect_uri: this.#options.redirectUri,
      scope: this.#options.scope ?? "openid",
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: encodeBase64url(await sha256(pending.verifier)),
      code_challenge_method: "S256",
    });
    return { url: `${this.#options.baseUrl}/proxy/oauth/authorize?${query}`, pending };
  }

  /** Complete the sign-in with the address that the browser was sent back to. Throws SignInFailed, Unavailable. */
  async complete(callbackUrl: string, pending: PendingSignIn): Promise<SignedIn> {
    const answer = new URL(callbackUrl, this.#options.redirectUri).searchParams;
    if (!equalTexts(answer.get("state") ?? "", pending.state)) throw new SignInFailed("state", "of another sign-in");
    if (answer.get("iss") !== this.#options.baseUrl) throw new SignInFailed("iss", "the answer of another service");
    const error = answer.get("error");
    if (error !== null) throw new SignInFailed(error, answer.get("error_description") ?? "");
    const code = answer.get("code");
    if (!code || answer.getAll("code").length > 1) throw new SignInFailed("code", "missing or repeated");
    const tokens = await this.#redeem(code, pending.verifier);
    return this.#verify(tokens, pending.nonce);
  }

  async #redeem(code: string, verifier: string): Promise<Json> {
    const { baseUrl, clientId, clientSecret, redirectUri } = this.#options;
    const body = new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
      ...(clientSecret === undefined ? { client_id: clientId } : {}),
    });
    const headers: Record<string, string> = { Accept: "application/json" };
    if (clientSecret !== undefined) headers["Authorization"] = basicAuthorization(clientId, clientSecret);
    const response = await send(this.#fetch, `${baseUrl}/proxy/oauth/token`, { method: "POST", headers, body });
    const answer = await readJson(response);
    if (response.status !== 200) {
      throw new SignInFailed(String(answer["error"]), String(answer["error_description"] ?? response.status));
    }
    return answer;
  }

  async #verify(tokens: Json, nonce: string): Promise<SignedIn> {
    const { id_token: idToken, access_token: accessToken, refresh_token: refreshToken } = tokens;
    if (typeof idToken !== "string" || typeof accessToken !== "string") throw new SignInFailed("tokens", "missing");
    const claims = await this.#claimsOf(idToken);
    if (claims["nonce"] !== nonce) throw new SignInFailed("nonce", "of another sign-in");
    const { aud, azp, sub } = claims;
    const audience = Array.isArray(aud) ? (aud as unknown[]) : [aud];
    const isOurs = audience.includes(this.#options.clientId) && (azp === undefined || azp === this.#options.clientId);
    if (!isOurs || typeof sub !== "string") throw new SignInFailed("aud", "the id_token is for another client");
    return {
      subject: sub,
      claims,
      idToken,
      accessToken,
      refreshToken: typeof refreshToken === "string" ? refreshToken : undefined,
    };
  }

  async #claimsOf(idToken: string): Promise<Json> {
    try {
      const claims = await verifySignature(idToken, this.#keys, ["RS256", "ES256"]);
      checkTimes(claims, this.#options.baseUrl, this.#clock.now());
      return claims;
    } catch (error) {
      if (error instanceof Unauthenticated) throw new SignInFailed("id_token", error.message);
      throw error;
    }
  }
}

function randomText(): string {
  return encodeBase64url(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)));
}
