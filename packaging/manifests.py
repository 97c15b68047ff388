#!/usr/bin/env python3
"""Makes every package of a release from the archives of `build.sh`, without another build.

    packaging/manifests.py [--dist DIR] [--all]    writes the packages into DIR (target/packages)
    packaging/manifests.py --version               prints the version

The version comes from Cargo.toml, names and addresses from `names.json`, texts from the templates in this folder.
Only the standard library is used. `--all` fails if a target has no archive.
"""

import argparse
import base64
import hashlib
import json
import pathlib
import re
import sys
import tarfile
import urllib.parse

from archives import encoded, image, sha256, tar_gz, zipped

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
LICENCE = "MIT OR Apache-2.0"
# What a client runs.
SERVE = ["serve"]


def version():
    text = (ROOT / "Cargo.toml").read_text(encoding="utf8")
    found = re.search(r'^\[workspace\.package\]\n(?:[^\[\n].*\n)*?version = "([^"]+)"', text, re.M)
    if not found:
        sys.exit("Cargo.toml has no version in [workspace.package]")
    return found.group(1)


class Release:
    """Names, version and binaries: all that a package is made of."""

    def __init__(self, dist, wants_all):
        self.dist, self.version = dist, version()
        names = json.loads((HERE / "names.json").read_text(encoding="utf8"))
        words = {"owner": names["owner"], "version": self.version}
        self.names = {key: text.format(**words) if isinstance(text, str) else text for key, text in names.items()}
        # Names of images are in lower case.
        self.image = f"{self.names['image'].lower()}:{self.version}"
        self.targets, self.binaries, self.archives = {}, {}, {}
        for target, row in names["targets"].items():
            archive = dist / f"ptc-{self.version}-{target}.tar.gz"
            if archive.exists():
                self.targets[target] = row
                self.archives[target] = archive.read_bytes()
                self.binaries[target] = binary(archive)
            elif wants_all:
                sys.exit(f"there is no {archive}: run packaging/build.sh {target}")
        if not self.targets:
            sys.exit(f"there is no archive of {self.version} in {dist}: run packaging/build.sh")

    def template(self, name):
        """A file of this folder, with @NAME@ replaced."""
        text = (HERE / name).read_text(encoding="utf8")
        words = {**self.names, "version": self.version}
        return re.sub(r"@([A-Z]+)@", lambda found: words[found.group(1).lower()], text)

    def licences(self, folder):
        return [(f"{folder}{name}", 0o644, (ROOT / name).read_bytes()) for name in ("LICENSE-MIT", "LICENSE-APACHE")]


def binary(archive):
    with tarfile.open(archive) as files:
        member = next(member for member in files.getmembers() if member.name.endswith("/ptc"))
        return files.extractfile(member).read()


def npm(release):
    """A package for each platform with its binary, and one that depends on that of the machine."""
    name, common = release.names["npm"], {
        "version": release.version,
        "license": LICENCE,
        "homepage": release.names["repository"],
        "repository": {"type": "git", "url": f"git+{release.names['repository']}.git"},
    }
    about = release.template("about.md").encode()
    platforms = {}
    for target, row in release.targets.items():
        platform = platforms[target] = f"{name}-{row['npm']}"
        manifest = {
            "name": platform, "description": f"The binary of {name} for Linux on {row['machine']}", **common,
            "os": ["linux"], "cpu": [row["cpu"]], "preferUnplugged": True, "files": ["bin"],
        }
        yield f"{platform}-{release.version}.tgz", tar_gz([
            ("package/package.json", 0o644, encoded(manifest)),
            ("package/README.md", 0o644, about),
            *release.licences("package/"),
            ("package/bin/ptc", 0o755, release.binaries[target]),
        ])
    manifest = {
        "name": name, "description": release.names["summary"], **common,
        "keywords": release.names["keywords"], "mcpName": release.names["registry"],
        "bin": {"ptc": "bin/ptc.js"}, "files": ["bin"], "engines": {"node": ">=18"},
        "optionalDependencies": {platform: release.version for platform in platforms.values()},
    }
    yield f"{name}-{release.version}.tgz", tar_gz([
        ("package/package.json", 0o644, encoded(manifest)),
        ("package/README.md", 0o644, about),
        *release.licences("package/"),
        ("package/bin/ptc.js", 0o755, release.template("launcher.js").encode()),
    ])


def wheels(release):
    """One for each platform: a static binary fits every Linux, with glibc or musl."""
    name = release.names["pypi"].replace("-", "_")
    info = f"{name}-{release.version}.dist-info"
    metadata = "\n".join([
        "Metadata-Version: 2.4",
        f"Name: {release.names['pypi']}",
        f"Version: {release.version}",
        f"Summary: {release.names['summary']}",
        f"Keywords: {','.join(release.names['keywords'])}",
        f"License-Expression: {LICENCE}",
        "License-File: LICENSE-MIT",
        "License-File: LICENSE-APACHE",
        f"Project-URL: Repository, {release.names['repository']}",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
        "",
        release.template("about.md"),
    ])
    for target, row in release.targets.items():
        platforms = [f"{libc}_{row['machine']}" for libc in ("manylinux_2_17", "manylinux2014", "musllinux_1_1")]
        tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
        files = [
            (f"{name}-{release.version}.data/scripts/ptc", 0o755, release.binaries[target]),
            (f"{info}/METADATA", 0o644, metadata.encode()),
            (f"{info}/WHEEL", 0o644, f"Wheel-Version: 1.0\nGenerator: ptc\nRoot-Is-Purelib: false\n{tags}".encode()),
            *release.licences(f"{info}/licenses/"),
        ]
        lines = [f"{path},sha256={url_safe(data)},{len(data)}\n" for path, _, data in files]
        files.append((f"{info}/RECORD", 0o644, ("".join(lines) + f"{info}/RECORD,,\n").encode()))
        yield f"{name}-{release.version}-py3-none-{'.'.join(platforms)}.whl", zipped(files)


def url_safe(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def oci(release, authorities):
    """An image from nothing: the binary, certificate authorities, and a folder for large results."""
    config = {
        "Entrypoint": ["/ptc"],
        "Cmd": SERVE,
        "User": "65534:65534",
        "ExposedPorts": {"7332/tcp": {}},
        "StopSignal": "SIGTERM",
        "Labels": {
            "io.modelcontextprotocol.server.name": release.names["registry"],
            "org.opencontainers.image.title": "ptc",
            "org.opencontainers.image.description": release.names["summary"],
            "org.opencontainers.image.version": release.version,
            "org.opencontainers.image.licenses": LICENCE,
            "org.opencontainers.image.source": release.names["repository"],
        },
    }
    common = [
        *((folder, 0o755, None) for folder in ("etc", "etc/ssl", "etc/ssl/certs")),
        ("etc/ssl/certs/ca-certificates.crt", 0o644, authorities),
        ("tmp", 0o1777, None),
    ]
    layers = {row["oci"]: [*common, ("ptc", 0o755, release.binaries[target])]
              for target, row in release.targets.items()}
    yield f"ptc-{release.version}-oci.tar", image(release.image, config, layers)


def mcpb(release):
    """Bundles for hosts that install servers by a click."""
    manifest = {
        "manifest_version": "0.3", "name": "ptc", "display_name": "ptc", "version": release.version,
        "description": release.names["summary"], "author": {"name": "The authors of ptc"}, "license": LICENCE,
        "repository": {"type": "git", "url": release.names["repository"]},
        "homepage": release.names["repository"], "keywords": release.names["keywords"],
        "server": {
            "type": "binary", "entry_point": "server/ptc",
            "mcp_config": {
                "command": "${__dirname}/server/ptc", "args": SERVE,
                "env": {"PTC_UPSTREAMS": "${user_config.upstreams}"},
            },
        },
        "tools": [{"name": "lisp_eval", "description": "Runs a program that calls the tools of your servers"}],
        "compatibility": {"platforms": ["linux"]},
        "user_config": {"upstreams": {
            "type": "file", "title": "Servers", "required": True, "default": "${HOME}/.config/ptc/upstreams.json",
            "description": "The mcpServers file with the servers that programs call; `ptc config import` writes one",
        }},
    }
    for target, row in release.targets.items():
        yield f"ptc-{release.version}-{row['npm']}.mcpb", zipped([
            ("manifest.json", 0o644, encoded(manifest)),
            *release.licences(""),
            ("server/ptc", 0o755, release.binaries[target]),
        ])


def npx(release, pinned):
    """The entry of a client."""
    name = release.names["npm"] + (f"@{release.version}" if pinned else "")
    return {"command": "npx", "args": ["-y", name, *SERVE]}


def vscode(release):
    """The link that adds the server to VS Code; docs/install.md has it."""
    config = json.dumps(npx(release, pinned=False), separators=(",", ":"))
    return "https://vscode.dev/redirect/mcp/install?" + urllib.parse.urlencode({"name": "ptc", "config": config})


def plugin(release):
    """A plugin of Claude Code, and a marketplace of this plugin alone."""
    author = {"name": "The authors of ptc"}
    described = {"name": "ptc", "version": release.version, "description": release.names["summary"], "author": author}
    manifest = {**described, "homepage": release.names["repository"], "repository": release.names["repository"],
                "license": LICENCE, "keywords": release.names["keywords"]}
    marketplace = {"name": "ptc", "owner": author, "plugins": [{**described, "source": "./"}],
                   "metadata": {"description": release.names["summary"], "version": release.version}}
    guide = (ROOT / "docs/guide.md").read_text(encoding="utf8")
    documents = f"{release.names['repository']}/blob/v{release.version}/docs/"
    guide = re.sub(r"\]\((?![a-z]+:|#)([^)]+)\)", lambda link: f"]({documents}{link.group(1)})", guide)
    yield f"ptc-{release.version}-claude-plugin.zip", zipped([
        (".claude-plugin/plugin.json", 0o644, encoded(manifest)),
        (".claude-plugin/marketplace.json", 0o644, encoded(marketplace)),
        (".mcp.json", 0o644, encoded({"mcpServers": {"ptc": npx(release, pinned=True)}})),
        ("skills/ptc-lisp/SKILL.md", 0o644, (release.template("skill.md") + guide).encode()),
        *release.licences(""),
    ])


def formula(release):
    blocks = ""
    for target, row in release.targets.items():
        address = f"{release.names['downloads']}/ptc-{release.version}-{target}.tar.gz"
        blocks += f'  on_{row["brew"]} do\n    url "{address}"\n    sha256 "{sha256(release.archives[target])}"\n  end\n\n'
    release.names["platforms"] = blocks.rstrip("\n") + "\n"
    yield "ptc.rb", release.template("ptc.rb").encode()


def server_json(release, bundles):
    """The entry of the MCP Registry, with schema 2025-12-11."""
    def package(kind, identifier, **more):
        return {"registryType": kind, "identifier": identifier, **more, "transport": {"type": "stdio"}}

    serve = {"packageArguments": [{"type": "positional", "value": word} for word in SERVE]}
    packages = [
        package("npm", release.names["npm"], version=release.version, runtimeHint="npx", **serve),
        package("pypi", release.names["pypi"], version=release.version, runtimeHint="uvx", **serve),
        package("oci", release.image, runtimeHint="docker"),
        *(package("mcpb", f"{release.names['downloads']}/{name}", version=release.version, fileSha256=sha256(data))
          for name, data in bundles.items()),
    ]
    yield "server.json", encoded({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": release.names["registry"], "title": "ptc", "description": release.names["summary"],
        "version": release.version, "websiteUrl": release.names["repository"],
        "repository": {"url": release.names["repository"], "source": "github"},
        "packages": packages,
    })


def main():
    usage = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usage.add_argument("--dist", type=pathlib.Path, default=ROOT / "target/packages")
    usage.add_argument("--all", action="store_true", help="fail if a target has no archive")
    usage.add_argument("--authorities", type=pathlib.Path, default="/etc/ssl/certs/ca-certificates.crt",
                       help="certificate authorities of the image, in PEM")
    usage.add_argument("--version", action="version", version=version())
    options = usage.parse_args()
    release = Release(options.dist, options.all)
    if not options.authorities.exists():
        sys.exit(f"there is no {options.authorities}: the image needs certificate authorities (--authorities FILE)")
    bundles = dict(mcpb(release))
    written = {
        **dict(npm(release)), **dict(wheels(release)), **dict(oci(release, options.authorities.read_bytes())),
        **bundles, **dict(plugin(release)), **dict(formula(release)), **dict(server_json(release, bundles)),
        "install.sh": release.template("install.sh").encode(),
        "vscode.txt": (vscode(release) + "\n").encode(),
    }
    for name, data in written.items():
        (options.dist / name).write_bytes(data)
        print(f"{len(data):>10}  {name}")
    sums = {name: sha256(data) for name, data in written.items()}
    sums |= {f"ptc-{release.version}-{target}.tar.gz": sha256(data) for target, data in release.archives.items()}
    (options.dist / "SHA256SUMS").write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))


main()
