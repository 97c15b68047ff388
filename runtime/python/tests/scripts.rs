//! Scripts through the runtime: what they print, raise, and cannot do.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_python::engine::cpython::{CPython, Options};
use ptc_python::engine::{Engine, Script};
use ptc_python::guest::ScriptRun;
use ptc_runtime::limits::Limits;
use ptc_runtime::{Runtime, RuntimeConfig};
use std::sync::Arc;

struct Python {
    runtime: Runtime,
    engine: Arc<dyn Engine>,
}

impl Python {
    async fn start() -> Python {
        let options =
            Options { python: "python3".into(), jail: true, memory_bytes: 128 << 20, cpu_seconds: 20 };
        let engine = Arc::new(CPython::start(options).await.unwrap());
        Python { runtime: Runtime::start(RuntimeConfig::default()).await.unwrap(), engine }
    }

    async fn run(&self, code: &str, timeout_ms: u64) -> Result<String, String> {
        let script = Script { code: code.into(), output_bytes: 1_000 };
        let run = ScriptRun { engine: self.engine.clone(), broker: self.runtime.broker().clone(), script };
        let limits = Limits { timeout_ms, ..Limits::default() };
        let outcome = self.runtime.run_guest(limits, run.guest()).await;
        outcome.result.map(|answer| answer.text).map_err(|failure| failure.message)
    }
}

#[tokio::test]
async fn scripts_print_raise_and_end() {
    let python = Python::start().await;
    for (code, want) in [
        ("print(1 + 1)", Ok("2\n")),
        ("x = 1", Ok("(no output)")),
        ("import asyncio\nawait asyncio.sleep(0)\nprint('ä')", Ok("ä\n")),
        (
            "raise ValueError('no')",
            Err(
                "Traceback (most recent call last):\n  File \"<program>\", line 1, in __main__\n    raise ValueError('no')\nValueError: no",
            ),
        ),
        (
            "import os\nos.kill(1, 9)",
            Err(
                "Traceback (most recent call last):\n  File \"<program>\", line 2, in __main__\n    os.kill(1, 9)\nPermissionError: [Errno 1] Operation not permitted",
            ),
        ),
        ("while True: pass", Err("TimeoutError: Execution exceeded 1.5s limit")),
        ("print('still here')", Ok("still here\n")),
    ] {
        assert_eq!(python.run(code, 1_500).await, want.map(str::to_owned).map_err(str::to_owned), "{code}");
    }
}
