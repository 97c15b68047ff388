#!/usr/bin/env python3
"""Unpacks an image of the OCI layout: unpack.py IMAGE.tar ARCHITECTURE FOLDER. Checks every digest on the way."""

import gzip
import hashlib
import io
import json
import sys
import tarfile

layout, architecture, folder = sys.argv[1:]
with tarfile.open(layout) as image:

    def content(name):
        return image.extractfile(name).read()

    def blob(description):
        kind, digest = description["digest"].split(":")
        data = content(f"blobs/{kind}/{digest}")
        if hashlib.new(kind, data).hexdigest() != digest or len(data) != description["size"]:
            sys.exit(f"{layout}: {digest} is not what its digest says")
        return data

    index = json.loads(blob(json.loads(content("index.json"))["manifests"][0]))
    found = [entry for entry in index["manifests"] if entry["platform"]["architecture"] == architecture]
    if not found:
        sys.exit(f"{layout}: there is no image for {architecture}")
    manifest = json.loads(blob(found[0]))
    known = json.loads(blob(manifest["config"]))["rootfs"]["diff_ids"]
    for layer, expected in zip(manifest["layers"], known, strict=True):
        plain = gzip.decompress(blob(layer))
        if f"sha256:{hashlib.sha256(plain).hexdigest()}" != expected:
            sys.exit(f"{layout}: a layer is not what its digest says")
        with tarfile.open(fileobj=io.BytesIO(plain)) as files:
            files.extractall(folder)
