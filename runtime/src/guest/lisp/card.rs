//! The language in a few lines, for models that write programs. Tool descriptions and agent prompts share
//! this text. `tests/description/claims.txt` holds all of it, with a program for each claim.

/// How to call upstream tools, and what they return.
pub const CALL: &str = r#"
Call: (tool/call {:server "fs" :tool "read" :args {:path "a.txt"}})
=> {:ok true :value v}, JSON text already decoded, or {:ok false :reason kw :message s}, kw :tool_error :upstream_error :upstream_unavailable :timeout :response_too_large :cap_exhausted. Check :ok:
(let [r (tool/call {...})] (if (:ok r) (:value r) (fail (:message r))))
In parallel, results in order: (pmap (fn [id] (tool/call {:server "s" :tool "t" :args {:id id}})) ids); no fail or return inside."#;

/// What the language has that a reader of Clojure would not guess, and what it lacks.
pub const LANGUAGE: &str = r#"
`context` keys are data/<key>, e.g. data/orders (no parentheses). JSON maps have string keys; keywords read and write them: (:id m), {:keys [id]}, (assoc m :id 1); new keys stay keywords.
clojure.core, str/ set/ Math/, json/parse-string, json/generate-string. (println x) shows up before the result; (return v) stops early, (fail v) with an error; (describe x) shows a shape.
Numbers: / gives a float, quot an integer, Math/round floor ceil integers; two decimals: (/ (Math/round (* 100 x)) 100) or (format "%.2f" x) as in Java.
Dates: (LocalDate/parse "2026-03-01"), (Instant/parse "2026-03-01T10:00:00Z"), Java methods: (.plusDays d 7), (.getDayOfWeek d) "SUNDAY", (.toEpochDay d), (Duration/between t u); they print as ISO text. ISO texts compare with < and sort.
Java regex: re-find gives [match group ...].
Not available: lazy seqs, atoms, try/catch, macros, ns/require, I/O, rand."#;
