//! Which hosts there are, and where each keeps its servers.

use std::path::PathBuf;

/// A host whose configuration is understood.
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
}

/// Folders that files are looked up in.
#[derive(Clone, Debug)]
pub struct HostFolders {
    /// The user's home.
    pub home: PathBuf,
    /// Where programs keep their configuration.
    pub config: PathBuf,
    /// The project, usually the working directory.
    pub project: PathBuf,
    /// Codex's own folder.
    pub codex: PathBuf,
}

impl HostFolders {
    /// As the environment says; `None` without a home.
    pub fn of_environment() -> Option<HostFolders> {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = folder("HOME").or_else(|| folder("USERPROFILE"))?;
        Some(HostFolders {
            config: folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            codex: folder("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
            project: std::env::current_dir().ok()?,
            home,
        })
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON, perhaps with comments and trailing commas; the servers are below this key.
    Json(&'static str),
    /// The same, and the project has servers of its own in it.
    JsonWithProjects(&'static str),
    /// TOML; the servers are below this key.
    Toml(&'static str),
}

impl Host {
    /// Every host.
    pub const ALL: [Host; 6] =
        [Host::ClaudeDesktop, Host::ClaudeCode, Host::Cursor, Host::Vscode, Host::Windsurf, Host::Codex];

    /// The name people know.
    pub const fn label(self) -> &'static str {
        match self {
            Host::ClaudeDesktop => "Claude Desktop",
            Host::ClaudeCode => "Claude Code",
            Host::Cursor => "Cursor",
            Host::Vscode => "VS Code",
            Host::Windsurf => "Windsurf",
            Host::Codex => "Codex",
        }
    }

    /// The name in flags, and behind a server's name that several hosts use differently.
    pub const fn key(self) -> &'static str {
        match self {
            Host::ClaudeDesktop => "claude-desktop",
            Host::ClaudeCode => "claude-code",
            Host::Cursor => "cursor",
            Host::Vscode => "vscode",
            Host::Windsurf => "windsurf",
            Host::Codex => "codex",
        }
    }

    /// Where its files may be, on Linux, macOS and Windows; the project's own first.
    pub fn files(self, places: &HostFolders) -> Vec<(PathBuf, Format)> {
        const SERVERS: Format = Format::Json("mcpServers");
        let HostFolders { home, config, project, codex } = places;
        let applications = home.join("Library/Application Support");
        let roaming = home.join("AppData/Roaming");
        match self {
            Host::ClaudeDesktop => [config, &applications, &roaming]
                .into_iter()
                .map(|folder| (folder.join("Claude/claude_desktop_config.json"), SERVERS))
                .collect(),
            Host::ClaudeCode => vec![
                (project.join(".mcp.json"), SERVERS),
                (home.join(".claude.json"), Format::JsonWithProjects("mcpServers")),
            ],
            Host::Cursor => {
                vec![(project.join(".cursor/mcp.json"), SERVERS), (home.join(".cursor/mcp.json"), SERVERS)]
            }
            Host::Vscode => std::iter::once(project.join(".vscode/mcp.json"))
                .chain([config, &applications, &roaming].map(|folder| folder.join("Code/User/mcp.json")))
                .map(|file| (file, Format::Json("servers")))
                .collect(),
            Host::Windsurf => vec![(home.join(".codeium/windsurf/mcp_config.json"), SERVERS)],
            Host::Codex => vec![(codex.join("config.toml"), Format::Toml("mcp_servers"))],
        }
    }
}
