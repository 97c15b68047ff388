"""Writes archives whose bytes depend only on their content: tar, zip, and images in the layout of OCI."""

import gzip
import hashlib
import io
import json
import tarfile
import zipfile

# 1980-01-01: the first moment that a zip can hold.
FIRST = (1980, 1, 1, 0, 0, 0)
OCI = "application/vnd.oci.image."


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def encoded(tree):
    """A JSON document for people."""
    return (json.dumps(tree, indent=2, ensure_ascii=False) + "\n").encode()


def tar(files):
    """An uncompressed archive of (name, mode, data); data None is a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, mode, data in files:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = mode, len(data or b"")
            entry.type = tarfile.REGTYPE if data is not None else tarfile.DIRTYPE
            archive.addfile(entry, io.BytesIO(data or b""))
    return out.getvalue()


def tar_gz(files):
    return gzip.compress(tar(files), 9, mtime=0)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, mode, data in files:
            entry = zipfile.ZipInfo(name, FIRST)
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3  # Unix: the mode counts.
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return out.getvalue()


def image(name, config, layers):
    """An image for several architectures, as a tar of the OCI layout.

    `layers` has the content of the only layer for each architecture; `config` is what a container starts with.
    """
    blobs = {}

    def blob(kind, data, **more):
        digest = sha256(data)
        blobs[digest] = data
        return {"mediaType": OCI + kind, "digest": f"sha256:{digest}", "size": len(data), **more}

    manifests = []
    for architecture, files in layers.items():
        plain = tar(files)
        layer = blob("layer.v1.tar+gzip", gzip.compress(plain, 9, mtime=0))
        description = {
            "architecture": architecture,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(plain)}"]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": OCI + "manifest.v1+json",
            "config": blob("config.v1+json", encoded(description)),
            "layers": [layer],
        }
        platform = {"architecture": architecture, "os": "linux"}
        manifests.append(blob("manifest.v1+json", encoded(manifest), platform=platform))
    index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": manifests}
    annotations = {"org.opencontainers.image.ref.name": name.rpartition(":")[2], "io.containerd.image.name": name}
    top = {
        "schemaVersion": 2,
        "mediaType": OCI + "index.v1+json",
        "manifests": [blob("index.v1+json", encoded(index), annotations=annotations)],
    }
    files = [("oci-layout", 0o644, encoded({"imageLayoutVersion": "1.0.0"})), ("index.json", 0o644, encoded(top))]
    return tar(files + [(f"blobs/sha256/{digest}", 0o644, blobs[digest]) for digest in sorted(blobs)])
