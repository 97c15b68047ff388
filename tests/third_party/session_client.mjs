// Holds a session over many programs with the TypeScript SDK, and prints what it saw as JSON.
//
// usage: node --input-type=module -e "$(cat session_client.mjs)" COUNT COMMAND [ARGUMENT ...]   in the folder of node_modules
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [count, command, ...args] = process.argv.slice(1);
const client = new Client({ name: "tests", version: "1" }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args }));
const call = (name, given) => client.callTool({ name, arguments: given }, undefined, { timeout: 120_000 });
const data = async (name, given) => (await call(name, given)).structuredContent;
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const session = (await data("lisp_session_start", { title: "held" })).session_id;
const program = async (text) => {
  const result = await call("lisp_session_eval", { session_id: session, program: text });
  return result.content.filter((block) => block.type === "text").map((block) => block.text).join("");
};
await program("(def total 0) (def seen [])");
const texts = [];
for (let number = 0; number < Number(count); number++) {
  texts.push(
    await program(
      `(def last-one (:value (tool/call {:server "probe" :tool "echo" :args {:v ${number}}})))` +
        "(def seen (conj seen last-one)) (def total (+ total last-one))" +
        "(when (= last-one 25) (fail :not-this)) total",
    ),
  );
}
const report = {
  tools,
  texts,
  total: await program("[total (count seen) (last seen)]"),
  session: await data("lisp_session_inspect", { session_id: session }),
  debug: await data("lisp_debug", { op: "stats" }),
  recent: await data("lisp_debug", { op: "recent", limit: 3 }),
  closed: await data("lisp_session_close", { session_id: session }),
  after: await data("lisp_session_eval", { session_id: session, program: "total" }),
};
await client.close();
process.stdout.write(JSON.stringify(report));
