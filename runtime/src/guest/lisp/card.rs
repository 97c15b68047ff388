//! The language in a few lines, for models that write programs. Tool descriptions and agent prompts share
//! this text. `tests/description/claims.txt` holds all of it, with a program for each claim.

/// How to call upstream tools, and what they return.
pub const CALL: &str = r#"
Call: (tool/call! 'fs/read {:path "a.txt"}) gives the value, JSON decoded; a failed call ends the program.
If it may fail: (tool/call {:server "fs" :tool "read" :args {}})
=> {:ok true :value v :value_kind :json|:text|:none} or {:ok false :reason kw :message s}, kw :tool_error :upstream_error :upstream_unavailable :starting :timeout :response_too_large :cap_exhausted.
In parallel, in order: (pmap (fn [id] (tool/call! 's/t {:id id})) ids); no fail or return inside."#;

/// What the language has that a reader of Clojure would not guess, and what it lacks.
pub const LANGUAGE: &str = r#"
`context` keys are data/<key>, as data/orders. JSON maps have string keys; keywords read and write them: (:id m), {:keys [id]}, (assoc m :id 1); new keys stay keywords.
clojure.core, str/ set/ Math/, json/parse-string, json/generate-string. (println x) shows before the result; (return v) stops early, (fail v) with an error; (describe x) shows a shape. defs end with the program.
Numbers: / gives a float; quot, Math/round floor ceil integers; two decimals: (format "%.2f" x) or (/ (Math/round (* 100 x)) 100).
Dates: (LocalDate/now) is the server's today; (LocalDate/parse "2026-03-01"), LocalDateTime/parse, Instant/parse; Java methods (.plusDays d 7), (.getDayOfWeek d) "SUNDAY", (.toEpochDay d), (Duration/between t u). They print as ISO text; ISO texts compare with < and sort.
Java regex: re-find gives [match group ...].
Not available: lazy seqs, atoms, try/catch, macros, ns/require, I/O, rand."#;
