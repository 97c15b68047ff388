//! `ptc demo` works with nothing installed.

use ptc_tests::binary::{ptc, run};

#[test]
fn it_shows_program_answer_calls_and_saving() {
    let mut command = ptc(&["demo"]);
    // It needs no configuration, no home and no other program.
    command.env_clear().current_dir("/");
    let finished = run(command, "");
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{}", finished.stdout);
    let text = &finished.stdout;
    for part in ["(pmap", "tool/call", "shop", "desk", "Answer", "Calls", "bytes"] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "colour without a terminal:\n{text}");
    let saving = text.lines().find(|line| line.starts_with("Upstream payload")).expect("the saving");
    let numbers: Vec<u64> = saving
        .replace(',', "")
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    assert!(numbers[0] > 10 * numbers[1], "{saving}");
}

#[test]
fn it_draws_its_calls() {
    let drawn = run(ptc(&["demo", "--svg"]), "");
    assert_eq!((drawn.code, drawn.stderr.as_str()), (Some(0), ""));
    assert!(
        drawn.stdout.starts_with("<svg ") && drawn.stdout.contains("times less to read"),
        "{}",
        drawn.stdout
    );
    // 21 calls, as docs/pictures/demo.svg shows them.
    let committed = std::fs::read_to_string(ptc_tests::workspace().join("docs/pictures/demo.svg")).unwrap();
    for picture in [&drawn.stdout, &committed] {
        assert_eq!(picture.matches("<rect class=\"good\"").count(), 21);
        assert!(picture.contains("265 times less to read"));
    }
}

#[test]
fn its_answer_is_always_the_same() {
    let answer = |text: &str| {
        let start = text.find("Answer").expect("answer");
        text[start..text.find("Calls").expect("calls")].to_owned()
    };
    let runs: Vec<String> = (0..2).map(|_| answer(&run(ptc(&["demo"]), "").stdout)).collect();
    assert_eq!(runs[0], runs[1]);
}
