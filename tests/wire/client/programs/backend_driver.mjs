// Runs the TypeScript package by commands: one JSON object per line in, one out.
import { createInterface } from "node:readline";

const settings = JSON.parse(process.argv[2]);
const { Authzen, Gatehouse, Management, ProtectedResource, SignIn, TokenSource, requireUser, withUser } = await import(
  settings.module
);
let now = settings.now;
let requests = 0; // for permissions
const clock = { now: () => now, monotonic: () => now };
const streams = []; // the Last-Event-ID of each attempt to open the change stream
let streamGate = Promise.resolve(); // further attempts wait for it
let openGate;
const counted = async (url, init) => {
  if (url.includes("/changes")) {
    streams.push(init.headers["Last-Event-ID"] ?? "");
    await streamGate;
  } else if (url.endsWith("/meta/data")) {
    requests += 1;
  }
  return fetch(url, init);
};
const gatehouse = new Gatehouse({ ...settings.gatehouse, clock, fetch: counted });
const signIn = new SignIn({ ...settings.signIn, clock });
let pending;

const commands = {
  user: async ({ jwt, factor }) => (await gatehouse.user(jwt, factor)).userId,
  allows: async ({ jwt, rule, place }) => gatehouse.allows(await gatehouse.user(jwt), rule, place),
  requests: async () => requests,
  advance: async ({ seconds }) => (now += seconds),
  begin: async () => {
    const begun = await signIn.begin();
    pending = begun.pending;
    return begun.url;
  },
  complete: async ({ url, nonce }) => {
    const done = await signIn.complete(url, { ...pending, ...(nonce ? { nonce } : {}) });
    return { subject: done.subject, aud: done.claims.aud };
  },
  fetch: async ({ headers, rule }) => {
    const handler = withUser(gatehouse, (_, user) => Response.json({ user: user.userId }), rule);
    const response = await handler(new Request("http://localhost/", { headers }));
    return [response.status, await response.json()];
  },
  express: async ({ headers, rule }) => {
    const request = { headers };
    let answer;
    const response = { set: () => response, status: (code) => ({ json: (body) => (answer = [code, body]) }) };
    await requireUser(gatehouse, rule)(request, response, (error) => {
      if (error) throw error;
      answer = [200, { user: request.user.userId }];
    });
    return answer;
  },
  follow: () => gatehouse.followChanges(),
  holdStreams: async () => void (streamGate = new Promise((resolve) => (openGate = resolve))),
  releaseStreams: async () => openGate(),
  streams: async () => streams,
  token: (given) => new TokenSource({ baseUrl: settings.gatehouse.baseUrl, clock, ...given }).token(),
  verify: async ({ token, scopes = [], ...given }) => {
    const api = new ProtectedResource({ baseUrl: settings.gatehouse.baseUrl, clock, ...given });
    const verified = await api.verify(token, ...scopes);
    return [verified.subject, ...verified.actors].join(" ");
  },
  authzen: async ({ credential, tokens, method, arguments: given }) => {
    const baseUrl = settings.gatehouse.baseUrl;
    const source = tokens && new TokenSource({ baseUrl, clock, ...tokens });
    const authzen = new Authzen({ baseUrl, credential: source ?? credential, pageSize: 1 });
    return collected(await authzen[method](...given));
  },
  manage: async ({ token, factor, method, arguments: given }) => {
    const management = new Management({ baseUrl: settings.gatehouse.baseUrl, token, factor, pageSize: 1 });
    return collected(await management[method](...given)); // an iterator stays what it is
  },
};

async function collected(result) {
  if (!(Symbol.asyncIterator in Object(result))) return result;
  const entries = [];
  for await (const entry of result) entries.push(entry);
  return entries;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line);
  let out;
  try {
    out = { result: await commands[command](given) };
  } catch (error) {
    out = { error: error.code ?? error.constructor.name };
  }
  process.stdout.write(`${JSON.stringify(out)}\n`);
}
await gatehouse.close();
