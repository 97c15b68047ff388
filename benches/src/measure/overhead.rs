//! Measures what the runtime adds to a `tool/call` compared with a bare client, and what a policy adds to
//! that.
//!
//! The runtime and a bare client make the same calls in alternating rounds, against servers of the same kind.
//! CPU time is that of this process, without the servers.

use super::pmap::{self, BareClient};
use super::{clock, delay_server};
use ptc_engine::Runtime;
use ptc_upstream::config::ServerEntry;
use std::io;
use std::time::{Duration, Instant};

/// One pattern of calls.
#[derive(Clone, Copy, Debug)]
pub struct CallPattern {
    /// What it is called.
    pub name: &'static str,
    /// Time of one call in the server, in milliseconds.
    pub delay_ms: u64,
    /// Number of calls.
    pub calls: usize,
    /// Calls in flight at the same time.
    pub width: usize,
    form: &'static str,
}

/// The patterns that are measured.
pub const CALL_PATTERNS: &[CallPattern] = &[
    CallPattern {
        name: "one after the other, answered at once",
        delay_ms: 0,
        calls: 2_000,
        width: 1,
        form: "map",
    },
    CallPattern {
        name: "100 in flight, answered at once",
        delay_ms: 0,
        calls: 100,
        width: 100,
        form: "pmap",
    },
    CallPattern { name: "100 in flight, 200 ms each", delay_ms: 200, calls: 100, width: 100, form: "pmap" },
];

/// Cost of all calls of one side.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// By the wall clock.
    pub wall: Duration,
    /// CPU time of this process.
    pub cpu: Duration,
}

impl Cost {
    pub(super) const MOST: Cost = Cost { wall: Duration::MAX, cpu: Duration::MAX };

    /// The smaller value of both, each clock by itself.
    pub(super) fn min(self, other: Cost) -> Cost {
        Cost { wall: self.wall.min(other.wall), cpu: self.cpu.min(other.cpu) }
    }
}

/// The best round of each side.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// The bare client.
    pub bare: Cost,
    /// The runtime.
    pub ptc: Cost,
}

impl Comparison {
    /// Microseconds that a call takes longer than with the bare client: by the wall clock, and of CPU.
    pub fn more_micros(&self, calls: usize) -> (f64, f64) {
        let each =
            |bare: Duration, ptc: Duration| (ptc.as_secs_f64() - bare.as_secs_f64()) * 1e6 / calls as f64;
        (each(self.bare.wall, self.ptc.wall), each(self.bare.cpu, self.ptc.cpu))
    }
}

impl CallPattern {
    /// Arguments that make this binary the delay server.
    pub fn server(&self) -> [String; 2] {
        ["delay-server".to_owned(), self.delay_ms.to_string()]
    }

    /// The server's name as an upstream.
    fn upstream(&self) -> String {
        format!("{}{}", delay_server::NAME, self.delay_ms)
    }

    /// The configuration entry of the server.
    ///
    /// # Errors
    /// The path of this binary is not known.
    pub fn entry(&self) -> io::Result<ServerEntry> {
        let arguments = self.server();
        ServerEntry::own_binary(&self.upstream(), "answers late", &arguments.each_ref().map(String::as_str))
    }

    /// The program; its value is the number of calls that succeeded.
    pub fn program(&self) -> String {
        format!(
            "(count (filter :ok ({} (fn [n] (tool/call {{:server \"{}\" :tool \"{}\" :args {{:n n}}}})) (range {}))))",
            self.form,
            self.upstream(),
            delay_server::TOOL,
            self.calls
        )
    }

    /// Measures both sides in alternating rounds.
    ///
    /// # Errors
    /// A server that ends, or calls that fail.
    pub async fn measure(&self, runtime: &Runtime, rounds: usize) -> io::Result<Comparison> {
        let mut client = BareClient::start(&self.server())?;
        let mut best = Comparison { bare: Cost::MOST, ptc: Cost::MOST };
        for _ in 0..rounds {
            let (begun, cpu) = (Instant::now(), clock::cpu());
            for _ in 0..self.calls / self.width {
                client.calls(self.width)?;
            }
            best.bare = best.bare.min(Cost { wall: begun.elapsed(), cpu: clock::cpu() - cpu });
            best.ptc = best.ptc.min(pmap::timed(runtime, self.program(), self.calls).await?);
        }
        Ok(best)
    }

    /// A line of the report: CPU time of calls under a policy, as a part of that without one, and of one runtime
    /// without a policy as a part of another one. Medians of rounds: in each, every runtime has its turn, forwards and
    /// backwards, since neither the order nor the processes that a runtime has got are to count.
    ///
    /// # Errors
    /// A server that ends, or calls that fail.
    pub async fn ratio(&self, runtimes: &RuledRuntimes, rounds: usize) -> io::Result<String> {
        let RuledRuntimes { without, with } = runtimes;
        let turns = [&without[0], &with[0], &with[1], &without[1]];
        let (mut ratios, mut controls) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
        // The first round warms up.
        for round in 0..=rounds.max(1) {
            let mut cpu = [0.0; 4];
            for at in [0, 1, 2, 3, 3, 2, 1, 0] {
                cpu[at] += pmap::timed(turns[at], self.program(), self.calls).await?.cpu.as_secs_f64();
            }
            if round > 0 {
                ratios.push((cpu[1] + cpu[2]) / (cpu[0] + cpu[3]));
                controls.push(cpu[3] / cpu[0]);
            }
        }
        let median = |mut all: Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let (ratio, control) = (median(ratios), median(controls));
        Ok(format!("| {}: {} | {ratio:.3} | {control:.3} |", self.calls, self.name))
    }
}

/// The head of the table of [`CallPattern::measure`].
pub const COSTS: &str =
    "| calls | bare client | ptc | more a call | more CPU a call |\n|---|---|---|---|---|";

/// The head of the table of [`CallPattern::ratio`].
pub const RATIOS: &str =
    "| calls | CPU with the policy, as a part of that without | two without |\n|---|---|---|";

/// Runtimes that differ in their policy alone.
pub struct RuledRuntimes {
    /// Without a policy.
    pub without: [Runtime; 2],
    /// With one.
    pub with: [Runtime; 2],
}
