//! Lists the MCP client applications (Claude Code, Cursor, VS Code …) from which servers can be imported, with the
//! places and formats of their configuration files.

use std::collections::HashSet;
use std::path::PathBuf;

/// A host with a configuration that we can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Host {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code: the project's file, the user's file.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// VS Code.
    Vscode,
    /// Windsurf.
    Windsurf,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Zed.
    Zed,
    /// opencode.
    Opencode,
    /// Goose.
    Goose,
    /// Kiro.
    Kiro,
    /// LM Studio.
    LmStudio,
    /// Copilot CLI.
    Copilot,
}

/// Folders in which files are searched.
#[derive(Clone, Debug)]
pub struct HostFolders {
    /// The user's home.
    pub home: PathBuf,
    /// The configuration folder of the user.
    pub config: PathBuf,
    /// The configuration folder of desktop programs on this system.
    pub applications: PathBuf,
    /// The project, usually the working directory. Without it only what is the user's in every folder counts.
    pub project: Option<PathBuf>,
    /// Codex's own folder.
    pub codex: PathBuf,
    /// Claude Code's own folder, if the user has chosen one.
    pub claude: Option<PathBuf>,
}

impl HostFolders {
    /// Folders of a user `h` and a project `p`.
    #[cfg(test)]
    pub(super) fn in_tests() -> HostFolders {
        HostFolders {
            home: "/h".into(),
            config: "/h/.config".into(),
            applications: "/h/.config".into(),
            project: Some("/p".into()),
            codex: "/h/.codex".into(),
            claude: None,
        }
    }

    /// The same without a project.
    pub fn of_user(&self) -> HostFolders {
        HostFolders { project: None, ..self.clone() }
    }

    /// Reads the folders from the environment; `None` without a home.
    pub fn from_environment() -> Option<HostFolders> {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = folder("HOME").or_else(|| folder("USERPROFILE"))?;
        let config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let applications = if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else if cfg!(windows) {
            folder("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
        } else {
            config.clone()
        };
        Some(HostFolders {
            config,
            applications,
            codex: folder("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
            claude: folder("CLAUDE_CONFIG_DIR"),
            // The working directory may have been removed.
            project: std::env::current_dir().ok(),
            home,
        })
    }
}

/// A file that a host may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFile {
    /// The file.
    pub path: PathBuf,
    /// It belongs to the project and not to the user; relative paths start at the project.
    pub of_project: bool,
}

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its syntax.
    pub syntax: Syntax,
    /// Key of the servers.
    pub key: &'static str,
    /// Format of one server.
    pub dialect: EntryDialect,
}

/// The syntax of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON, perhaps with comments and trailing commas.
    Json,
    /// JSON in which projects have servers of their own.
    JsonWithProjects,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// Format of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryDialect {
    /// `command`, `args`, `env`; `url`, `headers`.
    Usual,
    /// Zed: `command` may be an object with `path`, `args` and `env`.
    Zed,
    /// opencode: `command` is a list, `environment` the variables, `{env:NAME}` a reference.
    Opencode,
    /// Goose: `cmd`, `envs`, `env_keys`, `uri`.
    Goose,
}

const fn json(key: &'static str) -> Format {
    Format { syntax: Syntax::Json, key, dialect: EntryDialect::Usual }
}

const SERVERS: Format = json("mcpServers");

const OPENCODE_FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

impl Host {
    /// Name for people.
    pub const fn label(self) -> &'static str {
        self.names().0
    }

    /// Name in flags. It is also appended to a server's name that several hosts use differently.
    pub const fn key(self) -> &'static str {
        self.names().1
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Host::ClaudeDesktop => ("Claude Desktop", "claude-desktop"),
            Host::ClaudeCode => ("Claude Code", "claude-code"),
            Host::Cursor => ("Cursor", "cursor"),
            Host::Vscode => ("VS Code", "vscode"),
            Host::Windsurf => ("Windsurf", "windsurf"),
            Host::Codex => ("Codex", "codex"),
            Host::Gemini => ("Gemini CLI", "gemini"),
            Host::Zed => ("Zed", "zed"),
            Host::Opencode => ("opencode", "opencode"),
            Host::Goose => ("Goose", "goose"),
            Host::Kiro => ("Kiro", "kiro"),
            Host::LmStudio => ("LM Studio", "lm-studio"),
            Host::Copilot => ("Copilot CLI", "copilot"),
        }
    }

    /// Format of its files.
    pub const fn format(self) -> Format {
        match self {
            Host::Vscode => json("servers"),
            Host::Codex => Format { syntax: Syntax::Toml, key: "mcp_servers", dialect: EntryDialect::Usual },
            Host::Zed => Format { syntax: Syntax::Json, key: "context_servers", dialect: EntryDialect::Zed },
            Host::Opencode => Format { syntax: Syntax::Json, key: "mcp", dialect: EntryDialect::Opencode },
            Host::Goose => Format { syntax: Syntax::Yaml, key: "extensions", dialect: EntryDialect::Goose },
            Host::ClaudeCode => {
                Format { syntax: Syntax::JsonWithProjects, key: "mcpServers", dialect: EntryDialect::Usual }
            }
            Host::ClaudeDesktop
            | Host::Cursor
            | Host::Windsurf
            | Host::Gemini
            | Host::Kiro
            | Host::LmStudio
            | Host::Copilot => SERVERS,
        }
    }

    /// Its possible files on this system, those of the project first. If the project is the user's home, a file
    /// that both share counts as the user's.
    pub fn files(self, places: &HostFolders) -> Vec<HostFile> {
        let user = self.user_files(places);
        let mut project = self.project_files(places);
        project.retain(|path| !user.contains(path));
        let file = |of_project| move |path| HostFile { path, of_project };
        project.into_iter().map(file(true)).chain(user.into_iter().map(file(false))).collect()
    }

    fn project_files(self, places: &HostFolders) -> Vec<PathBuf> {
        let names: &[&str] = match self {
            Host::ClaudeCode => &[".mcp.json"],
            Host::Cursor => &[".cursor/mcp.json"],
            Host::Vscode => &[".vscode/mcp.json"],
            Host::Gemini => &[".gemini/settings.json"],
            Host::Zed => &[".zed/settings.json"],
            Host::Opencode => &OPENCODE_FILES,
            Host::Kiro => &[".kiro/settings/mcp.json"],
            Host::ClaudeDesktop
            | Host::Windsurf
            | Host::Codex
            | Host::Goose
            | Host::LmStudio
            | Host::Copilot => &[],
        };
        names.iter().filter_map(|name| Some(places.project.as_ref()?.join(name))).collect()
    }

    fn user_files(self, places: &HostFolders) -> Vec<PathBuf> {
        let HostFolders { home, config, applications, codex, claude, .. } = places;
        let mut files = match self {
            Host::ClaudeDesktop => vec![applications.join("Claude/claude_desktop_config.json")],
            Host::ClaudeCode => vec![claude.as_ref().unwrap_or(home).join(".claude.json")],
            Host::Cursor => vec![home.join(".cursor/mcp.json")],
            Host::Vscode => vec![applications.join("Code/User/mcp.json")],
            Host::Windsurf => vec![home.join(".codeium/windsurf/mcp_config.json")],
            Host::Codex => vec![codex.join("config.toml")],
            Host::Gemini => vec![home.join(".gemini/settings.json")],
            Host::Zed if cfg!(windows) => vec![applications.join("Zed/settings.json")],
            Host::Zed => vec![config.join("zed/settings.json"), home.join(".config/zed/settings.json")],
            Host::Opencode => [config.join("opencode"), home.join(".config/opencode")]
                .iter()
                .flat_map(|folder| OPENCODE_FILES.map(|name| folder.join(name)))
                .collect(),
            Host::Goose => vec![config.join("goose/config.yaml"), home.join(".config/goose/config.yaml")],
            Host::Kiro => vec![home.join(".kiro/settings/mcp.json")],
            Host::LmStudio => vec![home.join(".lmstudio/mcp.json"), home.join(".cache/lm-studio/mcp.json")],
            Host::Copilot => {
                vec![home.join(".copilot/mcp-config.json"), config.join("copilot/mcp-config.json")]
            }
        };
        // Two rules may lead to one folder.
        let mut seen = HashSet::new();
        files.retain(|file| seen.insert(file.clone()));
        files
    }
}
