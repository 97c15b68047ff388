// Looks at the page of `ptc serve --ui` with a browser: `node --experimental-websocket page.mjs BROWSER LINK MCP CALLS`.
//
// It begins a program with CALLS calls that are never answered, and one that waits for an approval, and prints a report
// as JSON. With PTC_PAGE_PICTURES=DIR it stores a picture of each view in light and dark there.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [, , executable, link, mcp, calls] = process.argv;
const origin = new URL(link).origin;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, look) {
  for (;;) {
    const found = await look();
    if (found) return found;
    await sleep(50);
  }
}

async function browser() {
  const folder = mkdtempSync(join(tmpdir(), "ptc-page-"));
  const flags = ["--no-sandbox", "--headless", "--remote-debugging-port=0", `--user-data-dir=${folder}`, "about:blank"];
  const child = spawn(executable, flags, { stdio: ["ignore", "ignore", "pipe"] });
  const address = await new Promise((done, failed) => {
    let text = "";
    child.stderr.on("data", (piece) => {
      text += piece;
      const found = /listening on (ws:\S+)/.exec(text);
      if (found) done(found[1]);
    });
    child.on("exit", () => failed(new Error(text)));
  });
  const socket = new WebSocket(address);
  await new Promise((done) => (socket.onopen = done));
  const waiting = new Map();
  const events = [];
  let id = 0;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (!message.id) return events.push(message);
    const { done, failed } = waiting.get(message.id);
    waiting.delete(message.id);
    message.error ? failed(new Error(JSON.stringify(message.error))) : done(message.result);
  };
  const send = (method, params = {}, sessionId) =>
    new Promise((done, failed) => {
      waiting.set(++id, { done, failed });
      socket.send(JSON.stringify({ id, method, params, sessionId }));
    });
  const end = () => {
    socket.close();
    child.kill();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  return { send, events, end };
}

async function view({ send, events }) {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const tell = (method, params) => send(method, params, sessionId);
  for (const part of ["Page", "Runtime", "Log"]) await tell(`${part}.enable`);
  const size = { width: 1200, height: 900, deviceScaleFactor: 1, mobile: false };
  await tell("Emulation.setDeviceMetricsOverride", size);
  const evaluate = async (expression) => {
    const { result, exceptionDetails } =
      await tell("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return result.value;
  };
  const codes = { Tab: 9, Enter: 13 };
  return {
    evaluate,
    until: (expression) => until(expression, () => evaluate(expression).catch(() => false)),
    async go(address) {
      await tell("Page.navigate", { url: address });
      await this.until("document.readyState === 'complete'");
    },
    async key(key) {
      const event = { key, code: key, windowsVirtualKeyCode: codes[key], text: key === "Enter" ? "\r" : undefined };
      await tell("Input.dispatchKeyEvent", { type: "keyDown", ...event });
      await tell("Input.dispatchKeyEvent", { type: "keyUp", ...event });
    },
    async scheme(value) {
      await tell("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
    },
    async picture(name) {
      if (!process.env.PTC_PAGE_PICTURES) return;
      const { data } = await tell("Page.captureScreenshot", { format: "png" });
      writeFileSync(join(process.env.PTC_PAGE_PICTURES, `${name}.png`), Buffer.from(data, "base64"));
    },
    // What went wrong in the view, refused scripts among it.
    faults: () => events
      .filter((event) => event.sessionId === sessionId)
      .filter(({ method, params }) => method === "Runtime.exceptionThrown" || method === "Page.javascriptDialogOpening"
        || (method === "Log.entryAdded" && params.entry.level === "error"))
      .map(({ params }) => JSON.stringify(params).slice(0, 300)),
  };
}

function begin(program) {
  const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "page", version: "1" } };
  const params = { name: "lisp_eval", arguments: { program }, _meta: meta };
  return fetch(mcp, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json",
      "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "lisp_eval" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  }).then((answer) => answer.json()).catch(() => null);
}

// The least contrast of text to its background, over all elements with text of their own.
const CONTRAST = `(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parts(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const own = [...document.body.querySelectorAll("*")].filter((element) => !element.closest("svg, [hidden]")
    && [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  return Math.min(...own.map((element) => {
    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  }));
})()`;

// The element with the focus: what it is called, and whether the focus is seen.
const FOCUS = `(() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const name = at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent;
  const style = getComputedStyle(at);
  return { tag: at.tagName, name: name.trim().replace(/\\s+/g, " ").slice(0, 60),
    seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 };
})()`;

async function tabs(page, isReached) {
  const passed = [];
  for (let at = 0; at < 60; at++) {
    await page.key("Tab");
    const focus = await page.evaluate(FOCUS);
    if (!focus) continue;
    passed.push(focus);
    if (isReached(focus)) return passed;
  }
  throw new Error(`not reached: ${JSON.stringify(passed)}`);
}

const chrome = await browser();
const report = { contrast: {} };
try {
  const page = await view(chrome);
  await page.go(link);
  await page.until("location.pathname === '/ui' && document.readyState === 'complete'");
  begin(`(pmap (fn [n]\n        (tool/call 'probe/hold {:n n}))\n      (range ${calls}))`);
  const asked = begin("(:reason (tool/call 'probe/echo {:v \"<b>\"}))");
  await page.until("document.querySelectorAll('#live .bars rect').length > 0");
  await page.until(`[...document.querySelectorAll('#live .bars')].some((bars) => bars.childElementCount === ${calls})`);
  const frames = `new Promise((done) => { let count = 0; const begun = performance.now();
    const next = (now) => now - begun > 2000 ? done(count / 2) : (count++, requestAnimationFrame(next));
    requestAnimationFrame(next); })`;
  report.frames = await page.evaluate(frames);
  await page.go(`${origin}/ui/runs/1`);
  await page.until(`document.querySelectorAll('.whole .bars rect').length === ${calls}`);
  report.line = await page.evaluate("document.querySelector('.program .lit')?.dataset.line");
  report.rows = await page.evaluate("document.querySelectorAll('.names li').length");
  const right = "parseFloat(document.querySelector('.bars').getAttribute('viewBox').split(' ')[2])";
  const before = await page.evaluate(right);
  await page.until(`${right} > ${before}`);
  report.frames_of_run = await page.evaluate(frames);
  for (const path of ["", "/runs/1", "/approvals", "/servers", "/sessions"]) {
    await page.go(`${origin}/ui${path}`);
    await page.until("document.querySelector('#main').dataset.mark !== undefined");
    const name = path.split("/")[1] || "live";
    if (name === "live") await page.until("document.querySelectorAll('#live .bars rect').length > 0");
    for (const scheme of ["light", "dark"]) {
      await page.scheme(scheme);
      report.contrast[`${name} ${scheme}`] = await page.evaluate(CONTRAST);
      await page.picture(`${name}-${scheme}`);
    }
  }
  // With the keyboard alone: from the list to the approvals, and there to the button.
  await page.go(`${origin}/ui`);
  report.keyboard = await tabs(page, ({ name }) => name.startsWith("Approvals"));
  await page.key("Enter");
  await page.until("location.pathname === '/ui/approvals' && document.readyState === 'complete'");
  await page.until("document.querySelector('.question')");
  report.keyboard.push(...await tabs(page, ({ name }) => name.startsWith("Approve once")));
  await page.key("Enter");
  await page.until("document.querySelector('#state').textContent.startsWith('Approved')");
  report.answer = (await asked).result.content[0].text;
  report.title = await page.evaluate("document.title");
  report.faults = page.faults();
  console.log(JSON.stringify(report));
} finally {
  chrome.end();
}
process.exit(0);
