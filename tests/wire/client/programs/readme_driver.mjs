// Runs the code of the TypeScript package's README by commands: one JSON object per line in, one out.
import { createInterface } from "node:readline";

const settings = JSON.parse(process.argv[2]);
globalThis.testClock = { now: () => settings.now, monotonic: () => settings.now };
const readme = await import(settings.module);
const session = {};
const server = await new Promise((resolve) => {
  const listening = readme.app.listen(0, "127.0.0.1", () => resolve(listening));
});

const commands = {
  port: async () => server.address().port,
  mayKick: ({ jwt, factor }) => readme.mayKick(jwt, factor),
  post: async ({ headers }) => {
    const response = await readme.POST(new Request("http://localhost/kick", { method: "POST", headers }));
    return [response.status, await response.json()];
  },
  login: async () => (await readme.login(session)).headers.get("location"),
  callback: async ({ url }) => {
    const response = await readme.callback(new Request(url), session);
    return [response.headers.get("location"), session.userId ?? null];
  },
  report: async ({ address }) => {
    const response = await readme.reportMatch(address);
    return [response.status, await response.json()];
  },
  whoMayKick: ({ applicationId }) => readme.whoMayKick(applicationId),
  createTester: ({ token }) => readme.createTester(token),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ result: await commands[command](given) })}\n`);
}
await readme.gatehouse.close();
server.close();
server.closeAllConnections();
