// An MCP server with the authorization server of npm oidc-provider: registration, codes with PKCE, rotated refresh tokens
// with detection of reuse, codes of devices, client credentials. Its people agree at once. Prints the address of the MCP
// server; access tokens live as many seconds as the argument says.

import http from "node:http";
import { Provider } from "oidc-provider";

// Notices of the package would follow the address, into a pipe that nothing reads.
console.info = console.error;
const life = Number(process.argv[2]);
const listener = http.createServer();
await new Promise((listening) => listener.listen(0, "127.0.0.1", listening));
const origin = `http://127.0.0.1:${listener.address().port}`;
const resource = `${origin}/mcp`;

const provider = new Provider(origin, {
  clients: [
    {
      client_id: "machine",
      client_secret: "machine-secret-Zq7Xw9Kd2Lm",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      scope: "read",
    },
  ],
  cookies: { keys: ["a key of this test"] },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    deviceFlow: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({ scope: "read", audience: resource, accessTokenTTL: life, accessTokenFormat: "opaque" }),
      useGrantedResource: () => true,
    },
    revocation: { enabled: true },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: () => true,
  pkce: { required: () => true },
  rotateRefreshToken: true,
  scopes: ["openid", "offline_access", "read"],
});

// Logs a person in and agrees, in one step.
async function agree(request, response) {
  const { params, grantId } = await provider.interactionDetails(request, response);
  const grant = grantId ? await provider.Grant.find(grantId) : new provider.Grant({ accountId: "ann", clientId: params.client_id });
  grant.addOIDCScope("openid offline_access read");
  grant.addResourceScope(resource, "read");
  const result = { login: { accountId: "ann" }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

async function mcp(request, response) {
  const answer = (status, headers, body) => response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
  const given = (request.headers.authorization ?? "").replace(/^Bearer /, "");
  const token =
    given && ((await provider.AccessToken.find(given)) ?? (await provider.ClientCredentials.find(given)));
  if (!token || token.isExpired || !token.aud?.includes(resource)) {
    const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
    return answer(401, { "www-authenticate": `Bearer resource_metadata="${metadata}"` }, "{}");
  }
  if (request.method !== "POST") return answer(405, {}, "{}");
  let text = "";
  for await (const part of request) text += part;
  const { id, method, params } = JSON.parse(text);
  if (id === undefined) return answer(202, {}, "");
  const results = {
    initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "hosted", version: "1" } }),
    "tools/list": () => ({ tools: [{ name: "add", inputSchema: { type: "object" } }] }),
    "tools/call": () => ({ content: [{ type: "text", text: String(params.arguments.a + params.arguments.b) }] }),
  };
  const error = { code: -32601, message: "Method not found" };
  const said = results[method] ? { result: results[method]() } : { error };
  answer(200, {}, JSON.stringify({ jsonrpc: "2.0", id, ...said }));
}

const callback = provider.callback();
listener.on("request", (request, response) => {
  const { pathname } = new URL(request.url, origin);
  const failed = (error) => response.writeHead(500).end(String(error));
  if (pathname === "/mcp") return mcp(request, response).catch(failed);
  if (pathname.startsWith("/interaction/")) return agree(request, response).catch(failed);
  if (pathname === "/.well-known/oauth-protected-resource/mcp") {
    const metadata = { resource, authorization_servers: [origin], scopes_supported: ["read"] };
    return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(metadata));
  }
  return callback(request, response);
});
console.log(resource);
