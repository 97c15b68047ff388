#!/usr/bin/env node
// Starts the binary that npm installed for this platform.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const name = `@NPM@-${platform}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/ptc`);
} catch {
  const known = Object.keys(require("../package.json").optionalDependencies);
  console.error(
    known.includes(name)
      ? `ptc: the package ${name} is missing. Install again, without --omit=optional.`
      : `ptc: there is no binary for ${platform}, only ${known.map((one) => one.slice("@NPM@-".length)).join(", ")}.`,
  );
  process.exit(1);
}

if (typeof process.execve === "function") {
  // The binary takes the place of this process, and gets its signals.
  process.removeAllListeners("warning");
  process.on("warning", () => {});
  process.execve(binary, ["ptc", ...process.argv.slice(2)], process.env);
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`ptc: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
