#!/usr/bin/env python3
"""Lets the official conformance suite drive `ptc` as a client; PTC names the binary.

    npm install @modelcontextprotocol/conformance@0.2.0-alpha.12   (Node 24)
    PTC=target/debug/ptc node node_modules/@modelcontextprotocol/conformance/dist/index.js client \\
        --command tests/third_party/conformance_client.py --scenario tools_call

Scenarios that need neither OAuth nor elicitation: initialize, tools_call, sse-retry, request-metadata,
http-standard-headers, http-custom-headers, http-invalid-tool-headers, json-schema-2020-12-preservation,
json-schema-ref-no-deref. docs/conformance.md has their results.
"""

import json
import os
import subprocess
import sys
import tempfile


def lisp(value):
    if isinstance(value, dict):
        return "{" + " ".join(f"{json.dumps(key)} {lisp(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + " ".join(map(lisp, value)) + "]"
    return "nil" if value is None else json.dumps(value, ensure_ascii=False)


def call(tool, arguments):
    return f'(tool/call {{:server "s" :tool {json.dumps(tool)} :args {arguments}}})'


scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
schema = '{:schema (get (meta "s/json_schema_2020_12_tool") "input_schema")}'
calls = [call(one["name"], lisp(one["arguments"])) for one in context.get("toolCalls", [])]
programs = {
    "tools_call": call("add_numbers", "{:a 5 :b 3}"),
    "sse-retry": call("test_reconnection", "{}"),
    "http-standard-headers": call("test_headers", "{}"),
    "http-custom-headers": "[" + " ".join(calls) + "]",
    "http-invalid-tool-headers": call("valid_tool", '{:region "us-west1"}'),
    "json-schema-2020-12-preservation": call("json_schema_echo", schema),
}
with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
    json.dump({"mcpServers": {"s": {"type": "http", "url": sys.argv[-1]}}}, config)
    config.flush()
    command = [os.environ.get("PTC", "target/debug/ptc"), "eval", "--upstreams-config", config.name]
    sys.exit(subprocess.run([*command, programs.get(scenario, '(dir "s")')]).returncode)
