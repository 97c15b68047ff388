//! Holds a summary of PTC-Lisp in a few lines, which tool descriptions and agent prompts give to models that write
//! programs. `tests/description/claims.txt` holds all of it, with a program for each claim.

/// How to call upstream tools, and what they return.
pub const CALL: &str = r#"
Call: (tool/call! 'fs/read {:path "a.txt"}) is the value, JSON decoded; a failure ends the program.
If it may fail: (tool/call 'fs/read {}) => {:ok true :value v :value_kind :json|:text|:none} or {:ok false :reason kw :message s}, kw as :tool_error :timeout :upstream_unavailable :response_too_large :cap_exhausted.
In parallel, in order: (pmap #(tool/call! 's/t {:id %}) ids); no fail or return inside."#;

/// What the language has that a reader of Clojure would not guess, and what it lacks.
pub const LANGUAGE: &str = r#"
`context` keys are data/<key>. JSON maps have string keys; keywords read and write them: (:id m), {:keys [id]}, (assoc m :id 1); new keys stay keywords.
clojure.core, str/ set/ Math/, json/parse-string, json/generate-string. (println x) shows first; (return v) stops early, (fail v) with an error; (describe x) shows a shape.
/ gives a float; quot, Math/round floor ceil integers. (format "%.2f" x).
Dates: (LocalDate/now) is the server's today; LocalDate/parse, LocalDateTime/parse, Instant/parse; (Duration/between t u); Java methods (.plusDays d 7), (.toEpochDay d), (.getDayOfWeek d) "SUNDAY". They print as ISO text, which < and sort compare.
Java regex: re-find gives [match group ...].
Not available: lazy seqs, atoms, try, macros, ns/require, I/O, rand."#;
