// SPDX-License-Identifier: Apache-2.0
//
// Verify the JWTs of the service. WebCrypto does the mathematics; a JWT never names its key or its algorithm freely.

import { Denied, Unauthenticated, Unavailable } from "./errors.js";
import { asObject, bytesOf, decodeBase64url, equalTexts, type Fetch, type Json, readJson, send, sha256Hex } from "./http.js";

const MAX_TOKEN_LENGTH = 8_192;
const LEEWAY = 60; // seconds that iat may lie ahead
const REFRESH_AFTER = 300; // seconds
const MIN_REFRESH_INTERVAL = 5; // seconds: forged key ids must not cause a flood of requests
const NOT_IN_USER_JWTS = ["typ", "azp", "nonce", "at_hash"] as const;

const ALGORITHMS = {
  RS256: { imported: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }, verified: { name: "RSASSA-PKCS1-v1_5" }, kty: "RSA" },
  ES256: { imported: { name: "ECDSA", namedCurve: "P-256" }, verified: { name: "ECDSA", hash: "SHA-256" }, kty: "EC" },
} as const;
type Algorithm = keyof typeof ALGORITHMS;

/** A person, as their verified user JWT describes them. */
export interface User {
  readonly userId: string;
  readonly nick: string;
  /** How they signed in: login, 2step, openid or passkey. */
  readonly auth: string;
  readonly tags: readonly string[];
  readonly expiresAt: number;
  /** Whether the request showed the factor that the JWT is bound to. */
  readonly hasFactor: boolean;
  readonly claims: Json;
  readonly jwt: string;
}

export interface Clock {
  /** Unix seconds. */
  now(): number;
  /** Seconds that never run backwards. */
  monotonic(): number;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => Math.floor(Date.now() / 1_000),
  monotonic: () => performance.now() / 1_000,
};

interface PublishedKey {
  readonly alg: Algorithm;
  readonly key: CryptoKey;
}

/** The published keys. They are kept while the service cannot be reached, because earlier tokens are still valid. */
export class KeyCache {
  readonly #url: string;
  readonly #fetch: Fetch;
  readonly #clock: Clock;
  #keys = new Map<string, PublishedKey>();
  #fetchedAt = -Infinity;
  #triedAt = -Infinity;
  #running: Promise<void> | undefined;

  constructor(url: string, fetcher: Fetch, clock: Clock) {
    this.#url = url;
    this.#fetch = fetcher;
    this.#clock = clock;
  }

  /** Return the key, undefined if the service publishes none; throws Unavailable when that is not known. */
  async find(kid: string): Promise<PublishedKey | undefined> {
    const isOld = this.#clock.monotonic() - this.#fetchedAt >= REFRESH_AFTER;
    if (isOld || !this.#keys.has(kid)) await this.#refresh();
    const found = this.#keys.get(kid);
    if (found === undefined && this.#fetchedAt !== this.#triedAt) {
      throw new Unavailable("the last request for the service's keys failed");
    }
    return found;
  }

  async #refresh(): Promise<void> {
    if (this.#running === undefined) {
      if (this.#clock.monotonic() - this.#triedAt < MIN_REFRESH_INTERVAL) return;
      this.#running = this.#load().finally(() => {
        this.#running = undefined;
      });
    }
    await this.#running;
  }

  async #load(): Promise<void> {
    this.#triedAt = this.#clock.monotonic();
    try {
      const response = await send(this.#fetch, this.#url);
      if (response.status !== 200) return;
      this.#keys = await importKeys(await readJson(response));
      this.#fetchedAt = this.#triedAt;
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
  }
}

async function importKeys(document: Json): Promise<Map<string, PublishedKey>> {
  const listed = Array.isArray(document["keys"]) ? (document["keys"] as unknown[]) : [];
  const keys = new Map<string, PublishedKey>();
  for (const jwk of listed.map(asObject)) {
    const { alg, kid, kty, use } = jwk;
    if (!isAlgorithm(alg) || typeof kid !== "string" || use !== "sig" || kty !== ALGORITHMS[alg].kty) continue;
    const key = await crypto.subtle.importKey("jwk", jwk as JsonWebKey, ALGORITHMS[alg].imported, false, ["verify"]);
    keys.set(kid, { alg, key });
  }
  return keys;
}

function isAlgorithm(value: unknown): value is Algorithm {
  return value === "RS256" || value === "ES256";
}

/** Verify the signature of a JWT with one of the algorithms and return its claims. Throws Unauthenticated. */
export async function verifySignature(
  jwt: string,
  keys: KeyCache,
  allowed: readonly Algorithm[],
  expectedType = "JWT",
): Promise<Json> {
  const parts = jwt.split(".");
  const [head, body, signature] = parts;
  if (jwt.length > MAX_TOKEN_LENGTH || parts.length !== 3 || !head || !body || !signature) {
    throw new Unauthenticated("not a JWT");
  }
  const header = decodePart(head);
  const { alg, kid, typ = "JWT" } = header;
  if (typ !== expectedType) throw new Unauthenticated("wrong token type");
  if (!isAlgorithm(alg) || !allowed.includes(alg) || typeof kid !== "string" || "crit" in header) {
    throw new Unauthenticated("not an accepted header");
  }
  const found = await keys.find(kid);
  if (found === undefined || found.alg !== alg) throw new Unauthenticated(`the service has no key ${kid}`);
  const verified = ALGORITHMS[alg].verified;
  if (!(await crypto.subtle.verify(verified, found.key, decodeBytes(signature), bytesOf(`${head}.${body}`)))) {
    throw new Unauthenticated("the signature is wrong");
  }
  return decodePart(body);
}

function decodeBytes(part: string): Uint8Array<ArrayBuffer> {
  try {
    return decodeBase64url(part);
  } catch {
    throw new Unauthenticated("not base64url");
  }
}

function decodePart(part: string): Json {
  try {
    return asObject(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(decodeBytes(part))));
  } catch {
    throw new Unauthenticated("not a JWT");
  }
}

/** Check who issued a token and when. Throws Unauthenticated. */
export function checkTimes(claims: Json, issuer: string, now: number): void {
  const { iss, iat, exp } = claims;
  if (iss !== issuer) throw new Unauthenticated(`issued by ${String(iss)}, expected ${issuer}`);
  if (typeof iat !== "number" || iat > now + LEEWAY) throw new Unauthenticated("issued in the future");
  if (typeof exp !== "number" || exp <= now) throw new Unauthenticated("expired");
}

/** Verify user JWTs. Whether one was revoked is known only to the service: Permissions asks it. */
export class UserJwtVerifier {
  readonly #issuer: string;
  readonly #applicationId: number;
  readonly #keys: KeyCache;
  readonly #clock: Clock;

  constructor(issuer: string, applicationId: number, keys: KeyCache, clock: Clock) {
    this.#issuer = issuer;
    this.#applicationId = applicationId;
    this.#keys = keys;
    this.#clock = clock;
  }

  async verify(jwt: string, factor?: string): Promise<User> {
    const claims = await verifySignature(jwt, this.#keys, ["RS256"]);
    if (NOT_IN_USER_JWTS.some((name) => name in claims)) throw new Unauthenticated("wrong token type");
    checkTimes(claims, this.#issuer, this.#clock.now());
    const { uid, sub, slt, rev, nick, auth, tgs, aud, fip, exp } = claims;
    if (typeof uid !== "string" || uid === "" || uid !== sub || typeof slt !== "string" || typeof rev !== "number") {
      throw new Unauthenticated("not a user JWT");
    }
    if (factor !== undefined) await checkFactor(claims, slt, factor);
    if (aud !== undefined && aud !== null && aud !== String(this.#applicationId)) {
      throw new Denied(`the JWT is for application ${String(aud)}`);
    }
    if (Array.isArray(fip) && fip.length > 0) throw new Denied("the JWT is bound to IP addresses");
    return {
      userId: uid,
      nick: String(nick ?? ""),
      auth: String(auth ?? ""),
      tags: String(tgs ?? "").split(",").filter(Boolean),
      expiresAt: exp as number,
      hasFactor: factor !== undefined,
      claims,
      jwt,
    };
  }
}

async function checkFactor(claims: Json, salt: string, factor: string): Promise<void> {
  const expected = await sha256Hex(factor + salt);
  const { fac } = claims;
  if (typeof fac !== "string" || factor.length > 1_024 || !equalTexts(expected, fac)) {
    throw new Unauthenticated("wrong factor");
  }
}
