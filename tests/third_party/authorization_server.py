"""An authorization server whose access tokens are signed (JWT, RFC 9068): metadata, keys, registration, codes with PKCE.

usage: authorization_server.py RESOURCE

It prints its issuer as its first line, and adds `iss` to its answers (RFC 9207). Its people agree to everything. RESOURCE
is the only audience of its tokens.
"""

import base64
import hashlib
import json
import secrets
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

KEY = ec.generate_private_key(ec.SECP256R1())
CODES = {}


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def json(self, value, status=200):
        self.reply(status, json.dumps(value).encode(), content_type="application/json")

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path in ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"):
            return self.json(METADATA)
        if url.path == "/keys":
            key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key()))
            return self.json({"keys": [{**key, "kid": "k1", "use": "sig", "alg": "ES256"}]})
        if url.path == "/authorize":
            given = {name: values[0] for name, values in parse_qs(url.query).items()}
            code = secrets.token_urlsafe()
            CODES[code] = given
            answer = {"code": code, "state": given.get("state", ""), "iss": ISSUER}
            return self.reply(302, location=f"{given['redirect_uri']}?{urlencode(answer)}")
        self.reply(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/register":
            wanted = json.loads(body)
            return self.json({**wanted, "client_id": secrets.token_urlsafe(), "token_endpoint_auth_method": "none"}, 201)
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        asked = CODES.pop(form.get("code"), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if asked is None or asked["code_challenge"] != challenge.decode().rstrip("="):
            return self.json({"error": "invalid_grant"}, 400)
        if asked.get("resource") != sys.argv[1] or form.get("resource") != sys.argv[1]:
            return self.json({"error": "invalid_target"}, 400)
        now = int(time.time())
        claims = {
            "iss": ISSUER, "sub": "ann", "aud": asked["resource"], "client_id": asked["client_id"],
            "scope": asked.get("scope", ""), "iat": now, "exp": now + 300, "jti": secrets.token_urlsafe(),
        }
        token = jwt.encode(claims, KEY, algorithm="ES256", headers={"kid": "k1", "typ": "at+jwt"})
        self.json({"access_token": token, "token_type": "Bearer", "expires_in": 300, "scope": claims["scope"]})


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
ISSUER = f"http://127.0.0.1:{server.server_port}"
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/register",
    "jwks_uri": f"{ISSUER}/keys",
    "response_types_supported": ["code"],
    "code_challenge_methods_supported": ["S256"],
    "token_endpoint_auth_methods_supported": ["none"],
    "authorization_response_iss_parameter_supported": True,
}
print(ISSUER, flush=True)
server.serve_forever()
