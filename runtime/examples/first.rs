//! The first example of docs/library.md: a program calls a function of the application.
//!
//! `cargo run -p ptc-runtime --example first`
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use ptc_runtime::{Effect, HostTool, RunOptions, Runtime};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct User {
    id: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let user = HostTool::new("user", |User { id }: User| async move {
        ["Ada", "Grace"].get(id as usize).copied().ok_or("no such user")
    });
    let runtime = Runtime::builder().tool(user.effect(Effect::Read)).start().await?;
    let names: Vec<String> = runtime.run("(map tool/user [0 1])", RunOptions::typed()).await.value()?;
    println!("{names:?}");
    runtime.shutdown().await;
    Ok(())
}
