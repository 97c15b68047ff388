// Drives an MCP server with the TypeScript SDK, which opens with initialize, and prints what it saw as JSON.
//
// usage: node --input-type=module -e "$(cat client.mjs)" COMMAND|URL [ARGUMENT ...]   in the folder of node_modules
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [command, ...args] = process.argv.slice(1);
const client = new Client({ name: "tests", version: "1" }, { capabilities: {} });
const isRemote = command.startsWith("http");
const transport = isRemote
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args });
let protocol = null;
const keep = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  protocol = version;
  keep?.(version);
};
await client.connect(transport);
const report = {
  protocol,
  server: client.getServerVersion().name,
  instructions: client.getInstructions(),
};
report.tools = (await client.listTools()).tools;

const program = async (text, more = {}, options = {}) => {
  const call = { name: "lisp_eval", arguments: { program: text, ...more } };
  const result = await client.callTool(call, undefined, { timeout: 120_000, ...options });
  return {
    error: result.isError ?? false,
    text: result.content.filter((block) => block.type === "text").map((block) => block.text).join(""),
    structured: result.structuredContent ?? null,
  };
};
report.value = await program("(reduce + (range 101))");
report.context = await program("(map :name data/rows)", { context: { rows: [{ name: "é" }, { name: "b" }] } });
report.failed = await program("(+ 1 undefined-name)");
report.schema = await program("{:n 3}", {
  output_schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
});
const numbers = Array.from({ length: 50 }, (_, number) => number);
report.parallel = await Promise.all(numbers.map(async (n) => (await program(`(* ${n} ${n})`)).text));

// A caller that gives up; the server goes on.
const giveUp = new AbortController();
setTimeout(() => giveUp.abort(), 200);
await program("(loop [] (recur))", {}, { signal: giveUp.signal }).catch(() => {});
report.after_cancel = await program('(str "still " "here")');
await client.ping();
if (args.includes("--upstreams-config")) {
  report.upstream = await program(
    '(reduce + (pmap (fn [n] (:value (tool/call {:server "probe" :tool "echo" :args {:v n}}))) (range 10)))',
  );
}
// The variable FOLLOWED may have a program that is run with progress. Steps are counted where messages arrive, because the
// SDK forgets the listener of a call when it reads the answer: of messages that arrive in one piece, it drops the steps.
if (process.env.FOLLOWED) {
  const steps = [];
  const receive = transport.onmessage;
  transport.onmessage = (message, ...extra) => {
    if (message.method === "notifications/progress") steps.push([message.params.progress, message.params.message]);
    if ("result" in message) report.progress ??= [...steps];
    receive(message, ...extra);
  };
  let heard = 0;
  report.followed = await program(process.env.FOLLOWED, {}, { onprogress: () => (heard += 1) });
  report.heard = heard;
}
if (isRemote) await transport.terminateSession();
await client.close();
process.stdout.write(JSON.stringify(report));
