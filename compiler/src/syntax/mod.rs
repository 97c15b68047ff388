//! The special forms: one table of names, one module for each family.

pub(crate) mod binding;
pub(crate) mod conditional;
pub(crate) mod definition;
pub(crate) mod function;
pub(crate) mod host;
pub(crate) mod iteration;
pub(crate) mod pattern;
pub(crate) mod threading;

macro_rules! specials {
    ($($variant:ident $name:literal $shadow:literal $usage:literal;)+) => {
        /// A special form.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Special { $($variant,)+ }

        impl Special {
            pub(crate) const NAMES: &'static [&'static str] = &[$($name,)+];

            pub(crate) fn lookup(name: &str) -> Option<Special> {
                match name { $($name => Some(Special::$variant),)+ _ => None }
            }

            /// A local of the same name hides the form.
            pub(crate) fn can_be_shadowed(self) -> bool {
                match self { $(Special::$variant => $shadow,)+ }
            }

            /// The shape of the form, for messages.
            pub(crate) fn usage(self) -> &'static str {
                match self { $(Special::$variant => $usage,)+ }
            }
        }
    };
}

specials! {
    Let "let" true "(let [bindings] body ...)";
    Loop "loop" true "(loop [bindings] body ...)";
    Recur "recur" false "(recur value ...)";
    Do "do" false "(do body ...)";
    Comment "comment" true "(comment ...)";
    Quote "quote" true "(quote symbol)";
    Fn "fn" true "(fn [params] body ...) or (fn name [params] body ...)";
    Def "def" false "(def name value)";
    DefOnce "defonce" false "(defonce name value)";
    Defn "defn" true "(defn name [params] body ...)";
    If "if" false "(if cond then else?)";
    IfNot "if-not" true "(if-not cond then else?)";
    When "when" true "(when cond body ...)";
    WhenNot "when-not" true "(when-not cond body ...)";
    IfLet "if-let" true "(if-let [name expr] then else?)";
    WhenLet "when-let" true "(when-let [name expr] body ...)";
    IfSome "if-some" true "(if-some [name expr] then else?)";
    WhenSome "when-some" true "(when-some [name expr] body ...)";
    WhenFirst "when-first" true "(when-first [name coll] body ...)";
    Cond "cond" true "(cond test result ...)";
    Case "case" true "(case expr constant result ... default?)";
    Condp "condp" true "(condp pred expr test result ... default?)";
    And "and" true "(and expr ...)";
    Or "or" true "(or expr ...)";
    ThreadFirst "->" true "(-> expr step ...)";
    ThreadLast "->>" true "(->> expr step ...)";
    ThreadAs "as->" true "(as-> expr name step ...)";
    CondFirst "cond->" true "(cond-> expr test step ...)";
    CondLast "cond->>" true "(cond->> expr test step ...)";
    SomeFirst "some->" true "(some-> expr step ...)";
    SomeLast "some->>" true "(some->> expr step ...)";
    For "for" true "(for [bindings] body)";
    Doseq "doseq" true "(doseq [bindings] body ...)";
    Dotimes "dotimes" true "(dotimes [name count] body ...)";
    Doto "doto" true "(doto expr step ...)";
    Letfn "letfn" true "(letfn [(name [params] body ...) ...] body ...)";
    Return "return" false "(return value)";
    Fail "fail" false "(fail value)";
    Dot "." true "(.method obj)";
}
