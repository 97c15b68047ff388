//! Arguments of a call, split into members while the message is parsed, so that a tool need not parse them
//! again.

use super::borrowed::Raw;
use super::scan::Scanner;
use serde::Deserialize;
use serde::de::Deserializer;
use std::borrow::Cow;
use std::fmt;

/// Most members that are noted. Tools parse arguments with more members themselves.
const NOTED: usize = 4;

/// The arguments of a call as JSON text, with their members if they are few.
#[derive(Clone)]
pub struct GivenArguments<'a> {
    text: Raw<'a>,
    /// The first members.
    members: [ArgumentMember<'a>; NOTED],
    /// Number of members; `None` when they were not split.
    count: Option<usize>,
}

/// A member of the arguments.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentMember<'a> {
    /// Its key, which contains no escapes.
    pub key: &'a [u8],
    /// Its value.
    pub value: Raw<'a>,
    /// The value is a string without escapes.
    is_plain: bool,
}

impl<'a> ArgumentMember<'a> {
    /// The value as a string, if it is one.
    #[inline]
    pub fn string(&self) -> Option<Cow<'a, str>> {
        let text = self.value.get();
        match self.is_plain {
            true => text.get(1..text.len() - 1).map(Cow::Borrowed),
            false => self.value.string(),
        }
    }
}

impl<'a> GivenArguments<'a> {
    /// Arguments that are not split.
    pub fn whole(text: Raw<'a>) -> GivenArguments<'a> {
        let nothing = ArgumentMember { key: b"", value: Raw::scanned(""), is_plain: false };
        GivenArguments { text, members: [nothing; NOTED], count: None }
    }

    /// Their JSON text.
    pub fn text(&self) -> &'a str {
        self.text.get()
    }

    /// The members, if they are known.
    pub fn members(&self) -> Option<&[ArgumentMember<'a>]> {
        self.members.get(..self.count?)
    }

    /// Reads an object from a scanner; `None` when serde has to read it.
    #[inline]
    pub(super) fn scan(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let (start, mut count) = (scanner.here(), 0);
        let members = &mut self.members;
        scanner.object(|scanner| {
            let key = scanner.any_key()?;
            let (value, is_plain) = scanner.value_and_plainness()?;
            let member = ArgumentMember { key, value, is_plain };
            if let Some(place) = members.get_mut(count) {
                *place = member;
            }
            count += 1;
            Some(())
        })?;
        (self.text, self.count) = (Raw::scanned(scanner.since(start)?), Some(count));
        Some(())
    }
}

impl fmt::Debug for GivenArguments<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text contains the members.
        self.text.fmt(out)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for GivenArguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<GivenArguments<'a>, D::Error> {
        Raw::deserialize(deserializer).map(GivenArguments::whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_string_says_is_known_from_one_scan() {
        let text = r#"{"a":"(+ 1 2)","b":"\u0061\n","c":["x"],"d":"ä"}"#;
        let mut arguments = GivenArguments::whole(Raw::scanned(""));
        arguments.scan(&mut Scanner::new(text)).expect("an object");
        let members = arguments.members().expect("few");
        let strings: Vec<_> = members.iter().map(|member| member.string()).collect();
        let expected = [Some("(+ 1 2)"), Some("a\n"), None, Some("ä")];
        assert_eq!(strings, expected.map(|text| text.map(Cow::from)));
        assert!(members.iter().all(|member| member.string() == member.value.string()));
    }
}
