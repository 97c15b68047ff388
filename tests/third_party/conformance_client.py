#!/usr/bin/env python3
"""Lets the official conformance suite drive `ptc` as a client; PTC names the binary.

    npm install @modelcontextprotocol/conformance@0.2.0-alpha.12   (Node 24)
    PTC=target/debug/ptc node node_modules/@modelcontextprotocol/conformance/dist/index.js client \\
        --command tests/third_party/conformance_client.py --scenario tools_call

Scenarios that need no elicitation: initialize, tools_call, sse-retry, request-metadata, http-standard-headers,
http-custom-headers, http-invalid-tool-headers, json-schema-2020-12-preservation, json-schema-ref-no-deref, and those of
OAuth (auth/…), for which it visits the address of `ptc login --paste` and pastes where that leads. docs/conformance.md
has their results.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

# How often a client may log in for one call.
MOST_LOGINS = 3

# The address of a document that describes the client, which the suite expects.
DOCUMENT = "https://conformance-test.local/client-metadata.json"


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


def issuer_of(server):
    """The authorization server, which a configuration with a secret has to name. The suite says it only by the server."""
    url = urllib.parse.urlsplit(server)
    for path in (url.path, ""):
        address = url._replace(path=f"/.well-known/oauth-protected-resource{path}").geturl()
        try:
            with urllib.request.urlopen(address) as answer:
                return json.load(answer)["authorization_servers"][0]
        except urllib.error.HTTPError:
            continue
    return f"{url.scheme}://{url.netloc}"


def auth_of(context, folder):
    """The `auth` of the entry and its credentials, from what the suite says about the client."""
    credentials, auth = {}, {"scheme": "oauth"}

    def secret(name, value):
        credentials[name] = {"source": "literal", "value": value}
        return name

    client = {"id": context["client_id"]}
    if "client_secret" in context:
        client["secret"] = secret("secret", context["client_secret"])
    if "private_key_pem" in context:
        client["key"] = secret("key", context["private_key_pem"])
    auth["client"] = client
    if len(client) > 1:
        auth["issuer"] = issuer_of(sys.argv[-1])
    if scenario.startswith("auth/client-credentials"):
        auth["grant"] = "client_credentials"
    if "idp_id_token" in context:
        path = os.path.join(folder, "id-token")
        with open(path, "w") as file:
            file.write(context["idp_id_token"])
        auth["grant"] = "id_jag"
        provider = {"id": context["idp_client_id"]}
        auth["idp"] = {"issuer": context["idp_issuer"], "client": provider, "id_token_file": path}
    return [auth], credentials


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def log_in(ptc, flags, environment):
    """Visits the address that `ptc login --paste` shows, and pastes where that leads."""
    command = [ptc, "login", "s", "--paste", *flags]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as login:
        for line in login.stdout:
            if line.strip().startswith("http"):
                break
        else:
            return login.wait()
        try:
            urllib.request.build_opener(NoRedirect).open(line.strip())
            answer = ""
        except urllib.error.HTTPError as error:
            answer = error.headers.get("location", "")
        login.stdin.write(answer + "\n")
        login.stdin.close()
        sys.stderr.write(login.stdout.read())
        return login.wait()


def main():
    with tempfile.TemporaryDirectory() as folder:
        entry, credentials = {"transport": "mcp_http", "url": sys.argv[-1], "required": False}, {}
        if "client_id" in context:
            entry["auth"], credentials = auth_of(context, folder)
        config = os.path.join(folder, "c.json")
        with open(config, "w") as file:
            json.dump({"upstreams": {"s": entry}, "credentials": credentials}, file)
        ptc = os.environ.get("PTC", "target/debug/ptc")
        environment = {**os.environ, "XDG_STATE_HOME": folder}
        flags = ["--upstreams-config", config, "--client-metadata-url", DOCUMENT]
        program = programs.get(scenario, call("test-tool", "{}") if scenario.startswith("auth/") else '(dir "s")')
        if scenario == "auth/2025-03-26-oauth-endpoint-fallback" and log_in(ptc, flags, environment) != 0:
            # Nothing that this server says names a login: its person has to know.
            return 1
        for _ in range(MOST_LOGINS + 1):
            ended = subprocess.run([ptc, "eval", program, *flags], env=environment, capture_output=True, text=True)
            said = ended.stdout + ended.stderr
            sys.stderr.write(said)
            if "login_required" not in said:
                break
            if log_in(ptc, flags, environment) != 0:
                return 1
        return ended.returncode


sys.exit(main())
