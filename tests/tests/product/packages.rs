//! The packages of a release agree: `packaging/manifests.py` makes all of them here, from stand-ins for the binaries.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use jsonschema::JSONSchema;
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

fn output(program: &str, arguments: &[&str], folder: &Path) -> Output {
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}

/// What a command prints; it must succeed.
fn printed(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = output(program, arguments, folder);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {complaints}");
    String::from_utf8(output.stdout).unwrap()
}

/// The version of Cargo.toml.
fn version() -> String {
    let manifest: toml::Table = read(&workspace().join("Cargo.toml")).parse().unwrap();
    manifest["workspace"]["package"]["version"].as_str().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn make(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let version = version();
    for target in TARGETS {
        let name = format!("ptc-{version}-{target}");
        std::fs::create_dir(folder.join(&name)).unwrap();
        let script = format!("#!/bin/sh\n# {target}\necho ptc {version}\n");
        let binary = folder.join(&name).join("ptc");
        std::fs::write(&binary, script).unwrap();
        printed("chmod", &["755", binary.to_str().unwrap()], folder);
        printed("tar", &["-czf", &format!("{name}.tar.gz"), &name], folder);
        std::fs::remove_dir_all(folder.join(&name)).unwrap();
    }
    let script = workspace().join("packaging/manifests.py");
    let licence = workspace().join("LICENSE-MIT");
    let arguments = ["--all", "--dist", folder.to_str().unwrap(), "--authorities", licence.to_str().unwrap()];
    printed("python3", &[&[script.to_str().unwrap()], &arguments[..]].concat(), folder);
}

/// The folder with all packages, made once.
fn packages() -> &'static Path {
    static MADE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packages");
        make(&path);
        (folder, path)
    });
    path
}

/// A file in an npm package.
fn in_npm(package: &str, file: &str) -> String {
    let archive = format!("{package}-{}.tgz", version());
    printed("tar", &["-xzOf", &archive, &format!("package/{file}")], packages())
}

/// A file in a zip: a wheel, a bundle, a plugin.
fn in_zip(archive: &str, file: &str) -> String {
    const READ: &str =
        "import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]).decode(), end='')";
    printed("python3", &["-c", READ, archive, file], packages())
}

/// The only package whose name has this ending.
fn files(ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(packages()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).collect()
}

fn names() -> Value {
    parsed(&read(&workspace().join("packaging/names.json")))
}

/// A name of `names.json` with the owner filled in.
fn name(key: &str) -> String {
    let names = names();
    let owner = names["owner"].as_str().unwrap();
    names[key].as_str().unwrap().replace("{owner}", owner).replace("{version}", &version())
}

#[test]
fn versions_and_names_are_the_same_everywhere() {
    let version = version();
    let npm = parsed(&in_npm("ptc", "package.json"));
    let plugin = format!("ptc-{version}-claude-plugin.zip");
    let manifest = parsed(&in_zip(&plugin, ".claude-plugin/plugin.json"));
    let marketplace = parsed(&in_zip(&plugin, ".claude-plugin/marketplace.json"));
    let server = parsed(&read(&packages().join("server.json")));
    let mut versions: BTreeMap<String, Value> = [
        ("npm", &npm["version"]),
        ("plugin", &manifest["version"]),
        ("marketplace", &marketplace["plugins"][0]["version"]),
        ("server.json", &server["version"]),
    ]
    .map(|(what, version)| (what.to_owned(), version.clone()))
    .into();
    let mut summaries =
        vec![npm["description"].clone(), manifest["description"].clone(), server["description"].clone()];
    for package in ["ptc-linux-x64", "ptc-linux-arm64"] {
        let platform = parsed(&in_npm(package, "package.json"));
        assert_eq!(platform["name"], package);
        versions.insert(package.to_owned(), platform["version"].clone());
        versions.insert(format!("dependency {package}"), npm["optionalDependencies"][package].clone());
    }
    for bundle in files(".mcpb") {
        let manifest = parsed(&in_zip(&bundle, "manifest.json"));
        summaries.push(manifest["description"].clone());
        versions.insert(bundle, manifest["version"].clone());
    }
    for wheel in files(".whl") {
        let metadata = in_zip(&wheel, &format!("ptc-{version}.dist-info/METADATA"));
        let field = |key: &str| {
            let line = metadata.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            json!(line.unwrap_or_else(|| panic!("no {key}")))
        };
        assert_eq!(field("Name"), name("pypi"));
        summaries.push(field("Summary"));
        versions.insert(wheel, field("Version"));
    }
    assert_eq!(versions.len(), 12, "{versions:?}");
    assert!(versions.values().all(|found| *found == version), "{versions:?}");
    assert!(summaries.iter().all(|summary| *summary == name("summary")), "{summaries:?}");
    for text in [read(&packages().join("install.sh")), read(&packages().join("ptc.rb"))] {
        assert!(text.contains(&version) && text.contains(&name("downloads")), "{text}");
    }
    // A template's word that has no value stays in the text.
    for text in
        [in_npm("ptc", "README.md"), in_npm("ptc", "bin/ptc.js"), read(&packages().join("install.sh"))]
    {
        assert!(
            !text.contains("@NPM@") && !text.contains("@VERSION@") && !text.contains("@REPOSITORY@"),
            "{text}"
        );
    }
}

/// What the registry asks for in <https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json>, and
/// what its publisher checks in the packages.
#[test]
fn the_entry_of_the_registry_is_valid() {
    let server = parsed(&read(&packages().join("server.json")));
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned();
    let registry = name("registry");
    assert_eq!(text(&server["name"]), registry);
    let form = regex::Regex::new("^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$").unwrap();
    assert!(form.is_match(&registry), "{registry}");
    assert!((1..=100).contains(&text(&server["description"]).len()));
    assert_eq!(server["repository"]["source"], "github");
    let packages_of = |kind: &str| -> Vec<&Value> {
        let all = server["packages"].as_array().unwrap();
        all.iter().filter(|package| package["registryType"] == kind).collect()
    };
    assert_eq!(["npm", "pypi", "oci", "mcpb"].map(|kind| packages_of(kind).len()), [1, 1, 1, 2]);
    for package in server["packages"].as_array().unwrap() {
        assert_eq!(package["transport"], json!({ "type": "stdio" }));
        // The tag of an image is its version.
        assert_eq!(package.get("version").is_none(), package["registryType"] == "oci", "{package}");
    }
    assert_eq!(packages_of("npm")[0]["identifier"], name("npm"));
    assert_eq!(packages_of("pypi")[0]["identifier"], name("pypi"));
    assert_eq!(
        packages_of("oci")[0]["identifier"],
        format!("{}:{}", name("image").to_lowercase(), version())
    );
    let sums = read(&packages().join("SHA256SUMS"));
    for bundle in packages_of("mcpb") {
        let file = text(&bundle["identifier"]).rsplit_once('/').unwrap().1.to_owned();
        assert!(sums.contains(&format!("{}  {file}\n", text(&bundle["fileSha256"]))), "{file}: {sums}");
    }
    // Each package says that it belongs to the entry.
    assert_eq!(parsed(&in_npm("ptc", "package.json"))["mcpName"], registry);
    let wheel = files(".whl").remove(0);
    let metadata = in_zip(&wheel, &format!("ptc-{}.dist-info/METADATA", version()));
    assert!(metadata.contains(&format!("\nmcp-name: {registry}\n")), "{metadata}");
}

#[test]
fn bundles_follow_their_schema() {
    let schema = parsed(&read(&workspace().join("packaging/schemas/mcpb-manifest-v0.3.schema.json")));
    let schema = JSONSchema::compile(&schema).unwrap();
    assert_eq!(files(".mcpb").len(), TARGETS.len());
    for bundle in files(".mcpb") {
        let manifest = parsed(&in_zip(&bundle, "manifest.json"));
        let errors: Vec<String> =
            schema.validate(&manifest).err().into_iter().flatten().map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{bundle}: {errors:?}");
        let binary = in_zip(&bundle, manifest["server"]["entry_point"].as_str().unwrap());
        assert!(binary.starts_with("#!/bin/sh"), "{binary}");
    }
}

/// npm runs no script at installation; the right binary comes with the platform's package.
#[test]
fn npm_packages_have_no_install_script() {
    for package in ["ptc", "ptc-linux-x64", "ptc-linux-arm64"] {
        let manifest = parsed(&in_npm(package, "package.json"));
        assert!(manifest.get("scripts").is_none() && manifest.get("dependencies").is_none(), "{manifest}");
    }
    for (package, cpu, target) in
        [("ptc-linux-x64", "x64", TARGETS[0]), ("ptc-linux-arm64", "arm64", TARGETS[1])]
    {
        let manifest = parsed(&in_npm(package, "package.json"));
        assert_eq!((&manifest["os"], &manifest["cpu"]), (&json!(["linux"]), &json!([cpu])));
        assert!(in_npm(package, "bin/ptc").contains(target));
    }
}

/// The skill is the guide, with links that work outside the repository.
#[test]
fn the_plugin_is_complete() {
    let plugin = format!("ptc-{}-claude-plugin.zip", version());
    let servers = parsed(&in_zip(&plugin, ".mcp.json"));
    let pinned = format!("{}@{}", name("npm"), version());
    let entry = json!({ "command": "npx", "args": ["-y", pinned, "serve"] });
    assert_eq!(servers, json!({ "mcpServers": { "ptc": entry } }));
    let skill = in_zip(&plugin, "skills/ptc-lisp/SKILL.md");
    let (head, body) = skill.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let field = |key: &str| head.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).unwrap();
    assert_eq!(field("name"), "ptc-lisp");
    assert!(field("description").len() <= 1024);
    let guide = read(&workspace().join("docs/guide.md"));
    assert_eq!(body.trim().lines().count(), guide.trim().lines().count());
    let links = regex::Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    for link in links.captures_iter(body) {
        assert!(link[1].starts_with("https://") || link[1].starts_with('#'), "{}", &link[1]);
    }
}

#[test]
fn checksums_cover_every_download() {
    let sums = printed("sha256sum", &["--check", "--strict", "SHA256SUMS"], packages());
    for target in TARGETS {
        assert!(sums.contains(&format!("ptc-{}-{target}.tar.gz: OK", version())), "{sums}");
    }
    let formula = read(&packages().join("ptc.rb"));
    let listed = read(&packages().join("SHA256SUMS"));
    let of_formula: Vec<&str> =
        formula.lines().filter_map(|line| line.trim().strip_prefix("sha256 ")).collect();
    assert_eq!(of_formula.len(), TARGETS.len());
    assert!(of_formula.iter().all(|sum| listed.contains(sum.trim_matches('"'))), "{formula}");
}

/// Two runs over the same binaries give the same bytes.
#[test]
fn packages_are_reproducible() {
    let again = tempfile::tempdir().unwrap();
    let folder = again.path().join("packages");
    make(&folder);
    for entry in std::fs::read_dir(packages()).unwrap() {
        let name = entry.unwrap().file_name();
        // tar of the stand-ins writes the time.
        let depends_on_time =
            [".tar.gz", ".rb", "SUMS"].iter().any(|end| name.to_str().unwrap().ends_with(end));
        let [first, second] = [packages(), &folder].map(|folder| std::fs::read(folder.join(&name)).unwrap());
        assert!(depends_on_time || first == second, "{name:?}");
    }
}

#[test]
fn the_image_holds_both_architectures() {
    let archive = packages().join(format!("ptc-{}-oci.tar", version()));
    for (architecture, target) in [("amd64", TARGETS[0]), ("arm64", TARGETS[1])] {
        let folder = tempfile::tempdir().unwrap();
        let script = workspace().join("packaging/unpack.py");
        let arguments = [script.to_str().unwrap(), archive.to_str().unwrap(), architecture, "."];
        printed("python3", &arguments, folder.path());
        assert!(read(&folder.path().join("ptc")).contains(target));
        assert!(
            folder.path().join("tmp").is_dir()
                && folder.path().join("etc/ssl/certs/ca-certificates.crt").exists()
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_installer_installs_and_refuses_damage() {
    let folder = tempfile::tempdir().unwrap();
    let script = packages().join("install.sh");
    let install = |base: &str| {
        let mut command = Command::new("sh");
        command.arg(&script).args(["--to", "bin"]).env("PTC_BASE_URL", base).current_dir(folder.path());
        command.output().unwrap()
    };
    let done = install(&format!("file://{}", packages().display()));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.starts_with(&format!("installed ptc {} as bin/ptc", version())), "{said}{done:?}");
    let bad = folder.path().join("bad");
    std::fs::create_dir(&bad).unwrap();
    std::fs::copy(packages().join("SHA256SUMS"), bad.join("SHA256SUMS")).unwrap();
    for target in TARGETS {
        std::fs::write(bad.join(format!("ptc-{}-{target}.tar.gz", version())), "damage").unwrap();
    }
    std::fs::remove_dir_all(folder.path().join("bin")).unwrap();
    let refused = install(bad.to_str().unwrap());
    assert!(!refused.status.success() && !folder.path().join("bin").exists(), "{refused:?}");
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(complaint.contains("nothing was installed"), "{complaint}");
}

/// Copies and comparisons of the static binary are those of the machine, for every length and overlap.
#[cfg(target_arch = "x86_64")]
#[test]
fn memory_functions_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let [source, test] = ["memory.c", "memory_test.py"].map(|name| workspace().join("packaging").join(name));
    let library = folder.path().join("memory.so");
    let renamed = ["memcpy", "memmove", "memcmp", "bcmp"].map(|name| format!("-D{name}=new_{name}"));
    let mut words = vec!["-shared", "-fPIC", "-O2", "-fno-builtin", "-o", library.to_str().unwrap()];
    words.extend(renamed.iter().map(String::as_str));
    words.push(source.to_str().unwrap());
    printed("cc", &words, folder.path());
    let said = printed("python3", &[test.to_str().unwrap(), library.to_str().unwrap()], folder.path());
    assert_eq!(said, "equal\n");
}

/// The document has the link of this release's data, and the names of all packages.
#[test]
fn the_document_names_what_there_is() {
    let page = read(&workspace().join("docs/install.md"));
    let link = read(&packages().join("vscode.txt"));
    assert!(page.contains(link.trim()), "docs/install.md lacks {link}");
    for what in ["npx", "uvx", "install.sh", "brew", ".mcpb", "server.json", "claude plugin", "docker"] {
        assert!(page.contains(what), "docs/install.md lacks {what}");
    }
}
