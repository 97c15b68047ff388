//! Flags that decide which tool calls are allowed: files of rules, the check of tools against their reviewed
//! definitions (pins), and how a person approves calls.

use crate::cli::flags::limits::parser;
use crate::cli::flags::variables;
use ptc_base::files;
use ptc_calls::limits::Unit;
use ptc_calls::policy::{
    ApprovalList, ApprovalSettings, ApprovalWebhook, LOCK_FILE, PinLock, PinMode, Pins, Policy, PolicyError,
};
use ptc_server::console::Abort;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Flags of the policy.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PolicyFlags {
    /// File with rules for calls (TOML): what may be called, with which arguments, by whom, and what a person has to
    /// approve; may be given several times, then the strictest file decides
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// What happens to tools that are not as `ptc pin` has recorded them in `ptc.lock`, next to the configuration: warn
    /// says so, enforce does not let programs call them [default: off]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    pin: Option<PinFlag>,
    /// Calls that a person has to approve also wait for `ptc approvals`; without this, and without a client that can
    /// show a form, they are refused at once
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    approvals: Option<ApprovalsFlag>,
    /// Address that is asked to approve calls: it gets a question as JSON by POST, and answers
    /// `{"decision": "approve"}` or `{"decision": "deny"}` when a person has decided
    #[arg(long, value_name = "URL")]
    approval_webhook: Option<String>,
    /// How long an approval counts that is not used [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = parser(Unit::Millis))]
    approval_ttl: Option<u64>,
    /// How long a call waits for its approval [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = parser(Unit::Millis))]
    approval_timeout: Option<u64>,
}

/// `--pin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PinFlag {
    Off,
    Warn,
    Enforce,
}

/// `--approvals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ApprovalsFlag {
    Wait,
    Client,
}

impl PolicyFlags {
    /// The files of the policy.
    pub fn files(&self) -> Result<Vec<PathBuf>, Abort> {
        if !self.policy.is_empty() {
            return Ok(self.policy.clone());
        }
        // An empty variable is mostly a mistake in a script, and everything would be allowed.
        if let Some(variable) = variables::empty("policy") {
            return Err(Abort::usage(format!("{variable} is empty: name a file, or unset it")));
        }
        let paths = |text: &str| Ok(std::env::split_paths(text).collect::<Vec<_>>());
        Ok(variables::read("policy", paths)?.unwrap_or_default())
    }

    /// The tools as they were reviewed, next to these files of the configuration; `None`: they are not compared.
    pub fn pins(&self, configuration: &[PathBuf]) -> Result<Option<Arc<Pins>>, Abort> {
        let flag = variables::given_or_read(self.pin, "pin", variables::word)?;
        let mode = match flag {
            None | Some(PinFlag::Off) => return Ok(None),
            Some(PinFlag::Warn) => PinMode::Warn,
            Some(PinFlag::Enforce) => PinMode::Enforce,
        };
        let path = lock_file(configuration);
        match PinLock::read(&path) {
            Ok(lock) => Ok(Some(Arc::new(Pins::new(mode, lock)))),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Abort::usage(format!(
                "--pin needs {}, which is not there: `ptc pin --all` records the tools as they are now",
                path.display()
            ))),
            Err(error) => Err(Abort::usage(format!("{}: {error}", path.display()))),
        }
    }

    /// The file of pins, if tools are compared with it.
    pub fn followed_pins(&self, configuration: &[PathBuf]) -> Result<Vec<PathBuf>, Abort> {
        Ok(match variables::given_or_read(self.pin, "pin", variables::word)? {
            None | Some(PinFlag::Off) => Vec::new(),
            Some(PinFlag::Warn | PinFlag::Enforce) => vec![lock_file(configuration)],
        })
    }

    /// The same flags without pins.
    pub fn without_pins(&self) -> PolicyFlags {
        PolicyFlags { pin: Some(PinFlag::Off), ..self.clone() }
    }

    /// The first flag of these that was given and concerns calls of programs.
    pub fn given(&self) -> Option<&'static str> {
        let PolicyFlags { policy, pin, approvals, approval_webhook, approval_ttl, approval_timeout } = self;
        let flags = [
            ("--policy", !policy.is_empty()),
            ("--pin", pin.is_some()),
            ("--approvals", approvals.is_some()),
            ("--approval-webhook", approval_webhook.is_some()),
            ("--approval-ttl", approval_ttl.is_some()),
            ("--approval-timeout", approval_timeout.is_some()),
        ];
        flags.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    /// Who approves calls, next to the client.
    pub fn approvals(&self) -> Result<ApprovalSettings, Abort> {
        let millis = |given, flag| variables::given_or_read(given, flag, parser(Unit::Millis));
        let mode = variables::given_or_read(self.approvals, "approvals", variables::word)?;
        let list = match mode {
            Some(ApprovalsFlag::Wait) => {
                let state = files::state_folder();
                let missing =
                    || Abort::usage("--approvals wait needs a state folder: set HOME or XDG_STATE_HOME");
                Some(ApprovalList::below(&state.ok_or_else(missing)?))
            }
            Some(ApprovalsFlag::Client) | None => None,
        };
        let given = self.approval_webhook.clone();
        let url = variables::given_or_read(given, "approval-webhook", variables::text)?;
        let webhook = url.map(|url| ApprovalWebhook::new(&url)).transpose();
        let standard = ApprovalSettings::default();
        let ttl = millis(self.approval_ttl, "approval-ttl")?;
        let timeout = millis(self.approval_timeout, "approval-timeout")?;
        Ok(ApprovalSettings {
            list,
            webhook: webhook.map_err(|why| Abort::usage(format!("--approval-webhook: {why}")))?,
            ttl: ttl.map_or(standard.ttl, Duration::from_millis),
            timeout: timeout.map_or(standard.timeout, Duration::from_millis),
        })
    }

    /// The policy; `None`: there is none.
    pub fn load(&self) -> Result<Option<Arc<Policy>>, Abort> {
        let files = self.files()?;
        match files.is_empty() {
            true => Ok(None),
            false => Ok(Some(Arc::new(Policy::load(&files).map_err(|error| refused(&error))?))),
        }
    }
}

/// The file of pins: next to the first file of the configuration, or here.
pub fn lock_file(configuration: &[PathBuf]) -> PathBuf {
    let folder = configuration.first().and_then(|file| file.parent());
    folder.map_or_else(|| LOCK_FILE.into(), |folder| folder.join(LOCK_FILE))
}

/// The error of a policy that cannot be used.
pub fn refused(error: &PolicyError) -> Abort {
    Abort::usage(format!("policy {error}"))
}
