//! Help fits a few screens and wraps once; the manual pages have every flag.

use ptc_tests::binary::run_ptc;

fn help(arguments: &[&str]) -> String {
    run_ptc(arguments, "").stdout
}

/// The manual page of a command, without the escapes of roff.
fn page(command: &str) -> String {
    help(&["man", command]).replace("\\-", "-")
}

#[test]
fn the_help_of_serve_is_short_and_grouped_and_its_page_has_every_flag() {
    let help = help(&["serve", "--help"]);
    assert!(help.lines().count() <= 120, "{}", help.lines().count());
    for heading in ["HTTP:", "Servers:", "Sessions:", "Limits:", "Tasks in words:"] {
        assert!(help.lines().any(|line| line == heading), "{heading}\n{help}");
    }
    let page = page("serve");
    let flags: Vec<&str> = help.split_whitespace().filter(|word| word.starts_with("--")).collect();
    assert!(flags.len() > 100, "{flags:?}");
    for flag in flags {
        let flag = flag.trim_end_matches([',', ';', '.', ')', ']']);
        assert!(page.contains(flag), "{flag}");
    }
    assert!(page.contains("How long a session lives at most"), "{page}");
}

#[test]
fn texts_after_the_flags_wrap_once() {
    for command in ["serve", "call", "tools", "batch", "check", "task"] {
        let help = help(&[command, "--help"]);
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2) {
            // A short line in the middle of a paragraph has been wrapped twice.
            let is_prose = |line: &str| line.chars().next().is_some_and(char::is_alphabetic);
            let next = pair[1].split(' ').next().unwrap_or_default();
            let cut =
                is_prose(pair[0]) && is_prose(pair[1]) && !pair[0].contains(':') && !pair[1].contains(':');
            assert!(!cut || pair[0].len() + next.len() >= 99, "{command}: {pair:?}");
        }
    }
}

#[test]
fn help_says_how_times_and_sizes_are_written() {
    let help = help(&["call", "--help"]);
    assert!(
        help.contains("TIME is written 500ms, 10s or 1m; BYTES is written 4096, 64k, 10M or 1G."),
        "{help}"
    );
}

#[test]
fn a_page_is_asked_for_by_the_words_of_its_command() {
    assert!(page("serve").starts_with(".ie"), "{}", page("serve"));
    assert!(help(&["man", "prelude", "check"]).contains("prelude"));
    let unknown = run_ptc(&["man", "nosuch"], "");
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("serve"), "{unknown:?}");
}
