// Logs in at an MCP server with the TypeScript SDK, which finds the way by itself, and runs a program there.
//
// usage: node --input-type=module -e "$(cat oauth_client.mjs)" URL   in the folder of node_modules
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const url = new URL(process.argv[1]);
const kept = {};
let arrived = null;
const provider = {
  redirectUrl: "http://localhost:3030/callback",
  clientMetadata: { client_name: "tests", redirect_uris: ["http://localhost:3030/callback"] },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: async (address) => {
    const answer = await fetch(address, { redirect: "manual" });
    arrived = new URL(answer.headers.get("location"));
  },
};
const transport = () => new StreamableHTTPClientTransport(url, { authProvider: provider });
const client = () => new Client({ name: "tests", version: "1" }, { capabilities: {} });
const first = transport();
try {
  await client().connect(first);
  throw new Error("it let in a client without a token");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
await first.finishAuth(arrived.searchParams.get("code"));
const second = client();
await second.connect(transport());
const result = await second.callTool({ name: "lisp_eval", arguments: { program: "[(+ 1 2) (map :name (tool/servers))]" } });
await second.close();
process.stdout.write(JSON.stringify({ text: result.content[0].text, scope: kept.tokens.scope }));
