//! Manages the logins of browsers to the web page (`--ui`): one-time login links, cookies, CSRF values, expiry, and how
//! many event streams one login may have open.
//!
//! A login is a visit. Only hashes of links and cookies are stored.

use crate::server::http::access::{Access, TokenHash, TokenHolder, hash};
use crate::tools::owned_table::random_id;
use axum::http::{HeaderMap, header};
use ptc_base::sync::Locked;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Random bytes of a link, a cookie, and the value that forms repeat.
const RANDOM: usize = 32;

/// How long a link works.
const LINK_LIFE: Duration = Duration::from_secs(600);

/// How long a visit lasts.
const VISIT_LIFE: Duration = Duration::from_secs(12 * 3_600);

/// Most links that were not used, and most visits. Beyond that the oldest ends.
const MOST_LINKS: usize = 8;
const MOST_VISITS: usize = 64;

/// Most streams of events, and those of one visit.
const MOST_STREAMS: usize = 64;
const STREAMS_OF_VISIT: usize = 8;

/// Shortest time between two links that are asked for on the page.
const LINK_PAUSE: Duration = Duration::from_secs(5);

/// Links and visits of a page.
#[derive(Debug)]
pub(in crate::server::http) struct Visits {
    state: Mutex<State>,
    streams: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    links: VecDeque<(TokenHash, Instant)>,
    visits: VecDeque<(TokenHash, Arc<Visit>)>,
    /// When a link was last asked for on the page.
    asked: Option<Instant>,
}

/// A person with a cookie.
#[derive(Debug)]
pub(in crate::server::http) struct Visit {
    holder: Arc<TokenHolder>,
    /// It began with a link of the server: it is of the user who runs it.
    pub(super) is_of_link: bool,
    /// What forms repeat.
    pub(super) csrf: String,
    ends: Instant,
    has_left: AtomicBool,
    streams: Arc<AtomicUsize>,
}

/// The right to a stream of events; it is given back when this is dropped.
pub(super) struct StreamPermit([Arc<AtomicUsize>; 2]);

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.iter().for_each(|count| {
            count.fetch_sub(1, Ordering::AcqRel);
        });
    }
}

fn take(count: &AtomicUsize, most: usize) -> bool {
    let more = |now: usize| (now < most).then_some(now + 1);
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
}

impl Visits {
    /// No person is in.
    pub(in crate::server::http) fn new() -> Arc<Visits> {
        Arc::new(Visits { state: Mutex::default(), streams: Arc::default() })
    }

    /// The secret of a new link; `None` if the system has no random numbers.
    pub(in crate::server::http) fn link(&self) -> Option<String> {
        let secret = random_id::<RANDOM>("")?;
        let mut state = self.state.locked();
        if state.links.len() >= MOST_LINKS {
            state.links.pop_front();
        }
        state.links.push_back((hash(&secret), Instant::now() + LINK_LIFE));
        Some(secret)
    }

    /// True if a link may be written because a person asks for it on the page.
    pub(super) fn may_ask_for_link(&self) -> bool {
        let (mut state, now) = (self.state.locked(), Instant::now());
        let may = state.asked.is_none_or(|asked| asked + LINK_PAUSE <= now);
        if may {
            state.asked = Some(now);
        }
        may
    }

    /// Uses a link. It works once, and for a while.
    pub(super) fn use_link(&self, secret: &str) -> bool {
        let (shown, now) = (hash(secret), Instant::now());
        let mut state = self.state.locked();
        state.links.retain(|(_, ends)| *ends > now);
        let found = state.links.iter().position(|(known, _)| bool::from(known.ct_eq(&shown)));
        found.is_some_and(|at| state.links.remove(at).is_some())
    }

    /// Begins a visit: the value of its cookie.
    pub(super) fn begin(&self, holder: Arc<TokenHolder>, is_of_link: bool) -> Option<String> {
        let (cookie, csrf) = (random_id::<RANDOM>("")?, random_id::<RANDOM>("")?);
        let visit = Arc::new(Visit {
            holder,
            is_of_link,
            csrf,
            ends: Instant::now() + VISIT_LIFE,
            has_left: AtomicBool::new(false),
            streams: Arc::default(),
        });
        let mut state = self.state.locked();
        let now = Instant::now();
        state.visits.retain(|(_, visit)| visit.ends > now);
        if state.visits.len() >= MOST_VISITS
            && let Some((_, oldest)) = state.visits.pop_front()
        {
            oldest.leave();
        }
        state.visits.push_back((hash(&cookie), visit));
        Some(cookie)
    }

    /// The visit that a request belongs to.
    pub(super) fn find(&self, headers: &HeaderMap, cookie: &str) -> Option<Arc<Visit>> {
        let shown = hash(value_of(headers, cookie)?);
        let state = self.state.locked();
        let found = state.visits.iter().find(|(known, _)| bool::from(known.ct_eq(&shown)));
        found.map(|(_, visit)| visit.clone()).filter(|visit| visit.ends > Instant::now())
    }

    /// Ends a visit.
    pub(super) fn leave(&self, visit: &Arc<Visit>) {
        visit.leave();
        self.state.locked().visits.retain(|(_, known)| !Arc::ptr_eq(known, visit));
    }

    /// A permit for a stream of a visit; `None` while there are too many.
    pub(super) fn stream(&self, visit: &Visit) -> Option<StreamPermit> {
        if !take(&visit.streams, STREAMS_OF_VISIT) {
            return None;
        }
        if !take(&self.streams, MOST_STREAMS) {
            visit.streams.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(StreamPermit([visit.streams.clone(), self.streams.clone()]))
    }
}

impl Visit {
    fn leave(&self) {
        self.has_left.store(true, Ordering::Release);
    }

    /// The holder of the visit, as their token is now; `None` when it is over.
    pub(super) fn holder(&self, access: &Access) -> Option<Arc<TokenHolder>> {
        if self.has_left.load(Ordering::Acquire) || self.ends <= Instant::now() {
            return None;
        }
        match self.holder.is_of_issuer() {
            true => Some(self.holder.clone()).filter(|holder| holder.is_valid() && !holder.is_revoked()),
            false => access.holder(self.holder.owner),
        }
    }

    /// True if a form repeats the value of the visit.
    pub(super) fn admits(&self, csrf: &str) -> bool {
        self.csrf.as_bytes().ct_eq(csrf.as_bytes()).into()
    }
}

/// The value of a cookie. Of several with its name the first counts.
fn value_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::http::settings::HttpLimits;

    fn asking(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, format!("other=1; c={cookie}").parse().unwrap());
        headers
    }

    #[test]
    fn links_work_once_and_are_bounded() {
        let visits = Visits::new();
        let first = visits.link().unwrap();
        assert!(visits.use_link(&first) && !visits.use_link(&first) && !visits.use_link(""));
        let many: Vec<String> = (0..=MOST_LINKS).map(|_| visits.link().unwrap()).collect();
        assert!(!visits.use_link(&many[0]) && visits.use_link(&many[1]));
    }

    #[test]
    fn visits_are_bounded_and_end() {
        let (visits, access) = (Visits::new(), Access::open(&HttpLimits::default()));
        let holder = access.holder(Default::default()).unwrap();
        let first = visits.begin(holder.clone(), true).unwrap();
        let visit = visits.find(&asking(&first), "c").unwrap();
        let permits: Vec<_> = (0..STREAMS_OF_VISIT).map(|_| visits.stream(&visit).unwrap()).collect();
        assert!(visits.stream(&visit).is_none());
        drop(permits);
        assert!(visits.stream(&visit).is_some());
        assert!(visit.admits(&visit.csrf) && !visit.admits("") && !visit.admits(&first));
        for _ in 0..MOST_VISITS {
            visits.begin(holder.clone(), true).unwrap();
        }
        assert!(visits.find(&asking(&first), "c").is_none() && visit.holder(&access).is_none());
        let last = visits.begin(holder, true).unwrap();
        let visit = visits.find(&asking(&last), "c").unwrap();
        visits.leave(&visit);
        assert!(visits.find(&asking(&last), "c").is_none() && visit.holder(&access).is_none());
    }
}
