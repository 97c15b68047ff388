//! Composes the note in a run's outcome on failed tool calls that neither the answer nor the printed lines mention, so
//! that a reader does not take a partial answer for a complete one. A program that filters by `:ok` drops such calls
//! silently.

use super::limits::Limits;
use super::outcome::{CallFault, CallRecord, CallStatus, Failure, RenderedValue};
use super::totals::CallTotals;
use std::borrow::Cow;

/// How many tools are named per reason.
const NAMED: usize = 3;

/// How many messages per reason are searched for in an answer.
const SOUGHT: usize = 20;

/// Calls that failed for the same reason, in order of appearance.
struct Failed<'c> {
    reason: CallFault,
    calls: Vec<&'c CallRecord>,
    /// Further calls, which have no record.
    more: usize,
}

/// A note about failed calls whose reasons neither result nor prints mention, even if the program handled them; `None`
/// when there are none. Calls that the program itself cancelled do not count.
pub(super) fn remark(
    result: &Result<RenderedValue, Failure>,
    prints: &[String],
    (calls, totals): (&[CallRecord], &CallTotals),
    limits: &Limits,
) -> Option<String> {
    let mut failed: Vec<Failed<'_>> = Vec::new();
    for call in calls {
        let CallStatus::Error { reason, .. } = call.status else { continue };
        match failed.iter_mut().find(|known| known.reason == reason) {
            _ if reason == CallFault::Cancelled => {}
            Some(known) => known.calls.push(call),
            None => failed.push(Failed { reason, calls: vec![call], more: 0 }),
        }
    }
    if failed.is_empty() {
        return None;
    }
    if let Some(refused) = failed.iter_mut().find(|failed| failed.reason == CallFault::CapExhausted) {
        let all = usize::try_from(totals.refused).unwrap_or(usize::MAX);
        refused.more = all.saturating_sub(refused.calls.len());
    }
    let (main, message) = match result {
        Ok(answer) => (answer.text.as_str(), ""),
        Err(failure) => (failure.value.as_deref().unwrap_or_default(), failure.message.as_str()),
    };
    let shown: Vec<&str> = [main, message].into_iter().chain(prints.iter().map(String::as_str)).collect();
    let unreported: Vec<(usize, Failed<'_>)> = failed
        .into_iter()
        .map(|failed| (failed.count().saturating_sub(failed.seen(&shown)), failed))
        .filter(|(count, _)| *count > 0)
        .collect();
    let count: usize = unreported.iter().map(|(count, _)| count).sum();
    let parts: Vec<String> = unreported.iter().map(|(count, failed)| failed.line(*count, limits)).collect();
    (count > 0).then(|| {
        let (all, what) = (totals.count(), if totals.count() == 1 { "tool call" } else { "tool calls" });
        format!(
            "{count} of {all} {what} gave :ok false, and the answer does not say why: {}",
            parts.join(", ")
        )
    })
}

impl Failed<'_> {
    fn count(&self) -> usize {
        self.calls.len() + self.more
    }

    /// How many of the calls the texts mention. All, when the program names the reason in its own words, as
    /// `(frequencies (map :reason results))` does; else those that appear as results or by their messages.
    fn seen(&self, shown: &[&str]) -> usize {
        let found = |sought: &str| shown.iter().map(|text| text.matches(sought).count()).sum::<usize>();
        let name = self.reason.name();
        let as_results = found(&format!(":reason :{name}"));
        if found(&format!(":{name}")) > as_results {
            return self.count();
        }
        let mut messages: Vec<(Cow<'_, str>, usize)> = Vec::new();
        for call in &self.calls {
            let CallStatus::Error { error, .. } = &call.status else { continue };
            // The beginning of a message reads the same when it is printed with escapes.
            let start = error.split(['\n', '"', '\\', '\t', '\r']).next().unwrap_or_default().trim();
            // A word of a few letters may appear for other reasons; the error of `tool/call!` names the tool.
            let sought = match start.len() > 8 && start != name {
                true => Cow::Borrowed(start),
                false => Cow::Owned(format!("{}/{}: {start}", call.server, call.tool)),
            };
            if let Some((_, count)) = messages.iter_mut().find(|(known, _)| *known == sought) {
                *count += 1;
            } else if messages.len() < SOUGHT {
                messages.push((sought, 1));
            }
        }
        let by_message: usize = messages.into_iter().map(|(text, count)| count.min(found(&text))).sum();
        as_results.max(by_message)
    }

    fn line(&self, count: usize, limits: &Limits) -> String {
        let mut tools: Vec<String> = Vec::new();
        for call in &self.calls {
            let name = format!("{}/{}", call.server, call.tool);
            if !tools.contains(&name) {
                tools.push(name);
            }
            if tools.len() > NAMED {
                tools[NAMED] = "…".to_owned();
                break;
            }
        }
        let name = self.reason.name();
        let is_of_program =
            |call: &&&CallRecord| matches!(&call.status, CallStatus::Error { error, .. } if error == name);
        let why =
            if self.reason == CallFault::CapExhausted && self.calls.iter().any(|call| is_of_program(&call)) {
                format!("; a program may make {} calls", limits.max_upstream_calls)
            } else {
                String::new()
            };
        format!("{count} {name} ({}{why})", tools.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::outcome::{Effect, Outcome};
    use std::time::Duration;

    fn call(tool: &str, fault: Option<(CallFault, &str)>) -> CallRecord {
        CallRecord {
            server: "s".into(),
            tool: tool.into(),
            status: fault
                .map_or(CallStatus::Ok, |(reason, error)| CallStatus::Error { reason, error: error.into() }),
            begun: Duration::ZERO,
            duration: Duration::ZERO,
            result_bytes: None,
            effect: Effect::Read,
            arguments_hash: None,
            cached: false,
            ruling: None,
            number: None,
            place: None,
        }
    }

    fn said(text: &str, calls: &[CallRecord]) -> Option<String> {
        let mut result = Outcome::default().result;
        if let Ok(answer) = &mut result {
            answer.text = text.into();
        }
        remark(
            &result,
            &[],
            (calls, &calls.iter().collect()),
            &Limits { max_upstream_calls: 2, ..Limits::default() },
        )
    }

    #[test]
    fn failures_that_the_answer_does_not_show_are_counted_by_reason() {
        let calls = [
            call("a", None),
            call("b", Some((CallFault::Timeout, "timeout after 5 ms"))),
            call("c", Some((CallFault::CapExhausted, "cap_exhausted"))),
            call("d", Some((CallFault::CapExhausted, "cap_exhausted"))),
            call("e", Some((CallFault::Cancelled, "gone"))),
        ];
        assert_eq!(
            said("[1]", &calls).as_deref(),
            Some(
                "3 of 5 tool calls gave :ok false, and the answer does not say why: 1 timeout (s/b), \
                 2 cap_exhausted (s/c, s/d; a program may make 2 calls)"
            )
        );
        let partly = said("[{:ok false :reason :cap_exhausted} \"timeout after 5 ms\"]", &calls);
        assert!(partly.is_some_and(|text| text.starts_with("1 of 5") && !text.contains("timeout")));
        assert_eq!(said("{:cap_exhausted 2 :timeout 1}", &calls), None);
        assert_eq!(said("1", &[call("a", None), call("e", Some((CallFault::Cancelled, "gone")))]), None);
    }
}
