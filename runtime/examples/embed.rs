//! Example of embedding: a program uses a function of the application and the servers of a file, and returns
//! a typed answer.
//!
//! `cargo run -p ptc-runtime --example embed -- upstreams.json`, where the server `fake` has a tool `echo`.
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use ptc_runtime::{Effect, HostTool, RunOptions, Runtime};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct User {
    id: u32,
}

#[derive(Debug, serde::Deserialize)]
struct Answer {
    name: String,
    said: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: embed UPSTREAMS_FILE")?;
    let user = HostTool::new("user", |User { id }: User| async move {
        let names = ["Ada", "Grace"];
        names.get(id as usize).map(|name| serde_json::json!({"id": id, "name": name})).ok_or("no such user")
    });
    let runtime = Runtime::builder().tool(user.effect(Effect::Read)).upstreams(file)?.start().await?;
    let options = RunOptions::typed().with_context(&serde_json::json!({"id": 1}))?;
    let program = r#"(let [name (:name (tool/user {:id data/id}))]
        {:name name :said (:text (:value (tool/call 'fake/echo {:text (str "hello, " name)})))})"#;
    let Answer { name, said } = runtime.run(program, options).await.value()?;
    println!("{name} got {said}");
    runtime.shutdown().await;
    Ok(())
}
