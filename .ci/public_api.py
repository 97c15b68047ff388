#!/usr/bin/env python3
"""The public items of ptc-runtime, as people who embed it see them: kept in runtime/public-api.txt.

Read from rustdoc's pages, so `cargo doc --workspace --no-deps` comes first: the JSON that tools for this read is no part of
the stable tool chain. Listed are all public modules, each item with its fields, variants, methods and the traits that it
implements, and what is re-exported. A change of the file is a change for users; a line that goes breaks some of them.

usage: python3 .ci/public_api.py [--bless], behind `cargo doc --workspace --no-deps`
"""

import difflib
import html
import os
import re
import sys

DOCS = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "doc", "ptc_runtime")
# What a person who embeds the runtime can be asked to learn.
MOST_TYPES = 60
KEPT = os.path.join("runtime", "public-api.txt")
PAGE = re.compile(r"^(struct|enum|trait|fn|type|constant|macro|static|union)\.(\w+)\.html$")
# Where the part of a page ends that is about the item itself.
OTHERS = re.compile(r'id="(?:trait|synthetic|blanket)-implementations"|id="implementors"|id="deref-methods')
# Of what the compiler finds out by itself, what a type lacks and others build on.
LACKS = re.compile(r"^impl(<[^>]*>)? !(Send|Sync|Unpin) ")


def text(markup):
    """The words of some markup on one line."""
    plain = html.unescape(re.sub(r"<[^>]+>", "", markup.replace('<div class="where">', " ")))
    return re.sub(r"\s+", " ", plain.replace("]pub ", "] pub ")).strip(" ⓘ")


def headers(part, kind):
    """Code headers of the sections of a kind: methods, constants or impls."""
    sections = re.findall(rf'<section id="{kind}[^"]*" class="[^"]*">(.*?)</section>', part, re.S)
    found = [re.search(r'<h[34] class="code-header">(.*?)</h[34]>', section, re.S) for section in sections]
    return [text(header.group(1)) for header in found if header]


def part(page, begin, end):
    """What stands between two headings."""
    _, _, behind = page.partition(f'id="{begin}"')
    return behind.partition(f'id="{end}"')[0]


def item(page):
    """An item: its declaration, what it can do, what it implements."""
    found = re.search(r'<pre class="rust (?:item-decl|macro)"><code>(.*?)</code></pre>', page, re.S)
    declaration = re.sub(r"Show \d+ \w+", "", text(found.group(1)) if found else "")
    # What a constant is may change.
    lines = [re.sub(r"^(pub const [^=]*) = .*", r"\1", declaration)]
    own = OTHERS.split(page)[0]
    lines += [f"    {line}" for line in headers(own, r"method\.") + headers(own, r"associatedconstant\.")]
    traits = headers(part(page, "trait-implementations", "synthetic-implementations"), "impl-")
    synthetic = headers(part(page, "synthetic-implementations", "blanket-implementations"), "impl-")
    traits = [line for line in traits if " StructuralPartialEq " not in line]
    traits += [line for line in synthetic if LACKS.match(line)]
    return lines + [f"    {line}" for line in sorted(traits)]


def module(folder, path):
    """A module and those in it."""
    lines = [f"# {path}"]
    with open(os.path.join(folder, "index.html"), encoding="utf-8") as page:
        index = page.read()
    lines += sorted(text(line) for line in re.findall(r"<code>(pub use .*?)</code>", index, re.S))
    modules = re.findall(r'href="(\w+)/index\.html"', part(index, "modules", "structs") if 'id="modules"' in index else "")
    listed = set(re.findall(r'href="((?:struct|enum|trait|fn|type|constant|macro|static|union)\.\w+\.html)"', index))
    for name in sorted(listed):
        if PAGE.match(name) and os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8") as page:
                lines += item(page.read())
    lines.append("")
    for name in sorted(set(modules)):
        lines += module(os.path.join(folder, name), f"{path}::{name}")
    return lines


def main():
    if not os.path.isdir(DOCS):
        sys.exit(f"no {DOCS}: run `cargo doc --workspace --no-deps` first")
    now = module(DOCS, "ptc_runtime")
    types = [line for line in now if re.match(r"(#\[\w+\] )*pub (struct|enum|trait|type|union) ", line)]
    if len(types) > MOST_TYPES:
        sys.exit(f"{len(types)} public types, more than {MOST_TYPES}: an application has to know them all")
    if "--bless" in sys.argv:
        with open(KEPT, "w", encoding="utf-8") as kept:
            kept.write("\n".join(now))
        return
    with open(KEPT, encoding="utf-8") as kept:
        before = kept.read().split("\n")
    if before != now:
        changes = difflib.unified_diff(before, now, KEPT, "the documentation", n=1, lineterm="")
        sys.exit("\n".join([f"{KEPT} is out of date (--bless writes it)", *changes]))


main()
