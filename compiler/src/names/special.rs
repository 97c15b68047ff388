//! Lists the special forms of PTC-Lisp in one table, with their syntax, one line of documentation, and whether a local
//! variable of the same name hides the form.

macro_rules! specials {
    ($($variant:ident $name:literal $shadow:literal $usage:literal $doc:literal;)+) => {
        /// A special form.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Special { $($variant,)+ }

        impl Special {
            pub(crate) const NAMES: &'static [&'static str] = &[$($name,)+];

            pub(crate) const ALL: &'static [Special] = &[$(Special::$variant,)+];

            pub(crate) fn lookup(name: &str) -> Option<Special> {
                match name { $($name => Some(Special::$variant),)+ _ => None }
            }

            /// A local of the same name hides the form.
            pub(crate) fn can_be_shadowed(self) -> bool {
                match self { $(Special::$variant => $shadow,)+ }
            }

            /// The syntax of the form, for messages.
            pub(crate) fn usage(self) -> &'static str {
                match self { $(Special::$variant => $usage,)+ }
            }

            pub(crate) fn name(self) -> &'static str {
                match self { $(Special::$variant => $name,)+ }
            }

            /// One line of documentation; empty for forms that are recognised only to be refused.
            pub(crate) fn doc(self) -> &'static str {
                match self { $(Special::$variant => $doc,)+ }
            }
        }
    };
}

specials! {
    Let "let" true "(let [bindings] body ...)" "Binds names to values, in order, for the body; patterns take vectors and maps apart.";
    Loop "loop" true "(loop [bindings] body ...)" "Binds names as `let` does; `recur` in the body goes round again with new values.";
    Recur "recur" false "(recur value ...)" "Goes back to the nearest `loop` or function with new values; only in tail position.";
    Do "do" false "(do body ...)" "Evaluates the forms in order; the value of the last.";
    Comment "comment" true "(comment ...)" "Nothing of it is evaluated; nil.";
    Quote "quote" true "(quote symbol)" "The symbol itself, also written 'symbol.";
    Fn "fn" true "(fn [params] body ...) or (fn name [params] body ...)" "A function; several ([params] body) parts give it several arities, & takes the rest.";
    Def "def" false "(def name value)" "Gives a name of the program a value; a docstring may stand before the value.";
    DefOnce "defonce" false "(defonce name value)" "The same as `def`, unless the name has a value already.";
    Defn "defn" true "(defn name [params] body ...)" "Defines a function; a docstring may follow the name.";
    DefnPrivate "defn-" true "(defn- name [params] body ...)" "The same as `defn`.";
    If "if" false "(if cond then else?)" "The second part when the first is truthy, else the third or nil.";
    IfNot "if-not" true "(if-not cond then else?)" "The second part when the first is falsy, else the third or nil.";
    When "when" true "(when cond body ...)" "The body when the condition is truthy, else nil.";
    WhenNot "when-not" true "(when-not cond body ...)" "The body when the condition is falsy, else nil.";
    IfLet "if-let" true "(if-let [name expr] then else?)" "Binds a value and goes on with the second part when it is truthy.";
    WhenLet "when-let" true "(when-let [name expr] body ...)" "Binds a value and evaluates the body when it is truthy.";
    IfSome "if-some" true "(if-some [name expr] then else?)" "Binds a value and goes on with the second part when it is not nil.";
    WhenSome "when-some" true "(when-some [name expr] body ...)" "Binds a value and evaluates the body when it is not nil.";
    WhenFirst "when-first" true "(when-first [name coll] body ...)" "Binds the first item and evaluates the body when there is one.";
    Cond "cond" true "(cond test result ...)" "The result beside the first truthy test; `:else` always holds.";
    Case "case" true "(case expr constant result ... default?)" "The result beside the constant equal to the value; (a b) groups constants, an odd last part is the default.";
    Condp "condp" true "(condp pred expr test result ... default?)" "The result beside the first test for which (pred test expr) holds; `:>>` passes on what it gave.";
    And "and" true "(and expr ...)" "The first falsy value, else the last.";
    Or "or" true "(or expr ...)" "The first truthy value, else the last.";
    ThreadFirst "->" true "(-> expr step ...)" "Puts the value in as first argument of each step in turn.";
    ThreadLast "->>" true "(->> expr step ...)" "Puts the value in as last argument of each step in turn.";
    ThreadAs "as->" true "(as-> expr name step ...)" "Binds the name to the value of each step in turn.";
    CondFirst "cond->" true "(cond-> expr test step ...)" "Threads through the steps whose test holds, as `->`.";
    CondLast "cond->>" true "(cond->> expr test step ...)" "Threads through the steps whose test holds, as `->>`.";
    SomeFirst "some->" true "(some-> expr step ...)" "Threads as `->` until a value is nil.";
    SomeLast "some->>" true "(some->> expr step ...)" "Threads as `->>` until a value is nil.";
    For "for" true "(for [bindings] body)" "A vector of the body's value for all items; :when :while :let follow a binding, further bindings nest.";
    Doseq "doseq" true "(doseq [bindings] body ...)" "Evaluates the body for all items, with the bindings of `for`; nil.";
    Dotimes "dotimes" true "(dotimes [name count] body ...)" "Evaluates the body with the name bound to 0, 1 … below count; nil.";
    Doto "doto" true "(doto expr step ...)" "Threads the value as first argument through all steps; the value itself.";
    Letfn "letfn" true "(letfn [(name [params] body ...) ...] body ...)" "Binds functions by name that may call each other and themselves.";
    Task "task" false "(task id expr)" "The value of the expression; a host that keeps a journal remembers it under the id.";
    StepDone "step-done" false "(step-done id summary)" "Reports a step to the host's journal; the summary.";
    TaskReset "task-reset" false "(task-reset id)" "Forgets what the host's journal remembers under the id; nil.";
    Return "return" false "(return value)" "Ends the program with a value, from anywhere.";
    Fail "fail" false "(fail value)" "Ends the program with a failure that carries a value, from anywhere.";
    Dot "." true "(.method obj)" "";
}
