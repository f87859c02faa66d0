// SPDX-License-Identifier: Apache-2.0

import { Unauthenticated, Unavailable } from "./errors.js";

const TIMEOUT_MS = 5_000;
const MAX_RESPONSE_CHARACTERS = 8 * 2 ** 20;
const BASE_URL = /^(https?):\/\/([a-z0-9.-]{1,253}|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$/;
const BEARER = /^bearer +([^\s,]+)$/i;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

export type Fetch = typeof fetch;
export type Json = Readonly<Record<string, unknown>>;

/** Return the address unchanged: it must equal the issuer of its tokens. Throws for http to another machine. */
export function checkBaseUrl(baseUrl: string): string {
  const found = BASE_URL.exec(baseUrl);
  if (found === null) throw new TypeError("baseUrl must be scheme and host, without path or trailing slash");
  if (found[1] === "http" && !LOOPBACK.has(found[2] ?? "")) throw new TypeError("baseUrl must be https");
  return baseUrl;
}

/** Send a request without following redirects; throws Unavailable when there is no response in time. */
export async function send(fetcher: Fetch, url: string, init: RequestInit = {}): Promise<Response> {
  try {
    return await fetcher(url, { ...init, redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    throw new Unavailable(`${url}: ${String(error)}`);
  }
}

export async function readJson(response: Response): Promise<Json> {
  try {
    const text = await response.text();
    if (text.length > MAX_RESPONSE_CHARACTERS) throw new Error("too long");
    return asObject(JSON.parse(text));
  } catch (error) {
    throw new Unavailable(`no JSON from the service: ${String(error)}`);
  }
}

export function asObject(value: unknown): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("not an object");
  return value as Json;
}

/** Returns a header of the request by its lower-case name. */
export type HeaderReader = (name: string) => string | null | undefined;

/** Return the Bearer token of a request, empty if it has no `Authorization` header. Throws Unauthenticated. */
export function bearerToken(header: HeaderReader): string {
  const given = header("authorization") ?? "";
  const token = BEARER.exec(given)?.[1] ?? "";
  if (given !== "" && token === "") throw new Unauthenticated("the Authorization header is not a Bearer token");
  return token;
}

/** The `Authorization` header of an OAuth client (RFC 6749 §2.3.1). */
export function basicAuthorization(clientId: string, secret: string): string {
  return `Basic ${btoa(`${encodeURIComponent(clientId)}:${encodeURIComponent(secret)}`)}`;
}

export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new TextEncoder().encode(text));
}

export function encodeBase64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function decodeBase64url(text: string): Uint8Array<ArrayBuffer> {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) throw new Error("not base64url");
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
}

export async function sha256(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytesOf(text)));
}

export async function sha256Hex(text: string): Promise<string> {
  return Array.from(await sha256(text), (one) => one.toString(16).padStart(2, "0")).join("");
}

/** Compare without telling by the time how much was equal. */
export function equalTexts(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let i = 0; i < one.length; i += 1) difference |= one.charCodeAt(i) ^ other.charCodeAt(i % (other.length || 1));
  return difference === 0;
}
