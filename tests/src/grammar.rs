//! Generates random programs that compile and mostly run, from a grammar with types and scopes and a list of choices.
//! Fewer and smaller choices give smaller programs, so shrinking the list shrinks the program.
//!
//! # Templates
//! A row is source text with holes. `$I $V $M $S $B $A $F $P` stand for an expression of that kind. `$=I` is
//! a new local of that kind, bound between `$+` and `$-` of the same row; `$0`, `$1` name the row's locals.

/// The type of an expression. A hole may be filled by something that faults or has another type: then all runs must
/// agree on the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Vector,
    Map,
    Text,
    Truth,
    Anything,
    /// Takes one argument, gives an integer.
    Function,
    /// Takes one argument, gives a boolean.
    Predicate,
}

impl Kind {
    fn from_letter(letter: char) -> Option<Kind> {
        Some(match letter {
            'I' => Kind::Integer,
            'V' => Kind::Vector,
            'M' => Kind::Map,
            'S' => Kind::Text,
            'B' => Kind::Truth,
            'A' => Kind::Anything,
            'F' => Kind::Function,
            'P' => Kind::Predicate,
            _ => return None,
        })
    }

    /// Rows without expressions inside, the simplest first.
    fn leaves(self) -> &'static [&'static str] {
        match self {
            Kind::Integer => &["1", "0", "-3", "7", "g", "40", "9223372036854775807", "data/n"],
            Kind::Vector => &["[1 2 3]", "[]", "(range 4)", "[3 1 2 1]", "(vec (range 20))"],
            Kind::Map => &["{:a 1 :b 2}", "{}", "{:a 1}", "(first data/rows)", "{:k {:j 1}}"],
            Kind::Text => &["\"ab\"", "\"\"", "data/text", "\"é😀\""],
            Kind::Truth => &["true", "false"],
            Kind::Anything => &["nil", ":a", "\"s\"", "2.5", "'q", "##NaN", "data/rows", "inc", "#\"a\""],
            Kind::Function => &["inc", "-", "identity", "(fn [x] x)"],
            Kind::Predicate => &["even?", "pos?", "nil?", "#{1 2}"],
        }
    }

    fn forms(self) -> &'static [&'static str] {
        match self {
            Kind::Integer => &[
                "(+ $I $I)",
                "(- $I $I)",
                "(* $I $I)",
                "(count $V)",
                "(if $B $I $I)",
                "(let [$=I $I] $+$I$-)",
                "(let [$=V $V $=I $I] $+$I$-)",
                "(let [$=M $M] $+$I$-)",
                "(reduce (fn [$=I $=I] $+$I$-) $I $V)",
                "(reduce + $V)",
                "(loop [$=I 0 $=I $I] $+(if (< $0 4) (recur (inc $0) $I) $1)$-)",
                "(loop [$=I 3 $=V $V] $+(if (pos? $0) (recur (dec $0) (conj $1 $I)) (count $1))$-)",
                "(get $M :a $I)",
                "(:b $M $I)",
                "(nth $V 0 $I)",
                "(or (first $V) $I)",
                "(tool/echo $I)",
                "(do (println $A) $I)",
                "(mod $I 7)",
                "(quot $I $I)",
                "(max $I $I)",
                "(apply max $I $V)",
                "(case $I 1 $I 2 $I (3 4) $I $I)",
                "(cond $B $I $B $I :else $I)",
                "(if-let [$=I (first $V)] $+$I$- $I)",
                "(when-first [$=I $V] $+$I$-)",
                "((fn [$=I $=I] $+$I$-) $I $I)",
                "((fn [$=I & rest] $+(+ $0 (count rest) $I)$-) $I $I $I)",
                "($F $I)",
                "(f $I $I)",
                "(do (def g $I) g)",
                "(some-> (first $V) (+ $I))",
                "(-> $I (+ $I) (* 2))",
                "(let [[$=I $=I] $V] $+(if $0 $I $I)$-)",
                "(let [{:keys [$=I] :or {a 5 b 6 c 7 d 8 e 9}} $M] $+$I$-)",
                "(bit-xor $I 5)",
                "(* $I 4611686018427387904)",
                "(condp = $I 1 $I 2 $I $I)",
                "(count $S)",
                "(return $I)",
                "(reduce (fn [$=I $=I] $+(if $B (reduced $0) $I)$-) 0 $V)",
                "(do (doseq [$=I $V :when $B] $+(println $I)$-) $I)",
                "(count (into #{$I $A} $V))",
                "(get (frequencies $V) $I 0)",
                "(count (set (map (fn [n] [0 0 0 0 0 0 0 0 n $I]) (range 40))))",
                "(.toEpochDay (.plusDays (LocalDate/parse \"2024-01-02\") $I))",
            ],
            Kind::Vector => &[
                "[$I $I]",
                "(conj $V $I)",
                "(map $F $V)",
                "(filter $P $V)",
                "(let [$=V $V] $+$V$-)",
                "(let [$=V $V $=V $V] $+$V$-)",
                "(if $B $V $V)",
                "(loop [$=I 0 $=V $V] $+(if (< $0 3) (recur (inc $0) (conj $1 $I)) $V)$-)",
                "(loop [$=V $V $=V $V] $+(if (seq $0) (recur (rest $0) (conj $1 $I)) $1)$-)",
                "(reduce (fn [$=V $=I] $+(conj $0 $I)$-) $V $V)",
                "(assoc $V 0 $I)",
                "(update $V 0 $F)",
                "(into $V $V)",
                "(concat $V $V)",
                "(vec $V)",
                "(mapv $F $V)",
                "(map (fn [$=I $=I] $+$I$-) $V $V)",
                "(map-indexed (fn [$=I $=I] $+$I$-) $V)",
                "(mapcat (fn [$=I] $+$V$-) $V)",
                "(keep (fn [$=I] $+(when $B $I)$-) $V)",
                "(remove $P $V)",
                "(sort $V)",
                "(sort-by $F $V)",
                "(sort > $V)",
                "(reverse $V)",
                "(rest $V)",
                "(take 3 $V)",
                "(drop 1 $V)",
                "(take-while $P $V)",
                "(distinct $V)",
                "(for [$=I $V] $+$I$-)",
                "(for [$=I $V :when $B :let [b $I]] $+$I$-)",
                "(for [$=I $V $=I [1 2] :while $B] $+$I$-)",
                "(pmap (fn [$=I] $+$I$-) $V)",
                "(pcalls (fn [] $I) (fn [] $I))",
                "(let [[$=I & more] $V] $+(conj more $I)$-)",
                "(let [$=V $V] $+[(conj $0 $I) (conj $0 $I) $0]$-)",
                "(cond-> $V $B (conj $I) $B rest)",
                "(as-> $V $=V $+(conj $0 $I)$-)",
                "(->> $V (map $F) (filter $P))",
                "(take 4 (iterate $F $I))",
                "(reductions + $V)",
                "(vals $M)",
                "(keys $M)",
                "(partition 2 $V)",
                "(tool/echo $V)",
                "(w $I $V)",
                "(swap $V)",
                "(interleave $V $V)",
                "(postwalk (fn [x] (if (number? x) ($F x) x)) $V)",
                "(flatten [$V [$V]])",
                "(do (def kept $V) (conj kept $I))",
                "(partition-by $P $V)",
                "(split-with $P $V)",
                "(subvec $V 1)",
                "(vec (set $V))",
                "(into [] (map $F) $V)",
                "(into $V (comp (filter $P) (take 2)) $V)",
                "(take 3 (map $F (iterate $F $I)))",
                "(sequence (partition-all 2) $V)",
                "(transduce (map $F) conj $V $V)",
                "(let [$=V $V] $+(transduce (map (fn [x] $I)) conj $0 $0)$-)",
                "(reduce (fn [$=V $=V] $+(into $0 $1)$-) [] [$V $V])",
                "(apply conj $V $V)",
                "(let [$=V $V] $+(reduce (fn [acc x] (assoc acc 0 (count $0))) $0 $V)$-)",
                "(re-seq #\"\\w+\" $S)",
                "(map (fn [$=I] $+(str \"k\" $0 $I)$-) $V)",
                "(sort (map str $V))",
                "(vec (keys (frequencies (map str $V))))",
                "(distinct (map (fn [$=I] $+[$0 (str $I)]$-) $V))",
                "(mapv #(* % 9223372036854775807) $V)",
                "(vec #{$I $A \"s\" :a [$I] {:a $I}})",
                "(seq $S)",
            ],
            Kind::Map => &[
                "{:a $I :b $I}",
                "(assoc $M :a $I)",
                "(assoc $M :b $V :c $A)",
                "(dissoc $M :a)",
                "(assoc (dissoc $M :a) :b $I :a $I)",
                "(assoc $M (last (keys (last data/rows))) $I)",
                "(let [$=M $M] $+{$0 $I (assoc $0 :a $I) $I}$-)",
                "(let [$=M (assoc $M $M $I)] $+[(str $0) (str (assoc $0 :d $I)) (str (assoc $0 :d $I))]$-)",
                "(map (fn [r] (assoc r :total $I $A $I)) data/rows)",
                "(update $M :a (fnil $F 0))",
                "(let [$=M $M] $+$M$-)",
                "(let [$=M $M] $+[$0 (assoc $0 :a $I) $0]$-)",
                "(if $B $M $M)",
                "(merge $M $M)",
                "(merge-with + $M $M)",
                "(reduce (fn [$=M $=I] $+(assoc $0 $1 $I)$-) $M $V)",
                "(reduce (fn [$=M $=I] $+(update $0 :n (fnil + 0) $1)$-) $M $V)",
                "(loop [$=I 0 $=M $M] $+(if (< $0 20) (recur (inc $0) (assoc $1 $0 $I)) $1)$-)",
                "(into $M [[:z $I]])",
                "(group-by $F $V)",
                "(frequencies $V)",
                "(frequencies (map str $V))",
                "(frequencies (map (fn [n] (str \"w\" (mod (* n n) 37) $I)) (range 40)))",
                "(group-by (fn [$=I] $+(str \"k\" $I)$-) $V)",
                "(zipmap (map str $V) $V)",
                "(into $M (map (fn [n] [n (str $I n)]) (range 20)))",
                "(reduce (fn [$=M $=I] $+(assoc $0 (* $1 9223372036854775807) $I)$-) $M $V)",
                "(apply dissoc (zipmap (range 30) (range 30)) $V)",
                "{(LocalDate/parse \"2024-01-02\") $I (str $I) $A}",
                "(zipmap $V $V)",
                "(update-vals $M $F)",
                "(select-keys $M [:a :b])",
                "(assoc-in $M [:n :m] $I)",
                "(update-in $M [:k :j] (fnil $F 0))",
                "(let [{:keys [a b] :as $=M} $M] $+(assoc $0 :c [a b])$-)",
                "(json/parse-string (json/generate-string (stringify-keys $M)))",
                "(tool/echo $M)",
                "(first (filter (fn [r] (= (:id r) $I)) data/rows))",
                "(reduce-kv (fn [$=M k v] $+(assoc $0 v k)$-) {} $M)",
                "(tool/call {:server \"s\" :tool \"t\" :args $M})",
                "(keywordize-keys (first data/rows))",
                "(set (vals $M))",
                "(let [$=M $M] $+(do (println $0) (assoc $0 :a $I))$-)",
                "(into $M (map (fn [x] [x $I])) $V)",
                "(reduce merge $M [$M $M])",
                "(apply assoc $M [:a $I])",
                "(index-of-rows data/rows)",
                "(do (def rows (assoc $M :kept $I)) (assoc rows :a 1))",
            ],
            Kind::Text => &[
                "(str $A $A)",
                "(pr-str $A)",
                "(str $S $S)",
                "(loop [$=I 0 $=S $S] $+(if (< $0 3) (recur (inc $0) (str $1 $I)) $1)$-)",
                "(reduce (fn [$=S $=I] $+(str $0 $1)$-) $S $V)",
                "(join \",\" $V)",
                "(upper-case $S)",
                "(subs $S 0 1)",
                "(replace $S #\"[a-z]\" (fn [m] (str m $S)))",
                "(let [$=S $S] $+(str $0 $S $0)$-)",
                "(format \"%s-%d\" $A $I)",
                "(tool/echo $S)",
                "(name :key)",
                "(if $B $S $S)",
            ],
            Kind::Truth => &[
                "(< $I $I)",
                "(= $A $A)",
                "(= $V $V)",
                "(even? $I)",
                "(contains? $M :a)",
                "(some $P $V)",
                "(every? $P $V)",
                "(and $B $B)",
                "(or $B $B)",
                "(not $B)",
                "(empty? $V)",
                "(nil? $A)",
                "($P $I)",
                "(<= $I $I $I)",
                "(let [$=I $I] $+$B$-)",
                "(= $M $M)",
            ],
            Kind::Anything => &[
                "$I",
                "$V",
                "$M",
                "$S",
                "$B",
                "[$A $A]",
                "{$A $A}",
                "#{$I $A}",
                "#{$M $M {:a 1 :b 3}}",
                "(when $B $A)",
                "(first $V)",
                "(let [$=A $A] $+[$0 $A $0]$-)",
                "(tool/echo $A)",
                "$F",
                "(fail $A)",
                "(get $M $A)",
                "(compare $A $A)",
                "(json/parse-string (json/generate-string $A))",
                "(describe $A)",
                "(if-let [$=A $A] $+[$0 $A]$- $A)",
                "(some-> $A str count)",
                "(sort [$A $A $A])",
            ],
            Kind::Function => &[
                "(fn [$=I] $+$I$-)",
                "(partial + $I)",
                "(comp inc $F)",
                "(fn [x] (tool/echo x))",
                "#(+ % $I)",
                "(fnil $F 0)",
                "(let [$=V $V] $+(fn [$=I] (count (conj $0 $I)))$-)",
                "(fn self [n] (if (and (number? n) (< 0 n 5)) (self (dec n)) $I))",
                "(let [$=M $M] $+(fn [k] (get $0 k $I))$-)",
            ],
            Kind::Predicate => &[
                "(fn [$=I] $+$B$-)",
                "(complement $P)",
                "(fn [x] (< x $I))",
                "#(= % $I)",
                "(every-pred $P $P)",
                "(fn [x] (tool/echo (odd? x)))",
            ],
        }
    }
}

/// Definitions that every program may call.
const PRELUDE: &str = "(def g 5)
(defn f ([a] (inc a)) ([a b] (if (< a b) a b)))
(defn w [n acc] (if (or (<= n 0) (> n 9)) acc (w (dec n) (conj acc n))))
(defn swap [[a b & more]] (into [b a] more))
(defn index-of-rows [rows] (reduce (fn [m r] (assoc m (:id r) (assoc r :seen true))) {} rows))
";

/// Names of locals: few, so that they shadow each other.
const NAMES: &[&str] = &["a", "b", "c", "d", "e"];

const MOST_BYTES: usize = 1_500;
const DEEPEST: u32 = 7;

struct Writer<'c> {
    choices: std::slice::Iter<'c, u8>,
    scope: Vec<(Kind, &'static str)>,
    out: String,
}

/// The program for these choices.
pub fn program(choices: &[u8]) -> String {
    let mut writer = Writer { choices: choices.iter(), scope: Vec::new(), out: PRELUDE.to_owned() };
    writer.out.push('[');
    let parts = 1 + writer.choose(3);
    for _ in 0..parts {
        writer.expression(Kind::Anything, DEEPEST);
        writer.out.push('\n');
    }
    writer.out.push(']');
    writer.out
}

impl Writer<'_> {
    /// A number below `count`; 0 when there are no choices left.
    fn choose(&mut self, count: usize) -> usize {
        self.choices.next().map_or(0, |&choice| usize::from(choice) % count)
    }

    /// `depth` bounds the recursion.
    fn expression(&mut self, kind: Kind, depth: u32) {
        let local = self.local(kind);
        let is_leaf = depth == 0 || self.out.len() > MOST_BYTES || self.choices.len() == 0;
        let choice = if is_leaf { 0 } else { self.choose(6) };
        match (choice, local) {
            (0 | 1, Some(name)) => self.out.push_str(name),
            (0, None) => {
                let leaves = kind.leaves();
                let leaf = leaves[self.choose(leaves.len())];
                self.out.push_str(leaf);
            }
            _ => {
                let forms = kind.forms();
                let form = forms[self.choose(forms.len())];
                self.fill(form, depth - 1);
            }
        }
    }

    /// A visible local of this kind.
    fn local(&mut self, kind: Kind) -> Option<&'static str> {
        let visible = |index: &usize| {
            let (_, name) = self.scope[*index];
            !self.scope[index + 1..].iter().any(|(_, later)| *later == name)
        };
        let fitting: Vec<&'static str> = (0..self.scope.len())
            .rev()
            .filter(visible)
            .map(|index| self.scope[index])
            .filter(|(of, _)| *of == kind || kind == Kind::Anything)
            .map(|(_, name)| name)
            .collect();
        if fitting.is_empty() { None } else { Some(fitting[self.choose(fitting.len())]) }
    }

    fn fill(&mut self, form: &'static str, depth: u32) {
        let mut own: Vec<(Kind, &'static str)> = Vec::new();
        let outside = self.scope.len();
        let mut characters = form.chars();
        while let Some(character) = characters.next() {
            if character != '$' {
                self.out.push(character);
                continue;
            }
            match characters.next() {
                Some('=') => {
                    let Some(kind) = characters.next().and_then(Kind::from_letter) else { continue };
                    let first = self.choose(NAMES.len());
                    let free = |name: &&str| !own.iter().any(|(_, taken)| taken == name);
                    let name = NAMES.iter().cycle().skip(first).find(|name| free(name)).unwrap();
                    own.push((kind, name));
                    self.out.push_str(name);
                    // A local named inside the scope joins it at once.
                    if self.scope.len() > outside {
                        self.scope.push((kind, name));
                    }
                }
                Some('+') => self.scope.extend(own.iter().copied()),
                Some('-') => self.scope.truncate(outside),
                Some(digit @ '0'..='9') => self.out.push_str(own[digit as usize - '0' as usize].1),
                Some(letter) => {
                    if let Some(kind) = Kind::from_letter(letter) {
                        self.expression(kind, depth);
                    }
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn no_choices_give_the_simplest_program() {
        assert!(program(&[]).ends_with("[nil\n]"));
    }

    #[test]
    fn the_same_choices_give_the_same_program() {
        let choices: Vec<u8> = (0..=255).collect();
        assert_eq!(program(&choices), program(&choices));
    }
}
