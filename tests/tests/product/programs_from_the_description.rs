//! A hundred tasks over nine servers, each with a program written from the description of `lisp_eval` alone, in one pass,
//! without repair. `tests/first_try/reference.py` and `tests/first_try/no_schemas/make.py` compute the answers.

use ptc_tests::serve::Server;
use ptc_tests::upstreams::{Upstreams, table_server};
use ptc_tests::workspace;
use serde_json::Value;

/// Programs that were wrong at the first attempt, and why; they stay unrepaired.
const WRONG: &[(usize, &str)] =
    &[(57, "its map has integers as keys: printed as it should be, and not JSON, which is what is compared")];

/// Tasks and programs of one set.
struct TaskSet {
    folder: &'static str,
    servers: &'static [&'static str],
    tasks: usize,
    /// Programs that were wrong at the first attempt.
    wrong: &'static [(usize, &'static str)],
}

#[test]
fn programs_are_right_at_the_first_try() {
    check(&TaskSet {
        folder: "tests/first_try",
        servers: &["shop", "crm", "desk", "hr", "files"],
        tasks: 60,
        wrong: WRONG,
    });
}

/// The servers have no output schemas.
#[test]
fn programs_for_servers_without_schemas_are_right_at_the_first_try() {
    check(&TaskSet {
        folder: "tests/first_try/no_schemas",
        servers: &["bank", "inbox", "travel", "plant"],
        tasks: 40,
        wrong: &[],
    });
}

/// # Panics
/// If other programs than the known ones are wrong.
fn check(set: &TaskSet) {
    let read = |name: &str| {
        std::fs::read_to_string(workspace().join(set.folder).join(name)).expect("a file of the tasks")
    };
    let tasks: Vec<Value> = serde_json::from_str(&read("tasks.json")).expect("a list of tasks");
    let programs = read("programs.txt");
    let programs: Vec<&str> = programs.split(";; ").skip(1).collect();
    assert_eq!((tasks.len(), programs.len()), (set.tasks, set.tasks));
    let data = format!("{}/data.json", set.folder);
    let servers =
        set.servers.iter().fold(Upstreams::default(), |all, name| all.add(name, table_server(&data, name)));
    let config = servers.write();
    let mut server = Server::start(&config.flags(&["--response-profile", "structured", "--timeout", "120s"]));
    let mut wrong = Vec::new();
    for (number, (task, program)) in (1..).zip(tasks.iter().zip(programs)) {
        let (numbered, program) = program.split_once('\n').expect("a number and a program");
        assert_eq!(numbered, number.to_string());
        let given = server.run(program);
        let given = &given["structuredContent"];
        if given["status"] != "ok" || !is_same(&given["value"], &task["answer"]) {
            println!("{number}: {}\nwanted {}\n{given:#}\n{program}", task["task"], task["answer"]);
            wrong.push(number);
        }
    }
    assert_eq!(server.end(), Some(0));
    assert_eq!(wrong, set.wrong.iter().map(|(number, _)| *number).collect::<Vec<_>>());
}

/// Compares numbers by value: 2 equals 2.0.
fn is_same(given: &Value, wanted: &Value) -> bool {
    match (given, wanted) {
        (Value::Number(given), Value::Number(wanted)) => given.as_f64() == wanted.as_f64(),
        (Value::Array(given), Value::Array(wanted)) => {
            given.len() == wanted.len()
                && given.iter().zip(wanted).all(|(given, wanted)| is_same(given, wanted))
        }
        (Value::Object(given), Value::Object(wanted)) => {
            given.len() == wanted.len()
                && wanted
                    .iter()
                    .all(|(key, wanted)| given.get(key).is_some_and(|given| is_same(given, wanted)))
        }
        _ => given == wanted,
    }
}
