//! `ptc test`: recordings as tests.

use super::{edited, recorded};
use ptc_tests::binary::run_ptc;

#[test]
fn a_folder_of_recordings_is_a_suite() {
    let (folder, recording, _) = recorded("(println \"x\") (tool/call! 'probe/echo {:v 1})", &[]);
    let path = folder.path().to_str().unwrap();
    let junit = folder.path().join("report.xml");
    let test = |paths: &[&str]| {
        let arguments = ["test", "--junit", junit.to_str().unwrap()];
        run_ptc(&arguments.into_iter().chain(paths.iter().copied()).collect::<Vec<_>>(), "")
    };
    let finished = test(&[path]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.ends_with("1 held, 0 differ, 0 cannot run\n"), "{finished:?}");
    assert!(std::fs::read_to_string(&junit).unwrap().contains("tests=\"1\" failures=\"0\" errors=\"0\""));

    let wrong = edited(&recording, "\"value\":\"1\"", "\"value\":\"2\"");
    let finished = test(&[path]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stdout.contains("result differs:\n    - 2\n    + 1\n"), "{finished:?}");
    assert!(finished.stdout.ends_with("1 held, 1 differ, 0 cannot run\n"), "{finished:?}");
    let report = std::fs::read_to_string(&junit).unwrap();
    assert!(report.contains("<failure message=\"result differs:\">"), "{report}");

    std::fs::write(&wrong, "{}\n").unwrap();
    let finished = test(&[path]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stdout.contains("cannot run"), "{finished:?}");
    let empty = tempfile::tempdir().unwrap();
    let finished = test(&[empty.path().to_str().unwrap()]);
    assert!(finished.code == Some(2) && finished.stderr.contains("there are no recordings"), "{finished:?}");
}

#[test]
fn another_prelude_is_tested_with_recorded_answers() {
    let preludes = tempfile::tempdir().unwrap();
    let file = preludes.path().join("crm.clj");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("(ns crm \"Customers\") (defn twice \"Doubles\" [n] (* 2 (tool/call! 'probe/echo {:v n})))");
    let (folder, recording, finished) = recorded("(crm/twice 4)", &["-p", file.to_str().unwrap()]);
    assert_eq!(finished.stdout, "8\n", "{finished:?}");
    let test = |more: &[&str]| {
        let arguments = ["test", folder.path().to_str().unwrap()];
        run_ptc(&arguments.into_iter().chain(more.iter().copied()).collect::<Vec<_>>(), "")
    };
    // The recording has the text of its prelude.
    write("(ns crm \"Customers\") (defn twice \"Doubles\" [n] 0)");
    assert_eq!(test(&[]).code, Some(0), "{recording:?}");
    let finished = test(&["-p", file.to_str().unwrap()]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stdout.contains("- 8\n    + 0") && finished.stdout.contains("not made: 1"),
        "{finished:?}"
    );
    write(
        "(ns crm \"Customers\") (defn twice \"Doubles\" [n] (let [v (tool/call! 'probe/echo {:v n})] (+ v v)))",
    );
    let finished = test(&["-p", file.to_str().unwrap()]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
}
