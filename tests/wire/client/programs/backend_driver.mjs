// Runs the TypeScript package by commands: one JSON object per line in, one out.
import { createInterface } from "node:readline";

const settings = JSON.parse(process.argv[2]);
const { Gatehouse, SignIn, requireUser, withUser } = await import(settings.module);
let now = settings.now;
let requests = 0;
const clock = { now: () => now, monotonic: () => now };
const counted = (...call) => {
  requests += 1;
  return fetch(...call);
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
    const response = { status: (code) => ({ json: (body) => (answer = [code, body]) }) };
    await requireUser(gatehouse, rule)(request, response, (error) => {
      if (error) throw error;
      answer = [200, { user: request.user.userId }];
    });
    return answer;
  },
};

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
