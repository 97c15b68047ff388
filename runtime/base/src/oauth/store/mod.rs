//! Stores each OAuth login in a file that only this user can read, or in the system's keyring, under a lock that keeps
//! two processes from renewing it at once.
//!
//! - [`stored`]: one login as it is stored. [`helper`]: stores it in the keyring of the system, by a program.

mod helper;
pub(super) mod stored;

use crate::digest::sha256_hex;
use crate::files::{self, FileAccess, LinkRule};
use crate::net::{ClientOptions, Url};
use crate::oauth::settings::{Grant, OAuthSettings};
use crate::oauth::{OAuthFault, Result};
use crate::secrets::SecretRegistry;
use crate::tasks::{self, TaskOwner};
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use stored::{LoginFacts, StoredLogin};
use tokio::time::{Instant, sleep};

/// How long a process waits for another one that renews the same login.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);

/// How often it tries.
const LOCK_PAUSE: Duration = Duration::from_millis(15);

/// Size limit of a file.
const FILE_BYTES: usize = 256 << 10;

/// What the log says of a file.
const UNREADABLE: &str = "it is no login that this ptc reads, so it is not used; `ptc login` writes it anew";

/// Names one login in the store by all that is known before any server is asked: the address of the server, how it is
/// reached, the configured client and issuer, the owner, and a grant that needs no person with its identity provider and ID
/// token. The issuer that was found is in the file, so that a login of another issuer replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::oauth) struct LoginKey(String);

impl LoginKey {
    pub(in crate::oauth) fn new(
        server: &Url,
        client: Option<&str>,
        settings: &OAuthSettings,
        reach: &ClientOptions,
        owner: Option<&str>,
    ) -> LoginKey {
        let parts = [Some(server.as_str()), client, settings.issuer.as_deref(), owner];
        let mut text = parts.map(|part| part.unwrap_or_default()).join("\n");
        // Through another proxy, or with other authorities, the same address may be another server.
        if let Some(proxy) = &reach.proxy {
            let _ = write!(text, "\nproxy {proxy}");
        }
        if let Some(file) = &reach.tls.ca_file {
            let _ = write!(text, "\nca_file {}", file.display());
        }
        if let Some(own) = &reach.tls.client_certificate {
            let _ = write!(text, "\ncertificate {}", own.certificate.display());
        }
        // What the client obtains for itself or for one person is no login of another.
        match (settings.grant, &settings.identity_provider) {
            (Grant::IdJag, Some(provider)) => {
                let _ = write!(text, "\nid_jag {}\n{}", provider.issuer, provider.id_token_file.display());
            }
            (Grant::ClientCredentials, _) => text.push_str("\nclient_credentials"),
            (Grant::IdJag | Grant::Code | Grant::Device, _) => {}
        }
        LoginKey(sha256_hex(text.as_bytes()))
    }
}

/// What the stored form of a login is recognised by without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoginMark {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

/// Where logins are stored.
#[derive(Clone, Debug)]
pub struct TokenStore {
    /// The locks, and the files unless a helper has the logins.
    folder: PathBuf,
    helper: Option<Arc<str>>,
}

/// The right to change one login, of all processes. It ends when it is dropped, and with the process.
pub(super) struct LoginLock {
    file: File,
}

impl LoginLock {
    /// Marks a change of a login that a helper has (see [`TokenStore::mark`]).
    fn mark_change(&self) -> Result<()> {
        let marked = self.file.set_modified(SystemTime::now());
        marked.map_err(|error| OAuthFault::unavailable(format!("the login cannot be marked: {error}")))
    }
}

impl TokenStore {
    /// The store in this folder, which is created with the first write.
    pub fn new(folder: PathBuf) -> TokenStore {
        TokenStore { folder, helper: None }
    }

    /// The store in the folder of what is remembered between runs.
    pub fn in_state_folder(folder: &Path) -> TokenStore {
        TokenStore::new(folder.join("tokens"))
    }

    /// The same with the logins in a keyring, which the program `docker-credential-NAME` reaches (the protocol of Docker
    /// credential helpers). The locks stay in the folder.
    #[must_use]
    pub fn with_helper(self, name: &str) -> TokenStore {
        TokenStore { helper: Some(name.into()), ..self }
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        match &self.helper {
            Some(name) => format!("helper:{name}"),
            None => self.folder.display().to_string(),
        }
    }

    fn file(&self, key: &LoginKey) -> PathBuf {
        self.folder.join(format!("{}.json", key.0))
    }

    fn lock_file(&self, key: &LoginKey) -> PathBuf {
        self.folder.join(format!("{}.lock", key.0))
    }

    /// What the stored login is recognised by; `None` without one. Where a helper has the logins, each change marks the
    /// lock file.
    pub(super) async fn mark(&self, key: &LoginKey) -> Option<LoginMark> {
        let path = if self.helper.is_some() { self.lock_file(key) } else { self.file(key) };
        let found = blocking(move || std::fs::metadata(&path)).await.ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        Some(LoginMark { device: found.dev(), inode: found.ino(), size: found.size(), modified })
    }

    /// True if a login is stored, even one that cannot be read.
    pub(super) async fn has(&self, key: &LoginKey) -> Result<bool> {
        match &self.helper {
            Some(name) => Ok(helper::get(name, key).await?.is_some()),
            None => {
                let path = self.file(key);
                Ok(blocking(move || Ok(std::fs::symlink_metadata(&path).is_ok())).await?)
            }
        }
    }

    /// The stored login, if there is one that can be read.
    pub(super) async fn read(&self, key: &LoginKey, secrets: &SecretRegistry) -> Result<Option<StoredLogin>> {
        let text = match &self.helper {
            Some(name) => helper::get(name, key).await?,
            None => {
                let path = self.file(key);
                blocking(move || read_file(&path)).await?
            }
        };
        let Some(text) = text else { return Ok(None) };
        let login = StoredLogin::from_json(&text, secrets);
        if login.is_none() {
            tracing::warn!("{}: {UNREADABLE}", self.file(key).display());
        }
        Ok(login)
    }

    /// All logins in files that can be read. A helper does not tell its logins from those of other programs.
    pub async fn all(&self, secrets: &SecretRegistry) -> Result<Vec<LoginFacts>> {
        let folder = self.folder.clone();
        let texts = blocking(move || {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Ok(Vec::new());
                }
                Err(error) => return Err(named(&folder, error)),
            };
            let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
            paths.sort();
            let texts = paths.into_iter().map(|path| (read_file(&path).ok().flatten(), path));
            Ok(texts.collect::<Vec<_>>())
        });
        let mut logins = Vec::new();
        for (text, path) in texts.await? {
            match text.and_then(|text| StoredLogin::from_json(&text, secrets)) {
                Some(login) => logins.push(login.facts()),
                None => tracing::warn!("{}: {UNREADABLE}", path.display()),
            }
        }
        Ok(logins)
    }

    /// Stores a login. It is on the disk when this returns.
    pub(super) async fn write(&self, key: &LoginKey, login: &StoredLogin, lock: &LoginLock) -> Result<()> {
        let text = login.to_json();
        if text.len() > FILE_BYTES {
            return Err(OAuthFault::unusable(format!(
                "the login at {} has {} bytes, more than the {FILE_BYTES} that are stored",
                login.issuer,
                text.len()
            )));
        }
        if let Some(name) = &self.helper {
            helper::store(name, key, &text).await?;
            return lock.mark_change();
        }
        let (folder, path) = (self.folder.clone(), self.file(key));
        blocking(move || {
            files::private_folder(&folder)
                .and_then(|()| files::replace(&path, text.as_bytes(), LinkRule::Replace, FileAccess::Private))
                .and_then(|()| files::sync_folder(&folder))
                .map_err(|error| named(&path, error))
        })
        .await
    }

    /// Removes a login, whether or not there is one.
    pub(super) async fn remove(&self, key: &LoginKey, lock: &LoginLock) -> Result<()> {
        if let Some(name) = &self.helper {
            helper::erase(name, key).await?;
            return lock.mark_change();
        }
        let path = self.file(key);
        blocking(move || match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(named(&path, error)),
            Ok(()) | Err(_) => Ok(()),
        })
        .await
    }

    /// Waits for the right to change a login.
    pub(in crate::oauth) async fn lock(&self, key: &LoginKey) -> Result<LoginLock> {
        let (folder, path) = (self.folder.clone(), self.lock_file(key));
        let file = blocking(move || {
            files::private_folder(&folder)
                .and_then(|()| files::open_to_lock(&path))
                .map_err(|error| named(&path, error))
        });
        let file = file.await?;
        let until = Instant::now() + LOCK_PATIENCE;
        loop {
            // Does not block.
            match file.try_lock() {
                Ok(()) => return Ok(LoginLock { file }),
                Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(LOCK_PAUSE).await,
                Err(TryLockError::WouldBlock) => {
                    return Err(OAuthFault::unavailable(
                        "another process has been renewing this login for too long",
                    ));
                }
                Err(TryLockError::Error(error)) => return Err(OAuthFault::unavailable(error.to_string())),
            }
        }
    }
}

fn read_file(path: &Path) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let read = files::open(path).and_then(|file| file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes));
    match read.map(|_| bytes) {
        Ok(bytes) if bytes.len() <= FILE_BYTES => Ok(String::from_utf8(bytes).ok()),
        Ok(_) => Ok(None),
        // Where there is no folder, there is no login either.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(named(path, error)),
    }
}

/// Runs work on files. It is not interrupted: a file that is being replaced is replaced.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    let done = tasks::blocking(TaskOwner::Process, move |_| work()).await;
    let done = done.ok_or_else(|| OAuthFault::unavailable("the store of logins did not answer"))?;
    done.map_err(|error| OAuthFault::unavailable(format!("the login cannot be stored: {error}")))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
