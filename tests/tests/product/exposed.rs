//! `ptc serve --expose`: exports of preludes as tools of their own.

#![allow(clippy::unwrap_used, reason = "a broken server should be loud")]

use ptc_tests::binary::{ptc, run_ptc};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{ConfigFile, Upstreams, stdio};
use ptc_tests::workspace;
use serde_json::{Value, json};
use tempfile::TempDir;

const SHOP: &str = r#"
(ns shop "A shop.")
(defn price
  "What an item costs. More than that."
  {:tool {:description "Tells a price."
          :input {:type "object" :properties {:item-id {:type :integer} :note {:type "string"}} :required ["item-id"]}
          :output {:type "object" :properties {:price {:type "integer"} :note {:type "string"}} :required ["price"]}}}
  [item-id note]
  (if note {:price (* 10 item-id) :note note} {:price (* 10 item-id)}))
(defn look "Looks." {:tool {}} [k] (tool/call! {:server "count" :tool "read" :args {:k k}}))
(defn put! "Puts." {:tool {}} ([k] (put! k 0)) ([k l] [(tool/call! 'count/put {:k k}) l]))
(defn write "Writes." {:tool {}} [k] [(look k) (tool/call! 'count/write {:k k})])
(defn any "Calls anything." {:tool {}} [server k] (tool/call! {:server server :tool "read" :args {:k k}}))
(defn wrong "Gives another shape." {:tool {:output {:type "object" :properties {:n {:type "integer"}} :required ["n"]}}} [] {:n "x"})
(defn helper "None." [k] k)
"#;

struct World {
    folder: TempDir,
    config: ConfigFile,
}

impl World {
    fn new(prelude: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let server = workspace().join("tests/python/counting.py");
        let log = folder.path().join("log");
        let entry = stdio("python3", &[server.to_str().unwrap(), log.to_str().unwrap()]);
        std::fs::write(folder.path().join("shop.clj"), prelude).unwrap();
        World { config: Upstreams::default().add("count", entry).write(), folder }
    }

    fn words<'a>(&'a self, prelude: &'a str, names: &'a str) -> Vec<&'a str> {
        let words = ["serve", "--catalog-snapshot-mode", "live", "--prelude", prelude, "--expose", names];
        words.into_iter().chain(self.config.flags(&[])).collect()
    }

    fn prelude(&self) -> String {
        self.folder.path().join("shop.clj").to_str().unwrap().to_owned()
    }

    fn serve(&self, names: &str) -> Server {
        let prelude = self.prelude();
        let mut server = Server::from_command(ptc(&self.words(&prelude, names)));
        // Its server has started then.
        assert_eq!(server.text("(tool/call! 'count/read {:k 0})"), "0");
        server
    }
}

fn ask(server: &mut Server, method: &str, params: Value) -> Value {
    let id = server.begin(method, params);
    loop {
        let answer = server.receive();
        if answer["id"] == id {
            return answer["result"].clone();
        }
    }
}

fn call(server: &mut Server, name: &str, arguments: Value) -> Value {
    ask(server, "tools/call", json!({ "name": name, "arguments": arguments }))
}

#[test]
fn exports_are_tools_with_their_schemas_and_honest_annotations() {
    let world = World::new(SHOP);
    let mut server = world.serve("shop/*");
    let list = ask(&mut server, "tools/list", json!({}));
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["lisp_eval", "shop_any", "shop_look", "shop_price", "shop_put_", "shop_write", "shop_wrong"]
    );
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let hints = |name: &str| {
        let hints = &tool(name)["annotations"];
        ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(|hint| hints[hint] == true)
    };
    assert_eq!(hints("shop_price"), [true, false, true, false]);
    assert_eq!(hints("shop_look"), [true, false, true, true]);
    assert_eq!(hints("shop_put_"), [false, false, true, true]);
    assert_eq!(hints("shop_write"), [false, true, false, true]);
    assert_eq!(hints("shop_any"), [false, true, false, true]);
    let price = tool("shop_price");
    assert_eq!((&price["description"], &price["title"]), (&json!("Tells a price."), &json!("shop/price")));
    assert_eq!(price["inputSchema"]["properties"]["item-id"], json!({ "type": "integer" }));
    assert_eq!(price["outputSchema"]["required"], json!(["price"]));
    let put = tool("shop_put_");
    assert_eq!(put["description"], "Puts.");
    assert_eq!(
        put["inputSchema"],
        json!({ "type": "object", "properties": { "k": {}, "l": {} }, "required": ["k"] })
    );
    assert_eq!(put["execution"], json!({ "taskSupport": "optional" }));
}

#[test]
fn arguments_are_the_parameters_by_name() {
    let world = World::new(SHOP);
    let mut server = world.serve("shop/*");
    let answer = call(&mut server, "shop_price", json!({ "item_id": 7, "note": "n" }));
    assert_eq!(answer["isError"], true, "the schema names it with a hyphen: {answer}");
    let answer = call(&mut server, "shop_price", json!({ "note": "n", "item-id": 7 }));
    assert_eq!(answer["structuredContent"], json!({ "price": 70, "note": "n" }), "{answer}");
    let answer = call(&mut server, "shop_price", json!({ "item-id": 7 }));
    assert_eq!(answer["structuredContent"], json!({ "price": 70 }));
    assert_eq!(text_of(&answer), r#"{"price":70}"#, "{answer}");
    assert_eq!(text_of(&call(&mut server, "shop_put_", json!({ "k": 1 }))), "[1 0]");
    assert_eq!(text_of(&call(&mut server, "shop_put_", json!({ "l": 3, "k": 2 }))), "[2 3]");
    assert_eq!(text_of(&call(&mut server, "shop_any", json!({ "server": "count", "k": 4 }))), "4");
    for (name, wrong, says) in [
        ("shop_price", json!({ "item-id": "seven" }), "integer"),
        ("shop_price", json!({}), "item-id"),
        ("shop_look", json!({ "k": 1, "more": 2 }), "more"),
        ("shop_look", json!({}), "k"),
        ("shop_wrong", json!({}), "validation"),
    ] {
        let answer = call(&mut server, name, wrong);
        assert_eq!(answer["isError"], true, "{name}: {answer}");
        assert!(text_of(&answer).contains(says), "{name}: {answer}");
    }
    // A helper is none, and programs call exports as before.
    assert_eq!(call(&mut server, "shop_helper", json!({ "k": 1 }))["isError"], true);
    assert_eq!(server.text("(shop/helper (:price (shop/price 2 nil)))"), "20");
}

#[test]
fn only_what_can_be_offered_is_exposed() {
    let world = World::new(SHOP);
    let mut server = world.serve("shop/look,shop/price");
    let list = ask(&mut server, "tools/list", json!({}));
    assert_eq!(list["tools"].as_array().unwrap().len(), 3);
    let refused = |prelude: &str, names: &str| {
        let world = World::new(prelude);
        let path = world.prelude();
        let finished = run_ptc(&world.words(&path, names), "");
        assert_eq!(finished.code, Some(2), "{finished:?}");
        finished.stderr
    };
    for names in ["shop/helper", "shop/none", "other/*"] {
        assert!(refused(SHOP, names).contains(":tool in its metadata"), "{names}");
    }
    let twice = "(ns a)\n(defn x? {:tool {}} [] 1)\n(defn x! {:tool {}} [] 2)";
    assert!(refused(twice, "a/*").contains("another tool with the name a_x_"));
    let clash = "(ns lisp)\n(defn eval {:tool {}} [] 1)";
    assert!(refused(clash, "lisp/eval").contains("another tool with the name lisp_eval"));
    let unknown = "(ns a)\n(defn f {:tool {:input {:type \"object\" :properties {:y {}}}}} [x] x)";
    assert!(refused(unknown, "a/f").contains("no parameter"));
    let rest = "(ns a)\n(defn f {:tool {}} [& all] all)";
    assert!(refused(rest, "a/f").contains("any number of arguments"));
    for (metadata, says) in [
        ("{:tool 1}", "must be a map"),
        ("{:tool {:inputs {}}}", "no member :inputs"),
        ("{:tool {:input {:type (str 1)}}}", "plain data"),
    ] {
        assert!(refused(&format!("(ns a)\n(defn f {metadata} [x] x)"), "a/f").contains(says), "{metadata}");
    }
}
